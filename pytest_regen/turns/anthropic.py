"""Turns with the real API through the Anthropic SDK, which nothing else imports.

The SDK takes more than a second to import, so it is imported by the first turn that needs it; a
turn answered by a cassette never does. Any release from 0.40 on will do: what one has no parameter
or no error for is sent and understood all the same.
"""

import inspect
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_regen.errors import (
    MissingExtraError,
    MissingKeyError,
    ProviderError,
    RegenError,
    TransportError,
)
from pytest_regen.extras import needs
from pytest_regen.turns.interception import CassetteMiss, TurnInterceptor, current_interceptor
from pytest_regen.turns.sdk import (
    REPLAY_KEY,
    Clients,
    checked_retries,
    deliver,
    heeding_warnings,
    host_of,
    is_replay,
    plain,
    root_cause,
    without_user,
)
from pytest_regen.turns.values import DEFAULT_MODEL, Reply, TurnRequest, Usage
from pytest_regen.turns.wire import (
    MESSAGES_PATH,
    RATE_LIMITED,
    StreamedMessage,
    connection_failure,
    cut_stream,
    in_brief,
    reply_from_body,
    request_body,
    status_failure,
    timeout_failure,
)

if TYPE_CHECKING:
    import anthropic
    from anthropic import Anthropic, AsyncAnthropic

    from pytest_regen.turns.limits import RateLimiter, RateState
    from pytest_regen.turns.pacing import PacedTurn

DEFAULT_BASE_URL = "https://api.anthropic.com"

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
"""Seconds before a broken stream is asked for again, doubled each time."""
_LONG_RUN = 20
"""Replies after which a run is long, and waits until a fault of the server or the line is over."""
_PATIENCE = 300.0
"""Seconds in which everything may fail before a long run ends."""
_OLDEST = (0, 40)
"""The first release of the SDK that a turn is tried with; earlier ones fail with newer httpx."""
_PARAMETERS = frozenset({"max_tokens", "messages", "model", "stream", "system"})
"""What every release has parameters for; the rest goes into its ``extra_body`` as it is."""


class AnthropicProvider:
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

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float = 600.0,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self.base_url = (
            base_url or os.environ.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL
        ).rstrip("/")
        self.max_retries = checked_retries(max_retries)
        self.timeout = timeout
        self._clients: Clients[Anthropic, AsyncAnthropic] = Clients()
        self._limiters: dict[str, RateLimiter] = {}
        self._limiter: RateLimiter | None = None
        self._replies = 0

    def __repr__(self) -> str:
        return f"AnthropicProvider(model={self.model!r}, base_url={without_user(self.base_url)!r})"

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
        # The first time a file is read.
        is_known = key in self._limiters or is_replay(interceptor)
        limiter = (
            self._limiter_of(key, interceptor)
            if is_known
            else await asyncio.to_thread(self._limiter_of, key, interceptor)
        )
        turn = self._paced(limiter, request, body, interceptor)
        return await turn.arun(lambda: self._aask(client, body, interceptor))

    @property
    def rate(self) -> "RateState | None":
        """How fast turns may be sent; ``None`` before the first one."""
        return self._limiter.state() if self._limiter else None

    def close(self) -> None:
        """Close the connections that ``send`` opened; those of ``asend`` end with their loop."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections that ``asend`` opened in the running event loop."""
        await self._clients.aclose()

    def _body(self, request: TurnRequest) -> dict[str, Any]:
        body = request_body(request)
        body["model"] = request.model or self.model or DEFAULT_MODEL
        return body

    def _replay(self, body: dict[str, Any], interceptor: TurnInterceptor | None) -> Reply | None:
        if interceptor is None:
            return None
        path = urlsplit(self.base_url).path + MESSAGES_PATH
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

        return PacedTurn(limiter, request, body["model"], patience)

    def _limiter_of(self, key: str, interceptor: TurnInterceptor | None) -> "RateLimiter":
        from pytest_regen.turns.limits import RateLimiter

        if is_replay(interceptor):
            return RateLimiter()  # that lets everything through
        limiter = self._limiters.get(key)
        if limiter is None:
            limiter = RateLimiter.of(self.base_url, key)
            self._limiters[key] = limiter
        self._limiter = limiter
        return limiter

    def _ask(
        self, client: "Anthropic", body: dict[str, Any], interceptor: TurnInterceptor | None
    ) -> Reply:
        with self._in_our_words(interceptor, body["model"]):
            if body.get("stream"):
                reply = self._stream(client, body)
            else:
                reply = reply_from_body(plain(client.messages.create(**_arguments(body))))
        self._replies += 1
        return reply

    async def _aask(
        self, client: "AsyncAnthropic", body: dict[str, Any], interceptor: TurnInterceptor | None
    ) -> Reply:
        with self._in_our_words(interceptor, body["model"]):
            if body.get("stream"):
                reply = await self._astream(client, body)
            else:
                reply = reply_from_body(plain(await client.messages.create(**_arguments(body))))
        self._replies += 1
        return reply

    def _stream(self, client: "Anthropic", body: dict[str, Any]) -> Reply:
        """Return a streamed reply; a stream that breaks off is asked for again, as a body is."""
        spent = Usage()
        for attempt in range(self.max_retries + 1):
            with self._add_spent(spent, body["model"]):
                events = client.messages.create(**_arguments(body))
            message = StreamedMessage()
            try:
                with events:
                    for event in events:
                        message.feed(plain(event))
                reply = message.reply()
            except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
                spent += message.usage
                self._give_up(error, body["model"], spent, is_last=attempt == self.max_retries)
                time.sleep(_pause(attempt, events.response.headers))
            else:
                return replace(reply, usage=spent + reply.usage)
        raise AssertionError("the last attempt returns or raises")

    async def _astream(self, client: "AsyncAnthropic", body: dict[str, Any]) -> Reply:
        import asyncio

        spent = Usage()
        for attempt in range(self.max_retries + 1):
            with self._add_spent(spent, body["model"]):
                events = await client.messages.create(**_arguments(body))
            message = StreamedMessage()
            try:
                async with events:
                    async for event in events:
                        message.feed(plain(event))
                reply = message.reply()
            except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
                spent += message.usage
                self._give_up(error, body["model"], spent, is_last=attempt == self.max_retries)
                await asyncio.sleep(_pause(attempt, events.response.headers))
            else:
                return replace(reply, usage=spent + reply.usage)
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def _add_spent(self, spent: Usage, model: str) -> Iterator[None]:
        """Add the usage of earlier attempts to an error before the next answer begins.

        The SDK has retried that already.
        """
        try:
            yield
        except Exception as error:
            if not spent.total_tokens:
                raise
            self._give_up(error, model, spent, is_last=True)

    def _give_up(self, error: Exception, model: str, spent: Usage, *, is_last: bool) -> None:
        """Raise what broke a stream off, unless it is worth another attempt."""
        failure, cause = self._failure(error, model)
        if is_last or not isinstance(failure, TransportError):
            if isinstance(failure, ProviderError):
                failure.usage = spent
            raise failure from cause

    def _make(self, key: str) -> "Anthropic":
        anthropic = _sdk()
        http = anthropic.DefaultHttpxClient(event_hooks={"response": [_hear]})
        options = self._options(key, anthropic.Anthropic)
        client: Anthropic = anthropic.Anthropic(**options, http_client=http)
        return client

    def _amake(self, key: str) -> "AsyncAnthropic":
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

    @property
    def _key(self) -> str | None:
        return self._api_key or os.environ.get("ANTHROPIC_API_KEY") or None

    def require_key(self) -> None:
        """Check that a turn can be taken.

        Raises:
            MissingKeyError: no key is set, and no cassette in use replays without one.
        """
        self._key_for(current_interceptor())

    def _key_for(self, interceptor: TurnInterceptor | None) -> str:
        key = self._key
        if key:
            return key
        if is_replay(interceptor):
            return REPLAY_KEY
        raise MissingKeyError(
            "no API key is set",
            why=f"{self._address} answers nobody without one",
            hint="export ANTHROPIC_API_KEY=..., pass api_key=, name another "
            "provider (openai:MODEL, ollama:MODEL), or replay from a cassette",
        )

    @property
    def _address(self) -> str:
        return host_of(self.base_url)

    @contextmanager
    def _in_our_words(self, interceptor: TurnInterceptor | None, model: str) -> Iterator[None]:
        """Raise what goes wrong with a turn as an error of this package."""
        try:
            with heeding_warnings(model):
                yield
        except CassetteMiss as miss:
            raise deliver(miss, interceptor) from None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises becomes ours
            failure, cause = self._failure(error, model)
            raise failure from cause

    def _failure(self, error: Exception, model: str) -> tuple[RegenError, Exception | None]:
        """Return what an exception of the SDK means, and the cause that may be shown with it.

        The key stands in neither: a server that echoes it must not put it into a log.
        """
        if isinstance(error, RegenError):
            return error, error.__cause__ if isinstance(error.__cause__, Exception) else None
        failure = self._translate(error, model)
        key = self._key
        if not key or key not in f"{failure}{error}":
            return failure, error
        failure.what = failure.what.replace(key, "[key]")
        failure.why = failure.why.replace(key, "[key]")
        failure.args = (failure.what,)
        return failure, None

    def _translate(self, error: Exception, model: str) -> ProviderError:
        import anthropic

        address = self._address
        if isinstance(error, getattr(anthropic, "CredentialsError", ())):
            return MissingKeyError(
                "the credential could not be used",
                why=in_brief(str(error)),
                hint="export ANTHROPIC_API_KEY=... or pass api_key=",
            )
        match error:
            case anthropic.APIStatusError():
                body = error.body if error.body is not None else _response_text(error)
                return status_failure(error.status_code, body, model=model, address=address)
            case anthropic.APITimeoutError():
                reason = root_cause(error)
                return timeout_failure(reason, self.timeout, model=model, address=address)
            case anthropic.APIConnectionError():
                return connection_failure(root_cause(error), model=model, address=address)
            case _ if type(error).__module__.startswith("httpx"):
                # The SDK wraps what happens before an answer begins, not what breaks off within.
                return cut_stream(in_brief(f"{type(error).__name__}: {error}"))
            case _:
                return TransportError(
                    f"the turn with {address} failed (model {model!r})",
                    why=in_brief(f"{type(error).__name__}: {error}"),
                    hint="run the command again; what was finished before is kept",
                )


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
    known = {name: value for name, value in body.items() if name in _PARAMETERS}
    rest = {name: value for name, value in body.items() if name not in _PARAMETERS}
    return {**known, "extra_body": rest} if rest else known


def _pause(attempt: int, headers: Mapping[str, str]) -> float:
    """Return the seconds to wait before a stream is asked for again: as long as the SDK would."""
    asked = headers.get("retry-after-ms", "")
    if asked.replace(".", "", 1).isdigit():
        return float(asked) / 1_000
    return float(min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE))


def _response_text(error: "anthropic.APIStatusError") -> str:
    try:
        return error.response.text
    except Exception:  # noqa: BLE001 - the body of a failed answer is a courtesy
        return ""


def _hear(response: Any) -> None:
    from pytest_regen.turns.pacing import hear

    if response.status_code == RATE_LIMITED:
        response.read()
    hear(response)


async def _ahear(response: Any) -> None:
    from pytest_regen.turns.pacing import hear

    if response.status_code == RATE_LIMITED:
        await response.aread()
    hear(response)
