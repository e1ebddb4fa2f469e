"""The cassettes in use, innermost last; clients are patched once for all of them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Protocol

from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.recording import WireExchange
from pytest_regen.errors import CassetteError

__all__ = ["ActiveCassette", "activate", "active_cassettes", "innermost"]


class ActiveCassette(Protocol):
    """A cassette in use, as patched clients know it."""

    def passes(self, uri: str) -> bool:
        """Whether a request to this address is none of its business."""
        ...

    def take(self, method: str, uri: str, body: bytes) -> Interaction | None:
        """Return the recorded answer, or ``None`` where the request is to be sent.

        Raises:
            CassetteMiss: nothing was recorded, and nothing may be sent.
        """
        ...

    def signal(self, error: CassetteError) -> BaseException:
        """Return what to raise so that ``error`` passes through clients without a retry."""
        ...

    def record(self, exchange: WireExchange) -> None:
        """Keep a request that was sent and its answer.

        Raises:
            CassetteMiss: it cannot be written.
        """
        ...

    def record_apart(self, exchange: WireExchange) -> Future[None]:
        """Keep a request and its answer in another thread, for callers in an event loop."""
        ...


class _Active:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runs: tuple[ActiveCassette, ...] = ()
        self.patches = ExitStack()


_active = _Active()


def innermost(uri: str) -> ActiveCassette | None:
    """Return the cassette that serves requests to an address: the one put to use last, if any."""
    # Without the lock, which is held while clients are patched: an event loop may ask.
    runs = _active.runs
    return runs[-1] if runs and not runs[-1].passes(uri) else None


def active_cassettes() -> tuple[ActiveCassette, ...]:
    """Return the cassettes in use, innermost last."""
    return _active.runs


@contextmanager
def activate(run: ActiveCassette, patch: Callable[[ExitStack], None]) -> Iterator[None]:
    """Count ``run`` among the cassettes in use while the block runs.

    The first patches the clients and the last undoes it, in whatever order blocks end: undone
    one by one, patches of two threads would put back what the other had already taken away.

    Args:
        run: the cassette.
        patch: enters what patches the clients into a stack.
    """
    with _active.lock:
        if not _active.runs:
            with ExitStack() as patches:
                patch(patches)
                _active.patches = patches.pop_all()
        _active.runs = (*_active.runs, run)
    try:
        yield
    finally:
        with _active.lock:
            # The last of them: the same cassette may be in use twice.
            last = max(at for at, one in enumerate(_active.runs) if one is run)
            _active.runs = _active.runs[:last] + _active.runs[last + 1 :]
            if not _active.runs:
                _active.patches.close()
