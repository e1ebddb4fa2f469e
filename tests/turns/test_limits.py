"""The arithmetic of rate limits, by a clock that is set: nothing here is sent or waited for."""

import asyncio
import json
import math
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_regen.emulator import Clock, RateLimits
from pytest_regen.emulator.batches import model_of
from pytest_regen.emulator.limits import Limiter
from pytest_regen.emulator.values import ApiError
from pytest_regen.turns.buckets import LONGEST_HOLD, Ticket, read_limits
from pytest_regen.turns.limits import Outcome, RateLimiter
from pytest_regen.turns.values import Usage

MODEL = "claude-sonnet-5-5"


def answer_of(server: Limiter) -> Outcome:
    """Return what came of one request to the API, with whose bucket nobody can argue."""
    model = model_of(MODEL)
    try:
        server.admit(model)
    except ApiError as error:
        return Outcome(limits={}, refused=float(error.fault.retry_after or 0))
    requests = read_limits(server.headers(model))["requests"]
    return Outcome(Usage(10, 10), {"requests": requests})


def told(limit: int, remaining: int) -> Outcome:
    return Outcome(Usage(10, 10), {"requests": (limit, remaining)})


def sent(limiter: RateLimiter, outcome: Outcome, model: str = MODEL, **options: Any) -> bool:
    ticket = limiter.attempt(model, 100, 100)
    assert isinstance(ticket, Ticket)
    return limiter.settle(model, ticket, outcome, **options)


def pause_before(limiter: RateLimiter, model: str = MODEL) -> float:
    found = limiter.attempt(model, 100, 100)
    if isinstance(found, Ticket):
        limiter.abandon(model, found)
        return 0.0
    return found


@given(
    steps=st.lists(st.tuples(st.floats(0, 30), st.integers(0, 5)), min_size=1, max_size=40),
    limit=st.integers(1, 300),
    processes=st.integers(1, 4),
)
@example(steps=[(29.65234375, 1), (0.0, 0)], limit=2, processes=1)
def test_whoever_asks_first_learns_and_then_nobody_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[float, int]],
    limit: int,
    processes: int,
) -> None:
    """Several processes with one file: all that is let through is let in, at the full rate."""
    clock = Clock(1_000.0)
    server = Limiter(RateLimits(requests=limit), clock)
    path = tmp_path_factory.mktemp("limits") / "state.json"
    limiters = [RateLimiter(path, clock=clock.now) for _ in range(processes)]
    sent(limiters[0], answer_of(server))
    limiters = [limiters[0], *(RateLimiter(path, clock=clock.now) for _ in range(processes - 1))]
    flying: list[tuple[RateLimiter, Ticket, Outcome]] = []
    answered: list[Outcome] = []

    for number, (seconds, keeps) in enumerate(steps):
        limiter = limiters[number % processes]
        found = limiter.attempt(MODEL, 100, 100)
        if isinstance(found, Ticket):
            flying.append((limiter, found, answer_of(server)))
        else:
            assert 0 < found <= 120
            clock.advance(found)
            again = limiter.attempt(MODEL, 100, 100)
            assert isinstance(again, Ticket)
            flying.append((limiter, again, answer_of(server)))
        while len(flying) > keeps:
            done = flying.pop(number % len(flying))
            done[0].settle(MODEL, done[1], done[2])
            answered.append(done[2])
        clock.advance(seconds)

    answered += [outcome for *_, outcome in flying]
    assert all(outcome.refused is None for outcome in answered)


def test_only_limits_that_can_be_reached_hold_anybody() -> None:
    """Nobody waits for the first answer, and each model has limits of its own."""
    limiter = RateLimiter(clock=Clock(1_000.0).now)
    assert all(isinstance(limiter.attempt(MODEL, 100, 100), Ticket) for _ in range(200))
    assert limiter.state().limit is None
    sent(limiter, told(60, 0))
    prefix = "anthropic-ratelimit-requests"

    assert pause_before(limiter) > 0
    assert pause_before(limiter, "claude-opus-5-5") == 0
    assert read_limits({f"{prefix}-limit": str(10**9), f"{prefix}-remaining": "5"}) == {}


def test_input_counts_as_far_as_the_cache_has_no_part_in_it() -> None:
    """After some replies a request is expected to take what the others took."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)
    for _ in range(30):
        ticket = asyncio.run(limiter.admit(MODEL, 1_000, 100))
        outcome = Outcome(Usage(50, 10, cache_read_tokens=950), {"input-tokens": (6_000, 6_000)})
        limiter.settle(MODEL, ticket, outcome)

    assert 50 <= ticket.needs["input-tokens"] < 60
    assert 10 <= ticket.needs["output-tokens"] < 15


def test_output_is_limited_by_what_replies_take() -> None:
    """Each reply takes a quarter of a minute's tokens: four go out, the next waits its time."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)
    left = 4_000
    for _ in range(40):
        clock.advance(60)
        ticket = limiter.attempt(MODEL, 10, 8_000)
        assert isinstance(ticket, Ticket)
        limiter.settle(MODEL, ticket, Outcome(Usage(10, 1_000), {"output-tokens": (4_000, left)}))
    clock.advance(60)

    at_once = 0
    while isinstance(found := limiter.attempt(MODEL, 10, 8_000), Ticket):
        at_once += 1

    assert at_once == 3  # and a second's worth stays
    assert 0 < found < 15


def test_a_refusal_holds_everybody() -> None:
    """Nothing goes out before the time that the server named, unless the clock begins anew."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)

    assert sent(limiter, Outcome(limits={"requests": (60, 0)}, refused=7.0))
    assert pause_before(limiter) == 7.0
    clock.advance(7)
    assert pause_before(limiter) == 0
    assert sent(limiter, Outcome(refused=7.0))
    clock.advance(-500)
    assert pause_before(limiter) < 7


@pytest.mark.parametrize("returns", [True, False])
def test_where_the_limit_is_unknown_one_goes_ahead(*, returns: bool) -> None:
    """After a refusal without limits the others wait until that one was answered, or is gone."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)
    sent(limiter, Outcome(refused=7.0))
    clock.advance(7)

    ahead = limiter.attempt(MODEL, 100, 100)
    assert isinstance(ahead, Ticket)
    assert pause_before(limiter) == math.inf
    if returns:
        limiter.settle(MODEL, ahead, Outcome(Usage(1, 1)))
    else:
        limiter.abandon(MODEL, ahead)
    assert pause_before(limiter) == 0


def test_a_refusal_that_the_limits_do_not_explain_ends_bursts() -> None:
    """60 a minute may be enforced as one a second: then they go out one by one."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)
    for _ in range(4):
        sent(limiter, Outcome(limits={"requests": (60, 50)}, refused=1.0))
        clock.advance(10)
    assert pause_before(limiter) == 0

    at_once = 0
    while isinstance(limiter.attempt(MODEL, 100, 100), Ticket):
        at_once += 1
    clock.advance(600)

    assert at_once <= 2
    assert limiter.state().remaining is not None
    while isinstance(limiter.attempt(MODEL, 100, 100), Ticket):
        at_once += 1
    assert at_once > 50


def test_a_server_that_asks_for_hours_is_not_waited_for() -> None:
    """It speaks of another limit than one per minute; nor does a refusal last for ever."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)
    assert not sent(limiter, Outcome(refused=LONGEST_HOLD + 1))

    refusals = 0
    while sent(limiter, Outcome(refused=LONGEST_HOLD)):
        refusals += 1
        clock.advance(LONGEST_HOLD)
    assert 3 <= refusals <= 5


def test_a_failure_is_waited_out_within_the_patience() -> None:
    """Pauses grow, one goes ahead each time, and in the end the turn fails."""
    clock = Clock(1_000.0)
    limiter = RateLimiter(clock=clock.now)
    pauses = []
    while sent(limiter, Outcome(), patience=300):
        pauses.append(pause_before(limiter))
        clock.advance(pauses[-1])

    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert 300 <= sum(pauses) <= 360
    assert not sent(limiter, Outcome())


# The file


def shared(path: Path, clock: Clock, limit: int = 60, remaining: int = 0) -> RateLimiter:
    limiter = RateLimiter(path, clock=clock.now)
    sent(limiter, told(limit, remaining))
    return limiter


def test_a_process_that_begins_knows_what_others_learned(tmp_path: Path) -> None:
    """Only its user can read it; half an hour later nobody counts on what a killed one had sent."""
    clock, path = Clock(1_000.0), tmp_path / "limits" / "state.json"
    shared(path, clock).attempt(MODEL, 100, 100)

    assert pause_before(RateLimiter(path, clock=clock.now)) > 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    clock.advance(1_801)
    sent(RateLimiter(path, clock=clock.now), told(600, 600))
    [pool] = json.loads(path.read_text("utf-8"))["pools"].values()
    assert pool["flying"] == {}


def test_no_file_blocks_for_long_or_raises(tmp_path: Path) -> None:
    """Torn, forged, of another version, or a folder that is none: the limiter goes on alone."""
    path = tmp_path / "state.json"
    shared(path, clock := Clock(1_000.0))
    text = path.read_text("utf-8")
    forged = [
        text[:50],
        text.replace('"version": 2', '"version": 1'),
        text.replace('"hold": 0.0', '"hold": 1e99'),
        text.replace('"at": 1000.0', '"at": 1e12'),
        text.replace('"limit": 60', '"limit": null'),
        "[]",
    ]

    for content in forged:
        assert content != text
        path.write_text(content, "utf-8")
        limiter = RateLimiter(path, clock=clock.now)
        assert 0 <= pause_before(limiter) <= LONGEST_HOLD
        assert isinstance(limiter.attempt("another", 1, 1), Ticket)
    assert pause_before(shared(path / "limits" / "state.json", clock)) > 0


def test_a_key_stands_in_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither as it is nor as a hash that could be guessed without the user's secret."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    key = "opaque-key-of-a-gateway"
    limiter = RateLimiter.of("http://127.0.0.1:1", key)
    sent(limiter, told(60, 60))

    assert RateLimiter.of("http://127.0.0.1:1", key) is limiter
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert limiter.path in files
    assert not any(key in path.name or key.encode() in path.read_bytes() for path in files)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    other = RateLimiter.of("http://127.0.0.1:1", key + "x")
    assert limiter.path is not None
    assert other.path is not None
    assert limiter.path.name != other.path.name


def test_a_turn_that_ends_while_it_settles_is_settled(tmp_path: Path) -> None:
    """It went ahead to see whether others may follow, and they do."""
    limiter = shared(tmp_path / "state.json", clock := Clock(1_000.0), remaining=60)
    sent(limiter, Outcome(), patience=60)
    clock.advance(60)

    async def given_up() -> None:
        is_free = threading.Event()
        busy = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(busy)
        ticket = limiter.attempt(MODEL, 1, 1)
        assert isinstance(ticket, Ticket)
        busy.submit(is_free.wait)
        settling = asyncio.ensure_future(limiter.asettle(MODEL, ticket, Outcome(Usage(1, 1))))
        await asyncio.sleep(0)
        settling.cancel()
        await asyncio.gather(settling, return_exceptions=True)
        is_free.set()
        await asyncio.to_thread(str)

    asyncio.run(given_up())

    assert isinstance(limiter.attempt(MODEL, 1, 1), Ticket)
