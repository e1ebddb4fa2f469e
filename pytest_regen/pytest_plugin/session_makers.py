"""What the fixtures ``generator_session`` and ``scenario_session`` return: it makes sessions."""

import threading
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

from pytest_regen.errors import UsageError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.providers import budget_of
from pytest_regen.pytest_plugin.session_handles import (
    Tested,
    TestedGeneratorSession,
    TestedScenarioSession,
)
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS
from pytest_regen.sessions import TestScenario, ToolAnnotation
from pytest_regen.turns.defaults import DEFAULT_MODEL
from pytest_regen.turns.driving import asend
from pytest_regen.turns.structured import Schema, adapter_of, schema_to_prompt_hint
from pytest_regen.turns.values import Provider, Reply, TurnRequest

__all__ = ["GeneratorSessionMaker", "ScenarioSessionMaker", "SessionMaker"]

T = TypeVar("T")


class _HookedProvider:
    """Lets the hooks around a turn be heard."""

    def __init__(self, provider: Provider, config: pytest.Config) -> None:
        self._provider = provider
        self._config = config
        self._lock = threading.Lock()
        self.calls = 0

    def send(self, request: TurnRequest) -> Reply:
        """Return the provider's reply."""
        self._before(request)
        return self._after(request, self._provider.send(request))

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the provider's reply without blocking the event loop."""
        self._before(request)
        return self._after(request, await asend(self._provider, request))

    def _before(self, request: TurnRequest) -> None:
        self._config.hook.pytest_regen_before_turn(config=self._config, request=request)
        with self._lock:
            self.calls += 1

    def _after(self, request: TurnRequest, reply: Reply) -> Reply:
        hook = self._config.hook
        hook.pytest_regen_after_turn(config=self._config, request=request, reply=reply)
        return reply


class SessionMaker:
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
        self._told: Sequence[Tested] = ()
        request.node.stash.setdefault(SESSION_MAKERS, []).append(self)

    @property
    def sessions(self) -> tuple[Tested, ...]:
        """The sessions made so far."""
        return tuple(session for _, session in self._made)

    def rewind(self, told: Sequence[Tested]) -> None:
        """Prepare for the body being called again.

        Args:
            told: the sessions of the test, of whichever maker, that were told why it failed.
        """
        self._position, self._told = 0, told
        for session in self.sessions:
            session.rewind()

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**self._defaults, **given}

    def _next(self, key: object, session: T) -> T:
        """Return the session that stood here before, if it was made from the same things.

        Raises:
            UsageError: it was made from others, and no session has passed on yet why the test
                failed: the model would be asked anew without having heard it.
        """
        number, self._position = self._position, self._position + 1
        if number < len(self._made) and self._made[number][0] == key:
            known: T = self._made[number][1]
            return known
        if self._told and all(one.is_waiting for one in self._told):
            raise UsageError(
                f"session {number + 1} of the test is another one than in the call that failed",
                why="the session that was told of the failure is not used again, so that the model "
                "would never hear of it",
                hint="make the sessions of the test from the same arguments in every call",
            )
        self._made[number:] = [(key, session)]
        return session


class GeneratorSessionMaker(SessionMaker):
    """The fixture ``generator_session``."""

    def __call__(
        self,
        *,
        system: str,
        response: Schema[T],
        **settings: Any,  # noqa: ANN401 - as GeneratorSession takes them
    ) -> TestedGeneratorSession[T]:
        """Return a session; arguments as ``GeneratorSession`` takes them, the provider given.

        Raises:
            UsageError: the body is called again and makes another session than before, see
                ``SessionMaker``.
        """
        adapter = adapter_of(response)
        made: TestedGeneratorSession[T] = TestedGeneratorSession(
            system, adapter, **self._settings(settings)
        )
        # By what the model is shown of it: a type made in the body is another one in each call.
        session = self._next((system, schema_to_prompt_hint(adapter)), made)
        session.answer_as(adapter)
        return session


class ScenarioSessionMaker(SessionMaker):
    """The fixture ``scenario_session``."""

    def __call__(
        self,
        *,
        system: str,
        annotations: Iterable[ToolAnnotation],
        handwritten: Sequence[TestScenario] = (),
        **settings: Any,  # noqa: ANN401 - as ScenarioGeneratorSession takes them
    ) -> TestedScenarioSession:
        """Return a session; arguments as ``ScenarioGeneratorSession`` takes them.

        Raises:
            UsageError: the body is called again and makes another session than before, see
                ``SessionMaker``.
        """
        tools = tuple(annotations)
        session = TestedScenarioSession(system, tools, handwritten, **self._settings(settings))
        return self._next((system, tools, tuple(handwritten)), session)
