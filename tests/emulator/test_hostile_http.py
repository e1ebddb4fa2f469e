"""Whatever bytes arrive: a reply or an error of the API, nothing on stderr, and a living server."""

import json
import re
import socket
from collections.abc import Callable, Iterator

import pytest
from emulator_requests import api, body, dumped
from tables import each

from pytest_regen.emulator import Emulator
from pytest_regen.emulator.server import LoopbackServer

Raw = Callable[[bytes], list[tuple[int, bytes]]]
HEAD = b"Host: x\r\nAuthorization: Bearer k\r\nanthropic-version: 2026-10-21\r\n"
GOOD = dumped(body())
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def request(
    data: bytes = GOOD,
    *,
    method: bytes = b"POST",
    path: bytes = b"/v1/messages",
    length: bytes | None = None,
    more: bytes = b"",
) -> bytes:
    right = b"Content-Length: %d\r\n" % len(data)
    sized = right if length is None else length
    return b"%b %b HTTP/1.1\r\n%b%b%b\r\n%b" % (method, path, HEAD, more, sized, data)


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
    "length in words": (request(length=b"Content-Length: abc\r\n"), 400),
    "two lengths": (request(length=b"Content-Length: 5\r\nContent-Length: 6\r\n"), 400),
    "length of terabytes": (request(length=b"Content-Length: 9999999999999\r\n"), 413),
    "longer than it is": (request(length=b"Content-Length: 9999\r\n"), 400),
    "chunks that never end": (request(b"1\r\n{\r\n", length=CHUNKED), 400),
    "header of 100 kB": (request(more=b"X-Big: " + b"a" * 100_000 + b"\r\n"), 431),
    "address that is none": (request(path=b"http://[/v1/messages"), 400),
    "traversal": (request(b"", method=b"GET", path=b"/v1/../../etc/passwd"), 404),
    "body that is no UTF-8": (request(GOOD.replace(b"Hi.", b"\xff")), 400),
    "100,000 arrays": (request(b"[" * 100_000), 400),
    "no object": (request(b"[]"), 400),
}


@each(("data", "status"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_requests_get_an_error_of_the_api(
    raw: Raw, emulator: Emulator, capfd: pytest.CaptureFixture[str], data: bytes, status: int
) -> None:
    """One documented envelope, nothing on stderr, no failure noted, and the next one is served."""
    [(code, text)] = raw(data)

    envelope = json.loads(text)
    assert code == status, envelope
    assert envelope["type"] == "error"
    assert envelope["error"]["type"] in {
        "invalid_request_error",
        "not_found_error",
        "request_too_large",
    }
    assert envelope["request_id"].startswith("req_emu")
    assert raw(request())[0][0] == 200
    # Where it ends nobody knows, so what follows is not taken for another request.
    assert len(raw(b"GET / HTTP/1.1\r\nnonsense\r\n\r\n" + request())) == 1
    assert capfd.readouterr() == ("", "")
    assert emulator.failures == []


def test_requests_in_a_row_are_answered_in_order(raw: Raw) -> None:
    """A client need not wait for one reply before it sends the next request, however it does."""
    chunks = b"%x;a=b\r\n%b\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(GOOD), GOOD)
    found = raw(request() + request(b"{") + request(dumped(body(max_tokens=1)))
                + request(chunks, length=CHUNKED))  # fmt: skip

    assert [status for status, _ in found] == [200, 400, 200, 200]
    assert found[0] == found[3] != found[2]


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


@each("begun", [b"POST /v1/mess", request(length=b"Content-Length: 9999\r\n")])
def test_a_request_that_stops_halfway_is_given_up(begun: bytes) -> None:
    """It is told so, with 408, once the patience for it has ended; nobody waits for ever."""
    server = LoopbackServer(api().handle, port=0, patience=0.05)
    try:
        heard = sent(server.server_address[1], begun, ends=False)
    finally:
        server.stop()

    [(status, text)] = responses(heard)
    assert status == 408
    assert json.loads(text)["error"]["type"] == "timeout_error"
