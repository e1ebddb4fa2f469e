"""HTTP/1.1 on loopback: sockets, threads, keep-alive, chunked streams, connections that break."""

import email.errors
import re
import socket
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BufferedReader
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.emulator.values import HttpRequest, HttpResponse

_NUMBER = re.compile(r"[0-9]+")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")
_LINE = 8_192
_TRAILERS = 100


class BadRequestError(Exception):
    """A request that is not HTTP or not of its claimed size; the connection is closed after it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def read_body(
    stream: BufferedIOBase, lengths: Sequence[str], encodings: Sequence[str], *, limit: int
) -> bytes:
    """Return the body of a request.

    Args:
        stream: the stream after the head.
        lengths: every ``content-length``.
        encodings: every ``transfer-encoding``.
        limit: in bytes; a longer body is not read.

    Raises:
        BadRequestError: the headers contradict each other or the body.
    """
    if encodings:
        if lengths or [value.strip().lower() for value in encodings] != ["chunked"]:
            raise BadRequestError(400, "the body should have one length or be chunked, not both")
        return _chunked(stream, limit)
    sizes = {value.strip() for value in lengths} or {"0"}
    size = sizes.pop()
    if sizes or not _NUMBER.fullmatch(size):
        raise BadRequestError(400, "content-length: Input should be one whole number")
    # Python refuses to parse numbers of thousands of digits.
    if len(size.lstrip("0")) > len(str(limit)) or int(size) > limit:
        raise BadRequestError(413, "Request exceeds the maximum size")
    return _exactly(stream, int(size))


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise BadRequestError(400, f"the body ended after {len(data)} of {size} bytes")
    return data


def _chunked(stream: BufferedIOBase, limit: int) -> bytes:
    body = b""
    while True:
        text = _line(stream).partition(b";")[0].strip()
        if not _SIZE.fullmatch(text):
            raise BadRequestError(400, "the size of a chunk should be a hexadecimal number")
        size = int(text, 16)
        if len(body) + size > limit:
            raise BadRequestError(413, "Request exceeds the maximum size")
        if size == 0:
            break  # the last chunk, which only trailers follow
        body += _exactly(stream, size)
        if _line(stream):
            raise BadRequestError(400, "a chunk of the body is longer than it says")
    for _ in range(_TRAILERS):
        if not _line(stream):
            return body
    raise BadRequestError(400, "too many trailers")


def _line(stream: BufferedIOBase) -> bytes:
    line = stream.readline(_LINE)
    if not line.endswith(b"\n"):
        raise BadRequestError(400, "the body ended inside a chunk")
    return line.rstrip(b"\r\n")


HOST = "127.0.0.1"
"""The only address that is bound, so only this machine can connect."""
_LONGEST_LINE = 65_536
_DRAIN = 1 << 16
_DEFECTS = (
    email.errors.FirstHeaderLineIsContinuationDefect,
    email.errors.MissingHeaderBodySeparatorDefect,
)


class LoopbackServer(ThreadingHTTPServer):
    """Passes each request to ``handle``, with one thread per connection.

    Args:
        handle: returns the response; must not raise.
        refuse: returns the response to a malformed request, from a status and a message.
        port: 0 takes a free one.
        max_bytes: the longest body that is read.
        patience: how many seconds a request may pause after it has begun.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(
        self,
        handle: Callable[[HttpRequest], HttpResponse],
        refuse: Callable[[int, str], HttpResponse],
        *,
        port: int,
        max_bytes: int,
        patience: float = 30.0,
    ) -> None:
        self.handle_api = handle
        self.refuse = refuse
        self.max_bytes = max_bytes
        self.patience = patience
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for one connection and keep track of it."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close one connection."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that disconnects is no error of the emulator."""

    def stop(self) -> None:
        """Stop listening and close every open connection."""
        self.stopping.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            still_open = list(self._open)
        for connection in still_open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was faster


class _Handler(BaseHTTPRequestHandler):
    """Reads the requests of one connection."""

    server: LoopbackServer
    rfile: BufferedReader
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_one_request(self) -> None:
        """Answer one request of any method; close the connection after a malformed one."""
        self.close_connection = True
        self.command, self.request_version = "", self.protocol_version
        try:
            self.raw_requestline = self._read_first_line()
            if not self.raw_requestline:
                return
            request = self._request()
            self.connection.settimeout(None)
        except BadRequestError as refused:
            self._refuse(refused)
        except TimeoutError:
            self._refuse(BadRequestError(408, "the request was not complete in time"))
        except OSError:
            return  # the client went away
        else:
            response = self.server.handle_api(request)
            stopped = response.delay > 0 and self.server.stopping.wait(response.delay)
            self.close_connection = self.close_connection or stopped or response.end == "drop"
            # A stop ends a delay early, and a reply that was late on purpose is then not sent.
            if not stopped and response.end != "drop":
                if response.on_start:
                    response.on_start()
                self._send(response)

    def handle_expect_100(self) -> bool:
        """Tell a client that waits for ``100 Continue`` to send its body."""
        super().handle_expect_100()
        # At once, because the stream is buffered and the client sends nothing before it hears it.
        self.wfile.flush()
        return True

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,  # the base class's words
    ) -> None:
        """Refuse what the base class could not parse.

        Raises:
            BadRequestError: always.
        """
        status = int(code) if code in {414, 431} else 400
        raise BadRequestError(status, f"the request is no HTTP/1.1: {message}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's words
        """Write no access log."""

    def _read_first_line(self) -> bytes:
        """Return the first line of the next request; empty if there is none."""
        line = b"\n"
        while line in {b"\n", b"\r\n"}:  # old clients send an empty line after a body
            self.connection.settimeout(None)  # an idle connection may stay open without limit
            if not self.rfile.peek(1):
                return b""
            self.connection.settimeout(self.server.patience)
            line = self.rfile.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise BadRequestError(414, "the address is too long")
        return line

    def _request(self) -> HttpRequest:
        self.parse_request()
        if self.request_version == "HTTP/0.9":
            raise BadRequestError(400, "the request is no HTTP/1.1: it names no version")
        if any(isinstance(defect, _DEFECTS) for defect in self.headers.defects):
            raise BadRequestError(400, "the request is no HTTP/1.1: one of its headers has no name")
        body = read_body(
            self.rfile,
            self.headers.get_all("content-length", []),
            self.headers.get_all("transfer-encoding", []),
            limit=self.server.max_bytes,
        )
        try:
            url = urlsplit(self.path)
        except ValueError as error:
            raise BadRequestError(400, f"the address cannot be read: {error}") from error
        headers = {name.lower(): value for name, value in self.headers.items()}
        return HttpRequest(self.command, url.path, dict(parse_qsl(url.query)), headers, body)

    def _refuse(self, refused: BadRequestError) -> None:
        """Send the answer, then read on: a client that is cut off would not read it."""
        self.close_connection, self.request_version = True, self.protocol_version
        self._send(self.server.refuse(refused.status, refused.message))
        try:
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(self.server.patience)
            while self.connection.recv(_DRAIN):
                continue
        except OSError:
            return  # the client was faster, or has nothing more to say

    def _send(self, response: HttpResponse) -> None:
        try:
            self.send_response_only(response.status)
            self.send_header("Date", self.date_time_string())
            for name, value in response.headers.items():
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            if response.parts is None:
                self._send_whole(response)
            else:
                self._send_parts(response)
        except OSError:
            self.close_connection = True  # the client went away
        if response.end == "cut":
            self.close_connection = True

    def _send_whole(self, response: HttpResponse) -> None:
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        cut = response.end == "cut"
        if self.command != "HEAD":
            self.wfile.write(response.body[: len(response.body) // 2] if cut else response.body)
        self.wfile.flush()

    def _send_parts(self, response: HttpResponse) -> None:
        # HTTP/1.0 has no chunks; there the body ends with the connection.
        chunked = self.request_version != "HTTP/1.0"
        self.close_connection = self.close_connection or not chunked
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in response.parts or ():
            if part.delay and self.server.stopping.wait(part.delay):
                self.close_connection = True
                return
            size, end = (b"%x\r\n" % len(part.data), b"\r\n") if chunked else (b"", b"")
            self.wfile.write(size + part.data + end)
            self.wfile.flush()
        if response.end == "whole" and chunked:
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
