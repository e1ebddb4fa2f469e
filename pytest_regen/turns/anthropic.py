"""Turns with the real API through the Anthropic SDK, which nothing else imports.

The SDK takes more than a second to import, so it is imported by the first turn that needs it; a
turn answered by a cassette never does. Any release from 0.40 on will do, because of each only the
client is used: bodies are sent and read as they are.
"""

import inspect
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlsplit

from pytest_regen.errors import MissingExtraError, ProviderError
from pytest_regen.extras import needs
from pytest_regen.turns import sdk, wire
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.values import DEFAULT_MODEL, Reply, TurnRequest

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pytest_regen.turns.limits import RateLimiter, RateState

DEFAULT_BASE_URL = "https://api.anthropic.com"

_LONG_RUN = 20
"""Replies after which a run is long, and waits until a fault of the server or the line is over."""
_PATIENCE = 300.0
"""Seconds in which everything may fail before a long run ends."""
_OLDEST = (0, 40)
"""The first release of the SDK that a turn is tried with; earlier ones fail with newer httpx."""


class AnthropicProvider(sdk.SdkProvider):
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
            sent again, see ``RateLimiter``. A spend limit is not retried. By default 2.
        timeout: seconds to wait for a reply, or for the next piece of a streamed one; 600 by
            default.
    """

    asks_cassettes = True
    """A cassette in use is asked by the provider itself, without an HTTP client to be patched."""
    key_variable = "ANTHROPIC_API_KEY"
    address_variable = "ANTHROPIC_BASE_URL"
    default_address = DEFAULT_BASE_URL

    def __init__(self, model: str | None = None, **options: Unpack[sdk.SdkOptions]) -> None:
        super().__init__(**options)
        self.model = model
        self._limiters: dict[str, RateLimiter] = {}
        self._limiter: RateLimiter | None = None
        self._replies = 0

    def _begin(self, request: TurnRequest) -> "Reply | Coroutine[Any, Any, Reply]":
        body, interceptor = self._body(request), current_interceptor()
        if interceptor is not None:
            replayed = interceptor.answer(
                body,
                path=urlsplit(self.base_url).path + wire.MESSAGES_PATH,
                max_retries=self.max_retries,
                address=self._address,
            )
            if replayed is not None:
                return replayed
        return self._live(request, body, interceptor, self._key_for(interceptor))

    async def _live(
        self,
        request: TurnRequest,
        body: dict[str, Any],
        interceptor: TurnInterceptor | None,
        key: str,
    ) -> Reply:
        """Return the reply to a request, sent when the limits allow, as often as it takes."""
        import asyncio

        from pytest_regen.turns.limits import RateLimiter
        from pytest_regen.turns.pacing import PacedTurn

        client = await self._client(key)
        sdk.note_retirement(body["model"])
        if sdk.is_replay(interceptor):
            limiter = RateLimiter()  # that lets everything through
        else:
            if key not in self._limiters:  # In a thread, because the first time a file is read.
                self._limiters[key] = await asyncio.to_thread(RateLimiter.of, self.base_url, key)
            limiter = self._limiter = self._limiters[key]

        def patience() -> float:
            # A replay knows the client's retries only: what a cassette records must end with them.
            return _PATIENCE if self._replies >= _LONG_RUN and interceptor is None else 0.0

        retries = self.max_retries if body.get("stream") else 0
        turn = PacedTurn(limiter, request, body["model"], patience=patience, retries=retries)
        return await turn.run(lambda: self._ask(client, body, interceptor))

    @property
    def rate(self) -> "RateState | None":
        """How fast turns may be sent; ``None`` before the first one."""
        return self._limiter.state() if self._limiter else None

    def _body(self, request: TurnRequest) -> dict[str, Any]:
        body = wire.request_body(request)
        body["model"] = request.model or self.model or DEFAULT_MODEL
        return body

    async def _ask(
        self, client: Any, body: dict[str, Any], interceptor: TurnInterceptor | None
    ) -> Reply:
        """Send a request once; what goes wrong is raised as an error of ours."""
        import anthropic

        message, is_stream = wire.StreamedMessage(), bool(body.get("stream"))
        # Past the methods of the SDK, because old releases lack parameters, new ones warn of models
        # and refuse replies that may take long, and all put the answer into objects first.
        options = {"stream": is_stream, "stream_cls": anthropic.AsyncStream[object]}
        try:
            answer = await client.post(wire.MESSAGES_PATH, cast_to=object, body=body, **options)
            if is_stream:
                message.is_open = True
                async with answer:
                    async for event in answer:
                        message.feed(event)
            reply = message.reply() if is_stream else wire.reply_from_body(answer)
        except CassetteMiss as miss:
            raise sdk.deliver(miss, interceptor) from None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
            failure, cause = self._failure(error, body["model"])
            if isinstance(failure, ProviderError) and message.is_open:
                failure.usage = message.usage
            raise failure from cause
        self._replies += 1
        return reply

    def _make(self, key: str) -> Any:
        from pytest_regen.turns.pacing import hear

        with needs("anthropic", "turns with the Anthropic API"):
            import anthropic
        if tuple(map(int, anthropic.__version__.split(".")[:2])) < _OLDEST:
            raise MissingExtraError(
                f"the package anthropic {anthropic.__version__} is too old",
                why=f"releases from {'.'.join(map(str, _OLDEST))} on are supported",
                hint="pip install --upgrade 'pytest-regen[anthropic]'",
                extra="anthropic",
            )
        http = anthropic.DefaultAsyncHttpxClient(event_hooks={"response": [hear]})
        options: dict[str, Any] = {
            "api_key": key,
            "base_url": self.base_url,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
            "http_client": http,
        }
        if "open_telemetry" in inspect.signature(anthropic.AsyncAnthropic).parameters:
            options["open_telemetry"] = False
        return anthropic.AsyncAnthropic(**options)
