"""Laws of sessions under any mix of good, bad, cut, refused and failing turns."""

from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from laws import scaled
from pydantic import BaseModel
from scenario_doubles import TOOLS, correction, said, scenario

from pytest_regen.errors import NoProgressError, ProviderError, TransportError, UsageError
from pytest_regen.sessions import (
    GeneratorSession,
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
)
from pytest_regen.testing import assert_cache_prefix_stable
from pytest_regen.turns import Reply, ScriptedProvider


class Answer(BaseModel):
    """What replies are to be."""

    n: int


GOOD = '{"n": 1}'
LINES = st.sampled_from(
    [
        GOOD,
        "prose",
        "",
        '{"n": "x"}',
        '{"n": 1',
        GOOD + GOOD,
        Reply('{"n": ', "max_tokens"),
        Reply("1}", "max_tokens"),
        Reply("", "max_tokens"),
        Reply("", "refusal"),
        Reply("{", "model_context_window_exceeded"),
        TransportError("dead", hint="again"),
    ]
)
KINDS = st.lists(LINES, min_size=1, max_size=6)


class Script(ScriptedProvider):
    """Says the lines of the turn at hand, then something good."""

    def __init__(self, good: str) -> None:
        super().__init__(lambda _: self.lines.pop(0) if self.lines else good)
        self.lines: list[Any] = []


class GeneratorMachine(RuleBasedStateMachine):
    """A session in the hands of a moody model."""

    def __init__(self) -> None:
        super().__init__()
        self.provider = Script(GOOD)
        self.session = GeneratorSession("You count.", Answer, provider=self.provider)
        self.committed = 0

    @rule(lines=KINDS)
    def turn(self, lines: list[Any]) -> None:
        """Take a turn that meets ``lines``; a failure changes nothing."""
        self.provider.lines = list(lines)
        before = self.session.history
        try:
            self.session.ask("How many?")
        except ProviderError:
            assert self.session.history == before
        else:
            self.committed += 1
        self.provider.lines = []

    @rule()
    def good_turn(self) -> None:
        """Whatever happened before, the next turn works."""
        assert self.session.ask("How many?") == Answer(n=1)
        self.committed += 1

    @rule()
    def carried_away(self) -> None:
        """Carry the session through JSON."""
        self.session = GeneratorSession.from_json(
            self.session.to_json(), Answer, provider=self.provider
        )

    @invariant()
    def history_alternates(self) -> None:
        """User and assistant by turns, one pair per committed turn."""
        roles = [message.role for message in self.session.history]
        assert roles == ["user", "assistant"] * self.committed
        assert self.session.turn_count == self.committed
        assert all(message.content.strip() for message in self.session.history)

    @invariant()
    def requests_are_legal_and_cached(self) -> None:
        """Every request alternates, ends with a user, and begins as the one before it."""
        for request in self.provider.requests:
            roles = [message.role for message in request.messages]
            assert roles == [*["user", "assistant"] * (len(roles) // 2), "user"]
            assert all(message.content.strip() for message in request.messages)
        assert_cache_prefix_stable(self.session.transcript)


class ScenarioMachine(RuleBasedStateMachine):
    """A scenario session in the hands of a moody model."""

    LINES: ClassVar[list[Any]] = [
        said([]),
        "prose",
        "",
        said([scenario("/a")])[:60],
        said([scenario("/a"), scenario("/x", tool="unknown")]),
        said([scenario("/a"), scenario("/a", "deny")]),
        Reply(said([scenario("/a"), scenario("/b")])[:-90], "max_tokens"),
        Reply("", "refusal"),
        TransportError("dead", hint="again"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.provider = Script(said([scenario("/a"), scenario("/b")]))
        self.session = ScenarioGeneratorSession(
            "Be exact.", TOOLS, [scenario("/h", "allow")], provider=self.provider
        )
        self.committed = 0
        self.told = 0

    @precondition(lambda self: self.committed == 0)
    @rule(lines=st.lists(st.sampled_from(LINES), max_size=4))
    def generate(self, lines: list[Any]) -> None:
        """Take the first turn."""
        self.provider.lines = list(lines)
        try:
            found = self.session.generate()
        except ProviderError:
            found = []
        else:
            self.committed += 1
            assert found[0].is_handwritten
        self.provider.lines = []
        self.no_request_twice(found)

    @precondition(lambda self: self.committed > 0)
    @rule(lines=st.lists(st.sampled_from(LINES), max_size=4))
    def regenerate(self, lines: list[Any]) -> None:
        """Take another turn, with feedback that is new."""
        self.provider.lines = list(lines)
        self.told += 1
        path = f"/new{self.told}"
        told = correction(path, "deny", request=scenario(path).request)
        try:
            found = self.session.regenerate(ScenarioFeedback(corrections=(told,)))
        except ProviderError:
            found = []
        else:
            self.committed += 1
        self.provider.lines = []
        self.no_request_twice(found)

    @rule()
    def useless(self) -> None:
        """Feedback that asks for nothing costs nothing."""
        before = len(self.provider.requests)
        for feedback in (ScenarioFeedback(), ScenarioFeedback(probe_scenarios=(scenario("/p"),))):
            try:
                self.session.regenerate(feedback)
            except (UsageError, NoProgressError):
                continue
            raise AssertionError("a turn was made")
        assert len(self.provider.requests) == before

    @rule()
    def carried_away(self) -> None:
        """Carry the session through JSON."""
        self.session = ScenarioGeneratorSession.from_json(
            self.session.to_json(), provider=self.provider
        )

    def no_request_twice(self, found: list[TestScenario]) -> None:
        """Each request stands once, and handwritten ones are not asked again."""
        ids = [one.id for one in found]
        assert len(ids) == len(set(ids))
        assert sum(one.id == scenario("/h").id for one in found) <= 1

    @invariant()
    def history_alternates(self) -> None:
        """One pair per committed turn, whatever happened in between."""
        roles = [message.role for message in self.session.history]
        assert roles == ["user", "assistant"] * self.committed
        assert self.session.turn_count == self.committed
        assert_cache_prefix_stable(self.session.transcript)


LAW = settings(max_examples=scaled(25), stateful_step_count=8, deadline=None)
TestGeneratorSessionLaws = GeneratorMachine.TestCase
TestGeneratorSessionLaws.settings = LAW
TestScenarioSessionLaws = ScenarioMachine.TestCase
TestScenarioSessionLaws.settings = LAW
