"""A site on loopback that answers as servers do: redirects, pages, packed and chunked bodies."""

import gzip
import json
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import brotli
import zstandard

TEXT = "Ivy, climbing hydrangea and winter jasmine do; so says the gardener. " * 20
PACKERS: dict[str, Any] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
EVENTS = [f'data: {{"n": {number}}}\n\n'.encode() for number in range(5)]


class Site(ThreadingHTTPServer):
    """The server; ``seen`` lists what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.seen: list[str] = []

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


TRANSFER = {
    "connection",
    "content-encoding",
    "content-length",
    "retry-after-ms",
    "transfer-encoding",
}


def told_headers(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers of an answer that do not only describe its transfer; of cookies names.

    Nor what lets a client ask again without waiting, which replay adds to a failure.
    """
    return sorted(
        (name.lower(), value.partition("=")[0] if name.lower() == "set-cookie" else value)
        for name, value in pairs
        if name.lower() not in TRANSFER
    )


@contextmanager
def small_site() -> Iterator[Site]:
    """Serve while the block runs."""
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join(10)


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        self.server.seen.append(f"{self.command} {self.path}")
        size = int(self.headers.get("content-length") or 0)
        self.sent = self._chunks() if self.headers.get("transfer-encoding") else b""
        self.sent = self.sent or self.rfile.read(size)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        name = parts.path.strip("/").partition("/")[0].replace("-", "_")
        getattr(self, f"page_{name}", self.page_echo)()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815 - the handler's

    def _chunks(self) -> bytes:
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        has_body = status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
        if has_body:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, status: int, value: object, **headers: str) -> None:
        body = json.dumps(value).encode()
        self._answer(status, body, content_type="application/json", **headers)

    def page_echo(self) -> None:
        """Say what was asked."""
        packed = self.headers.get("content-encoding") == "deflate"
        said = (zlib.decompress(self.sent) if packed else self.sent).decode("latin-1")
        if "multipart" in self.headers.get("content-type", ""):
            said = f"{len(self.sent.splitlines())} lines"
        self._json(200, {"method": self.command, "path": self.path, "body": said})

    def page_v1(self) -> None:
        """Answer as the API of messages does."""
        usage = {"input_tokens": 3, "output_tokens": 2}
        text = {"type": "text", "text": "Ivy does."}
        said: dict[str, object] = {"type": "message", "role": "assistant", "content": [text]}
        said |= {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        model = json.loads(self.sent)["model"]
        self._json(200, {"id": "one", "model": model, **said}, request_id="req_one")

    def page_redirect(self) -> None:
        """Redirect with the status and to the address that the query says."""
        headers: dict[str, Any] = {"location": self.query.get("to", "/echo")}
        if "cookie" in self.query:
            headers["set_cookie"] = f"visit={self.query['cookie']}; Path=/"
        self._answer(int(self.query.get("status", "302")), b"moved", **headers)

    def page_moved(self) -> None:
        """Redirect to the path behind the first name, with the method and body that came."""
        self._answer(308, location=self.path.removeprefix("/moved"))

    def page_garden(self) -> None:
        """Keep and give objects as S3 does."""
        told: dict[str, Any] = {"x_amz_request_id": "REQ1", "x_amz_meta_kind": "ivy"}
        if self.command == "PUT":
            self._answer(200, etag='"v1"', **told)
        elif self.path.endswith("/plan"):
            self._answer(200, TEXT.encode(), content_type="text/plain", etag='"v1"', **told)
        else:
            said = b"<Error><Code>NoSuchKey</Code><Message>no such plan</Message></Error>"
            self._answer(404, said, content_type="application/xml", **told)

    def page_cookie(self) -> None:
        """Say which cookies came, by name."""
        cookies = self.headers.get("cookie") or ""
        self._json(200, sorted(one.partition("=")[0].strip() for one in cookies.split(";")))

    def page_loop(self) -> None:
        """Redirect to itself."""
        self._answer(302, location="/loop")

    def page_pages(self) -> None:
        """Give a page that names the next one, of three."""
        page = int(self.query.get("page", "1"))
        more = {"link": f'</pages?page={page + 1}>; rel="next"'} if page < 3 else {}
        self._json(200, {"page": page}, **more)

    def page_etag(self) -> None:
        """Give a version, or say that it has not changed."""
        if self.headers.get("if-none-match") == '"v1"':
            self._answer(304, etag='"v1"')
        else:
            self._json(200, {"version": 1}, etag='"v1"')

    def page_empty(self) -> None:
        """Give no content."""
        self._answer(204, x_request_count="1")

    def page_packed(self) -> None:
        """Give a text as the path says it is to be packed."""
        how = self.path.rpartition("/")[2]
        if how in self.headers.get("accept-encoding", ""):
            body = PACKERS[how](TEXT.encode())
            self._answer(200, body, content_encoding=how, content_type="text/plain")
        else:
            self._answer(200, TEXT.encode(), content_type="text/plain")

    def page_status(self) -> None:
        """Fail as the path says."""
        status = int(self.path.rpartition("/")[2])
        failed = {"error": {"message": "no such garden", "status": status}}
        self._json(status, failed, retry_after="30")

    def page_chunked(self) -> None:
        """Give a text in chunks."""
        self._stream([TEXT[:100].encode(), TEXT[100:].encode()], "text/plain", 0)

    def page_events(self) -> None:
        """Give five events, some milliseconds apart."""
        self._stream(EVENTS, "text/event-stream", 0.05)

    def page_cut(self) -> None:
        """Break off in the middle of the events, or of a text."""
        kind = "text/plain" if "plain" in self.path else "text/event-stream"
        self._stream(EVENTS[:2], kind, 0, ends=False)
        self.close_connection = True

    def _stream(self, pieces: list[bytes], kind: str, pause: float, *, ends: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces):
            if number and pause:
                time.sleep(pause)
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if ends:
            self.wfile.write(b"0\r\n\r\n")
