"""A server of this machine that answers as a table says, over real HTTP."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Answer", "Asked", "serving"]


@dataclass(frozen=True)
class Answer:
    """What is sent; ``content-length`` is added where the headers do not name it."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    """Path and query."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Table = Mapping[str, Answer | Callable[[Asked], Answer]]
"""By path, with ``/*`` for all others."""


@contextmanager
def serving(table: Table) -> Iterator[str]:
    """Serve while the block runs; yields the address. Every request may come at once."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = Asked(
                self.command,
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                self.rfile.read(int(self.headers.get("content-length") or 0)),
            )
            found = table.get(self.path.partition("?")[0]) or table["/*"]
            answer = found(asked) if callable(found) else found
            self.send_response_only(answer.status, answer.reason)
            names = {name.lower() for name, _ in answer.headers}
            for name, value in answer.headers:
                self.send_header(name, value)
            if "content-length" not in names and answer.status not in {204, 304}:
                self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_POST = do_PUT = do_HEAD = do_DELETE = do_GET  # noqa: N815 - the server's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
