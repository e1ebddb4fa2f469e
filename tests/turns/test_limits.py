"""The arithmetic of rate limits, by a clock that is set: nothing here is sent or waited for."""

import asyncio
import json
import math
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import scaled

from pytest_regen.turns.buckets import LONGEST_HOLD, Ticket, read_limits
from pytest_regen.turns.limits import Outcome, RateLimiter
from pytest_regen.turns.values import Usage

MODEL = "claude-sonnet-5-5"


@dataclass
class Clock:
    """Time that passes when it is told to."""

    now: float = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@dataclass
class Server:
    """The API's own bucket of requests, which nobody can argue with."""

    limit: int
    clock: Clock
    level: float = field(init=False)
    at: float = field(init=False)
    refused: int = 0

    def __post_init__(self) -> None:
        """Begin with a full bucket."""
        self.level, self.at = float(self.limit), self.clock.now

    def answer(self) -> Outcome:
        """Answer one request, or refuse it."""
        gained = (self.clock.now - self.at) * self.limit / 60
        self.level, self.at = min(self.limit, self.level + gained), self.clock.now
        if self.level < 1:
            self.refused += 1
            pause = math.ceil((1 - self.level) * 60 / self.limit)
            return Outcome(limits={"requests": (self.limit, 0)}, refused=pause)
        self.level -= 1
        return Outcome(Usage(10, 10), {"requests": (self.limit, int(self.level))})


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


STEPS = st.lists(st.tuples(st.floats(0, 30), st.integers(0, 5)), min_size=1, max_size=40)


@given(steps=STEPS, limit=st.integers(1, 300), processes=st.integers(1, 4))
@example(steps=[(29.65234375, 1), (0.0, 0)], limit=2, processes=1)
def test_whoever_asks_first_learns_and_then_nobody_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[float, int]],
    limit: int,
    processes: int,
) -> None:
    """Several processes with one file: all that is let through is let in, at the full rate."""
    clock = Clock()
    server = Server(limit, clock)
    path = tmp_path_factory.mktemp("limits") / "state.json"
    limiters = [RateLimiter(path, clock=clock) for _ in range(processes)]
    sent(limiters[0], server.answer())
    limiters = [limiters[0], *(RateLimiter(path, clock=clock) for _ in range(processes - 1))]
    flying: list[tuple[RateLimiter, Ticket, Outcome]] = []

    for number, (seconds, keeps) in enumerate(steps):
        limiter = limiters[number % processes]
        found = limiter.attempt(MODEL, 100, 100)
        if isinstance(found, Ticket):
            flying.append((limiter, found, server.answer()))
        else:
            assert 0 < found <= 120
            clock.now += found
            again = limiter.attempt(MODEL, 100, 100)
            assert isinstance(again, Ticket)
            flying.append((limiter, again, server.answer()))
        while len(flying) > keeps:
            done = flying.pop(number % len(flying))
            done[0].settle(MODEL, done[1], done[2])
        clock.now += seconds

    assert server.refused == 0


@given(
    limit=st.integers(1, 100),
    remaining=st.integers(0, 100),
    jumps=st.lists(st.floats(-1e6, 1e6), max_size=10),
    used=st.integers(0, 10**12),
)
def test_no_clock_and_no_reply_blocks_for_long(
    limit: int, remaining: int, jumps: list[float], used: int
) -> None:
    """Waits are never below zero and end within minutes; a jump lets at most one bucket through."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    said = {kind: (limit, min(limit, remaining)) for kind in ("requests", "output-tokens")}
    sent(limiter, Outcome(Usage(used, used), said))

    for jump in jumps:
        clock.now = max(0.0, clock.now + jump)
        through = 0
        while isinstance(found := limiter.attempt(MODEL, 1, 1), Ticket):
            through += 1
        assert through <= limit
        assert 0 < found <= 121


def test_before_limits_are_known_everything_goes_through() -> None:
    """Nobody waits for the first answer."""
    limiter = RateLimiter(clock=Clock())

    assert all(isinstance(limiter.attempt(MODEL, 100, 100), Ticket) for _ in range(200))
    assert limiter.state().limit is None


def test_each_model_has_limits_of_its_own() -> None:
    limiter = RateLimiter(clock=Clock())
    sent(limiter, told(60, 0))

    assert pause_before(limiter) > 0
    assert pause_before(limiter, "claude-opus-5-5") == 0


def test_a_limit_that_nobody_can_reach_is_none() -> None:
    said = read_limits(
        {"anthropic-ratelimit-requests-limit": str(10**9),
         "anthropic-ratelimit-requests-remaining": "5"}
    )  # fmt: skip

    assert said == {}


def test_input_counts_as_far_as_the_cache_has_no_part_in_it() -> None:
    """After some replies a request is expected to take what the others took."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    for _ in range(30):
        ticket = asyncio.run(limiter.admit(MODEL, 1_000, 100))
        outcome = Outcome(Usage(50, 10, cache_read_tokens=950), {"input-tokens": (6_000, 6_000)})
        limiter.settle(MODEL, ticket, outcome)

    assert 50 <= ticket.needs["input-tokens"] < 60
    assert 10 <= ticket.needs["output-tokens"] < 15


def test_output_is_limited_by_what_replies_take() -> None:
    """Each reply takes a quarter of a minute's tokens: four go out, the next waits its time."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    left = 4_000
    for _ in range(40):
        clock.now += 60
        ticket = limiter.attempt(MODEL, 10, 8_000)
        assert isinstance(ticket, Ticket)
        limiter.settle(MODEL, ticket, Outcome(Usage(10, 1_000), {"output-tokens": (4_000, left)}))
    clock.now += 60

    at_once = 0
    while isinstance(found := limiter.attempt(MODEL, 10, 8_000), Ticket):
        at_once += 1

    assert at_once == 3  # and a second's worth stays
    assert 0 < found < 15


def test_a_refusal_holds_everybody() -> None:
    """Nothing goes out before the time that the server named; then it does."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)

    assert sent(limiter, Outcome(limits={"requests": (60, 0)}, refused=7.0))
    assert pause_before(limiter) == 7.0
    clock.now += 7
    assert pause_before(limiter) == 0


def test_where_the_limit_is_unknown_one_goes_ahead() -> None:
    """After a refusal without limits the others wait until that one was answered."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    sent(limiter, Outcome(refused=7.0))
    clock.now += 7

    ahead = limiter.attempt(MODEL, 100, 100)
    assert isinstance(ahead, Ticket)
    assert pause_before(limiter) == math.inf
    limiter.settle(MODEL, ahead, Outcome(Usage(1, 1)))
    assert pause_before(limiter) == 0


def test_who_goes_ahead_and_never_returns_blocks_nobody() -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    sent(limiter, Outcome(refused=7.0))
    clock.now += 7
    ahead = limiter.attempt(MODEL, 100, 100)
    assert isinstance(ahead, Ticket)

    limiter.abandon(MODEL, ahead)

    assert pause_before(limiter) == 0


def test_a_refusal_that_the_limits_do_not_explain_ends_bursts() -> None:
    """60 a minute may be enforced as one a second: then they go out one by one."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    for _ in range(4):
        sent(limiter, Outcome(limits={"requests": (60, 50)}, refused=1.0))
        clock.now += 10
    assert pause_before(limiter) == 0

    at_once = 0
    while isinstance(limiter.attempt(MODEL, 100, 100), Ticket):
        at_once += 1
    clock.now += 600

    assert at_once <= 2
    assert limiter.state().remaining is not None
    while isinstance(limiter.attempt(MODEL, 100, 100), Ticket):
        at_once += 1
    assert at_once > 50


def test_a_server_that_asks_for_hours_is_not_waited_for() -> None:
    """It speaks of another limit than one per minute; nor does a refusal last for ever."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    assert not sent(limiter, Outcome(refused=LONGEST_HOLD + 1))

    refusals = 0
    while sent(limiter, Outcome(refused=LONGEST_HOLD)):
        refusals += 1
        clock.now += LONGEST_HOLD
    assert 3 <= refusals <= 5


def test_a_failure_is_waited_out_within_the_patience() -> None:
    """Pauses grow, one goes ahead each time, and in the end the turn fails."""
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    pauses = []
    while sent(limiter, Outcome(), patience=300):
        pauses.append(pause_before(limiter))
        clock.now += pauses[-1]

    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert 300 <= sum(pauses) <= 360
    assert not sent(limiter, Outcome())


# The file


def shared(path: Path, clock: Clock, limit: int = 60, remaining: int = 0) -> RateLimiter:
    limiter = RateLimiter(path, clock=clock)
    sent(limiter, told(limit, remaining))
    return limiter


def test_a_process_that_begins_knows_what_others_learned(tmp_path: Path) -> None:
    """And only its user can read it."""
    clock, path = Clock(), tmp_path / "limits" / "state.json"
    shared(path, clock)

    assert pause_before(RateLimiter(path, clock=clock)) > 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_killed_process_is_forgotten(tmp_path: Path) -> None:
    """What it had under way never returns; half an hour later nobody counts on it."""
    clock, path = Clock(), tmp_path / "state.json"
    limiter = shared(path, clock, 600, 600)
    limiter.attempt(MODEL, 100, 100)
    del limiter

    clock.now += 1_801
    sent(RateLimiter(path, clock=clock), told(600, 600))

    [pool] = json.loads(path.read_text("utf-8"))["pools"].values()
    assert pool["flying"] == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
)


@st.composite
def states(draw: st.DrawFn) -> str:
    with TemporaryDirectory() as folder:
        shared(Path(folder) / "state.json", Clock())
        state: dict[str, Any] = json.loads((Path(folder) / "state.json").read_text("utf-8"))
    place = draw(st.sampled_from([*state["pools"][MODEL], *state, "torn", "any"]))
    if place == "torn":
        text = json.dumps(state)
        return text[: draw(st.integers(0, len(text)))]
    if place in state:
        state[place] = draw(JSON)
    else:
        state["pools"][MODEL][place] = draw(JSON)
    return json.dumps(state)


@given(content=states())
@settings(max_examples=scaled(50))
def test_no_file_blocks_for_long_or_raises(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    """Torn, forged or of another version: the limiter goes on, and waits minutes at most."""
    path = tmp_path_factory.getbasetemp() / "state.json"
    path.write_text(content, "utf-8")
    limiter = RateLimiter(path, clock=Clock())

    pause = pause_before(limiter)

    assert 0 <= pause <= LONGEST_HOLD
    assert isinstance(limiter.attempt("another", 1, 1), Ticket)


def test_a_folder_that_cannot_be_written_leaves_a_limiter_for_this_process(tmp_path: Path) -> None:
    """A file stands where the folder would be."""
    (tmp_path / "limits").write_text("", "utf-8")
    clock = Clock()
    limiter = shared(tmp_path / "limits" / "state.json", clock)

    assert pause_before(limiter) > 0


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


# Threads and event loops


class SlowName(str):
    """The name of a model that takes a moment to look up, in which other threads go on."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Return the hash, a moment later."""
        time.sleep(0.01)
        return super().__hash__()


def test_threads_that_ask_a_model_first_are_all_let_through() -> None:
    """None of them stands in a queue that nobody else knows."""
    limiter, start = RateLimiter(), threading.Barrier(4)

    def admitted() -> None:
        start.wait()
        asyncio.run(limiter.admit(SlowName(MODEL), 1, 1))

    threads = [threading.Thread(target=admitted, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert not any(thread.is_alive() for thread in threads)


def test_a_turn_that_ends_while_it_settles_is_settled(tmp_path: Path) -> None:
    """It went ahead to see whether others may follow, and they do."""
    limiter = shared(tmp_path / "state.json", clock := Clock(), remaining=60)
    sent(limiter, Outcome(), patience=60)
    clock.now += 60

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
