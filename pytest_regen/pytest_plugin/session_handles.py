"""Sessions as tests hold them: what failed in one call of the body is told in the next."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import pytest

from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.providers import budget_of
from pytest_regen.pytest_plugin.session_fixtures import SESSIONS
from pytest_regen.sessions import (
    GeneratorSession,
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
    ToolAnnotation,
    apply_corrections,
    merge_replacements,
)
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.structured import Schema
from pytest_regen.turns.values import Provider, Reply, TurnRequest, Usage

__all__ = [
    "GeneratorSessions",
    "ScenarioSessions",
    "Sessions",
    "TestedGeneratorSession",
    "TestedScenarioSession",
]

T = TypeVar("T")


class Tested(Protocol):
    """A session of a test."""

    @property
    def usage(self) -> Usage:
        """Tokens spent so far."""

    def tell(self, feedback: ScenarioFeedback) -> None:
        """Keep what the test fails with for the next turn."""
        ...


class _HookedProvider:
    """Lets the hooks around a turn be heard."""

    def __init__(self, provider: Provider, config: pytest.Config) -> None:
        self._provider = provider
        self._config = config
        self.calls = 0

    def send(self, request: TurnRequest) -> Reply:
        """Return the provider's reply."""
        hook = self._config.hook
        hook.pytest_regen_before_turn(config=self._config, request=request)
        self.calls += 1
        reply = self._provider.send(request)
        hook.pytest_regen_after_turn(config=self._config, request=request, reply=reply)
        return reply


class Sessions:
    """Makes the sessions of one test; the n-th call of a body called again gets the n-th."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        config = request.config
        self.provider = _HookedProvider(request.getfixturevalue("regen_provider"), config)
        self._defaults: dict[str, Any] = {
            "model": choices_of(config).model or DEFAULT_MODEL,
            "shared_budget": budget_of(config),
            "provider": self.provider,
        }
        self._made: list[tuple[object, Any]] = []
        self._position = 0
        request.node.stash.setdefault(SESSIONS, []).append(self)

    @property
    def sessions(self) -> tuple[Tested, ...]:
        """The sessions made so far."""
        return tuple(session for _, session in self._made)

    def rewind(self, feedback: ScenarioFeedback) -> None:
        """Prepare for the body being called again."""
        self._position = 0
        for session in self.sessions:
            session.tell(feedback)

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**self._defaults, **given}

    def _next(self, key: object, session: T) -> T:
        """Return the session that stood here before, if it was made from the same things."""
        number, self._position = self._position, self._position + 1
        if number < len(self._made) and self._made[number][0] == key:
            known: T = self._made[number][1]
            return known
        self._made[number:] = [(key, session)]
        return session


class TestedGeneratorSession(GeneratorSession[T], Generic[T]):
    """A session that goes through the body of its test once more, up to the turn that failed."""

    __test__ = False

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **settings)
        self._asked: list[tuple[str, T]] = []
        self._position = 0
        self._feedback = ""

    def tell(self, feedback: ScenarioFeedback) -> None:
        """Go back to the first turn, and keep what was wrong for the last one."""
        self._position = 0
        self._feedback = "\n".join(f"- {note}" for note in feedback.notes)

    def ask(self, message: str, *, check: Any = None) -> T:  # noqa: ANN401 - as the base has it
        """Take one turn; in a body called again, what was asked is remembered, the last redone."""
        number, self._position = self._position, self._position + 1
        if number >= len(self._asked) or self._asked[number][0] != message:
            self._asked[number:] = [(message, super().ask(message, check=check))]
        elif number == len(self._asked) - 1 and self._feedback:
            told, self._feedback = self._feedback, ""
            again = (
                f"Your last answer was tested, and is wrong:\n\n{told}\n\nAnswer again, in full."
            )
            self._asked[number] = (message, super().ask(again, check=check))
        return self._asked[number][1]


class GeneratorSessions(Sessions):
    """The fixture ``generator_session``."""

    def __call__(
        self,
        *,
        system: str,
        response: Schema[T],
        **settings: Any,  # noqa: ANN401 - as GeneratorSession takes them
    ) -> TestedGeneratorSession[T]:
        """Return a session; arguments as ``GeneratorSession`` takes them, the provider given."""
        session: TestedGeneratorSession[T] = TestedGeneratorSession(
            system, response, **self._settings(settings)
        )
        return self._next((system, response), session)


class TestedScenarioSession(ScenarioGeneratorSession):
    """A scenario session that keeps its set up to date with what the test finds."""

    __test__ = False

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **settings)
        self._current: list[TestScenario] | None = None
        self._feedback = ScenarioFeedback()

    def tell(self, feedback: ScenarioFeedback) -> None:
        """Keep what was wrong for the next turn."""
        self._feedback = feedback

    def scenarios(self) -> list[TestScenario]:
        """Return the set: generated in the first call of the body, mended in the next.

        A correction is put in place and stays unless a replacement asks the same request.
        """
        told, self._feedback = self._feedback, ScenarioFeedback()
        if self._current is None:
            self._current = self.generate()
        elif told.asks_for_replacements:
            replacements = self.regenerate(told)
            self._current = merge_replacements(
                apply_corrections(self._current, told.corrections),
                replacements,
                told.corrections,
                told.discarded_scenarios,
                accepts=lambda _: True,
            )
        return list(self._current)


class ScenarioSessions(Sessions):
    """The fixture ``scenario_session``."""

    def __call__(
        self,
        *,
        system: str,
        annotations: Iterable[ToolAnnotation],
        handwritten: Sequence[TestScenario] = (),
        **settings: Any,  # noqa: ANN401 - as ScenarioGeneratorSession takes them
    ) -> TestedScenarioSession:
        """Return a session; arguments as ``ScenarioGeneratorSession`` takes them."""
        tools = tuple(annotations)
        session = TestedScenarioSession(system, tools, handwritten, **self._settings(settings))
        return self._next((system, tools, tuple(handwritten)), session)
