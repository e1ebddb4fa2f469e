"""The fixture ``clarification_flow``: a flow of a test, and the transcript it is held against."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_regen.cassettes import CassetteRun
from pytest_regen.errors import UsageError
from pytest_regen.pytest_plugin.names import node_command
from pytest_regen.pytest_plugin.stash import CALL_OUTCOME
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
        # A class has the attribute as well, and makes the agent.
        if not isinstance(agent, type) and hasattr(agent, "turn"):
            provider = getattr(agent, "provider", None)
            if provider is None:
                raise UsageError(
                    f"{agent!r} has no attribute 'provider'",
                    why="the flow has to see what is sent",
                    hint="pass what makes the agent: clarification_flow(lambda provider: …)",
                )

            def make(provider: Provider) -> Any:
                # A turn may keep things on the agent, which the next one must not see.
                fresh = copy.copy(agent)
                fresh.provider = provider
                return fresh

        elif callable(agent):
            make, provider = agent, self._request.getfixturevalue("regen_provider")
        else:
            hint = "pass an agent, or what makes one of a provider"
            raise UsageError(f"{agent!r} is not an agent", hint=hint)
        self.flow = ClarificationFlow(
            make, provider, recorded=self._recorded, record_command=self._command
        )
        return self.flow


@contextmanager
def flows_of(request: pytest.FixtureRequest, run: CassetteRun) -> Iterator[Flows]:
    """Yield what makes the test's flow; then keep its transcript, or fail for turns not taken.

    Args:
        request: of the fixture.
        run: the cassette that the test has in use.
    """
    item = request.node
    # Beside the cassettes, and named alike, because neither is of use without the other:
    # <folder>/transcripts/<module>/<test>.yaml above <folder>/cassettes/<module>/<test>.yaml
    home = item.path.parent / "cassettes"
    path = run.path.with_suffix(".flow.yaml")
    if run.path.is_relative_to(home):
        folder = item.path.parent / "transcripts"
        path = (folder / run.path.relative_to(home)).with_suffix(".yaml")
    replays = run.mode == "none" or (run.mode == "once" and path.exists())
    record = "rewrite" if path.exists() else "once"
    command = node_command(item.config, item.nodeid, options=("--regen-record", record))
    flows = Flows(request, read_transcript(path, command) if replays else None, command)
    yield flows
    if flows.flow is None or item.stash.get(CALL_OUTCOME, "") != "passed":
        return
    if replays:
        flows.flow.finish()
        return
    source = "emulator" if run.emulated else ""
    flows.flow.transcript.model_copy(update={"source": source}).save(path)
