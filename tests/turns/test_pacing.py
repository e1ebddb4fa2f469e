"""Turns under rate limits and faults: the real SDK over real HTTP, against the emulator."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.emulator import Emulator, Fault, RateLimits
from pytest_regen.errors import TransportError
from pytest_regen.turns import AnthropicProvider

KEY = "opaque-key-of-a-gateway"
STREAMED = 30_000


class Counted(Emulator):
    """An emulator that counts the statuses it answers with."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.statuses: list[int] = []
        self.answering = lambda _request, status: self.statuses.append(status)


def provider_of(emulator: Emulator, **options: Any) -> AnthropicProvider:
    return AnthropicProvider(api_key=KEY, base_url=emulator.base_url, **options)


def in_order(*said: Any) -> Callable[..., Any]:
    waiting = list(said)
    return lambda _body: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def ask_in_threads(provider: AnthropicProvider, count: int, workers: int = 8) -> list[str]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda n: provider.send(turn(str(n))).text, range(count)))


FAST = RateLimits(requests=1_800, burst=1)
"""30 a second."""


def test_a_run_keeps_to_the_limit_and_uses_it() -> None:
    """Once one answer named the limit nothing is refused, in threads and in an event loop."""
    blockbuster = pytest.importorskip("blockbuster")

    async def run(provider: AnthropicProvider) -> list[str]:
        await provider.asend(turn("first"))  # what the SDK looks up once is its own business
        with blockbuster.blockbuster_ctx():
            replies = await asyncio.gather(*(provider.asend(turn(str(n))) for n in range(30)))
        return [reply.text for reply in replies]

    with Counted(lambda _: "Hello.", limits=FAST) as emulator:
        provider = provider_of(emulator)
        provider.send(turn("first"))
        begun = time.monotonic()
        replies = ask_in_threads(provider, 60)
        seconds = time.monotonic() - begun
        replies += asyncio.run(run(provider))
        rate = provider.rate

    assert replies == ["Hello."] * 90
    assert emulator.statuses == [200] * 92
    assert seconds >= 0.9
    assert rate is not None
    assert (rate.limit, rate.waiting) == (1_800, 0)


def test_a_refusal_is_waited_for_by_all_and_ends_no_turn() -> None:
    """However often it is told to wait, without a retry of the client's."""
    refused = Fault(429, retry_after=0.05)
    with Counted(in_order(*[refused] * 6, "Hello.")) as emulator:
        provider = provider_of(emulator, max_retries=0)

        assert ask_in_threads(provider, 4) == ["Hello."] * 4
        assert emulator.statuses.count(429) == 6


def test_a_cancelled_wait_lets_the_next_one_through() -> None:
    """What a cancelled turn would have taken is left to others."""

    async def run(provider: AnthropicProvider) -> str:
        waiting = asyncio.ensure_future(provider.asend(turn("cancelled")))
        await asyncio.sleep(0.05)
        next_one = asyncio.ensure_future(provider.asend(turn("next")))
        await asyncio.sleep(0.05)
        rate = provider.rate
        assert rate is not None
        assert rate.waiting == 2
        assert rate.seconds > 0.2
        waiting.cancel()
        return (await next_one).text

    with Counted(lambda _: "Hello.", limits=RateLimits(requests=120, burst=0.5)) as emulator:
        provider = provider_of(emulator)
        provider.send(turn())

        assert asyncio.run(run(provider)) == "Hello."
        assert emulator.statuses == [200, 200]


def test_a_long_run_waits_until_a_failure_is_over() -> None:
    with Counted(lambda _: "Hello.") as emulator:
        provider = provider_of(emulator, max_retries=0)
        ask_in_threads(provider, 20)
        begun = time.monotonic()
        ends, fault = begun + 0.5, Fault(529, retry_after_ms=1)
        emulator.responder = lambda _: fault if time.monotonic() < ends else "Hello."

        assert ask_in_threads(provider, 8) == ["Hello."] * 8
        # Eight failed together, then one goes ahead.
        assert len(emulator.requests) - 28 <= 9


# Cassettes


@pytest.mark.parametrize(("limit", "answers_turns"), [(200, False), (STREAMED, True)])
def test_refusals_that_were_recorded_replay(
    tmp_path: Path, limit: int, *, answers_turns: bool
) -> None:
    """More of them than the client would retry, and at once, with and without the SDK.

    One that ended a turn ends it in replay.
    """
    said = in_order(
        *[Fault(429, retry_after=0.01)] * 4,
        Fault(529, retry_after_ms=1),
        "Hello.",
        Fault(429, retry_after=7_200),
    )
    with Emulator(said) as emulator, use_cassette(tmp_path / "c.yaml", mode="once"):
        provider = provider_of(emulator)
        assert provider.send(turn(max_tokens=limit)).text == "Hello."
        with pytest.raises(TransportError, match="limits the rate"):
            provider.send(turn("Again.", max_tokens=limit))
    provider = AnthropicProvider(base_url="http://127.0.0.1:9")

    with use_cassette(tmp_path / "c.yaml", answers_turns=answers_turns) as replayed:
        assert provider.send(turn(max_tokens=limit)).text == "Hello."
        with pytest.raises(TransportError, match="limits the rate"):
            provider.send(turn("Again.", max_tokens=limit))

    assert replayed.played == 7


def test_recorded_limits_say_nothing_about_those_of_today(tmp_path: Path) -> None:
    """A replay through the SDK learns nothing from old headers, and waits for nobody."""
    limits = RateLimits(requests=1, burst=60)
    with Emulator(lambda _: "Hello.", limits=limits) as emulator:
        with use_cassette(tmp_path / "c.yaml", mode="once"):
            provider_of(emulator).send(turn())
        again = AnthropicProvider(api_key="another", base_url=emulator.base_url)
        with use_cassette(tmp_path / "c.yaml", answers_turns=False):
            again.send(turn())

        assert again.rate is None
