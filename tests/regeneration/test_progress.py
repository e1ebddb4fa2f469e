"""The line that says how far a run is."""

from dataclasses import replace
from decimal import Decimal

from syrupy.assertion import SnapshotAssertion

from pytest_regen.regeneration.progress import progress_line
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
            progress_line(paid, is_over=True),
        )
        for name, state in STATES.items()
        for paid in [paid_for(state)]
    }

    assert told == snapshot
