"""Retries that were recorded are replayed without waiting, in every kind of client."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import anthropic
import pytest
import urllib3
from loopback import Answer, serving
from recorded import KEY, replaying
from turn_values import MODEL, turn

from pytest_regen.cassettes import RecordMode, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.emulator import Emulator, Fault
from pytest_regen.turns import AnthropicProvider

FAULTS = {
    "429": Fault(429, retry_after=30),
    "429 until a date": Fault(429, retry_after=formatdate(4_000_000_000, usegmt=True)),
    "429 in milliseconds": Fault(429, retry_after_ms=30_000),
    "529": Fault(529, retry_after=30),
}
CALL: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "x"}],
}


def plain(base_url: str) -> str:
    with anthropic.Anthropic(api_key=KEY, base_url=base_url) as client:
        return str(client.messages.create(**CALL).content[-1].text)


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
