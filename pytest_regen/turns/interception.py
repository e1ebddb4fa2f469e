"""The cassettes in use, and the seam where they step between a provider and the network.

``turns`` knows no cassettes. A cassette in use registers here for the whole process, because a
turn may be made in any thread; the innermost one answers. HTTP clients, once they are patched,
ask the same cassettes.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from pytest_regen.errors import CassetteError
from pytest_regen.turns.values import Reply

__all__ = [
    "CassetteMiss",
    "TurnInterceptor",
    "client_interceptors",
    "current_interceptor",
    "intercepting",
]


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
        """Note that ``miss`` has reached the caller."""
        ...


class _Use(NamedTuple):
    interceptor: TurnInterceptor
    serves_clients: bool


class _Active:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        # The innermost last. Replaced as a whole, so that readers need no lock, for which an event
        # loop would wait. Keyed by tokens: uses in two threads need not end in the order they began
        # in, and one cassette may be in use twice.
        self.uses: dict[object, _Use] = {}


_active = _Active()


def current_interceptor() -> TurnInterceptor | None:
    """Return the cassette that was put to use last, if any."""
    uses = tuple(_active.uses.values())
    return uses[-1].interceptor if uses else None


def client_interceptors() -> tuple[TurnInterceptor, ...]:
    """Return the cassettes that HTTP clients ask, the innermost last."""
    return tuple(use.interceptor for use in _active.uses.values() if use.serves_clients)


@contextmanager
def intercepting(interceptor: TurnInterceptor, *, serves_clients: bool = False) -> Iterator[None]:
    """Let ``interceptor`` answer every turn of the process for as long as the block runs.

    Args:
        interceptor: the cassette.
        serves_clients: whether patched HTTP clients ask it, too.
    """
    token = object()
    with _active.lock:
        _active.uses = {**_active.uses, token: _Use(interceptor, serves_clients)}
    try:
        yield
    finally:
        with _active.lock:
            _active.uses = {key: use for key, use in _active.uses.items() if key is not token}
