"""The server speaks HTTP/1.1 on loopback, forgets keys, and stops at once."""

import gzip
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulator_requests import HEADERS, body, dumped, user

from pytest_regen.emulator import EmulatedReply, Emulator, serve

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
    del sent["host"]
    connection.request("POST", "/v1/messages", payload, sent)
    response = connection.getresponse()
    return response, response.read()


def test_gzip_where_accepted(connection: http.client.HTTPConnection) -> None:
    """The same bytes, packed or not, packed the same way each time; a stream never is."""
    plain, data = post(connection, dumped(body()))
    packed, packed_data = post(connection, dumped(body()), accept_encoding="gzip, deflate")
    stream, _ = post(connection, dumped(body(stream=True)), accept_encoding="gzip")

    assert plain.headers["content-encoding"] is None
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed_data) == data
    assert packed_data[4:8] == bytes(4), "the time of packing would differ from run to run"
    assert stream.headers["content-encoding"] is None


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("br, zstd", False),
    ],
)
def test_gzip_is_used_only_where_it_is_wanted(
    connection: http.client.HTTPConnection,
    accepted: str,
    packed: bool,  # noqa: FBT001 - a case
) -> None:
    """Whoever asks is told that the answer depends on it."""
    response, _ = post(connection, dumped(body()), accept_encoding=accepted)

    assert (response.headers["content-encoding"] == "gzip") is packed
    assert response.headers["vary"] == "Accept-Encoding"


def test_keys_are_never_kept(emulator: Emulator, connection: http.client.HTTPConnection) -> None:
    """Neither the headers nor a body that repeats it hold the key."""
    post(connection, dumped(body(messages=[user(f"my key is {SECRET}")])), cookie="a=b")
    post(connection, dumped(body()), authorization="", x_api_key=SECRET)

    kept = json.dumps([(request.headers, request.body) for request in emulator.requests])
    assert SECRET not in kept
    assert "a=b" not in kept
    assert "anthropic-version" in kept


def test_a_key_that_is_a_word_is_left_in_a_body(
    emulator: Emulator, connection: http.client.HTTPConnection
) -> None:
    """Who says ``any`` for a key has no secret, and wants to see what was asked."""
    payload = dumped(body(messages=[user("Tell me any story.")]))
    post(connection, payload, authorization="Bearer any")

    assert emulator.requests[0].body["messages"][0]["content"] == "Tell me any story."


def test_responders_never_see_a_key(
    connection: http.client.HTTPConnection, emulator: Emulator
) -> None:
    """What a responder is given holds the headers, but for the credentials."""
    seen: list[dict[str, str]] = []

    def responder(_: dict[str, Any], *, headers: dict[str, str]) -> str:
        seen.append(headers)
        return "Hi."

    emulator.responder = responder
    post(connection, dumped(body()))

    assert SECRET not in json.dumps(seen)
    assert seen[0]["anthropic-version"] == "2026-10-21"


def test_a_delay_comes_before_the_first_byte(
    emulator: Emulator, connection: http.client.HTTPConnection
) -> None:
    emulator.responder = lambda _body: EmulatedReply("Hi.", delay=0.1)
    started = time.perf_counter()

    post(connection, dumped(body()))

    assert time.perf_counter() - started >= 0.1


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


def test_a_stopped_emulator_has_no_address() -> None:
    """Its address is only known while it runs, and it can be started again."""
    emulator = Emulator()
    with pytest.raises(RuntimeError, match="not running"):
        _ = emulator.base_url

    with emulator:
        assert emulator.base_url.startswith("http://127.0.0.1:")
    with emulator:
        assert emulator.base_url.startswith("http://127.0.0.1:")


def test_serving_until_told_to_stop(tmp_path: Path) -> None:
    """The command's function reads the script, says where it listens, and returns."""
    script = tmp_path / "replies.yaml"
    script.write_text("version: 1\nrules: [{replies: [Served.]}]", "utf-8")
    until = threading.Event()
    heard: list[Any] = []

    def ready(url: str) -> None:
        port = int(url.rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        heard.append(json.loads(post(connection, dumped(body()))[1]))
        connection.close()
        until.set()

    serve(0, script, ready=ready, until=until)

    assert heard[0]["content"][-1]["text"] == "Served."


def test_starting_imports_no_sdk() -> None:
    """A running emulator has imported neither the SDK nor pydantic nor an HTTP client of others."""
    code = (
        "import sys\n"
        "from pytest_regen.emulator import Emulator\n"
        "with Emulator(): pass\n"
        "heavy = {'anthropic', 'pydantic', 'httpx', 'httpx2', 'vcr', 'pytest', 'rich'}\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout

    assert shown.strip() == ""


def test_requests_in_flight_together_can_be_told_from_when_they_came_and_were_answered() -> None:
    """``answering`` is told of a request when its delay is over, and before the reply is sent."""
    told: list[tuple[float, float, int]] = []
    both = threading.Barrier(2)

    def reply_together(_: object) -> EmulatedReply:
        both.wait(10)
        return EmulatedReply("Hello.", delay=0.05)

    with Emulator(reply_together) as emulator:
        emulator.answering = lambda request, status: told.append((request.at, time.time(), status))
        port = int(emulator.base_url.rpartition(":")[2])
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=10) for _ in range(2)]
        threads = [
            threading.Thread(target=post, args=(connection, dumped(body())))
            for connection in connections
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for connection in connections:
            connection.close()

    assert [status for _, _, status in told] == [200, 200]
    assert all(answered - came >= 0.05 for came, answered, _ in told)
    assert max(came for came, _, _ in told) < min(answered for _, answered, _ in told)
