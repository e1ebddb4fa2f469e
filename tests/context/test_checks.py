"""The checks for anyone's agent: a correct one passes, what a broken one does is found."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from html import escape
from itertools import count
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from tables import each

from pytest_regen.context import ClarificationRequest
from pytest_regen.errors import UsageError
from pytest_regen.testing import (
    CHECKS,
    AgentFactory,
    ContextLossError,
    check_stateless_agent,
    completion,
    failing_checks,
)
from pytest_regen.testing.canaries import leaves
from pytest_regen.turns.values import Message, Provider, TurnRequest

Wire = dict[str, Any]


class Foreign:
    """A correct agent, which sends the context as JSON; what is wrong is put in by subclasses."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.complete = completion(provider)

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn, in three calls at most."""
        prompt = self._prompt(request)
        for number in range(3):
            text = prompt if number == 0 else self._again(prompt, request, number)
            found = self._read(self.complete([{"role": "user", "content": text}]), request)
            if found is not None:
                return found
        raise ValueError("no subject line")

    def _prompt(self, request: ClarificationRequest) -> str:
        """Return what is sent at first."""
        context = request.conversation_context
        wire = {"issue": request.message} if context is None else context.model_dump(mode="json")
        if context is not None:
            self._change(wire)
        return json.dumps(wire)

    def _change(self, wire: Wire) -> None:
        """Change what is sent of the context."""

    def _again(self, prompt: str, request: ClarificationRequest, number: int) -> str:
        """Return what is sent after an unusable reply."""
        del request, number
        return f"{prompt}\nWrite now."

    def _read(self, text: str, request: ClarificationRequest) -> Any:
        """Return the result in a reply, or none."""
        try:
            found = json.loads(text)
        except ValueError:
            return None
        asks = found.get("needs_clarification") and not request.is_second_turn
        return found if asks or found.get("subject_line") else None


def changing(change: Callable[[Wire], object]) -> Callable[[Provider], Any]:
    """Return what makes an agent that changes the context before it sends it."""

    class Changing(Foreign):
        def _change(self, wire: Wire) -> None:
            change(wire)

    return Changing


def swap_answers(wire: Wire) -> None:
    """Give one question's answer to the other, where both are words."""
    answers = wire["answers"]
    if {answer["kind"] for answer in answers.values()} == {"text"}:
        wire["answers"] = dict(zip(answers, reversed(answers.values()), strict=True))


def default_blank(wire: Wire) -> None:
    """Let the inference answer what was skipped."""
    place = wire["inferred_context"]["detected_location"]
    wire["answers"] = wire["answers"] or {one["id"]: place for one in wire["questions_asked"]}


def all_or_nothing(wire: Wire) -> None:
    """Drop the answers unless there are all."""
    if len(wire["answers"]) < len(wire["questions_asked"]):
        wire["answers"] = {}


def fill_the_other(wire: Wire) -> None:
    """Let the inference answer the second question."""
    text = {"kind": "text", "text": wire["inferred_context"]["detected_location"]}
    for question in wire["questions_asked"] if wire["answers"] else ():
        wire["answers"].setdefault(question["id"], text)


def first_selected(wire: Wire) -> None:
    """Send the first of the options chosen."""
    for answer in wire["answers"].values():
        answer["selected"] = answer.get("selected", [])[:1]


def cut_bytes(wire: Wire) -> None:
    """Cut the description by its bytes."""
    cut = wire["original_description"].encode()[:4_000]
    wire["original_description"] = cut.decode(errors="ignore")


@each(
    ("change", "check", "words"),
    [
        (swap_answers, "answers_in_place", "answers.0.text stands with another question"),
        (default_blank, "skip_works", "inferred_context.detected_location stands where"),
        (fill_the_other, "skip_works", "inferred_context.detected_location stands where"),
        (all_or_nothing, "carries_full_context", "where only one question is answered"),
        (first_selected, "carries_full_context", "answers.1.selected"),
        (cut_bytes, "carries_full_context", "where texts are as long as they may be"),
    ],
)
def test_what_is_changed_on_the_way_is_found(
    change: Callable[[Wire], None], check: str, words: str
) -> None:
    failures = failing_checks(changing(change), checks=[check])

    assert words in str(failures[check])


class Percent(Foreign):
    """Formats a prompt that texts are in already."""

    def _prompt(self, request: ClarificationRequest) -> str:
        return ("Issue: " + json.dumps(request.message) + " %s") % super()._prompt(request)


class Unescaped(Foreign):
    """Pastes texts into the prompt as they are."""

    def _prompt(self, request: ClarificationRequest) -> str:
        prompt = super()._prompt(request)
        return re.sub(r'"(?:\\.|[^"\\])*"', lambda text: json.loads(text[0]), prompt)


class ThirdCallForgets(Foreign):
    """Sends the whole context twice."""

    def _again(self, prompt: str, request: ClarificationRequest, number: int) -> str:
        return prompt if number == 1 else f"Write for {request.message}"


class AsksForEver(Foreign):
    """Hands on whatever the model asks, on every turn."""

    def _read(self, text: str, request: ClarificationRequest) -> Any:
        found = super()._read(text, request)
        return found or (json.loads(text) if '"clarification_questions"' in text else None)


class Endless(Foreign):
    """Sends for as long as it is let, whatever is raised."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        while True:
            try:
                return super().turn(request)
            except Exception:  # noqa: BLE001 - the fault
                continue


class LegacyFirst(Foreign):
    """Looks at the legacy fields before the context."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take the turn without its context, where there are legacy answers."""
        if request.clarification_answers is not None:
            request = request.model_copy(update={"conversation_context": None})
        return super().turn(request)


class HelplessWithoutAnswers(Foreign):
    """Cannot go on when a person skips."""

    def _change(self, wire: Wire) -> None:
        if not wire["answers"]:
            raise KeyError("answers")


class TellsOfAnother(Foreign):
    """Names the issue of the person before where it fails."""

    issue = ""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        before, self.issue = self.issue, request.message
        try:
            return super().turn(request)
        except ValueError:
            raise ValueError(f"no subject line after {before}") from None


class Counting(Foreign):
    """Numbers its prompts, for the whole process."""

    numbers = count()

    def _prompt(self, request: ClarificationRequest) -> str:
        return f"{super()._prompt(request)}\nPrompt {next(self.numbers)}."


class Remembering(Foreign):
    """Returns what it returned for the same description."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.memory: dict[object, Any] = {}

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        if request.message not in self.memory:
            self.memory[request.message] = super().turn(request)
        return self.memory[request.message]


class StoredContext(Foreign):
    """Keeps the first context of an interaction, for the whole process."""

    contexts: ClassVar[dict[str, Any]] = {}

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        if request.interaction_id and request.conversation_context:
            context = self.contexts.setdefault(request.interaction_id, request.conversation_context)
            request = request.with_context(context)
        return super().turn(request)


class StoredFirst(Remembering):
    """Adds the first message of an interaction."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        if not request.is_second_turn:
            self.memory[request.interaction_id] = request.message
        return Foreign.turn(self, request)

    def _prompt(self, request: ClarificationRequest) -> str:
        first = request.interaction_id and self.memory.get(request.interaction_id)
        return super()._prompt(request) + (f"\nAt first: {json.dumps(first)}" if first else "")


class Race(Foreign):
    """Keeps the request of the turn in the instance."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        self.request = request
        return super().turn(request)

    def _again(self, prompt: str, request: ClarificationRequest, number: int) -> str:
        return self._prompt(self.request)


class Together(Foreign):
    """Does so in an asynchronous turn."""

    is_apart = False

    async def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        self.request = request
        await asyncio.sleep(0)
        prompt = self._prompt(request if self.is_apart else self.request)
        asked = TurnRequest("", (Message("user", prompt),), "", 100)
        for _ in range(2):
            if found := self._read((await self.provider.asend(asked)).text, request):  # type: ignore[attr-defined]  # the scripted model has it
                return found
        raise ValueError("no subject line")


class Apart(Together):
    """Does not; it calls all parts alike."""

    is_apart = True

    def _prompt(self, request: ClarificationRequest) -> str:
        parts = leaves(json.loads(super()._prompt(request)))
        return "\n".join(f"Part: {json.dumps(part)}" for _, part in parts)


class Dated(Foreign):
    """Tells the date."""

    def _prompt(self, request: ClarificationRequest) -> str:
        return f"{super()._prompt(request)}\nNote {date.today()}."  # noqa: DTZ011 - as they do


class Xml(Foreign):
    """A correct agent that sends elements: the questions, then from the last the answer to each."""

    def _prompt(self, request: ClarificationRequest) -> str:
        wire = json.loads(super()._prompt(request))
        questions = wire.get("questions_asked", ())
        answers = wire.pop("answers", {})
        wire["answered"] = [(one, answers.get(one["id"])) for one in reversed(questions)]
        return f"Write one: <example>Fix our roads</example>\n{element('issue', wire)}"


def element(name: str, value: Any) -> str:
    """Return a value as an element on one line."""
    if isinstance(value, dict):
        inner = "".join(element(key, part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        inner = "".join(element("item", part) for part in value)
    else:
        inner = re.sub(r"[\x00-\x1f\x85]", lambda end: f"&#{ord(end[0])};", escape(str(value)))
    return f"<{name}>{inner}</{name}>"


@pytest.mark.parametrize("maker", [Foreign, Apart, Xml])
def test_a_correct_agent_of_every_style_passes(maker: AgentFactory) -> None:
    assert not failing_checks(maker)


@pytest.mark.parametrize(
    ("check", "agent", "words"),
    [
        ("structure_holds", Percent, "raises TypeError"),
        ("structure_holds", Unescaped, "original_description: '## "),
        ("retry_keeps_context", ThirdCallForgets, "reasoning"),
        ("reasking_bounded", AsksForEver, "returns questions"),
        ("reasking_bounded", Endless, "calls or more, 3 at most"),
        ("legacy_ignored", LegacyFirst, "clarification_answers beside the context"),
        ("skip_works", HelplessWithoutAnswers, "KeyError"),
        ("stateless", TellsOfAnother, "after another conversation"),
        ("stateless", Race, "two turns at once"),
        ("stateless", Together, "two turns at once"),
        ("stateless", Counting, "a fresh process"),
        ("stateless", Remembering, "the same instance"),
        ("stateless", StoredContext, "after another context under the same interaction_id"),
        ("stateless", StoredFirst, "after the first turn under the same interaction_id"),
    ],
)
def test_a_broken_agent_fails_its_check(check: str, agent: type[Foreign], words: str) -> None:
    """And no other; the failure names the cause."""
    failures = failing_checks(agent)

    assert list(failures) == [check]
    assert failures[check].check == check
    assert words in str(failures[check])


def test_the_date_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another day alone: this process is in the time zone of the other already."""
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        failures = failing_checks(Dated)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert list(failures) == ["stateless"]
    assert failures["stateless"].findings == (
        "another day in another time zone: sends or answers something else",
    )


def test_a_leaf_may_be_exempt() -> None:
    def forget(wire: Wire) -> None:
        for question in wire["questions_asked"]:
            question["placeholder"] = None

    checks = ["carries_full_context"]
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(changing(forget), checks=checks)
    assert set(caught.value.findings) == {
        "questions_asked.0.placeholder",
        "questions_asked.1.placeholder",
    }

    exempt = ["questions_asked.*.placeholder"]
    check_stateless_agent(changing(forget), checks=checks, ignore=exempt)


def test_values_may_keep_their_lines_where_delimiters_hold_them() -> None:
    checks = ["structure_holds"]

    check_stateless_agent(Unescaped, checks=checks, skeleton=lambda _: "whatever")
    with pytest.raises(ContextLossError):
        check_stateless_agent(Unescaped, checks=checks, skeleton=lambda text: text.count("\n#"))


def test_several_failures_are_one_error() -> None:
    """As where every turn raises."""
    with pytest.raises(ContextLossError, match=f"{len(CHECKS)} checks fail") as caught:
        check_stateless_agent(lambda _: {}.__getitem__)

    assert all(check in str(caught.value) for check in CHECKS)


def make_streaming(provider: Provider) -> Any:
    """Return a turn that yields its result in parts."""

    async def turn(request: ClarificationRequest) -> Any:
        yield completion(provider)([{"role": "user", "content": request.message}])

    return turn


def test_a_turn_that_streams_is_told_to_be_wrapped() -> None:
    with pytest.raises(UsageError, match="async generator, not a result") as caught:
        check_stateless_agent(make_streaming)
    assert "wrap it" in str(caught.value)


def test_a_check_that_cannot_be_made_loses_no_other() -> None:
    """A factory that no process can import is told beside what fails."""

    def make(provider: Provider) -> Any:
        return Percent(provider)

    failures = failing_checks(make)

    assert list(failures) == ["stateless", "structure_holds"]
    assert "another process" in str(failures["stateless"])


class Question(BaseModel):
    """One question."""

    id: str
    text: str


class Round(BaseModel):
    """Questions, and answers by their ids."""

    questions: list[Question]
    answers: dict[str, date | str]


class Booking(Round):
    """Another conversation, in two rounds: its second asks for a day."""

    wish: str
    guests: int
    earlier: list[Round]


BOOKING = Booking(
    wish="a table",
    guests=4,
    earlier=[Round(questions=[Question(id="in", text="Inside?")], answers={"in": "At a window"})],
    questions=[Question(id="day", text="Which day?"), Question(id="x", text="Who?")],
    answers={"day": date(2026, 1, 2), "x": "Ann"},
)


def make_booking(provider: Provider, without: tuple[str, ...] = ()) -> Any:
    def turn(booking: Booking) -> str:
        wire = booking.model_dump(mode="json", exclude=set(without))
        for _ in range(2):
            text = completion(provider)([{"role": "user", "content": json.dumps(wire)}])
            if "subject_line" in text:
                return text
        raise ValueError("no text")

    return turn


def test_any_conversation() -> None:
    """Its texts, numbers and dates are looked for as those of the built-in one, in all rounds."""
    assert not failing_checks(make_booking, conversation=BOOKING)
    forgetful = partial(make_booking, without=("guests", "earlier"))
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(forgetful, conversation=BOOKING, checks=["carries_full_context"])
    assert set(caught.value.findings) == {
        "guests",
        "earlier.0.questions.0.text",
        "earlier.0.answers.in",
    }
