"""The checks for anyone's agent: a good one passes, each known-bad one fails exactly one."""

import asyncio
import time
from typing import Any

import pytest
from stateless_agents import FAULTS, factory, make_dumping

from pytest_regen.context import ClarificationRequest, ClarifyingAgent
from pytest_regen.errors import UsageError
from pytest_regen.testing import (
    CHECKS,
    KNOWN_BAD,
    ContextLossError,
    check_stateless_agent,
    completion,
    failing_checks,
)
from pytest_regen.testing.canaries import ANY_MARK, default_samples
from pytest_regen.testing.places import find_misplaced
from pytest_regen.turns.values import Provider


def test_every_check_has_its_bad_agent() -> None:
    assert set(KNOWN_BAD) == set(CHECKS)


@pytest.mark.parametrize("check", KNOWN_BAD)
def test_a_known_bad_agent_fails_exactly_its_check(check: str) -> None:
    assert list(failing_checks(KNOWN_BAD[check])) == [check]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("carries_full_context", ("original_description", "questions_asked.1.options.0.label")),
        ("stateless", ("interleaved", "a fresh process", "another conversation")),
        ("legacy_ignored", ("clarification_answers",)),
        ("retry_keeps_context", ("inferred_context.reasoning", "answers.0.label")),
        ("reasking_bounded", ("returns questions",)),
        ("skip_works", ("KeyError",)),
        ("structure_holds", ("original_description", "## ")),
    ],
)
def test_a_failure_names_what_is_lost(check: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(KNOWN_BAD[check], checks=[check])

    assert caught.value.check == check
    assert all(word in str(caught.value) for word in words)


class Asynchronous(ClarifyingAgent):
    """Has only the asynchronous turn."""

    async def turn(self, request: ClarificationRequest) -> Any:  # type: ignore[override]  # the case
        """Take one turn."""
        return await self.aturn(request)


def test_an_asynchronous_agent_passes() -> None:
    """Its turns are waited for, also where an event loop runs already."""

    async def within() -> None:
        check_stateless_agent(Asynchronous, checks=["carries_full_context"])

    asyncio.run(within())


class Forgetting(ClarifyingAgent):
    """Leaves placeholders out."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        context = request.conversation_context
        if context is not None:
            bare = [one.model_copy(update={"placeholder": None}) for one in context.questions_asked]
            context = context.model_copy(update={"questions_asked": tuple(bare)})
            request = request.with_context(context)
        return super().turn(request)


def test_a_leaf_may_be_exempt() -> None:
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(Forgetting, checks=["carries_full_context"])
    assert set(caught.value.findings) == {
        "questions_asked.0.placeholder",
        "questions_asked.1.placeholder",
    }

    exempt = ["questions_asked.*.placeholder"]
    check_stateless_agent(Forgetting, checks=["carries_full_context"], ignore=exempt)


class Endless:
    """Sends for as long as it is let, whatever is raised."""

    def __init__(self, provider: Provider) -> None:
        self._complete = completion(provider)

    def turn(self, request: ClarificationRequest) -> str:
        """Take one turn."""
        while True:
            try:
                text = self._complete([{"role": "user", "content": request.model_dump_json()}])
            except Exception:  # noqa: BLE001 - the fault
                continue
            if "subject_line" in text:
                return text


def test_an_agent_that_never_stops_is_stopped() -> None:
    with pytest.raises(ContextLossError, match="calls or more, 3 at most"):
        check_stateless_agent(Endless, checks=["reasking_bounded"])


def test_a_factory_that_no_process_can_import_is_told_so() -> None:
    with pytest.raises(UsageError, match="another process"):
        check_stateless_agent(
            lambda provider: ClarifyingAgent(provider, model="m"), checks=["stateless"]
        )


def test_values_may_keep_their_lines_where_delimiters_hold_them() -> None:
    bad = KNOWN_BAD["structure_holds"]

    checks = ["structure_holds"]
    check_stateless_agent(bad, checks=checks, skeleton=lambda _: "whatever")
    with pytest.raises(ContextLossError):
        check_stateless_agent(bad, checks=checks, skeleton=lambda text: text.count("\n#"))


def test_several_failures_are_one_error() -> None:
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(Broken)

    assert "carries_full_context" in str(caught.value)
    assert "structure_holds" in str(caught.value)


class Broken:
    """Raises on every turn."""

    def __init__(self, provider: Provider) -> None:
        del provider

    def turn(self, request: ClarificationRequest) -> str:
        """Take one turn."""
        raise RuntimeError(request.message)


def test_correct_agents_of_every_style_pass() -> None:
    makers = [ClarifyingAgent, make_dumping, factory("prose"), factory("talk")]

    assert not [(make, failures) for make in makers if (failures := failing_checks(make))]


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        ("prose", "inferred wins"),
        ("xml", "cuts the prompt at 4,000"),
        ("prose", "prints the hour"),
    ],
)
def test_a_broken_agent_fails_exactly_its_check(style: str, fault: str) -> None:
    assert list(failing_checks(factory(style, fault))) == [FAULTS[fault]]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_the_verdict_is_the_same_in_every_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between these two it is never the same day; what shows the date always fails."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        check_stateless_agent(ClarifyingAgent, checks=["stateless"])
        with pytest.raises(ContextLossError, match="another day in another time zone"):
            check_stateless_agent(factory("prose", "prints the date"), checks=["stateless"])
    finally:
        monkeypatch.undo()
        time.tzset()


def test_tags_inside_a_line_are_structure() -> None:
    """Where a prompt puts texts into elements, a text that closes one is found, without a line."""
    check_stateless_agent(factory("xml"), checks=["structure_holds"])
    with pytest.raises(ContextLossError, match="'a</city><city>b'"):
        check_stateless_agent(factory("xml", "pastes texts"), checks=["structure_holds"])


def test_nothing_is_said_of_answers_whose_questions_are_not_sent() -> None:
    sample = default_samples()[-1]
    shape = sample.turn
    tokens = shape.sent_tokens(ANY_MARK)
    prompt = f"They said {tokens['answers.1.text']}, and then {tokens['answers.0.text']}."

    assert find_misplaced(shape, prompt) == []
    asked = " ".join(tokens[f"questions_asked.{number}.question"] for number in (0, 1))
    assert find_misplaced(shape, f"{asked} {prompt}") == ["answers.0.text", "answers.1.text"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("cuts the description at 3,990", "original_description: its end is cut off"),
        ("inferred wins if sure", "answers.0.label, where inferences have confidence 0.98"),
        ("answers under the wrong questions", "answers.0.text stands with another question"),
        (
            "answer and inference exchanged",
            "answers.0.label and inferred_context.detected_",
        ),
        ("stored context wins", "after another context under the same interaction_id"),
        ("adds the stored first turn", "after the first turn under the same interaction_id"),
        ("remembers by description", "another conversation with the same description"),
        ("remembers by answers", "another conversation with the same answers"),
        ("poses the inference as an answer", "detected_location stands where the answer answers.0"),
        ("pastes lines between quotes", "leaves its quotes"),
    ],
)
def test_a_failure_names_the_cause(fault: str, words: str) -> None:
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(factory("prose", fault), checks=[FAULTS[fault]])

    assert words in str(caught.value)
