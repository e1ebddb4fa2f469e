"""HTTP/1.1 on loopback: sockets, threads, keep-alive, chunked streams, connections that break."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from email.utils import formatdate
from http.client import responses
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit

import h11

from pytest_regen.emulator.api import refusal
from pytest_regen.emulator.values import ApiError, HttpResponse, Part

MAX_BYTES = 256 * 1024 * 1024
"""The longest body that is read, that of a batch."""
_LONGEST_HEAD = 32_768
_PIECE = 65_536

Answer = Callable[[str, SplitResult, dict[str, str], bytes], HttpResponse]


class LoopbackServer(ThreadingTCPServer):
    """Passes each request to ``answer``, with one thread per connection; it listens at once.

    Args:
        answer: returns the response; must not raise.
        port: 0 takes a free one.
        patience: how many seconds a request may pause after it has begun.
    """

    daemon_threads = True
    block_on_close = False
    # More than Python's five, because tests connect from many threads at once.
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, answer: Answer, *, port: int, patience: float = 30.0) -> None:
        self.answer = answer
        self.patience = patience
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()
        # The only address that is bound, because only this machine is to connect.
        super().__init__(("127.0.0.1", port), _Connection)
        # Polled often, because every test that stops an emulator waits for the next look.
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for one connection and keep track of it."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close one connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that disconnects is no error of the emulator."""

    def stop(self) -> None:
        """Stop listening and close every open connection."""
        self.stopping.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
        # A copy, because each thread takes its connection out of the set when it ends.
        for connection in self._open.copy():
            with suppress(OSError):  # because the client may have been faster
                connection.shutdown(socket.SHUT_RDWR)


class _Connection(BaseRequestHandler):
    """Answers the requests of one connection."""

    server: LoopbackServer
    request: socket.socket

    def setup(self) -> None:
        # Because a stream is pieces of a few bytes, each of which has to leave at once.
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)

    def handle(self) -> None:
        with suppress(OSError):  # because the client went away
            while self._exchange():
                self.http.start_next_cycle()

    def receive(self) -> tuple[str, SplitResult, dict[str, str], bytes] | None:
        """Return the next request; ``None`` where the client has no other."""
        # An idle connection may stay open without limit; patience counts from the first byte on.
        self.request.settimeout(None)
        head = self._event()
        if not isinstance(head, h11.Request):
            return None
        method = head.method.decode()
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        url = urlsplit(head.target.decode())
        body, size = bytearray(), int(headers.get("content-length", 0))
        # By the header first, because a client may announce more than anyone wants to read.
        while size <= MAX_BYTES and isinstance(event := self._event(), h11.Data):
            body += event.data
            size = max(size, len(body))
        if size > MAX_BYTES:
            raise ApiError("Request exceeds the maximum size", 413)
        self.request.settimeout(None)
        return method, url, headers, bytes(body)

    def _exchange(self) -> bool:
        """Answer one request, and return whether another may follow on this connection."""
        try:
            received = self.receive()
        except (ApiError, h11.RemoteProtocolError, TimeoutError, ValueError) as error:
            response = refusal(error)
            headers = {**response.headers, "connection": "close"}
            self._send_response(replace(response, headers=headers))
            # Read on, because a client that is cut off would not read the answer.
            self.request.shutdown(socket.SHUT_WR)
            while self.request.recv(_PIECE):
                continue
            return False
        if received is None:
            return False
        response = self.server.answer(*received)
        # A stop ends a delay early, and a reply that was late on purpose is then not sent.
        if response.delay > 0 and self.server.stopping.wait(response.delay):
            return False
        if response.on_start:
            response.on_start()
        if response.end != "drop":
            self._send_response(response, has_body=received[0] != "HEAD")
        return self.http.our_state is self.http.their_state is h11.DONE

    def _event(self) -> Any:
        """Return the next event of the protocol, reading as much as it needs."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                self._send(
                    h11.InformationalResponse(status_code=100, headers=[], reason="Continue")
                )
            self.http.receive_data(self.request.recv(_PIECE))
            self.request.settimeout(self.server.patience)
        return event

    def _send_response(self, response: HttpResponse, *, has_body: bool = True) -> None:
        headers = [("Date", formatdate(usegmt=True)), *response.headers.items()]
        parts = response.parts
        if parts is None:
            headers.append(("Content-Length", str(len(response.body))))
            size = len(response.body) // 2 if response.end == "cut" else len(response.body)
            parts = [Part(response.body[:size])] if has_body else []
        status, reason = response.status, responses.get(response.status, "")
        # The head goes with the first part, because a small reply then is one packet.
        waiting: list[Any] = [h11.Response(status_code=status, headers=headers, reason=reason)]
        for part in parts:
            if part.delay and self.server.stopping.wait(part.delay):
                return
            self._send(*waiting, h11.Data(data=part.data))
            waiting = []
        if response.end == "whole":
            waiting.append(h11.EndOfMessage())
        self._send(*waiting)

    def _send(self, *events: Any) -> None:
        self.request.sendall(b"".join(self.http.send(event) or b"" for event in events))
