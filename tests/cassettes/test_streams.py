"""Streams, handed on as they arrive and kept as cut; retries, replayed without waiting."""

import http.client
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx2
import pytest
import urllib3
from loopback import Answer, serving
from recorded import KEY, echo, loaded, outcome, record, replaying
from turn_values import MODEL, turn

from pytest_regen.cassettes import Interaction, RecordMode, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.emulator import Emulator, Fault
from pytest_regen.turns import AnthropicProvider

WORDS = [f"word {n} " for n in range(6)]
PAUSE = 0.05


def one(path: Path) -> Interaction:
    file = loaded(path)
    [stored] = file.interactions
    return stored.interaction


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A server that says one word at a time, and may break off."""
    server = SimpleNamespace(breaks=False)

    class Stream(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for word in WORDS:
                yield f"data: {word}\n\n".encode()
                time.sleep(PAUSE)
            if server.breaks:
                raise httpx2.RemoteProtocolError("the line broke")

    def handle_request(_self: Any, _request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream())

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", handle_request)
    return server


def read(path: Path, mode: Any, *, until: int = 99) -> list[tuple[float, bytes]]:
    found = []
    with use_cassette(path, mode=mode, keep_on_failure=True), httpx2.Client() as client:
        start = time.monotonic()
        with client.stream("POST", "http://server.example/v1/messages", json={}) as response:
            for piece in response.iter_raw():
                found.append((time.monotonic() - start, piece))
                if len(found) == until:
                    break
    return found


@pytest.mark.usefixtures("slow")
def test_pieces_arrive_as_they_are_sent_and_are_replayed_without_pauses(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is there before the last is sent; the recording knows when each came."""
    live = read(path, "once")

    assert len(live) == len(WORDS)
    assert live[0][0] < live[-1][0] - 3 * PAUSE
    kept = one(path)
    assert kept.end == "complete"
    assert [size for _, size in kept.chunks] == [len(piece) for _, piece in live]
    times = [ms for ms, _ in kept.chunks]
    assert times == sorted(times)
    assert times[-1] - times[0] >= 3 * PAUSE * 1000

    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    assert [piece for _, piece in read(path, "none")] == [piece for _, piece in live]
    assert slept == []


def test_a_broken_stream_breaks_again(path: Path, slow: SimpleNamespace) -> None:
    """What had come is kept and replayed, and so is the break."""
    slow.breaks = True
    with pytest.raises(httpx2.RemoteProtocolError):
        read(path, "once")

    assert one(path).end == "cut"
    assert one(path).response_body.decode() == "".join(f"data: {word}\n\n" for word in WORDS)
    with pytest.raises(httpx2.RemoteProtocolError, match="without sending complete"):
        read(path, "none")


@pytest.mark.usefixtures("slow")
def test_a_client_that_has_heard_enough(path: Path) -> None:
    """It need not wait while recording; it gets what it read then, and no more."""
    live = read(path, "once", until=2)

    assert len(live) == 2
    assert one(path).end == "closed"
    assert [p for _, p in read(path, "none", until=2)] == [piece for _, piece in live]
    with pytest.raises(httpx2.RemoteProtocolError):
        read(path, "none")


@pytest.mark.parametrize("left", [1, 2])
def test_an_answer_that_was_left_is_asked_for_again(path: Path, left: int) -> None:
    """With the SDK and without it: the next recording answers, while there are retries."""
    record(path, [turn()])
    whole = one(path)
    path.unlink()
    with use_cassette(path, mode="once", http_clients=False) as run:
        for _ in range(left):
            run.record(replace(whole, response_body=whole.response_body[:40], end="closed"))
        run.record(whole)

    found = []
    for answers_turns in (True, False):
        with use_cassette(path, answers_turns=answers_turns, drift="ignore"):
            found.append(str(outcome(replaying(max_retries=1), turn())))

    assert found[0] == found[1]
    assert ("could not be reached" in found[0]) is (left == 2)


def test_streams_at_once_are_kept_apart(path: Path) -> None:
    """Eight threads stream at once: none hears another."""

    def threads(base_url: str) -> list[str]:
        with anthropic.Anthropic(api_key=KEY, base_url=base_url) as client:

            def hear(number: int) -> str:
                said: Any = [{"role": "user", "content": f"thread {number} speaks"}]
                with client.messages.stream(model=MODEL, max_tokens=200, messages=said) as stream:
                    return str(stream.get_final_text())

            with ThreadPoolExecutor(8) as pool:
                return list(pool.map(hear, range(8)))

    with Emulator(echo) as emulator, use_cassette(path, mode="once"):
        live = threads(emulator.base_url)

    with use_cassette(path) as run:
        assert threads("http://127.0.0.1:9") == live
    assert live == [f"thread {number} speaks" for number in range(8)]
    assert run.unplayed == 0


def test_an_application_of_the_process_always_runs(path: Path) -> None:
    """What such a transport calls is the code under test: not taped, not refused."""
    calls = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls.append(request.url.path)
        return httpx2.Response(200, text="from the function")

    for mode in ("once", "none"):
        anyway: Any = mode
        with (
            use_cassette(path, mode=anyway) as run,
            httpx2.Client(transport=httpx2.MockTransport(answer)) as client,
        ):
            assert client.get("http://app.example/").text == "from the function"
        assert (run.played, run.recorded) == (0, 0)

    assert calls == ["/"] * 2
    assert not path.exists()


def test_patches_end_with_the_last_block(path: Path) -> None:
    """Whatever order blocks in several threads end in, the classes are theirs again."""
    before = httpx2.HTTPTransport.__dict__["handle_request"], http.client.HTTPConnection
    first, second = use_cassette(path), use_cassette(path)
    first.__enter__()
    second.__enter__()

    first.__exit__(None, None, None)
    assert httpx2.HTTPTransport.__dict__["handle_request"] is not before[0]
    assert http.client.HTTPConnection is not before[1]
    second.__exit__(None, None, None)

    assert httpx2.HTTPTransport.__dict__["handle_request"] is before[0]
    assert http.client.HTTPConnection is before[1]


FAULTS = {
    "429": Fault(429, retry_after=30),
    "429 until a date": Fault(429, retry_after=formatdate(4_000_000_000, usegmt=True)),
    "529": Fault(529, retry_after=30),
}


def plain(base_url: str) -> str:
    with anthropic.Anthropic(api_key=KEY, base_url=base_url) as client:
        said: Any = [{"role": "user", "content": "x"}]
        made: Any = client.messages.create(model=MODEL, max_tokens=200, messages=said)
        return str(made.content[-1].text)


def provider(base_url: str) -> str:
    made = replaying() if ":9" in base_url else AnthropicProvider(api_key=KEY, base_url=base_url)
    text = made.send(turn("x")).text
    made.close()
    return text


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("ask", [plain, provider])
def test_a_recorded_retry_is_not_waited_for(
    tmp_path: Path, slept: list[float], ask: Callable[[str], str], fault: Fault
) -> None:
    """Whatever the answer asked for: a millisecond each time, as the client knows no less."""
    if ask is provider and fault.status == 429 and fault.retry_after:
        fault = replace(fault, retry_after=0.01)  # it really waits, and does not sleep for it
    said: Iterator[Fault | str] = iter([fault, fault, "late"])
    with (
        Emulator(lambda _body: next(said)) as emulator,
        use_cassette(tmp_path / "c.yaml", mode="once"),
    ):
        assert ask(emulator.base_url) == "late"
    assert sum(slept) > 0.5 or fault.retry_after == 0.01
    slept.clear()

    with use_cassette(tmp_path / "c.yaml") as run:
        assert ask("http://127.0.0.1:9") == "late"

    assert run.played == 3
    assert sum(slept) <= 0.002


BUSY = [Answer(b"busy", 429, (("retry-after", "30"),)), Answer(b"late")]


@pytest.mark.parametrize("marked", [False, True])
def test_urllib3_asks_again_without_waiting(
    tmp_path: Path, slept: list[float], *, marked: bool
) -> None:
    """It asks again because of `retry-after`, which is replayed as it came."""

    def ask(address: str, mode: RecordMode) -> tuple[bytes, list[float]]:
        slept.clear()
        options = VcrOptions("c", tmp_path, mode, {"match_on": ["path"]}, (), lambda _: None)
        cassette = use_vcr_cassette(options) if marked else use_cassette(tmp_path / "c", mode=mode)
        with cassette, urllib3.PoolManager() as pool:
            return pool.request("GET", f"{address}/plan").data, slept.copy()

    answers = iter(BUSY)
    with serving({"/*": lambda _asked: next(answers)}) as address:
        assert ask(address, "once") == (b"late", [30])

    assert ask("http://127.0.0.1:9", "none") == (b"late", [0.001])
