"""A provider whose turns are recorded or replayed, and nothing but its turns.

Between two turns the body of a test may be called again; its own requests are no business of the
cassette, which would record them, or block them where it only replays.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_regen.cassettes import CassetteRun, RecordMode
from pytest_regen.cassettes.blocking import blocked_sockets
from pytest_regen.errors import ProviderError, RefusedError
from pytest_regen.turns import AnthropicProvider, ScriptedProvider
from pytest_regen.turns.interception import CassetteMiss, intercepting
from pytest_regen.turns.values import Provider, Reply, TurnRequest

__all__ = ["TapedProvider", "taped"]


class TapedProvider:
    """Sends turns with a cassette in use.

    Args:
        provider: who answers what is not recorded.
        run: the cassette.
    """

    def __init__(self, provider: Provider, run: CassetteRun) -> None:
        self._provider = provider
        self._run = run
        self.is_spoilt = False
        """Whether the line failed. Replaying that would fail for ever, and ``once`` would never
        record over it. Refusals do not count: they are what the model said."""

    @property
    def is_emulated(self) -> bool:
        """Whether an answer came from the emulator, live or recorded."""
        return self._run.emulated and self._run.played + self._run.recorded > 0

    def send(self, request: TurnRequest) -> Reply:
        """Return the recorded reply, or the provider's.

        Raises:
            CassetteMissError: nothing was recorded, and the mode forbids asking.
            ProviderError: there is no reply.
        """
        try:
            with self._in_use():
                return self._provider.send(request)
        except CassetteMiss as signal:
            self._run.delivered(signal)
            raise signal.error from None
        except ProviderError as error:
            self.is_spoilt = not isinstance(error, RefusedError)
            raise

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(intercepting(self._run))
            if self._run.is_replay_only:
                stack.enter_context(blocked_sockets())
            # Our own providers need no patched client to replay; anyone else's may hold one.
            is_ours = isinstance(self._provider, AnthropicProvider | ScriptedProvider)
            if not (is_ours and self._run.is_replay_only):
                from pytest_regen.cassettes.vcr_adapter import (  # noqa: PLC0415 - 0.2 s
                    patched_clients,
                )

                stack.enter_context(patched_clients(self._run))
            yield


@contextmanager
def taped(
    provider: Provider, path: Path, mode: RecordMode, *, record_command: str
) -> Iterator[TapedProvider]:
    """Yield a provider with a cassette of its own; what it recorded is kept unless it is spoilt."""
    run = CassetteRun(path, mode, record_command=record_command)
    tape = TapedProvider(provider, run)
    finished = False
    try:
        yield tape
        finished = True
    finally:
        run.finish(keep=finished and not tape.is_spoilt)
