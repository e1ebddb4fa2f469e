"""What the providers that send through an SDK have in common: clients, objects, exceptions."""

import logging
import os
import re
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import (
    MissingKeyError,
    ProviderError,
    RegenError,
    TransportError,
    UsageError,
)
from pytest_regen.text import plural
from pytest_regen.turns import wire
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.values import Cost, Reply, Usage

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
            if key in clients:
                return clients[key]
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
    """The pattern of a filter: it fits what is warned of in the thread or task of a call."""

    # catch_warnings would not do: before Python 3.14 it changes the filters of all threads, and two
    # calls that overlap leave them changed for good.

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
        date = _RETIRES.search(line)
        words = " ".join(date.groups()) if date else ""
        day = datetime.strptime(words, "%B %d %Y").replace(tzinfo=UTC)
        days = (day - datetime.now(UTC)).days + 1
        when = f"retires {day:%Y-%m-%d} ({plural(days, 'day')})"
        return f"{model} is deprecated by its provider and {when if days >= 0 else 'has retired'}"
    return wire.in_brief(line)


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


_LONGEST_WORDS = 300
"""Characters of an exception that are shown: LiteLLM adds tracebacks and advertisements."""


class SdkProvider(Generic[C, A]):
    """A provider behind an SDK: its clients, its key, and its exceptions in our words."""

    model: Any  # Not all can do without one.
    key_variable: ClassVar[str] = ""
    address_variable: ClassVar[str] = ""

    def __init__(
        self, *, api_key: str | None, base_url: str, max_retries: int, timeout: float
    ) -> None:
        if max_retries < 0:
            raise UsageError(
                f"max_retries is {max_retries}",
                why="it counts the times a failed request is sent again",
                hint="pass 0 or more",
            )
        self._api_key = api_key
        self.base_url = base_url.rstrip("/")
        self.max_retries = max_retries
        self.timeout = timeout
        self._clients: Clients[C, A] = Clients()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={without_user(self.base_url)!r})"

    def close(self) -> None:
        """Close the connections that ``send`` opened; those of ``asend`` end with their loop."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections that ``asend`` opened in the running event loop."""
        await self._clients.aclose()

    def require_key(self) -> None:
        """Check that a turn can be taken.

        Raises:
            MissingExtraError: the SDK is not installed.
            MissingKeyError: no key is set, and no cassette in use replays without one.
        """
        self._key_for(current_interceptor())

    @property
    def _key(self) -> str | None:
        return self._api_key or os.environ.get(self.key_variable) or None

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        key = self._key
        if not key and not is_replay(interceptor):
            raise self._no_key([self.key_variable])
        return key or REPLAY_KEY

    def _no_key(self, variables: list[str]) -> MissingKeyError:
        error = MissingKeyError(
            f"{' and '.join(variables)} {'is' if len(variables) == 1 else 'are'} not set",
            why=f"{self._address} answers only with a key",
            hint=f"export {variables[0]}=..., name another provider with --provider "
            "openai:MODEL, ollama:MODEL or module:attribute, or replay from a cassette",
        )
        error.variable = variables[0]
        return error

    @property
    def _address(self) -> str:
        """Host and port, as messages name them."""
        address = without_user(self.base_url)
        return urlsplit(address).netloc or address

    def _secrets(self) -> list[str]:
        """Return what a server may echo of what was sent."""
        return [self._key] if self._key else []

    def _hints(self) -> dict[int, str]:
        """Return what to do next, by status, where the Messages API needs something else."""
        return {}

    def _hint_unreached(self) -> str:
        return f"check the network and {self.address_variable}, then run the command again"

    def _failure(self, error: Exception, model: str) -> tuple[RegenError, Exception | None]:
        """Return what an exception of an SDK means, and the cause that may be shown with it."""
        # The key stands in neither: a server that echoes it must not put it into a log.
        if isinstance(error, RegenError):
            return error, error.__cause__ if isinstance(error.__cause__, Exception) else None
        failure = self._translate(error, model)
        secrets = self._secrets()
        for secret in secrets:
            failure.what = failure.what.replace(secret, "[key]")
            failure.why = failure.why.replace(secret, "[key]")
        failure.args = (failure.what,)
        # Because a traceback shows the cause as it is, and what that goes back to.
        traceback = "\n".join(map(str, _chain(error)))
        is_clean = scrub_text(traceback) == traceback and not any(s in traceback for s in secrets)
        return failure, error if is_clean else None

    def _translate(self, error: Exception, model: str) -> ProviderError:
        # By the names of classes, because three SDKs and two HTTP clients raise them.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        words = wire.in_brief(f"{type(error).__name__}: {error}", _LONGEST_WORDS)
        status = getattr(error, "status_code", None)
        address = self._address
        if "CredentialsError" in kinds:
            return MissingKeyError(
                "the credential could not be used",
                why=words,
                hint=f"export {self.key_variable}=... or pass api_key=",
            )
        if kinds & {"APITimeoutError", "TimeoutException"}:
            failure = TransportError(
                f"{address} did not answer within {self.timeout:g} s (model {model!r})",
                why="the request timed out, and so did its retries",
                hint="run the command again, or give it longer: "
                f"{type(self).__name__}(timeout=...)",
            )
            failure.usage = wire.usage_after(_root_cause(error))
            return failure
        # LiteLLM calls a connection that failed a fault of the server.
        is_unreached = "ServerError" in type(error).__name__ and "Connection error." in words
        if is_unreached or kinds & {"APIConnectionError", "ConnectionError", "ConnectError"}:
            reason, hint = _root_cause(error), self._hint_unreached()
            return wire.connection_failure(reason, model=model, address=address, hint=hint)
        # An error within a stream has the status of the answer that it interrupts.
        if isinstance(status, int) and ("APIStatusError" in kinds or status >= 400):
            return wire.status_failure(
                status,
                _error_body(error),
                model=model,
                address=address,
                hints=self._hints(),
                address_variable=self.address_variable,
            )
        if "TransportError" in kinds:  # of httpx, after the answer has begun
            failure = wire.cut_stream(words)
            failure.usage = Usage()  # unknown, not nothing
            return failure
        return TransportError(
            f"the turn with {address} failed (model {model!r})",
            why=words,
            hint="run the command again; what was finished before is kept",
        )


def _error_body(error: Exception) -> object:
    """Return what the API said, in the envelope that it stood in before an SDK took it out."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping) and "error" not in body:
        return {"error": body}
    if body is None:
        with suppress(Exception):  # The body of a failed answer is a courtesy.
            body = getattr(error, "response").text  # noqa: B009 - the type has none
    return body or str(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _root_cause(error: BaseException) -> str:
    """Return what an SDK's exception goes back to: the kind of error first, then its words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}".rstrip(": ")


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
    """Return an object of an SDK as the JSON it was made from."""
    # Not by pydantic: it warns of blocks that are newer than the SDK, and before 2.12 fails at
    # random where a model of the SDK is used for the first time.
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    sent = getattr(value, "model_fields_set", None)
    if sent is None:
        return value
    fields = {name: item for name, item in vars(value).items() if name in sent}
    return plain({**fields, **(getattr(value, "model_extra", None) or {})})


def without_user(address: str) -> str:
    """Return an address without the name and password that may stand before its host."""
    return re.sub(r"(?<=//)[^/]*@|^[^/]*@", "", address)
