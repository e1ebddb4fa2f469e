"""The line that says how far a run is: the words, the pace, and what fits into a width."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pytest_regen.regeneration.progress import duration, final_line, progress_line, seconds_left
from pytest_regen.regeneration.values import RunState
from pytest_regen.turns.values import Cost, Usage

LARGE = RunState(
    places_done=240,
    places_total=2_000,
    pages_done=1_204,
    pages_known=1_310,
    pages_failed=3,
    in_flight=64,
    calls=1_215,
    usage=Usage(2_600_000, 520_000),
    limit=1_000,
    waiting=12,
    elapsed=77.0,
)
STATES = {
    "nothing": RunState(),
    "planning": RunState(places_done=40, places_total=2_000, elapsed=3.0),
    "one store": RunState(0, 1, 2, 5, 0, 1, 2, Usage(900, 100), elapsed=20.0),
    "unknown total": RunState(3, None, 7, 9, calls=7, elapsed=10.0),
    "large": LARGE,
    "slow": RunState(1, 10_000, 1, 4, calls=1, elapsed=600.0),
    "done": RunState(1, 1, 5, 5, 0, 0, 6, Usage(90_000, 60_000), elapsed=31.0),
}


def paid_for(state: RunState) -> RunState:
    """Return a state with a price, where anything was asked."""
    cost = Cost(Decimal("12.4")) if state.calls else None
    return replace(state, usage=replace(state.usage, cost=cost))


def test_the_words(snapshot: SnapshotAssertion) -> None:
    """Of runs of all sizes, with a price, with a batch, and when they have ended."""
    told = {
        name: (
            progress_line(state),
            progress_line(paid, places="file", batches=1),
            final_line(paid),
        )
        for name, state in STATES.items()
        for paid in [paid_for(state)]
    }

    assert told == snapshot


@pytest.mark.parametrize("width", [10, 20, 40, 60, 80, 120, 200])
def test_what_fits_is_told(width: int, snapshot: SnapshotAssertion) -> None:
    """The pages stay, what matters least goes first."""
    line = progress_line(paid_for(LARGE), width=width, batches=0)

    assert len(line) <= width
    assert line == snapshot


COUNTS = st.integers(0, 10**7)
RUNS = st.builds(
    RunState,
    places_done=COUNTS,
    places_total=st.none() | COUNTS,
    pages_done=COUNTS,
    pages_known=COUNTS,
    pages_failed=COUNTS,
    calls=COUNTS,
    usage=st.builds(Usage, st.none() | COUNTS),
    limit=st.none() | COUNTS,
    waiting=COUNTS,
    elapsed=st.floats(0, 10**7),
)


@given(st.lists(RUNS, min_size=1, max_size=5), st.none() | st.integers(0, 200), st.integers(0, 9))
def test_any_run_is_one_line_that_fits(
    states: list[RunState], width: int | None, batches: int
) -> None:
    """Odd numbers too: no pages, more done than known, time that stands still or goes back."""
    for state in states:
        line = progress_line(state, width=width, batches=batches)

        assert "\n" not in line
        assert width is None or len(line) <= width
        assert "\n" not in final_line(state)


def test_stores_that_were_not_begun_are_counted() -> None:
    """Their pages are not known yet: they are taken to have as many as the finished ones."""
    state = RunState(10, 100, 50, 60, calls=50, elapsed=50.0)

    assert seconds_left(state) == pytest.approx(450)


def test_a_burst_promises_nothing_once_turns_wait_for_the_limit() -> None:
    """The rest goes as fast as the limit allows."""
    burst = RunState(0, 1, 60, 120, calls=60, limit=60, elapsed=4.0)
    waiting = replace(burst, waiting=5)

    assert seconds_left(burst) == pytest.approx(4)
    assert seconds_left(waiting) == pytest.approx(60)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "1 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (5_969, "99 min"),
        (7_500, "2 h 05 min"),
        (7_170, "2 h 00 min"),
        (200_000, "2 d 8 h"),
        (10**9, "11,574 d 2 h"),
    ],
)
def test_times_are_told_as_people_say_them(seconds: float, told: str) -> None:
    """Seconds, minutes, hours, days; nothing finer than what matters."""
    assert duration(seconds) == told
