"""The server speaks HTTP/1.1 on loopback, forgets keys, and stops at once."""

import gzip
import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from emulator_requests import HEADERS, body, dumped, user

from pytest_regen.emulator import EmulatedReply, Emulator

SECRET = "sk-ant-api03-very-secret"


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(lambda _body: "Hello.") as running:
        yield running


@pytest.fixture
def connection(emulator: Emulator) -> Iterator[http.client.HTTPConnection]:
    port = int(emulator.base_url.rpartition(":")[2])
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    yield made
    made.close()


def post(
    connection: http.client.HTTPConnection, payload: bytes, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {**HEADERS, "authorization": f"Bearer {SECRET}", **given}
    connection.request("POST", "/v1/messages", payload, sent)
    response = connection.getresponse()
    return response, response.read()


def test_gzip_where_accepted(connection: http.client.HTTPConnection) -> None:
    """The same bytes, packed or not, packed the same way each time; a stream never is."""
    plain, data = post(connection, dumped(body()))
    packed, packed_data = post(connection, dumped(body()), accept_encoding="br, gzip;q=0.5")
    stream, _ = post(connection, dumped(body(stream=True)), accept_encoding="gzip")

    assert plain.headers["content-encoding"] is None
    assert plain.headers["vary"] == "Accept-Encoding"
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed_data) == data
    assert packed_data[4:8] == bytes(4), "the time of packing would differ from run to run"
    assert stream.headers["content-encoding"] is None


def test_keys_are_never_kept(emulator: Emulator, connection: http.client.HTTPConnection) -> None:
    """No header, no body that repeats it, no responder: but a key that is a word is no secret."""
    seen: list[dict[str, str]] = []

    def responder(_: dict[str, Any], *, headers: dict[str, str]) -> str:
        seen.append(headers)
        return "Hi."

    emulator.responder = responder
    post(connection, dumped(body(messages=[user(f"my key is {SECRET}")])), cookie="a=b")
    post(connection, dumped(body()), authorization="", x_api_key=SECRET)
    post(connection, dumped(body(messages=[user("Tell any story.")])), authorization="Bearer any")

    kept = json.dumps([seen, *((request.headers, request.body) for request in emulator.requests)])
    assert SECRET not in kept
    assert "a=b" not in kept
    assert seen[0]["anthropic-version"] == "2026-10-21"
    assert "Tell any story." in kept


def test_stopping_does_not_wait_for_a_slow_reply() -> None:
    """A reply that would take a minute is abandoned."""
    emulator = Emulator(lambda _body: EmulatedReply("Hi.", delay=60)).start()
    port = int(emulator.base_url.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/v1/messages", dumped(body()), HEADERS)
    patience = time.monotonic() + 10
    while not emulator.requests and time.monotonic() < patience:
        time.sleep(0.005)
    assert emulator.requests
    started = time.perf_counter()

    emulator.stop()
    emulator.stop()

    assert time.perf_counter() - started < 30
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        connection.getresponse()
    connection.close()
