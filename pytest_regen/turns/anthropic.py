"""Turns with the real API through the Anthropic SDK, which nothing else imports.

The SDK takes more than a second to import, so it is imported by the first turn that needs it; a
turn answered by a cassette never does. Any release from 0.40 on will do: what one has no parameter
or no error for is sent and understood all the same.
"""

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_regen.errors import MissingExtraError, ProviderError
from pytest_regen.extras import needs
from pytest_regen.turns import sdk, wire
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.values import DEFAULT_MODEL, Reply, TurnRequest

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

    from pytest_regen.turns.limits import RateLimiter, RateState
    from pytest_regen.turns.pacing import PacedTurn
else:
    Anthropic = AsyncAnthropic = Any

DEFAULT_BASE_URL = "https://api.anthropic.com"

_LONG_RUN = 20
"""Replies after which a run is long, and waits until a fault of the server or the line is over."""
_PATIENCE = 300.0
"""Seconds in which everything may fail before a long run ends."""
_OLDEST = (0, 40)
"""The first release of the SDK that a turn is tried with; earlier ones fail with newer httpx."""
_PARAMETERS = frozenset({"max_tokens", "messages", "model", "stream", "system"})
"""What every release has parameters for; the rest goes into its ``extra_body`` as it is."""


class AnthropicProvider(sdk.SdkProvider[Anthropic, AsyncAnthropic]):
    """Sends turns to the Messages API.

    One instance serves any number of threads and event loops; it makes its client on first use.

    Args:
        model: model asked where a request names none.
        api_key: the credential; otherwise ``ANTHROPIC_API_KEY``. Profiles on disk are never used.
        base_url: the address; otherwise ``ANTHROPIC_BASE_URL``, otherwise the real API.
        max_retries: times a request is sent again after a connection error, 408, 409 or 5xx, or
            where a stream broke off: what that took is part of the usage. ``Retry-After`` is
            obeyed. After 20 replies a turn is given five minutes more, in which one request after
            the other goes ahead. A refusal by a rate limit does not count: the turn waits and is
            sent again, see ``RateLimiter``. A spend limit is not retried.
        timeout: seconds to wait for a reply, or for the next piece of a streamed one.
    """

    asks_cassettes = True
    """A cassette in use is asked by the provider itself, without an HTTP client to be patched."""
    key_variable = "ANTHROPIC_API_KEY"
    address_variable = "ANTHROPIC_BASE_URL"

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
    ) -> None:
        address = base_url or os.environ.get(self.address_variable) or DEFAULT_BASE_URL
        super().__init__(
            api_key=api_key, base_url=address, max_retries=max_retries, timeout=timeout
        )
        self.model = model
        self._limiters: dict[str, RateLimiter] = {}
        self._limiter: RateLimiter | None = None
        self._replies = 0

    def send(self, request: TurnRequest) -> Reply:
        """Return the model's reply; a refusal or a truncated reply is a reply, too.

        Raises:
            MissingKeyError: no key is set and the turn is not replayed.
            RejectedRequestError: the API refused the request; sending it again cannot help.
            TransportError: the API could not be reached, or the reply was cut.
            CassetteMissError: a cassette in use has no answer.
        """
        body, interceptor = self._body(request), current_interceptor()
        replayed = self._replay(body, interceptor)
        if replayed is not None:
            return replayed
        key = self._key_for(interceptor)
        client, limiter = self._clients.get(key, self._make), self._limiter_of(key, interceptor)
        turn = self._paced(limiter, request, body, interceptor)
        return turn.run(lambda: self._ask(client, body, interceptor))

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the model's reply without blocking the event loop; raises as ``send`` does."""
        import asyncio

        body, interceptor = self._body(request), current_interceptor()
        replayed = self._replay(body, interceptor)
        if replayed is not None:
            return replayed
        key = self._key_for(interceptor)
        client = await self._clients.aget(key, self._amake)
        if key in self._limiters or sdk.is_replay(interceptor):
            limiter = self._limiter_of(key, interceptor)
        else:  # In a thread, because the first time a file is read.
            limiter = await asyncio.to_thread(self._limiter_of, key, interceptor)
        turn = self._paced(limiter, request, body, interceptor)
        return await turn.arun(lambda: self._aask(client, body, interceptor))

    @property
    def rate(self) -> "RateState | None":
        """How fast turns may be sent; ``None`` before the first one."""
        return self._limiter.state() if self._limiter else None

    def _body(self, request: TurnRequest) -> dict[str, Any]:
        body = wire.request_body(request)
        body["model"] = request.model or self.model or DEFAULT_MODEL
        return body

    def _replay(self, body: dict[str, Any], interceptor: TurnInterceptor | None) -> Reply | None:
        if interceptor is None:
            return None
        path = urlsplit(self.base_url).path + wire.MESSAGES_PATH
        return interceptor.answer(
            body, path=path, max_retries=self.max_retries, address=self._address
        )

    def _paced(
        self,
        limiter: "RateLimiter",
        request: TurnRequest,
        body: Mapping[str, Any],
        interceptor: TurnInterceptor | None,
    ) -> "PacedTurn":
        from pytest_regen.turns.pacing import PacedTurn

        def patience() -> float:
            # A replay knows the client's retries only: what a cassette records must end with them.
            is_long = self._replies >= _LONG_RUN and interceptor is None
            return _PATIENCE if is_long else 0.0

        retries = self.max_retries if body.get("stream") else 0
        return PacedTurn(limiter, request, body["model"], patience=patience, retries=retries)

    def _limiter_of(self, key: str, interceptor: TurnInterceptor | None) -> "RateLimiter":
        from pytest_regen.turns.limits import RateLimiter

        if sdk.is_replay(interceptor):
            return RateLimiter()  # that lets everything through
        if key not in self._limiters:
            self._limiters[key] = RateLimiter.of(self.base_url, key)
        self._limiter = self._limiters[key]
        return self._limiter

    def _ask(self, client: Anthropic, body: dict[str, Any], use: TurnInterceptor | None) -> Reply:
        with self._in_our_words(use, body["model"]) as message:
            answer = client.messages.create(**_arguments(body))
            if not body.get("stream"):
                return wire.reply_from_body(sdk.plain(answer))
            message.is_open = True
            with answer:
                for event in answer:
                    message.feed(sdk.plain(event))
            return message.reply()

    async def _aask(
        self, client: AsyncAnthropic, body: dict[str, Any], use: TurnInterceptor | None
    ) -> Reply:
        with self._in_our_words(use, body["model"]) as message:
            answer = await client.messages.create(**_arguments(body))
            if not body.get("stream"):
                return wire.reply_from_body(sdk.plain(answer))
            message.is_open = True
            async with answer:
                async for event in answer:
                    message.feed(sdk.plain(event))
            return message.reply()

    @contextmanager
    def _in_our_words(
        self, use: TurnInterceptor | None, model: str
    ) -> Iterator[wire.StreamedMessage]:
        """Yield what a stream is put together in; raise what goes wrong as an error of ours."""
        message = wire.StreamedMessage()
        try:
            with sdk.heeding_warnings(model):
                yield message
        except CassetteMiss as miss:
            raise sdk.deliver(miss, use) from None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
            failure, cause = self._failure(error, model)
            if isinstance(failure, ProviderError) and message.is_open:
                failure.usage = message.usage
            raise failure from cause
        self._replies += 1

    def _make(self, key: str) -> Anthropic:
        anthropic = _sdk()
        http = anthropic.DefaultHttpxClient(event_hooks={"response": [_hear]})
        options = self._options(key, anthropic.Anthropic)
        client: Anthropic = anthropic.Anthropic(**options, http_client=http)
        return client

    def _amake(self, key: str) -> AsyncAnthropic:
        anthropic = _sdk()
        http = anthropic.DefaultAsyncHttpxClient(event_hooks={"response": [_ahear]})
        options = self._options(key, anthropic.AsyncAnthropic)
        client: AsyncAnthropic = anthropic.AsyncAnthropic(**options, http_client=http)
        return client

    def _options(self, key: str, client: type) -> dict[str, Any]:
        options = {
            "api_key": key,
            "base_url": self.base_url,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
        }
        if "open_telemetry" in inspect.signature(client).parameters:
            options["open_telemetry"] = False
        return options


def _sdk() -> Any:
    """Return the SDK.

    Raises:
        MissingExtraError: it is not installed, or too old.
    """
    with needs("anthropic", "turns with the Anthropic API"):
        import anthropic
    if tuple(map(int, anthropic.__version__.split(".")[:2])) < _OLDEST:
        raise MissingExtraError(
            f"the package anthropic {anthropic.__version__} is too old",
            why=f"releases from {'.'.join(map(str, _OLDEST))} on are supported",
            hint="pip install --upgrade 'pytest-regen[anthropic]'",
            extra="anthropic",
        )
    return anthropic


def _arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with which the SDK, whatever its release, sends ``body``."""
    arguments = {name: value for name, value in body.items() if name in _PARAMETERS}
    extra = {name: value for name, value in body.items() if name not in _PARAMETERS}
    return {**arguments, "extra_body": extra} if extra else arguments


def _hear(response: Any) -> None:
    from pytest_regen.turns.pacing import hear

    if response.status_code == wire.RATE_LIMITED:
        response.read()
    hear(response)


async def _ahear(response: Any) -> None:
    from pytest_regen.turns.pacing import hear

    if response.status_code == wire.RATE_LIMITED:
        await response.aread()
    hear(response)
