"""The cassettes in use, and the seam where they step between a provider and the network.

``turns`` knows no cassettes. A cassette in use registers here for the whole process, because a
turn may be made in any thread; the innermost one answers. Where turns with cassettes of their own
are made at the same time, each cassette registers for its task or thread alone. HTTP clients, once
they are patched, ask the same cassettes.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from pytest_regen.errors import CassetteError
from pytest_regen.turns.values import Reply


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
    is_apart: bool


class _Active:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        # The innermost last. Replaced as a whole, so that readers need no lock, for which an event
        # loop would wait. Keyed by tokens: uses in two threads need not end in the order they began
        # in, and one cassette may be in use twice.
        self.uses: dict[object, _Use] = {}


_active = _Active()

_here: ContextVar[tuple[object, ...]] = ContextVar("pytest_regen_cassettes", default=())
"""Tokens of the uses that this task or thread, or one that began it, made for itself alone."""


def current_interceptor() -> TurnInterceptor | None:
    """Return the cassette that answers a turn made here: the one put to use last, if any.

    Raises:
        CassetteError: several are in use, each for a task or thread alone, and none for this one.
    """
    return _innermost(tuple(_active.uses.items()))


def client_interceptor() -> TurnInterceptor | None:
    """Return the cassette that a request of an HTTP client made here asks, if any.

    Raises:
        CassetteMiss: several are in use, each for a task or thread alone, and none for this one.
    """
    uses = tuple((token, use) for token, use in _active.uses.items() if use.serves_clients)
    try:
        return _innermost(uses)
    except CassetteError as error:
        raise CassetteMiss(error) from None


def client_interceptors() -> tuple[TurnInterceptor, ...]:
    """Return the cassettes that HTTP clients ask, wherever they are, the innermost last."""
    return tuple(use.interceptor for use in _active.uses.values() if use.serves_clients)


def _innermost(uses: tuple[tuple[object, _Use], ...]) -> TurnInterceptor | None:
    tokens = _here.get()
    local = [use for token, use in uses if token in tokens]
    shared = [use for _, use in uses if not use.is_apart]
    apart = {id(use.interceptor) for token, use in uses if use.is_apart and token not in tokens}
    if not local and not shared and len(apart) > 1:
        raise CassetteError(
            f"a request was made in a thread of its own while {len(apart)} cassettes are in use",
            why="each of them serves the requests of one turn, and this one belongs to none",
            hint="take one turn at a time, --regen-jobs 1 in pytest; or let the provider send in "
            "the thread or task in which it is asked",
        )
    # A thread that a provider began for itself: where one cassette is in use, it is meant.
    candidates = local or shared or [use for _, use in uses]
    return candidates[-1].interceptor if candidates else None


@contextmanager
def intercepting(
    interceptor: TurnInterceptor, *, serves_clients: bool = False, is_apart: bool = False
) -> Iterator[None]:
    """Let ``interceptor`` answer every turn of the process for as long as the block runs.

    Args:
        interceptor: the cassette.
        serves_clients: whether patched HTTP clients ask it, too.
        is_apart: whether it answers only turns that are made in this task or thread, or in those
            that begin here.
    """
    token = object()
    with _active.lock:
        _active.uses = {**_active.uses, token: _Use(interceptor, serves_clients, is_apart)}
    reset = _here.set((*_here.get(), token)) if is_apart else None
    try:
        yield
    finally:
        if reset is not None:
            _here.reset(reset)
        with _active.lock:
            _active.uses = {key: use for key, use in _active.uses.items() if key is not token}
