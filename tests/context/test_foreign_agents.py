"""What foreign agents do wrong is found, in any framework, over HTTP, in any conversation."""

import asyncio
import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.context import ClarificationRequest
from pytest_regen.errors import UsageError
from pytest_regen.testing import (
    agents,
    base_url,
    check_stateless_agent,
    completion,
    failing_checks,
    http,
)
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


def swap_roles(wire: Wire) -> None:
    """Send inferences as answers."""
    wire["answers"], wire["inferred_context"] = wire["inferred_context"], wire["answers"]


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


def no_is_none(wire: Wire) -> None:
    """Take no for skipped."""
    answers = wire["answers"].items()
    wire["answers"] = {key: one for key, one in answers if one.get("text") != "no"}


def cut_bytes(wire: Wire) -> None:
    """Cut the description by its bytes."""
    cut = wire["original_description"].encode()[:4_000]
    wire["original_description"] = cut.decode(errors="ignore")


def exchange(wire: Wire) -> None:
    """Exchange an answer and an inference."""
    for answer in list(wire["answers"].values())[:1]:
        name = "label" if "label" in answer else "text"
        inferred = wire["inferred_context"]
        answer[name], inferred["detected_location"] = inferred["detected_location"], answer[name]


def lower(wire: Wire) -> None:
    """Send the description in small letters."""
    wire["original_description"] = wire["original_description"].lower()


CHANGES: Mapping[str, tuple[str, Callable[[Wire], None]]] = {
    "swaps roles": ("answers_in_place", swap_roles),
    "defaults where skipped": ("skip_works", default_blank),
    "all or nothing": ("carries_full_context", all_or_nothing),
    "fills the other": ("skip_works", fill_the_other),
    "first selected only": ("carries_full_context", first_selected),
    "no is none": ("carries_full_context", no_is_none),
    "4,000 bytes": ("carries_full_context", cut_bytes),
    "lower case": ("carries_full_context", lower),
    "answer and inference exchanged": ("answers_in_place", exchange),
}


class Percent(Foreign):
    """Formats a prompt that texts are in already."""

    def _prompt(self, request: ClarificationRequest) -> str:
        return ("Issue: " + json.dumps(request.message) + " %s") % super()._prompt(request)


class Quoted(Foreign):
    """Puts quotes around texts, and takes only line ends out of them."""

    def _prompt(self, request: ClarificationRequest) -> str:
        return re.sub(
            r'"(?:\\.|[^"\\])*"',
            lambda text: f'"{" ".join(json.loads(text[0]).split())}"',
            super()._prompt(request),
        )


class ThirdCallForgets(Foreign):
    """Sends the whole context twice."""

    def _again(self, prompt: str, request: ClarificationRequest, number: int) -> str:
        return prompt if number == 1 else f"Write for {request.message}"


class FirstRetryForgets(Foreign):
    """Drops the message where the first turn is retried."""

    def _again(self, prompt: str, request: ClarificationRequest, number: int) -> str:
        return prompt if request.is_second_turn else "JSON, please."


class LastGood(Foreign):
    """Returns the result of the person before."""

    last: Any = None

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        try:
            self.last = super().turn(request)
        except ValueError:
            if self.last is None:
                raise
        return self.last


class EmptySubject(Foreign):
    """Returns an empty subject as a success."""

    def _read(self, text: str, request: ClarificationRequest) -> Any:
        found = super()._read(text, request)
        return found or ({"subject_line": ""} if request.is_second_turn else None)


class Dated(Foreign):
    """Tells the date."""

    def _prompt(self, request: ClarificationRequest) -> str:
        return f"{super()._prompt(request)}\nNote {date.today()}."  # noqa: DTZ011 - as they do


class Counting(Foreign):
    """Numbers its prompts."""

    numbers = count()

    def _prompt(self, request: ClarificationRequest) -> str:
        return f"{super()._prompt(request)}\nPrompt {next(self.numbers)}."


class Remembering(Foreign):
    """Returns what it returned for the same key."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.memory: dict[object, Any] = {}

    def key(self, request: ClarificationRequest) -> object:
        """Return what a result is kept by: the description."""
        return request.message

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        key = self.key(request)
        if key not in self.memory:
            self.memory[key] = super().turn(request)
        return self.memory[key]


class RemembersAnswers(Remembering):
    """Keeps it by the answers."""

    def key(self, request: ClarificationRequest) -> object:
        """Return the answers."""
        context = request.conversation_context
        return context and str(context.answers)


class StoredContext(Remembering):
    """Keeps the first context of an interaction."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        if request.interaction_id and request.conversation_context:
            context = self.memory.setdefault(request.interaction_id, request.conversation_context)
            request = request.with_context(context)
        return Foreign.turn(self, request)


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
        for _ in range(2):
            text = self.complete([{"role": "user", "content": self._prompt(self.request)}])
            if found := self._read(text, request):
                return found
        raise ValueError("no subject line")


class KeptResult(Foreign):
    """Keeps the result of the turn in the instance."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        self.result = super().turn(request)
        if not self.result:
            raise ValueError("no subject line")
        return self.result


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
    """Does not."""

    is_apart = True


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_on_the_way_is_found(name: str) -> None:
    check, change = CHANGES[name]

    assert list(failing_checks(changing(change), checks=[check])) == [check]


@pytest.mark.parametrize(
    ("check", "agent", "words"),
    [
        ("structure_holds", Percent, "raises TypeError"),
        ("structure_holds", Quoted, "leaves its quotes"),
        ("retry_keeps_context", ThirdCallForgets, "reasoning"),
        ("retry_keeps_context", FirstRetryForgets, "original_description"),
        ("reasking_bounded", EmptySubject, "an empty result as a success"),
        ("stateless", LastGood, "after another conversation"),
        ("stateless", Race, "two turns at once"),
        ("stateless", KeptResult, "two turns at once"),
        ("stateless", Together, "two turns at once"),
        ("stateless", Counting, "the same instance"),
        ("stateless", Remembering, "another conversation with the same description"),
        ("stateless", RemembersAnswers, "another conversation with the same answers"),
        ("stateless", StoredContext, "after another context under the same interaction_id"),
        ("stateless", StoredFirst, "after the first turn under the same interaction_id"),
    ],
)
def test_a_broken_agent_fails_its_check(check: str, agent: type[Foreign], words: str) -> None:
    """And no other; the failure names the cause."""
    failures = failing_checks(agent)

    assert list(failures) == [check]
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


class Held(Apart):
    """Holds a lock of threads over an await."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.lock = threading.Lock()

    async def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        with self.lock:
            return await super().turn(request)


def test_turns_that_block_each_other_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sooner here than elsewhere, because this one never ends."""
    monkeypatch.setattr(agents, "_PATIENCE", 2)

    failures = failing_checks(Held, checks=["stateless"])

    assert "two turns at once: each waits for the other" in str(failures["stateless"])


@pytest.mark.parametrize("agent", [Foreign, Apart])
def test_a_correct_one_passes(agent: type[Foreign]) -> None:
    assert not failing_checks(agent)


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
    failures = failing_checks(partial(Percent))

    assert list(failures) == ["stateless", "structure_holds"]
    assert "another process" in str(failures["stateless"])


NODE = """
const ask = async prompt => {
  const reply = await fetch(process.env.ANTHROPIC_BASE_URL + "/v1/messages", {
    method: "POST",
    body: JSON.stringify({model: "m", messages: [{role: "user", content: prompt}]}),
  });
  return JSON.parse((await reply.json()).content[0].text);
};
require("http").createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const {message, conversationContext: context} = JSON.parse(body);
  const prompt = JSON.stringify(FAULT ? {message, answers: context?.answers} : {message, context});
  for (let calls = 0; calls < 2; calls++) {
    try {
      const found = await ask(prompt);
      if (found.subject_line || !context) return response.end(JSON.stringify(found));
    } catch {}
  }
  response.writeHead(502).end();
}).listen(process.env.PORT, "127.0.0.1");
"""


@pytest.mark.parametrize("fault", ["false", "true"])
def test_an_agent_over_http(fault: str, tmp_path: Path) -> None:
    """In Node.js: a correct one passes, and what another loses is found."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js on this machine")
    script = tmp_path / "agent.js"
    script.write_text(NODE.replace("FAULT", fault), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agent = http(f"http://127.0.0.1:{port}/turn", command=["node", str(script)])
    try:
        failures = failing_checks(agent)
    finally:
        agent.stop()

    assert list(failures) == (["carries_full_context"] if fault == "true" else [])


def test_nobody_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        agent = http(f"http://127.0.0.1:{free.getsockname()[1]}/turn")
        with pytest.raises(UsageError, match="no agent answers"):
            check_stateless_agent(agent)


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


def make_forgetful_booking(provider: Provider) -> Any:
    return make_booking(provider, ("guests", "earlier"))


def test_any_conversation() -> None:
    """Its texts, numbers and dates are looked for as those of the built-in one, in all rounds."""
    assert not failing_checks(make_booking, conversation=BOOKING)
    failures = failing_checks(make_forgetful_booking, conversation=BOOKING)
    assert set(failures["carries_full_context"].findings) == {
        "guests",
        "earlier.0.questions.0.text",
        "earlier.0.answers.in",
    }


@cache
def shared_client() -> Any:
    """Return the client whose connections all agents below use, closed by their test."""
    return pytest.importorskip("anthropic").Anthropic(api_key="none", max_retries=0)


def make_with_client(provider: Provider) -> Any:
    """Return an agent that speaks through a vendor's client, streamed."""
    client = shared_client().with_options(base_url=base_url(provider))

    class Client(Foreign):
        def turn(self, request: ClarificationRequest) -> Any:
            for _ in range(2):
                messages = [{"role": "user", "content": self._prompt(request)}]
                with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
                    found = self._read(stream.get_final_text() or "", request)
                if found is not None:
                    return found
            raise ValueError("no subject line")

    return Client(provider)


def test_an_agent_with_a_client_of_its_own() -> None:
    checks = ["carries_full_context", "retry_keeps_context", "reasking_bounded"]

    with shared_client():
        check_stateless_agent(make_with_client, checks=checks)
