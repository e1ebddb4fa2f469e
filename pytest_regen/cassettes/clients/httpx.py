"""Clients built on httpx and httpx2, recorded while they stream and replayed piece by piece.

vcrpy reads an answer to its end before it hands it on; here the caller gets each piece when it
arrives, and the pieces, their times and the way the stream ended are recorded.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

from pytest_regen.cassettes import interactions
from pytest_regen.cassettes.clients import traffic
from pytest_regen.cassettes.interactions import Interaction


def patch_transports(module: Any, patches: ExitStack) -> None:
    """Let the transports of httpx or httpx2 that use a network ask the innermost cassette first.

    Not those that call an application or a function of the process (``ASGITransport``,
    ``WSGITransport``, ``MockTransport``): replayed, the code under test would not run.
    """
    sync, asynchronous = module.HTTPTransport, module.AsyncHTTPTransport
    send, asend = sync.handle_request, asynchronous.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        run = traffic.run_for(str(request.url), request.headers.get("upgrade"))
        if run is None:
            return send(self, request)
        # Because a generator would be empty when the request is sent.
        request.stream = module.ByteStream(b"".join(request.stream))
        played = _played_response(module, run, request)
        return played or _record_response(module, run, request, send(self, request))

    async def handle_async_request(self: Any, request: Any) -> Any:
        run = traffic.run_for(str(request.url), request.headers.get("upgrade"))
        if run is None:
            return await asend(self, request)
        request.stream = module.ByteStream(b"".join([part async for part in request.stream]))
        played = _played_response(module, run, request)
        return played or _record_response(module, run, request, await asend(self, request))

    patches.callback(setattr, sync, "handle_request", send)
    patches.callback(setattr, asynchronous, "handle_async_request", asend)
    sync.handle_request, asynchronous.handle_async_request = handle_request, handle_async_request


# Replay


def _played_response(module: Any, run: traffic.ActiveCassette, request: Any) -> Any:
    """Return the recorded response, or ``None`` where the request is to be sent."""
    taken = run.take(request.method, str(request.url), b"".join(request.stream))
    if taken is None:
        return None
    # As bytes: the client accepts only ASCII text, and decodes what a server sent as UTF-8 first.
    headers = [
        (name.encode(), value.encode("utf-8", "surrogatepass"))
        for name, values in interactions.playable_headers(taken).items()
        for value in values
    ]
    reason = taken.reason.encode("ascii", "replace")
    extensions: dict[str, Any] = {"reason_phrase": reason} if reason else {}
    return module.Response(
        taken.status,
        headers=headers,
        stream=_replay_stream_class(module)(taken),
        extensions=extensions,
    )


# Recording


def _record_response(module: Any, run: traffic.ActiveCassette, request: Any, response: Any) -> Any:
    """Return a response that is recorded as it passes."""
    exchange = Interaction(
        method=request.method,
        uri=str(request.url),
        request_headers=interactions.by_lower_name(request.headers.multi_items()),
        request_body=b"".join(request.stream),
        status=response.status_code,
        reason=response.reason_phrase,
        response_headers=interactions.by_lower_name(response.headers.multi_items()),
        response_body=b"",
    )
    answer = traffic.LiveAnswer(run, exchange, str(response.headers.get("content-encoding") or ""))
    if isinstance(response.stream, module.ByteStream):
        # From a test double in the transport's place: already complete, so the client will not
        # read it.
        for piece in response.stream:
            answer.add(piece)
        answer.end_apart("complete")
    else:
        response.stream = _live_stream_class(module)(response.stream, answer)
    return response


@cache
def _replay_stream_class(module: Any) -> Any:
    """Return the class of recorded bodies that a response of ``module`` accepts."""

    class RecordedStream(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]  # the client's
        """A recorded body, in its pieces, with its end."""

        def __init__(self, taken: Interaction) -> None:
            self._taken = taken

        def __iter__(self) -> Iterator[bytes]:
            yield from interactions.pieces_of(self._taken)
            self._stop()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in interactions.pieces_of(self._taken):
                yield piece
            self._stop()

        def _stop(self) -> None:
            if self._taken.end != "complete":
                raise module.RemoteProtocolError(interactions.BROKEN_OFF)

    return RecordedStream


@cache
def _live_stream_class(module: Any) -> Any:
    """Return the class of live bodies that a response of ``module`` accepts."""

    class LiveStream(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]  # the client's
        """A live body, kept while it passes."""

        def __init__(self, inner: Any, answer: traffic.LiveAnswer) -> None:
            self._inner = inner
            self._answer = answer

        def __iter__(self) -> Iterator[bytes]:
            try:
                for piece in self._inner:
                    self._answer.add(piece)
                    yield piece
            except Exception:
                self._answer.end("cut")
                raise
            self._answer.end("complete")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._inner:
                    self._answer.add(piece)
                    yield piece
            except Exception:
                await self._answer.aend("cut")
                raise
            await self._answer.aend("complete")

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._answer.end("closed")

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                await self._answer.aend("closed")

    return LiveStream
