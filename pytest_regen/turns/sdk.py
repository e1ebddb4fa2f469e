"""What the providers that send through an SDK have in common: clients, keys, exceptions."""

import logging
import os
import re
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict
from urllib.parse import urlsplit

from pytest_regen.errors import (
    MissingKeyError,
    ProviderError,
    RegenError,
    TransportError,
    UsageError,
)
from pytest_regen.turns import wire
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.values import Reply, TurnRequest, Usage

if TYPE_CHECKING:
    import asyncio

REPLAY_KEY = "replayed"
"""Stands where a key would: a client demands one even if nothing is ever sent."""

_LONGEST_WORDS = 300
"""Characters of an exception that are shown."""

_logger = logging.getLogger("pytest_regen")

notes: dict[str, None] = {}
"""What SDKs say of the models that were asked; whoever tells it takes it out."""


def note_retirement(model: str) -> None:
    """Make a note of a model that the SDK, which is imported, knows to be near its end."""
    # From its table, because its warning of the same would fail a turn where warnings are errors.
    messages = sys.modules.get("anthropic.resources.messages.messages")
    end = getattr(messages, "DEPRECATED_MODELS", {}).get(model)
    note = f"note: {model} is deprecated by its provider and retires on {end}"
    if end and note not in notes:
        notes[note] = None
        _logger.warning(note)


_Keeper = AsyncGenerator[None, None]
_keepers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Keeper]]" = (
    weakref.WeakKeyDictionary()
)
"""What closes the clients in loops of the caller's; held here, because such a loop may end right
after a provider, and then has no time to close what that left. Ours goes on, and has."""


async def _close_with_loop(client: Any) -> _Keeper:
    """Close ``client`` when its event loop shuts down: loops end the generators left in them."""
    try:
        yield
    finally:
        await client.close()


class SdkOptions(TypedDict, total=False):
    """Optional arguments of every provider behind an SDK, which says what they mean."""

    api_key: str | None
    base_url: str | None
    max_retries: int
    timeout: float


class SdkProvider(ABC):
    """A provider behind an SDK: its clients, its key, and its exceptions in our words."""

    model: Any  # Not all can do without one.
    key_variable: ClassVar[str] = ""
    address_variable: ClassVar[str] = ""
    default_address: ClassVar[str] = ""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
    ) -> None:
        if max_retries < 0:
            raise UsageError(
                f"max_retries is {max_retries}",
                why="it counts the times a failed request is sent again",
                hint="pass 0 or more",
            )
        self._api_key = api_key
        address = base_url or os.environ.get(self.address_variable) or self.default_address
        self.base_url = address.rstrip("/")
        self.max_retries = max_retries
        self.timeout = timeout
        # By loop, because connections belong to the one they were opened in; by key, because the
        # environment may name another one between two turns, as it does in tests.
        self._clients: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[str, tuple[Any, _Keeper]]
        ] = weakref.WeakKeyDictionary()
        # Holds the clients until the provider is gone, because what is collected together with it
        # would be warned of before it could be closed.
        weakref.finalize(self, self._clients.clear).atexit = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={without_user(self.base_url)!r})"

    def send(self, request: TurnRequest) -> Reply:
        """Return the model's reply; a refusal or a truncated reply is a reply, too.

        Raises:
            MissingExtraError: the SDK is not installed.
            MissingKeyError: no key is set and the turn is not replayed.
            RejectedRequestError: the API refused the request; sending it again cannot help.
            TransportError: the API could not be reached, or the reply was cut.
            CassetteMissError: a cassette in use has no answer.
        """
        turn = self._begin(request)
        if isinstance(turn, Reply):
            return turn
        # Here, because a replay needs neither an event loop nor the time to import one.
        from pytest_regen.turns.background import run_in_background

        return run_in_background(turn)

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the model's reply without blocking the event loop; raises as ``send`` does."""
        turn = self._begin(request)
        return turn if isinstance(turn, Reply) else await turn

    @abstractmethod
    def _begin(self, request: TurnRequest) -> "Reply | Coroutine[Any, Any, Reply]":
        """Return a reply that is there already, or what waits for it."""

    @abstractmethod
    def _make(self, key: str) -> Any:
        """Return a client for event loops."""

    async def _client(self, key: str) -> Any:
        """Return the client of the running event loop; it is closed when the loop shuts down."""
        import asyncio

        from pytest_regen.turns.background import is_running

        loop = asyncio.get_running_loop()
        clients = self._clients.setdefault(loop, {})
        if key not in clients:
            client = self._make(key)
            keeper = _close_with_loop(client)
            clients[key] = client, keeper
            await anext(keeper)
            if not is_running(loop):
                _keepers.setdefault(loop, []).append(keeper)
        return clients[key][0]

    def close(self) -> None:
        """Close the connections that ``send`` opened; those of ``asend`` end with their loop."""
        from pytest_regen.turns.background import run_in_background

        if self._clients:
            run_in_background(self.aclose())

    async def aclose(self) -> None:
        """Close the connections that ``asend`` opened in the running event loop."""
        import asyncio

        for client, _ in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await client.close()

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
        if key or is_replay(interceptor):
            return key or REPLAY_KEY
        error = MissingKeyError(
            f"{self.key_variable} is not set",
            why=f"{self._address} answers only with a key",
            hint=f"export {self.key_variable}=..., name another provider with --provider "
            "openai:MODEL, ollama:MODEL or module:attribute, or replay from a cassette",
        )
        error.variable = self.key_variable
        raise error

    @property
    def _address(self) -> str:
        """Host and port, as messages name them."""
        address = without_user(self.base_url)
        return urlsplit(address).netloc or address

    def _hints(self) -> dict[int, str]:
        """Return what to do next, by status, where the Messages API needs something else."""
        return {}

    def _hint_unreached(self) -> str:
        return f"check the network and {self.address_variable}, then run the command again"

    def _failure(self, error: Exception, model: str) -> tuple[RegenError, Exception | None]:
        """Return what an exception of an SDK means, and the cause that may be shown with it."""
        from pytest_regen.credentials.search import scrub_text

        # The key stands in neither: a server that echoes it must not put it into a log.
        if isinstance(error, RegenError):
            return error, error.__cause__ if isinstance(error.__cause__, Exception) else None
        failure = self._translate(error, model)
        # Because a traceback shows the cause as it is, and what that goes back to.
        link: BaseException | None = error
        traceback = ""
        while link is not None:
            traceback += f"{link}\n"
            link = link.__cause__ or link.__context__
        is_clean = scrub_text(traceback) == traceback
        if key := self._key:
            failure.what = failure.what.replace(key, "[key]")
            failure.why = failure.why.replace(key, "[key]")
            is_clean = is_clean and key not in traceback
        failure.args = (failure.what,)
        return failure, error if is_clean else None

    def _translate(self, error: Exception, model: str) -> ProviderError:
        # By the names of classes, because two SDKs and two HTTP clients raise them.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        words = wire.in_brief(f"{type(error).__name__}: {error}", _LONGEST_WORDS)
        status = getattr(error, "status_code", None)
        address = self._address
        if kinds & {"APITimeoutError", "TimeoutException"}:
            failure = TransportError(
                f"{address} did not answer within {self.timeout:g} s (model {model!r})",
                why="the request timed out, and so did its retries",
                hint="run the command again, or give it longer: "
                f"{type(self).__name__}(timeout=...)",
            )
            failure.usage = wire.usage_after(_root_cause(error))
            return failure
        if kinds & {"APIConnectionError", "ConnectionError", "ConnectError"}:
            reason, hint = _root_cause(error), self._hint_unreached()
            return wire.connection_failure(reason, model=model, address=address, hint=hint)
        # An error within a stream has the status of the answer that it interrupts.
        if isinstance(status, int) and ("APIStatusError" in kinds or status >= 400):
            body = getattr(error, "body", None)
            # Of an answer without a body the SDK says "Error code: 400", which stands in ours.
            body = str(error) if body is None else body
            # In the envelope that it stood in before an SDK took it out.
            is_bare = isinstance(body, Mapping) and "error" not in body
            return wire.status_failure(
                status,
                {"error": body} if is_bare else body,
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


def _root_cause(error: BaseException) -> str:
    """Return what an SDK's exception goes back to: the kind of error first, then its words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}".rstrip(": ")


def is_replay(interceptor: TurnInterceptor | None) -> bool:
    """Whether a turn made now cannot reach the network, so that no key is needed."""
    return interceptor is not None and interceptor.is_replay_only


def deliver(miss: CassetteMiss, interceptor: TurnInterceptor | None) -> Exception:
    """Return the error that a miss carries, and note that it reaches the caller."""
    if interceptor is not None:
        interceptor.delivered(miss)
    return miss.error


def without_user(address: str) -> str:
    """Return an address without the name and password that may stand before its host."""
    return re.sub(r"(?<=//)[^/]*@|^[^/]*@", "", address)
