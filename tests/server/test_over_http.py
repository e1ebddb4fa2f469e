"""The server as it runs: real sockets, bodies without a length, streams, many at once."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from event_stream import Event, events_in
from hypothesis import given
from hypothesis import strategies as st
from serving_http import served
from subject_flow import CHOICE, MESSAGE, PLACE, Model, app_of, asking, second_turn, writing

from pytest_regen.errors import TransportError
from pytest_regen.server import ServerSettings, create_app
from pytest_regen.server.requests import frame

PATH = "/api/agents/generate-subject"
STREAM = "/api/agents/stream-subject"
LIMIT = 20_000
UNLIMITED = ServerSettings(first_turns=(), second_turns=())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve an application with tight limits; return its address."""
    settings = ServerSettings(
        first_turns=(), second_turns=(), max_body_bytes=LIMIT, body_seconds=0.5
    )
    with served(app_of(Model(PLACE, CHOICE), settings=settings)) as url:
        yield url


def posted(
    url: str, body: Any, *, path: str = PATH, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Post JSON; return status, headers and the whole body of the answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.request(
            "POST", path, json.dumps(body), {"content-type": "application/json", **headers}
        )
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def raw(url: str, *pieces: bytes, pause: float = 0.0) -> tuple[bytes, int]:
    """Send pieces over one socket; return the start of the answer and how many bytes went out."""
    parts = urlsplit(url)
    sent = 0
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                sent += len(piece)
                time.sleep(pause)
        except OSError:
            pass  # it was closed upon what was sent so far; the answer may still be there
        try:
            return connection.recv(65_536), sent
        except OSError:
            return b"", sent


HEAD = (
    b"POST /api/agents/generate-subject HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"content-type: application/json\r\n"
)
CHUNK = b"1000\r\n" + b" " * 4_096 + b"\r\n"


def test_a_body_without_a_length_is_cut_at_the_limit(address: str) -> None:
    """413 while chunks still come: the limit does not rest on what the client announces."""
    answer, _ = raw(address, HEAD + b"transfer-encoding: chunked\r\n\r\n", *[CHUNK] * 8)

    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("length", [LIMIT + 1, 999_999_999_999])
def test_a_long_body_is_refused_unread(address: str, length: int) -> None:
    """413 from the announced length alone, before a byte of the body is sent."""
    answer, sent = raw(address, HEAD + b"content-length: %d\r\n\r\n" % length)

    assert answer.startswith(b"HTTP/1.1 413")
    assert sent < 1_000


def test_a_body_that_never_ends_is_given_up(address: str) -> None:
    """408 where the body trickles for longer than it may."""
    answer, _ = raw(address, HEAD + b"content-length: 100\r\n\r\n", *[b" "] * 4, pause=0.2)

    assert answer.startswith(b"HTTP/1.1 408")


def test_a_good_chunked_body_is_read(address: str) -> None:
    """A body without a length is answered like any other."""
    body = json.dumps({"message": MESSAGE}).encode()
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    answer, _ = raw(address, HEAD + b"transfer-encoding: chunked\r\n\r\n", chunks)

    assert answer.startswith(b"HTTP/1.1 200")


def test_the_server_does_not_say_what_it_is(address: str) -> None:
    """No header names the software or its version."""
    _, headers, _ = posted(address, {"message": MESSAGE})

    assert "server" not in headers


def test_a_flow_as_events(address: str) -> None:
    """`started` and then one ending: `clarification` on a first turn, `complete` on a second."""
    status, headers, told = posted(address, {"message": MESSAGE}, path=STREAM)
    opening, asked = events_in([told])
    first = asked.data["data"]
    _, _, told = posted(address, second_turn(first, {"location": "Austin, TX"}), path=STREAM)
    _, done = events_in([told])

    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (opening.name, asked.name, done.name) == ("started", "clarification", "complete")
    assert opening.data["interactionId"] == first["interactionId"]
    assert opening.data["request_id"] == headers["x-request-id"]
    assert done.data["data"]["subject_line"] == writing()["subject_line"]


def test_accept_chooses_events(address: str) -> None:
    """The one address answers events to whom accepts only events, JSON to all others."""
    _, events, _ = posted(address, {"message": MESSAGE}, accept="text/event-stream")
    _, both, _ = posted(address, {"message": MESSAGE}, accept="application/json, text/event-stream")

    assert events["content-type"].startswith("text/event-stream")
    assert both["content-type"] == "application/json"


def test_a_stream_is_refused_before_it_starts(address: str) -> None:
    """What is wrong with a request is a status, not an event after 200."""
    status, headers, _ = posted(address, {"message": ""}, path=STREAM)

    assert (status, headers["content-type"]) == (400, "application/json")


def test_a_model_that_fails_is_the_end_of_the_stream() -> None:
    """One `error` event with code and status, and no second one."""

    def model(_: list[dict[str, str]]) -> str:
        raise TransportError("secret", hint="secret")

    with served(app_of(model, settings=UNLIMITED)) as url:
        status, _, told = posted(url, {"message": MESSAGE}, path=STREAM)

    events = events_in([told])
    assert status == 200
    assert [event.name for event in events] == ["started", "error"]
    assert (events[-1].data["code"], events[-1].data["status"]) == ("MODEL_UNAVAILABLE", 503)
    assert b"secret" not in told


def test_an_error_that_nobody_foresaw_is_the_end_of_the_stream() -> None:
    """One `error` event with status 500, and none of its words."""

    class Broken:
        def turn(self, _: object) -> Any:
            raise ZeroDivisionError("secret")

    with served(create_app(Broken(), seal="off", settings=UNLIMITED)) as url:
        _, _, told = posted(url, {"message": MESSAGE}, path=STREAM)

    events = events_in([told])
    assert [event.name for event in events] == ["started", "error"]
    assert events[-1].data["status"] == 500
    assert b"secret" not in told


def test_a_stream_that_waits_is_never_silent() -> None:
    """While the model thinks, comments keep the connection open; they are no events."""
    release = threading.Event()

    def model(_: list[dict[str, str]]) -> str:
        release.wait(5)
        return json.dumps(writing())

    settings = ServerSettings(first_turns=(), heartbeat_seconds=0.05)
    with served(app_of(model, settings=settings)) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        connection.request(
            "POST", STREAM, json.dumps({"message": "x"}), {"content-type": "application/json"}
        )
        answer = connection.getresponse()
        told = b""
        while told.count(b": waiting") < 3:
            told += answer.read1()
        release.set()
        told += answer.read()
        connection.close()

    assert [event.name for event in events_in([told])] == ["started", "complete"]


TOLD = b"".join(
    frame(name, data)
    for name, data in [
        ("started", {"interactionId": "conv_1"}),
        ("complete", {"data": {"subject_line": "Zwei\nZeilen \u2028 \U0001f9c3 event: x\n\n"}}),
    ]
)


@given(cuts=st.lists(st.integers(0, len(TOLD)), max_size=12))
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    """However the network cuts the bytes, the same events are read."""
    edges = [0, *sorted(cuts), len(TOLD)]
    pieces = [TOLD[a:b] for a, b in pairwise(edges)]

    events = events_in(pieces)

    assert events == [
        Event("started", {"interactionId": "conv_1"}),
        Event(
            "complete", {"data": {"subject_line": "Zwei\nZeilen \u2028 \U0001f9c3 event: x\n\n"}}
        ),
    ]


@pytest.mark.parametrize("flows", [40, pytest.param(200, marks=pytest.mark.sweep)])
def test_flows_at_once_mix_nothing_up(flows: int) -> None:
    """All first turns are under way together, then all second ones; each gets what is its own."""
    together = threading.Barrier(flows, timeout=60)
    prompts: dict[int, list[str]] = {number: [] for number in range(flows)}

    def model(messages: list[dict[str, str]]) -> str:
        prompt = messages[-1]["content"]
        number = int(prompt.split("issue-")[1][:4])
        prompts[number].append(prompt)
        together.wait()
        if "My Previous Analysis" in prompt:
            return json.dumps(writing(f"subject-{number:04}"))
        question = {**PLACE, "question": f"Where is question-{number:04}?"}
        return json.dumps(asking(question, reasoning=f"reasoning-{number:04}"))

    settings = ServerSettings(first_turns=(), second_turns=(), max_concurrent=flows)

    def flow(number: int) -> tuple[str, str, dict[str, Any]]:
        message = f"issue-{number:04}"
        path = STREAM if number % 2 else PATH
        first = answer_in(posted(url, {"message": message}, path=path))
        body = second_turn(first, {"location": f"Place {number:04}"}, message)
        done = answer_in(posted(url, body, path=path))
        return first["interactionId"], done["interactionId"], done

    with served(app_of(model, settings=settings)) as url, ThreadPoolExecutor(flows) as pool:
        ends = list(pool.map(flow, range(flows)))

    assert len({first for first, _, _ in ends}) == flows
    for number, (first, second, done) in enumerate(ends):
        assert first == second
        assert done["subject_line"] == f"subject-{number:04}"
        assert len(prompts[number]) == 2
        for what in ("issue", "question", "reasoning"):
            assert f"{what}-{number:04}" in prompts[number][1]
        assert f"Place {number:04}" in prompts[number][1]
        assert prompts[number][1].count("issue-") == 1


def answer_in(posted_answer: tuple[int, dict[str, str], bytes]) -> dict[str, Any]:
    """Return the answer of a turn, told as JSON or as events."""
    status, headers, content = posted_answer
    assert status == 200, content
    if headers["content-type"] == "application/json":
        found: dict[str, Any] = json.loads(content)
    else:
        found = events_in([content])[-1].data["data"]
    return found
