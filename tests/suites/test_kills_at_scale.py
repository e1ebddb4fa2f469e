"""Large runs, killed again and again: no page is lost, and only what was in flight is paid twice.

What was asked, and how often, is told by the emulator, which outlives the runs.
"""

import os
import random
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from unittest.mock import patch

import pytest
from killing import kill_until_done
from many_operations import PAGES, write_many_operations
from reference_writer import ReferenceWriter
from regeneration_work import JOBS
from served_apart import Logged, log_entry
from served_stores import KEY, issues_of

from pytest_regen.emulator import EmulatedReply, Emulator
from pytest_regen.stores import RegenStore

DELAY = 0.05
LAG = 1.0
"""Seconds after which the API has read what was sent to it, on a busy machine too."""
SEED = int(os.environ.get("REGEN_KILL_SEED") or random.randrange(1, 1_000_000))
"""Of the moments of the kills; it is printed, and set in the environment to repeat them."""


@dataclass(frozen=True)
class KilledRun:
    """A run over many stores that was killed, and begun again until it came to its end."""

    folder: Path
    kills: tuple[float, ...]
    """When it was killed, in seconds since the epoch."""
    asked: tuple[Logged, ...]
    """The turns that the API was asked for, in the order of arrival."""

    def check_stores(self, count: int) -> None:
        """Assert that each page of ``count`` stores is there and right."""
        stores = [RegenStore.open(path) for path in self.folder.glob("generated/GET_*")]
        assert len(stores) == count
        for store in stores:
            assert store.missing_pages == ()
            assert issues_of(store) == []
            assert store.source == store.assembly()
        assert {each.status for each in self.asked} == {HTTPStatus.OK}
        assert len({prompt for each in self.asked for prompt in each.prompts}) == count * PAGES

    def paid_again(self) -> Counter[int]:
        """Return how many replies each kill cost: asked for before it, and once more after it.

        Raises:
            AssertionError: one run asked twice for the same.
        """
        last: dict[str, float] = {}
        cost: Counter[int] = Counter()
        for each in self.asked:
            for prompt in each.prompts:
                if (before := last.get(prompt)) is not None:
                    cost[self._kill_between(before, each.began)] += 1
                last[prompt] = each.began
        return cost

    def _kill_between(self, first: float, second: float) -> int:
        """Return the number of the first kill between two requests for the same.

        What a run had sent when it was killed may be read by the API a little later.
        """
        between = [n for n, at in enumerate(self.kills) if first < at < second]
        late = [n for n, at in enumerate(self.kills) if first - LAG < at <= first]
        assert between or late, "one run asked twice for the same"
        return between[0] if between else late[-1]


def killed_run(root: Path, *, stores: int, kills: int, within: int) -> KilledRun:
    """Kill the run over so many stores at most so often; return it when it is done."""
    root.mkdir()
    write_many_operations(root / "api.json", stores)
    asked: list[Logged] = []
    write = ReferenceWriter()
    with Emulator(lambda body: EmulatedReply(write(body), delay=DELAY)) as emulator:
        emulator.answering = lambda *answer: asked.append(log_entry(*answer))
        environment = {"ANTHROPIC_BASE_URL": emulator.base_url, "ANTHROPIC_API_KEY": KEY}
        with patch.dict(os.environ, environment):
            work = "regeneration_work:generate_all"
            at = kill_until_done(work, root, kills, within=within, seed=SEED)
    return KilledRun(root, tuple(at), tuple(sorted(asked, key=lambda each: each.began)))


def killed_runs(folder: Path, *, stores: int, kills: int, within: int) -> list[KilledRun]:
    """Kill runs over so many stores so often; one that is done is followed by another."""
    print(f"REGEN_KILL_SEED={SEED}")  # noqa: T201 - shown where a test fails
    runs: list[KilledRun] = []
    while (left := kills - sum(len(run.kills) for run in runs)) > 0:
        root = folder / str(len(runs))
        runs.append(killed_run(root, stores=stores, kills=left, within=within))
        runs[-1].check_stores(stores)
    return runs


@pytest.mark.parametrize(
    ("stores", "kills", "within"),
    [(3, 2, 600), pytest.param(30, 20, 2_000, marks=pytest.mark.sweep)],
)
def test_a_run_over_stores_that_is_killed_pays_twice_only_for_what_was_in_flight(
    tmp_path: Path, stores: int, kills: int, within: int
) -> None:
    """The same command goes on each time: every page is there, once the last one has ended."""
    for run in killed_runs(tmp_path, stores=stores, kills=kills, within=within):
        assert max(run.paid_again().values(), default=0) <= JOBS
