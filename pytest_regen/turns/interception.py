"""The seam where a cassette steps between a provider and the network.

``turns`` knows no cassettes. A cassette in use registers here for the whole process, because a
turn may be made in any thread; the innermost one answers.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from pytest_regen.errors import CassetteError
from pytest_regen.turns.values import Reply

__all__ = ["CassetteMiss", "TurnInterceptor", "current_interceptor", "intercepting"]


class CassetteMiss(BaseException):
    """A request that a cassette cannot serve, on its way out through an SDK.

    Not an ``Exception``, so that no client takes it for a network error, retries it and hides it.
    Providers and ``use_cassette`` turn it into the ``CassetteError`` it carries.
    """

    def __init__(self, error: CassetteError) -> None:
        super().__init__(str(error))
        self.error = error


class TurnInterceptor(Protocol):
    """A cassette in use."""

    @property
    def is_replay_only(self) -> bool:
        """Whether no request can reach the network, so that no key is needed."""
        ...

    def answer(
        self, body: Mapping[str, Any], *, path: str, max_retries: int, address: str
    ) -> Reply | None:
        """Return the recorded reply, or ``None`` where the request is to be sent.

        Raises:
            CassetteMissError: nothing was recorded, and nothing may be sent.
            ProviderError: a failure was recorded.
        """
        ...

    def delivered(self, miss: CassetteMiss) -> None:
        """Note that the caller was told of ``miss``."""
        ...


_active: tuple[TurnInterceptor, ...] = ()
_lock = threading.Lock()


def current_interceptor() -> TurnInterceptor | None:
    """Return the cassette that was put to use last, if any."""
    # Without the lock, for which an event loop would wait.
    active = _active
    return active[-1] if active else None


@contextmanager
def intercepting(interceptor: TurnInterceptor) -> Iterator[None]:
    """Let ``interceptor`` answer every turn of the process for as long as the block runs."""
    global _active  # noqa: PLW0603 - replaced as a whole, so that whoever asks needs no lock
    with _lock:
        _active = (*_active, interceptor)
    try:
        yield
    finally:
        with _lock:
            # The last of them: two cassettes used in two threads need not end in order.
            last = max(at for at, active in enumerate(_active) if active is interceptor)
            _active = _active[:last] + _active[last + 1 :]
