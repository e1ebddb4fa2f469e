"""HTTP/1.1 on loopback: sockets, threads, keep-alive, chunked streams, connections that break."""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.emulator.wire import HttpRequest, HttpResponse

__all__ = ["HOST", "LoopbackServer"]

HOST = "127.0.0.1"
"""The only address ever bound: what listens here answers to this machine alone."""
_DRAIN = 1 << 20


class LoopbackServer(ThreadingHTTPServer):
    """Hands each request to ``handle`` in a thread per connection.

    Args:
        handle: returns the response; must not raise.
        port: 0 takes a free one.
        max_bytes: of a body; a longer one is read and thrown away, ``too_long`` answers it.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(
        self, handle: Callable[[HttpRequest], HttpResponse], *, port: int, max_bytes: int
    ) -> None:
        self.handle_api = handle
        self.max_bytes = max_bytes
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's words
        """Start a thread for one connection, and remember it."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the base class's words
        """Forget and close one connection."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's words
        """Say nothing: a client that goes away is no error of a test double."""

    def stop(self) -> None:
        """Stop listening and end every open connection."""
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
    """Reads one request after another from one connection."""

    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    do_PUT = do_PATCH = do_HEAD = do_OPTIONS = do_GET  # noqa: N815 - the base class's words

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's words
        """Write no access log."""

    def _serve(self) -> None:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = HttpRequest(
            self.command, url.path, dict(parse_qsl(url.query)), headers, self._body()
        )
        response = self.server.handle_api(request)
        if response.delay and self.server.stopping.wait(response.delay):
            self.close_connection = True
            return
        if response.end == "drop":
            self.close_connection = True
            return
        if response.on_start:
            response.on_start()
        try:
            self._send(response)
        except OSError:
            self.close_connection = True

    def _body(self) -> bytes:
        """Return the body; of one that is too long only what proves it."""
        length = self.headers.get("content-length", "0")
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return self._chunked_body()
        if not length.isdecimal():
            self.close_connection = True
            return b""
        kept = self.rfile.read(min(int(length), self.server.max_bytes + 1))
        left = int(length) - len(kept)
        while left > 0 and (data := self.rfile.read(min(left, _DRAIN))):
            left -= len(data)
        return kept

    def _chunked_body(self) -> bytes:
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, response: HttpResponse) -> None:
        self.send_response_only(response.status)
        self.send_header("Date", self.date_time_string())
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.parts is None:
            self._send_whole(response)
        else:
            self._send_parts(response)
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
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in response.parts or ():
            if part.delay and self.server.stopping.wait(part.delay):
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part.data), part.data))
            self.wfile.flush()
        if response.end == "whole":
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
