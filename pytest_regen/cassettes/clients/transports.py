"""Clients built on httpx and httpx2, recorded while they stream and replayed piece by piece.

vcrpy reads an answer to its end before it hands it on; here the caller gets each piece when it
arrives, and what was sent, when, and how the stream ended is kept.
"""

import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pytest_regen.cassettes.answers import playable_headers
from pytest_regen.cassettes.clients.active import CassetteInUse, innermost
from pytest_regen.cassettes.recording import WireExchange
from pytest_regen.cassettes.values import BROKEN_OFF, Interaction, StreamEnd

__all__ = ["end_streams", "patch_transports"]

_MODULES = ("httpx2", "httpx")

_STEP = 0.02
"""Seconds: pieces that arrive within one step of each other are kept as one."""


_lock = threading.Lock()
_open: list["_Recording"] = []
"""Answers on their way to a caller."""


def patch_transports(patches: ExitStack) -> None:
    """Let the transports of httpx and httpx2 that use a network ask the innermost cassette first.

    Not those that call an application or a function of the process (``ASGITransport``,
    ``WSGITransport``, ``MockTransport``): replayed, the code under test would not run.
    """
    for module in _modules():
        sync, asynchronous = module.HTTPTransport, module.AsyncHTTPTransport
        _replace(patches, sync, "handle_request", _sync_handler(module))
        _replace(patches, asynchronous, "handle_async_request", _async_handler(module))


def end_streams(run: CassetteInUse) -> None:
    """Keep streams that nobody closed as far as they were read.

    Raises:
        CassetteMiss: one cannot be written.
    """
    with _lock:
        left = [one for one in _open if one.run is run]
    for recording in left:
        recording.end("closed")


@cache
def _modules() -> tuple[Any, ...]:
    return tuple(import_module(name) for name in _MODULES if find_spec(name) is not None)


def _replace(patches: ExitStack, owner: Any, name: str, make: Callable[[Any], Any]) -> None:  # noqa: ANN401 - a class
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    patches.callback(setattr, owner, name, original)


def _sync_handler(module: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - httpx or httpx2
    def make(original: Any) -> Any:  # noqa: ANN401 - a method
        def handle_request(self: Any, request: Any) -> Any:  # noqa: ANN401 - the client's types
            run = innermost()
            if run is None:
                return original(self, request)
            body = b"".join(request.stream)
            request.stream = module.ByteStream(body)
            taken = run.take(request.method, str(request.url), body)
            if taken is not None:
                return _played(module, taken)
            return _taped(module, run, request, body, original(self, request))

        return handle_request

    return make


def _async_handler(module: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - httpx or httpx2
    def make(original: Any) -> Any:  # noqa: ANN401 - a method
        async def handle_async_request(self: Any, request: Any) -> Any:  # noqa: ANN401 - as above
            run = innermost()
            if run is None:
                return await original(self, request)
            body = b"".join([part async for part in request.stream])
            request.stream = module.ByteStream(body)
            taken = run.take(request.method, str(request.url), body)
            if taken is not None:
                return _played(module, taken)
            return _taped(module, run, request, body, await original(self, request))

        return handle_async_request

    return make


# Replay


def _played(module: Any, taken: Interaction) -> Any:  # noqa: ANN401 - the client's types
    # As bytes: of text the client takes ASCII alone, and reads what a server sent as UTF-8 first.
    headers = [
        (name.encode(), value.encode("utf-8", "surrogatepass"))
        for name, values in playable_headers(taken).items()
        for value in values
    ]
    reason = taken.reason.encode("ascii", "replace")
    return module.Response(
        taken.status,
        headers=headers,
        stream=_played_stream(module)(taken),
        extensions={"reason_phrase": reason} if reason else None,
    )


def _pieces(taken: Interaction) -> Iterator[bytes]:
    """Yield the body in the pieces it came in; the last holds all that the sizes do not cover."""
    start = 0
    for _, size in taken.chunks[:-1]:
        yield taken.response_body[start : start + size]
        start += size
    yield taken.response_body[start:]


# Recording


def _taped(module: Any, run: CassetteInUse, request: Any, body: bytes, response: Any) -> Any:  # noqa: ANN401
    recording = _Recording(run, request, body, response)
    if isinstance(response.stream, module.ByteStream):
        # Of a double put in the transport's place: whole, and the client will not read it again.
        for piece in response.stream:
            recording.add(piece)
        recording.end("complete")
        return response
    with _lock:
        _open.append(recording)
    response.stream = _taped_stream(module)(response.stream, recording)
    return response


class _Recording:
    """An answer on its way to the caller."""

    def __init__(self, run: CassetteInUse, request: Any, body: bytes, response: Any) -> None:  # noqa: ANN401
        self.run = run
        self._exchange = WireExchange(
            method=request.method,
            uri=str(request.url),
            request_headers=_headers(request.headers),
            request_body=body,
            status=response.status_code,
            reason=response.reason_phrase,
            response_headers=_headers(response.headers),
            response_body=b"",
        )
        self._size = _sizes(str(response.headers.get("content-encoding") or "").lower())
        self._pieces: list[bytes] = []
        self._chunks: list[tuple[int, int]] = []
        self._start = time.monotonic()
        self._ended = False

    def add(self, piece: bytes) -> None:
        """Keep a piece that arrived now."""
        self._pieces.append(piece)
        size = self._size(piece)
        if size is None:
            return
        now = time.monotonic() - self._start
        if self._chunks and now - self._chunks[-1][0] / 1000 < _STEP:
            at, before = self._chunks.pop()
            self._chunks.append((at, before + size))
        else:
            self._chunks.append((int(now / _STEP) * round(_STEP * 1000), size))

    def end(self, how: StreamEnd) -> None:
        """Record the answer as far as it came; only the first call counts.

        Raises:
            CassetteMiss: it cannot be written.
        """
        with _lock:
            if self._ended:
                return
            self._ended = True
            if self in _open:
                _open.remove(self)
        self.run.record(self._exchange.ended(b"".join(self._pieces), tuple(self._chunks), how))


def _sizes(encoding: str) -> Callable[[bytes], int | None]:
    """Return a function that gives the decoded size of a piece; ``None`` where it is unknown.

    Where that is not known the recording is played back in one piece.
    """
    if encoding in {"", "identity"}:
        return len
    if encoding != "gzip":
        return lambda _piece: None
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def size(piece: bytes) -> int | None:
        try:
            return len(inflate.decompress(piece))
        except zlib.error:
            return None  # the client will say so, or does not mind

    return size


def _headers(headers: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401 - the client's own
    found: dict[str, tuple[str, ...]] = {}
    for name, value in headers.multi_items():
        found[name] = (*found.get(name, ()), value)
    return found


@cache
def _played_stream(module: Any) -> Any:  # noqa: ANN401 - a class
    """Return the class of recorded bodies that a response of ``module`` accepts."""

    class Played(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]  # the client's
        """A recorded body, in its pieces, with its end."""

        def __init__(self, taken: Interaction) -> None:
            self._taken = taken

        def __iter__(self) -> Iterator[bytes]:
            yield from _pieces(self._taken)
            self._stop()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in _pieces(self._taken):
                yield piece
            self._stop()

        def _stop(self) -> None:
            if self._taken.end != "complete":
                raise module.RemoteProtocolError(BROKEN_OFF)

    return Played


@cache
def _taped_stream(module: Any) -> Any:  # noqa: ANN401 - a class
    """Return the class of live bodies that a response of ``module`` accepts."""

    class Taped(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]  # the client's
        """A live body, kept while it passes."""

        def __init__(self, inner: Any, recording: _Recording) -> None:  # noqa: ANN401 - a stream
            self._inner = inner
            self._recording = recording

        def __iter__(self) -> Iterator[bytes]:
            with _kept(self._recording):
                for piece in self._inner:
                    self._recording.add(piece)
                    yield piece

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with _kept(self._recording):
                async for piece in self._inner:
                    self._recording.add(piece)
                    yield piece

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._recording.end("closed")

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._recording.end("closed")

    return Taped


@contextmanager
def _kept(recording: _Recording) -> Iterator[None]:
    """Record an answer whose pieces pass in the block: whole, or cut where it breaks off."""
    try:
        yield
    except Exception:
        recording.end("cut")
        raise
    recording.end("complete")
