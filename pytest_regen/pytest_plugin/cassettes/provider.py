"""A provider whose turns are recorded or replayed, and nothing but its turns.

Between two turns the body of a test may be called again; its own requests are no business of the
cassette, which would record them, or block them where it only replays.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pytest_regen.cassettes import CassetteRun, Matching, RecordMode, Scrub
from pytest_regen.errors import ProviderError, RefusedError
from pytest_regen.turns import AnthropicProvider, ScriptedProvider
from pytest_regen.turns.interception import CassetteMiss
from pytest_regen.turns.values import Provider, Reply, TurnRequest, provider_reference

__all__ = ["RecordedProvider", "recorded_in"]


class RecordedProvider:
    """Sends turns with a cassette in use.

    Args:
        provider: who answers what is not recorded.
        run: the cassette.
    """

    def __init__(self, provider: Provider, run: CassetteRun) -> None:
        self._provider = provider
        self.run = run
        self.is_spoilt = False
        """Whether the line failed. Replaying that would fail for ever, and ``once`` would never
        record over it. Refusals do not count: they are what the model said."""

    @property
    def reference(self) -> str | None:
        """Who answers what is not recorded."""
        return provider_reference(self._provider)

    def send(self, request: TurnRequest) -> Reply:
        """Return the recorded reply, or the provider's.

        Raises:
            CassetteMissError: nothing was recorded, and the mode forbids asking.
            ProviderError: there is no reply.
        """
        try:
            with self._used():
                return self._provider.send(request)
        except CassetteMiss as signal:
            self.run.delivered(signal)
            raise signal.error from None
        except ProviderError as error:
            if not isinstance(error, RefusedError):
                self.is_spoilt = True
            raise

    def _used(self) -> AbstractContextManager[None]:
        # Our own providers need no patched client to replay; anyone else's may hold one.
        is_ours = isinstance(self._provider, AnthropicProvider | ScriptedProvider)
        return self.run.in_use(http_clients=not is_ours)


@contextmanager
def recorded_in(
    provider: Provider,
    path: Path,
    mode: RecordMode,
    *,
    record_command: str,
    scrub: Scrub | None = None,
) -> Iterator[RecordedProvider]:
    """Yield a provider with a cassette of its own; what it recorded is kept unless it is spoilt."""
    run = CassetteRun(path, mode, record_command=record_command, matching=Matching(scrub=scrub))
    recorded = RecordedProvider(provider, run)
    finished = False
    try:
        yield recorded
        finished = True
    finally:
        run.finish(keep=finished and not recorded.is_spoilt)
