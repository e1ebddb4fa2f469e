"""The fixture ``clarification_flow``: a flow of a test, and the transcript it is held against."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.cassettes import CassetteRun
from pytest_regen.errors import UsageError
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.stash import CALL_PASSED
from pytest_regen.testing.agents import AgentFactory
from pytest_regen.testing.transcripts import ClarificationFlow, Transcript, read_transcript
from pytest_regen.turns.values import Provider


class Flows:
    """Makes the flow of a test: ``clarification_flow(agent)``."""

    def __init__(
        self, request: pytest.FixtureRequest, recorded: Transcript | None, command: str
    ) -> None:
        self._request = request
        self._recorded = recorded
        self._command = command
        self.flow: ClarificationFlow | None = None

    def __call__(self, agent: Any) -> ClarificationFlow:
        """Return the flow.

        Args:
            agent: an agent with ``turn`` and ``provider``, of which each turn gets a copy; or what
                makes one of a provider, which is then the test's ``regen_provider``.

        Raises:
            UsageError: it is neither, or the test has its flow already.
        """
        if self.flow is not None:
            raise UsageError(
                "this test has a flow already",
                why="a transcript tells one flow; branches of it are further second turns",
                hint="call flow.answer(…) again, or write another test",
            )
        make, provider = self._factory_and_provider(agent)
        self.flow = ClarificationFlow(
            make, provider, recorded=self._recorded, record_command=self._command
        )
        return self.flow

    def _factory_and_provider(self, agent: Any) -> tuple[AgentFactory, Provider]:
        if not isinstance(agent, type) and hasattr(agent, "turn"):
            provider = getattr(agent, "provider", None)
            if provider is None:
                raise UsageError(
                    f"{agent!r} has no attribute 'provider'",
                    why="the flow has to see what is sent",
                    hint="pass what makes the agent: clarification_flow(lambda provider: …)",
                )
            return _copies(agent), provider
        if not callable(agent):
            raise UsageError(
                f"{agent!r} is no agent", hint="pass an agent, or what makes one of a provider"
            )
        return agent, self._request.getfixturevalue("regen_provider")


def _copies(agent: Any) -> AgentFactory:
    def make(provider: Provider) -> Any:
        fresh = copy.copy(agent)
        fresh.provider = provider
        return fresh

    return make


@contextmanager
def flows_of(request: pytest.FixtureRequest, run: CassetteRun) -> Iterator[Flows]:
    """Yield what makes the test's flow; then keep its transcript, or fail for turns not taken.

    Args:
        request: of the fixture.
        run: the cassette that the test has in use.
    """
    item = request.node
    path = transcript_of(item.path.parent, run.path)
    replays = run.mode == "none" or (run.mode == "once" and path.exists())
    record = "rewrite" if path.exists() else "once"
    command = node_command(item.config, item.nodeid, options=("--regen-record", record))
    flows = Flows(request, read_transcript(path, command) if replays else None, command)
    yield flows
    if flows.flow is None or not item.stash.get(CALL_PASSED, False):
        return
    if replays:
        flows.flow.finish()
        return
    source = "emulator" if run.emulated else ""
    flows.flow.transcript.model_copy(update={"source": source}).save(path)


def transcript_of(folder: Path, cassette: Path) -> Path:
    """Return the transcript above a cassette.

    ``<folder>/transcripts/<module>/<test>.yaml`` above ``<folder>/cassettes/<module>/<test>.yaml``;
    above a cassette that lies elsewhere, ``<test>.flow.yaml`` beside it.
    """
    home = folder / "cassettes"
    if not cassette.is_relative_to(home):
        return cassette.with_suffix(".flow.yaml")
    return (folder / "transcripts" / cassette.relative_to(home)).with_suffix(".yaml")
