"""Clients built on httpx and httpx2, recorded while they stream and replayed piece by piece.

vcrpy reads an answer to its end before it hands it on; here the caller gets each piece when it
arrives, and what was sent, when, and how the stream ended is kept.
"""

import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_regen.cassettes.recording import Exchange
from pytest_regen.cassettes.values import BROKEN_OFF, Interaction, StreamEnd, playable_headers

if TYPE_CHECKING:
    from pytest_regen.cassettes.running import CassetteRun

__all__ = ["patched_transports"]

_MODULES = ("httpx2", "httpx")
_SYNC = ("HTTPTransport", "WSGITransport", "MockTransport")
_ASYNC = ("AsyncHTTPTransport", "ASGITransport", "MockTransport")

_STEP = 0.02
"""Seconds: pieces that arrive within one step of each other are kept as one."""


class _Active:
    """The cassettes in use, innermost last; the transports are patched once for all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runs: list[CassetteRun] = []
        self.undo: list[Callable[[], None]] = []
        self.open: list[_Recording] = []


_active = _Active()


@contextmanager
def patched_transports(run: "CassetteRun") -> Iterator[None]:
    """Let every transport of httpx and httpx2 ask ``run`` first."""
    with _active.lock:
        _active.runs.append(run)
        if len(_active.runs) == 1:
            _patch()
    try:
        yield
    finally:
        with _active.lock:
            # From the end: the same cassette may be in use twice.
            _active.runs.reverse()
            _active.runs.remove(run)
            _active.runs.reverse()
            left = [one for one in _active.open if one.run is run]
            if not _active.runs:
                while _active.undo:
                    _active.undo.pop()()
        for recording in left:
            # Streams that nobody closed are kept as far as they were read.
            recording.end("closed")


def _patch() -> None:
    for name in _MODULES:
        if find_spec(name) is None:
            continue
        module: Any = import_module(name)
        for class_name in _SYNC:
            _replace(getattr(module, class_name), "handle_request", _sync_handler(module))
        for class_name in _ASYNC:
            _replace(getattr(module, class_name), "handle_async_request", _async_handler(module))


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:  # noqa: ANN401 - any class
    original = owner.__dict__.get(name)
    if original is None:
        return
    setattr(owner, name, make(original))
    _active.undo.append(lambda: setattr(owner, name, original))


def _sync_handler(module: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - httpx or httpx2
    def make(original: Any) -> Any:  # noqa: ANN401 - a method
        def handle_request(self: Any, request: Any) -> Any:  # noqa: ANN401 - the client's types
            run = _innermost()
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
            run = _innermost()
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


def _innermost() -> "CassetteRun | None":
    with _active.lock:
        return _active.runs[-1] if _active.runs else None


# Replay


def _played(module: Any, taken: Interaction) -> Any:  # noqa: ANN401 - the client's types
    headers = [(n, v) for n, values in playable_headers(taken).items() for v in values]
    reason = taken.reason.encode("ascii", "replace")
    return module.Response(
        taken.status,
        headers=headers,
        stream=_played_stream(module)(taken),
        extensions={"reason_phrase": reason} if reason else None,
    )


def _pieces(taken: Interaction) -> Iterator[bytes]:
    """Yield the body in the pieces it came in; what the pieces do not tell of comes last."""
    start = 0
    for _, size in taken.chunks[:-1]:
        yield taken.response_body[start : start + size]
        start += size
    yield taken.response_body[start:]


# Recording


def _taped(module: Any, run: "CassetteRun", request: Any, body: bytes, response: Any) -> Any:  # noqa: ANN401
    recording = _Recording(run, request, body, response)
    if isinstance(response.stream, module.ByteStream):
        # It is whole, and the client will not read it again.
        for piece in response.stream:
            recording.add(piece)
        recording.end("complete")
        return response
    with _active.lock:
        _active.open.append(recording)
    response.stream = _taped_stream(module)(response.stream, recording)
    return response


class _Recording:
    """An answer on its way to the caller."""

    def __init__(self, run: "CassetteRun", request: Any, body: bytes, response: Any) -> None:  # noqa: ANN401
        self.run = run
        self._exchange = Exchange(
            method=request.method,
            uri=str(request.url),
            request_headers=_headers(request.headers),
            request_body=body,
            status=response.status_code,
            reason=response.reason_phrase,
            response_headers=_headers(response.headers),
            response_body=b"",
        )
        encoding = str(response.headers.get("content-encoding") or "").lower()
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding == "gzip" else None
        self._pieces: list[bytes] = []
        self._chunks: list[tuple[int, int]] = []
        self._start = time.monotonic()
        self._ended = False

    def add(self, piece: bytes) -> None:
        """Keep a piece that arrived now."""
        self._pieces.append(piece)
        size = len(piece if self._inflate is None else self._inflate.decompress(piece))
        now = time.monotonic() - self._start
        if self._chunks and now - self._chunks[-1][0] / 1000 < _STEP:
            at, before = self._chunks.pop()
            self._chunks.append((at, before + size))
        else:
            self._chunks.append((int(now / _STEP) * round(_STEP * 1000), size))

    def end(self, how: StreamEnd) -> None:
        """Keep the whole, once.

        Raises:
            CassetteMiss: it cannot be written.
        """
        with _active.lock:
            if self._ended:
                return
            self._ended = True
            if self in _active.open:
                _active.open.remove(self)
        self.run.record(self._exchange.ended(b"".join(self._pieces), tuple(self._chunks), how))


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
            self._inner.close()
            self._recording.end("closed")

        async def aclose(self) -> None:
            await self._inner.aclose()
            self._recording.end("closed")

    return Taped


@contextmanager
def _kept(recording: _Recording) -> Iterator[None]:
    """Keep an answer whose pieces pass meanwhile: whole, or cut where the line breaks."""
    try:
        yield
    except Exception:
        recording.end("cut")
        raise
    recording.end("complete")
