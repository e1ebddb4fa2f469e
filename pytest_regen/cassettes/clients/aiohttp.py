"""aiohttp: each request over one of its connections is answered from a cassette or recorded.

aiohttp itself follows redirects, keeps cookies and decodes bodies, live as in replay: a recording
is played as bytes over a connection that leads nowhere. vcrpy's patch sits in front of the
redirects instead and sees none of the hops.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from pytest_regen.cassettes import interactions
from pytest_regen.cassettes.clients import traffic
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.turns.interception import CassetteMiss

_ASKED = "_regen_asked"
"""The attribute of a connection that says what to record of its next answer."""

_DECODED = frozenset({"gzip", "x-gzip", "deflate", "br"})
"""Encodings that aiohttp decodes, or fails at. zstd, which newer versions decode, is recognized by
its first bytes."""

_LIMIT = 2**16
"""The longest line in bytes; a session's default."""


def patch_connections(patches: ExitStack) -> None:
    """Let every connector of aiohttp ask the innermost cassette before it connects."""
    # Not named as a type: it need not be installed.
    aiohttp = import_module("aiohttp")
    connector, response = aiohttp.BaseConnector, aiohttp.ClientResponse
    connects, starts = connector.connect, response.start
    make_connection = import_module("aiohttp.connector").Connection
    make_protocol = import_module("aiohttp.client_proto").ResponseHandler

    async def connect(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        run = traffic.run_for(str(request.url), request.headers.get("upgrade"))
        if run is None:
            return await connects(self, request, *args, **options)
        body = await _read_body(request)
        taken = run.take(request.method, str(request.url), body)
        if taken is not None:
            # A connection that answers with the recording, whatever is written to it.
            head = b"HTTP/1.1 100 Continue\r\n\r\n" if request.headers.get("expect") else b""
            pieces = [head, *_wire_pieces(taken, request.method)]
            loop = asyncio.get_running_loop()
            protocol = make_protocol(loop=loop)
            protocol.connection_made(_ReplayTransport(loop, protocol, pieces, taken))
            # Must not be pooled: it leads nowhere.
            protocol._should_close = True
            return make_connection(self, request.connection_key, protocol, loop)
        connection = await connects(self, request, *args, **options)
        setattr(connection, _ASKED, (run, request, body))
        return connection

    async def start(self: Any, connection: Any) -> Any:
        started = await starts(self, connection)
        asked = vars(connection).pop(_ASKED, None)
        if asked is not None:
            await _record_response(self, connection, *asked)
        return started

    patches.callback(setattr, connector, "connect", connects)
    patches.callback(setattr, response, "start", starts)
    connector.connect, response.start = connect, start


async def _read_body(request: Any) -> bytes:
    """Return the body of a request, leaving it able to be sent."""
    body = request.body
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if hasattr(body, "as_bytes"):
        return bytes(await body.as_bytes())
    # aiohttp before 3.12
    written = _BodyBuffer()
    await body.write(written)
    read = request.body = bytes(written)
    return read


class _BodyBuffer(bytearray):
    """Collects what a body writes."""

    async def write(self, piece: bytes = b"") -> None:
        """Add a piece."""
        self += piece

    write_eof = write


# Replay


class _ReplayTransport(asyncio.Transport):
    """Gives a protocol the bytes of a recording as soon as something is written."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.Protocol,
        pieces: list[bytes],
        taken: Interaction,
    ) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._pieces = pieces
        self._breaks_off = taken.end != "complete"
        self._is_closing = False

    def write(self, data: object) -> None:
        """Answer, once."""
        pieces, self._pieces = self._pieces, []
        for piece in filter(None, pieces):
            self._loop.call_soon(self._give, piece)
        if pieces and self._breaks_off:
            self._loop.call_soon(self.close)

    def writelines(self, pieces: object) -> None:
        """Answer, once."""
        self.write(pieces)

    def _give(self, piece: bytes) -> None:
        if not self._is_closing:
            self._protocol.data_received(piece)

    def is_closing(self) -> bool:
        """Whether the client closed it, or the recording was cut off."""
        return self._is_closing

    def close(self) -> None:
        """Report the end to the protocol, as a socket would."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """Do nothing: all is in memory."""

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        """Return 0: nothing is buffered."""
        return 0


def _wire_pieces(taken: Interaction, method: str) -> Iterator[bytes]:
    """Yield a recording as a server would send it; a stream in the pieces it came in."""
    headers = interactions.playable_headers(taken)
    is_chunked = "content-length" not in headers and method != "HEAD"
    if is_chunked:
        headers["transfer-encoding"] = ("chunked",)
    lines = [f"HTTP/1.1 {taken.status} {taken.reason}"]
    lines += [f"{name}: {value}" for name, values in headers.items() for value in values]
    # A cassette's content cannot end a line of the head early.
    plain = ("".join(" " if sign in "\r\n\0" else sign for sign in line) for line in lines)
    yield "\r\n".join([*plain, "", ""]).encode("utf-8", "surrogateescape")
    if method == "HEAD":
        return
    if not is_chunked:
        yield taken.response_body
        return
    for piece in filter(None, interactions.pieces_of(taken)):
        yield f"{len(piece):x}\r\n".encode("ascii") + piece + b"\r\n"
    if taken.end == "complete":
        yield b"0\r\n\r\n"


# Recording


async def _record_response(
    response: Any,
    connection: Any,
    run: traffic.ActiveCassette,
    request: Any,
    body: bytes,
) -> None:
    """Record an answer: an event stream as it passes, any other before it is handed on."""
    headers = interactions.by_lower_name(response.headers.items())
    if response.headers.get("content-encoding", "").lower() in _DECODED:
        del headers["content-encoding"]
    exchange = Interaction(
        method=request.method,
        uri=str(request.url),
        request_headers=interactions.by_lower_name(request.headers.items()),
        request_body=body,
        status=response.status,
        reason=interactions.text_of_header(response.reason or ""),
        response_headers=headers,
        response_body=b"",
    )
    answer, live = traffic.LiveAnswer(run, exchange), response.content
    if live.at_eof():
        await answer.aend("complete")
        return
    # Like the answer's reader, but without a connection to slow down.
    loop, limit = asyncio.get_running_loop(), max(_LIMIT, live._low_water)
    make_reader = import_module("aiohttp").StreamReader
    response.content = copy = make_reader(_NoConnection(), limit, timer=live._timer, loop=loop)
    if "text/event-stream" not in response.headers.get("content-type", ""):
        await _pass_on(live, copy, answer)
        return
    task = loop.create_task(_pass_on(live, copy, answer))
    _tasks.append(task)
    task.add_done_callback(_tasks.remove)
    connection.add_callback(lambda: live.is_eof() or task.cancel())


_tasks: list[asyncio.Task[None]] = []
"""Tasks that pass streams on; nothing else keeps them alive."""


async def _pass_on(live: Any, copy: Any, answer: traffic.LiveAnswer) -> None:
    """Read an answer to its end, record it and feed it to the client's reader."""
    try:
        async for piece in live.iter_any():
            answer.add(piece)
            copy.feed_data(piece)
        await answer.aend("complete")
        copy.feed_eof()
    except asyncio.CancelledError:
        # The client has closed the answer, so nothing waits for the recording.
        answer.end_apart("closed")
        raise
    except (Exception, CassetteMiss) as error:  # noqa: BLE001 - the client raises it when it reads
        await answer.aend("cut")
        copy.set_exception(error)


class _NoConnection:
    """Stands in for the protocol that a reader tells to slow a server down."""

    _reading_paused = False
    connected = True

    def pause_reading(self) -> None:
        """Do nothing: what was read is in memory."""

    def resume_reading(self, *_: object, **__: object) -> None:
        """Do nothing."""
