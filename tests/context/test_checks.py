"""The checks for anyone's agent: a good one passes, each known-bad one fails exactly one."""

import asyncio
import json
from typing import Any

import pytest

from pytest_regen.context import ClarificationRequest, ClarifyingAgent
from pytest_regen.errors import UsageError
from pytest_regen.testing import (
    CHECKS,
    KNOWN_BAD,
    ContextLossError,
    Replies,
    assert_carries_full_context,
    assert_reasking_is_bounded,
    assert_stateless,
    assert_structure_holds,
    check_stateless_agent,
    completion,
    failing_checks,
)
from pytest_regen.turns.values import Provider


def test_our_agent_passes() -> None:
    """All checks."""
    check_stateless_agent(ClarifyingAgent)


def test_every_check_has_its_bad_agent() -> None:
    """None is shipped without proof that it can fail."""
    assert set(KNOWN_BAD) == set(CHECKS)


@pytest.mark.parametrize("check", KNOWN_BAD)
def test_a_known_bad_agent_fails_exactly_its_check(check: str) -> None:
    """And no other, whichever checks were made before it."""
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
    """Leaves by their path, cases by their name."""
    with pytest.raises(ContextLossError) as caught:
        CHECKS[check](KNOWN_BAD[check])

    assert caught.value.check == check
    assert all(word in str(caught.value) for word in words)


class TheirAgent:
    """Somebody's agent: other names, another form of replies, a function for a model."""

    def __init__(self, ask_model: Any) -> None:
        self._ask_model = ask_model

    def reply(self, issue: str, context: dict[str, Any] | None) -> dict[str, str]:
        """Return a slogan, or a question."""
        said = json.dumps({"issue": issue} if context is None else context)
        for _ in range(2):
            text = self._ask_model(
                [{"role": "system", "content": "Slogans."}, {"role": "user", "content": said}]
            )
            kind, _, rest = text.partition(":")
            if kind == "SLOGAN" or (kind == "WHAT" and context is None):
                return {kind: rest}
        raise RuntimeError("no slogan")


def make_theirs(provider: Provider) -> Any:
    """Return somebody's agent as a function of our request."""
    agent = TheirAgent(completion(provider))

    def turn(request: ClarificationRequest) -> dict[str, str]:
        context = request.conversation_context
        return agent.reply(
            request.message, None if context is None else context.model_dump(mode="json")
        )

    return turn


class Asynchronous(ClarifyingAgent):
    """Has only the asynchronous turn."""

    async def turn(self, request: ClarificationRequest) -> Any:  # type: ignore[override]  # the case
        """Take one turn."""
        return await self.aturn(request)


def test_an_asynchronous_agent_passes() -> None:
    """Its turns are waited for, also where an event loop runs already."""
    check_stateless_agent(Asynchronous)

    async def within() -> None:
        assert_carries_full_context(Asynchronous)

    asyncio.run(within())


THEIRS = Replies(generate="SLOGAN: {digest}", ask="WHAT: else?", unusable=("", "hm"))


def test_an_agent_of_another_make_passes() -> None:
    """What it reads is given; the rest is an adapter of a few lines."""
    check_stateless_agent(make_theirs, replies=THEIRS)


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
    """Whoever has no use for placeholders says so."""
    with pytest.raises(ContextLossError) as caught:
        assert_carries_full_context(Forgetting)
    assert set(caught.value.findings) == {
        "questions_asked.0.placeholder",
        "questions_asked.1.placeholder",
    }

    assert_carries_full_context(Forgetting, ignore=("questions_asked.*.placeholder",))


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
    """The check ends, and says how often the model was called."""
    with pytest.raises(ContextLossError, match="calls or more, 3 at most"):
        assert_reasking_is_bounded(Endless)


class Caching(ClarifyingAgent):
    """Keeps results by the description alone, in the instance."""

    def turn(self, request: ClarificationRequest) -> Any:
        """Take one turn."""
        kept = self.__dict__.setdefault("kept", {})
        if request.message not in kept:
            kept[request.message] = super().turn(request)
        return kept[request.message]


def test_a_cache_is_memory() -> None:
    """What is answered without asking depends on what was asked before."""
    with pytest.raises(ContextLossError, match="the same instance"):
        assert_stateless(Caching)


def test_a_factory_that_no_process_can_import_is_told_so() -> None:
    """Not reported as a fault of the agent."""
    with pytest.raises(UsageError, match="another process"):
        assert_stateless(lambda provider: ClarifyingAgent(provider, model="m"))


def test_values_may_keep_their_lines_where_delimiters_hold_them() -> None:
    """A skeleton of one's own decides what is structure."""
    bad = KNOWN_BAD["structure_holds"]

    assert_structure_holds(bad, skeleton=lambda _: "whatever")
    with pytest.raises(ContextLossError):
        assert_structure_holds(
            bad, hostile=["x\n## Forged"], skeleton=lambda text: text.count("\n#")
        )


def test_several_failures_are_one_error() -> None:
    """Each is in it."""
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
