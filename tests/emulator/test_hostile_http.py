"""Whatever bytes arrive: a reply or an error of the API, nothing on stderr, and a living server."""

import json
import re
import socket
from collections.abc import Callable, Iterator

import pytest
from emulator_requests import api, body, dumped

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.server import LoopbackServer

Raw = Callable[[bytes], list[tuple[int, bytes]]]
HEAD = b"Host: x\r\nAuthorization: Bearer k\r\nanthropic-version: 2026-10-21\r\n"
GOOD = dumped(body())
CHUNKED = b"Transfer-Encoding: chunked\r\n"
DOCUMENTED = {
    "invalid_request_error",
    "authentication_error",
    "not_found_error",
    "request_too_large",
    "timeout_error",
}


def request(
    data: bytes = GOOD,
    *,
    method: bytes = b"POST",
    path: bytes = b"/v1/messages",
    version: bytes = b"HTTP/1.1",
    length: bytes | None = None,
    more: bytes = b"",
) -> bytes:
    right = b"Content-Length: %d\r\n" % len(data)
    sized = right if length is None else length
    return b"%b %b %b\r\n%b%b%b\r\n%b" % (method, path, version, HEAD, more, sized, data)


def chunk(data: bytes, size: bytes | None = None) -> bytes:
    return (b"%x" % len(data) if size is None else size) + b"\r\n" + data + b"\r\n"


def sent(port: int, data: bytes, *, ends: bool = True) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        heard = b""
        while piece := connection.recv(65_536):
            heard += piece
    return heard


def responses(heard: bytes) -> list[tuple[int, bytes]]:
    found = []
    while heard:
        head, _, rest = heard.partition(b"\r\n\r\n")
        assert b"server: pytest-regen-emulator" in head, head
        assert b"request-id: req_emu" in head, head
        size = int((re.search(rb"Content-Length: (\d+)", head) or [b"", b"%d" % len(rest)])[1])
        found.append((int(head.split()[1]), rest[:size]))
        heard = rest[size:]
    return found


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(lambda _body: "Hello.") as running:
        yield running


@pytest.fixture
def raw(emulator: Emulator) -> Raw:
    port = int(emulator.base_url.rpartition(":")[2])
    return lambda data: responses(sent(port, data))


HOSTILE: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"\x00\xff\xfe garbage\r\n\r\n", 400),
    "blank lines before it": (b"\r\n\r\n" + request(), 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "length in words": (request(length=b"Content-Length: abc\r\n"), 400),
    "length below zero": (request(length=b"Content-Length: -5\r\n"), 400),
    "two lengths": (request(length=b"Content-Length: 5\r\nContent-Length: 6\r\n"), 400),
    "length of exabytes": (request(length=b"Content-Length: 99999999999999999999\r\n"), 413),
    "longer than it is": (request(length=b"Content-Length: 9999\r\n"), 400),
    "chunks and a length": (
        request(chunk(GOOD), length=CHUNKED, more=b"Content-Length: 9\r\n"),
        400,
    ),
    "chunk of words": (request(b"zz\r\n" + GOOD, length=CHUNKED), 400),
    "chunk of exabytes": (request(chunk(GOOD, b"f" * 15), length=CHUNKED), 400),
    "chunk longer than it is": (request(chunk(GOOD, b"ffff"), length=CHUNKED), 400),
    "chunks that never end": (request(chunk(GOOD), length=CHUNKED), 400),
    "header of 100 kB": (request(more=b"X-Big: " + b"a" * 100_000 + b"\r\n"), 431),
    "header without a name": (request(more=b"nonsense\r\n"), 400),
    "address of 100 kB": (request(path=b"/" + b"a" * 100_000), 431),
    "address that is none": (request(path=b"http://[/v1/messages"), 400),
    "made-up method": (request(method=b"BREW"), 405),
    "traversal": (request(b"", method=b"GET", path=b"/v1/../../etc/passwd"), 404),
    "body that is no UTF-8": (request(GOOD.replace(b"Hi.", b"\xff")), 400),
    "NaN": (request(GOOD.replace(b"1000", b"NaN")), 400),
    "number out of range": (request(GOOD.replace(b'"Hi."', b'[{"type":"x","y":1e999}]')), 400),
    "number of 5,000 digits": (request(GOOD.replace(b"1000", b"1" * 5_000)), 400),
    "100,000 arrays": (request(b"[" * 100_000), 400),
    "no JSON": (request(b"{"), 400),
}


@pytest.mark.parametrize(("data", "status"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_requests_get_an_error_of_the_api(
    raw: Raw, emulator: Emulator, capfd: pytest.CaptureFixture[str], data: bytes, status: int
) -> None:
    """One documented envelope, nothing on stderr, no failure noted, and the next one is served."""
    [(code, text), *_] = raw(data)

    envelope = json.loads(text)
    assert code == status, envelope
    assert envelope["type"] == "error"
    assert envelope["error"]["type"] in DOCUMENTED
    assert envelope["request_id"].startswith("req_emu")
    assert raw(request())[0][0] == 200
    assert capfd.readouterr() == ("", "")
    assert emulator.failures == []


HARMLESS = {
    "chunks": request(chunk(GOOD[:9]) + chunk(GOOD[9:]) + b"0\r\n\r\n", length=CHUNKED),
    "chunks with extensions and trailers": request(
        b"%x;a=b\r\n%b\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(GOOD), GOOD), length=CHUNKED
    ),
    "the same length twice": request(more=b"Content-Length: %d\r\n" % len(GOOD)),
    "a header that is no ASCII": request(more=b"X-Name: \xff\xfe\r\n"),
    "an address with its host": request(path=b"http://other.example/v1/messages?beta=true"),
    "lines that end in LF": request().replace(b"\r\n", b"\n"),
    "a lone surrogate": request(GOOD.replace(b"Hi.", rb"\ud800")),
    "an old version of HTTP": request(version=b"HTTP/1.0"),
}


@pytest.mark.parametrize("data", HARMLESS.values(), ids=HARMLESS)
def test_unusual_requests_are_served(raw: Raw, emulator: Emulator, data: bytes) -> None:
    [(status, _)] = raw(data)

    assert status == 200
    assert emulator.failures == []


def test_requests_in_a_row_are_answered_in_order(raw: Raw) -> None:
    """A client need not wait for one reply before it sends the next request."""
    found = raw(request() + request(b"{") + request(dumped(body(max_tokens=1))) + request())

    assert [status for status, _ in found] == [200, 400, 200, 200]
    assert found[0] == found[3] != found[2]


def test_nothing_behind_a_broken_request_is_read(raw: Raw) -> None:
    """Where it ends nobody knows, so what follows is not taken for another request."""
    found = raw(request(length=b"Content-Length: abc\r\n") + request())

    assert [status for status, _ in found] == [400]


def test_an_old_client_gets_a_stream_without_chunks(emulator: Emulator) -> None:
    port = int(emulator.base_url.rpartition(":")[2])

    heard = sent(port, request(dumped(body(stream=True)), version=b"HTTP/1.0"), ends=False)

    head, _, text = heard.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert text.startswith(b"event: message_start\n")
    assert text.endswith(b'data: {"type":"message_stop"}\n\n')


def test_a_client_that_asks_first_is_told_to_go_on(emulator: Emulator) -> None:
    port = int(emulator.base_url.rpartition(":")[2])
    whole = request(more=b"Expect: 100-continue\r\n")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(whole.removesuffix(GOOD))
        asked = connection.recv(65_536)
        connection.sendall(GOOD)
        answered = connection.recv(65_536)

    assert asked == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answered.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "begun",
    [
        b"POST /v1/mess",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n",
        request(length=b"Content-Length: 9999\r\n"),
        request(chunk(GOOD), length=CHUNKED),
    ],
    ids=["line", "head", "body", "chunks"],
)
def test_a_request_that_stops_halfway_is_given_up(begun: bytes) -> None:
    """It is told so, with 408, once the patience for it has ended; nobody waits for ever."""
    core = api()
    server = LoopbackServer(core.handle, port=0, patience=0.05)
    try:
        heard = sent(server.server_address[1], begun, ends=False)
    finally:
        server.stop()

    [(status, text)] = responses(heard)
    assert status == 408
    assert json.loads(text)["error"]["type"] == "timeout_error"


def test_bodies_over_the_limit_are_refused_over_http(raw: Raw) -> None:
    """32 MB and one byte arrive whole and are too much; what is longer is not even read."""
    over = 32 * 1024 * 1024 + 1

    [(read, _)] = raw(request(b" " * over))
    [(unread, text)] = raw(request(b" " * over, length=b"Content-Length: %d\r\n" % 2**40))

    assert (read, unread) == (413, 413)
    assert json.loads(text)["error"]["type"] == "request_too_large"
