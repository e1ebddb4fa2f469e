"""What the providers that send through an SDK have in common: clients, objects, exceptions."""

import logging
import re
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from pytest_regen.errors import UsageError
from pytest_regen.text import plural
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor
from pytest_regen.turns.values import Cost, Reply
from pytest_regen.turns.wire import in_brief

if TYPE_CHECKING:
    import asyncio

REPLAY_KEY = "replayed"
"""Stands where a key would: a client demands one even if nothing is ever sent."""


class _Client(Protocol):
    def close(self) -> Any: ...


C = TypeVar("C", bound=_Client)
A = TypeVar("A", bound=_Client)

_Keepers = list[AsyncGenerator[None, None]]
_keepers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Keepers]" = (
    weakref.WeakKeyDictionary()
)
"""What closes the asynchronous clients; held here, because a provider may end before its loop."""


class Clients(Generic[C, A]):
    """The clients of a provider, made on first use: one by key, and one by key and event loop.

    By key: the environment may name another one between two turns, as it does in tests.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, C] = {}
        # A provider that was never closed closes its sockets before Python warns about them.
        weakref.finalize(self, _close_all, self._clients)
        self._of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, A]] = (
            weakref.WeakKeyDictionary()
        )

    def get(self, key: str, make: Callable[[str], C]) -> C:
        """Return the client for threads; ``make`` returns one for a key."""
        with self._lock:
            client = self._clients.get(key)
            if client is None:
                client = self._clients[key] = make(key)
            return client

    async def aget(self, key: str, make: Callable[[str], A]) -> A:
        """Return the client of the running event loop; it is closed when the loop shuts down."""
        import asyncio

        with self._lock:
            # Connections belong to the loop they were opened in.
            loop = asyncio.get_running_loop()
            clients = self._of_loops.setdefault(loop, {})
            known = clients.get(key)
            if known is not None:
                return known
            client = clients[key] = make(key)
            keeper = _close_with_loop(client)
            _keepers.setdefault(loop, []).append(keeper)
        await anext(keeper)
        return client

    def close(self) -> None:
        """Close the connections of threads; those of event loops end with their loop."""
        with self._lock:
            _close_all(self._clients)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        import asyncio

        with self._lock:
            clients = self._of_loops.pop(asyncio.get_running_loop(), {})
        for client in clients.values():
            await client.close()


def _close_all(clients: dict[str, Any]) -> None:
    while clients:
        _, client = clients.popitem()
        client.close()


async def _close_with_loop(client: _Client) -> AsyncGenerator[None, None]:
    """Close ``client`` when its event loop shuts down: loops end the generators left in them."""
    try:
        yield
    finally:
        await client.close()


_logger = logging.getLogger("pytest_regen")

notes: dict[str, None] = {}
"""What SDKs warned of the models that were asked; whoever tells it takes it out."""

_asked: ContextVar[str | None] = ContextVar("the model an SDK is asked for", default=None)


class _WithinCalls:
    """The pattern of a filter: it fits what is warned of in the thread or task of a call.

    ``catch_warnings`` would not do: before Python 3.14 it changes the filters of all threads, and
    two calls that overlap leave them changed for good.
    """

    def match(self, text: str) -> bool:
        model = _asked.get()
        if model and model in text:
            note = f"note: {_in_short(text.splitlines()[0], model)}"
            if note not in notes:
                notes[note] = None
                _logger.warning(note)
        return model is not None


def _in_short(line: str, model: str) -> str:
    """Return what a warning says: when the model retires, or its own words."""
    with suppress(ValueError):
        named = _RETIRES.search(line)
        words = " ".join(named.groups()) if named else ""
        day = datetime.strptime(words, "%B %d %Y").replace(tzinfo=UTC)
        days = (day - datetime.now(UTC)).days + 1
        when = f"retires {day:%Y-%m-%d} ({plural(days, 'day')})"
        return f"{model} is deprecated by its provider and {when if days >= 0 else 'has retired'}"
    return in_brief(line)


_RETIRES = re.compile(r"is deprecated .* on (\w+) (\d+)\w\w, (\d{4})")
_SORTS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, SyntaxWarning, UserWarning)
"""Not what the garbage collector warns of, whose objects may be anybody's."""
_FILTER: Any = ("ignore", _WithinCalls(), _SORTS, None, 0)


@contextmanager
def heeding_warnings(model: str = "") -> Iterator[None]:
    """Make a note of what an SDK warns of its model, whatever the filters: it ends no turn.

    Args:
        model: that is asked, as messages name it.
    """
    filters: Any = warnings.filters
    if filters[:1] != [_FILTER]:
        filters.insert(0, _FILTER)  # Others put theirs before it, or back: pytest for each test.
    token = _asked.set(model)
    try:
        yield
    finally:
        _asked.reset(token)


def played(reply: Reply, interceptor: TurnInterceptor | None) -> Reply:
    """Return a reply that was free if a recording gave it."""
    if not is_replay(interceptor):
        return reply
    return replace(reply, usage=replace(reply.usage, cost=Cost()))


def is_replay(interceptor: TurnInterceptor | None) -> bool:
    """Whether a turn made now cannot reach the network, so that no key is needed."""
    return interceptor is not None and interceptor.is_replay_only


def deliver(miss: CassetteMiss, interceptor: TurnInterceptor | None) -> Exception:
    """Return the error that a miss carries, and note that it reaches the caller."""
    if interceptor is not None:
        interceptor.delivered(miss)
    return miss.error


def plain(value: object) -> Any:
    """Return an object of an SDK as the JSON it was made from.

    Not by pydantic: it warns of blocks that are newer than the SDK, and before 2.12 fails at random
    where a model of the SDK is used for the first time.
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    sent = getattr(value, "model_fields_set", None)
    if sent is None:
        return value
    known = {name: item for name, item in vars(value).items() if name in sent}
    return plain({**known, **(getattr(value, "model_extra", None) or {})})


def checked_retries(count: int) -> int:
    """Return how often a request is sent again, as it was passed."""
    if count < 0:
        raise UsageError(
            f"max_retries is {count}",
            why="it counts the times a failed request is sent again",
            hint="pass 0 or more",
        )
    return count


def without_user(address: str) -> str:
    """Return an address without the name and password that may stand before its host."""
    return re.sub(r"(?<=//)[^/]*@|^[^/]*@", "", address)


def host_of(address: str) -> str:
    """Return host and port of an address, which may lack its scheme, as messages name them."""
    shown = without_user(address)
    return urlsplit(shown).netloc or shown


def root_cause(error: BaseException) -> str:
    """Return what an SDK's exception goes back to: the kind of error first, then its words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}".rstrip(": ")
