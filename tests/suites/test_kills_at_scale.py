"""Large runs, killed again and again: no page is lost, and only what was in flight is paid twice.

What was asked, and how often, is told by the emulator, which outlives the runs.
"""

import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from killing import kill_until_done
from many_operations import PAGES, write_many_operations
from reference_writer import ReferenceWriter
from regeneration_work import JOBS
from served_apart import Logged, log_entry
from served_stores import KEY, issues_of, served

from pytest_regen.emulator import EmulatedReply
from pytest_regen.stores import RegenStore

DELAY = 0.05
SEED = int(os.environ.get("REGEN_KILL_SEED") or random.randrange(1, 1_000_000))
"""Of the moments of the kills; it is printed, and set in the environment to repeat them."""


@dataclass(frozen=True)
class KilledRun:
    """A run over many stores that was killed, and begun again until it came to its end."""

    folder: Path
    kills: tuple[float, ...]
    """When it was killed, in seconds since the epoch."""
    turns: tuple[Logged, ...]
    """What the API answered, in the order of arrival."""

    def check_stores(self, count: int) -> None:
        """Assert that each page of ``count`` stores is there and right."""
        stores = [RegenStore.open(path) for path in self.folder.glob("generated/GET_*")]
        assert len(stores) == count
        for store in stores:
            assert store.missing_pages == ()
            assert issues_of(store) == []
            assert store.source == store.assembly()
        assert {turn.status for turn in self.turns} == {200}
        assert len({turn.prompts for turn in self.turns}) == count * PAGES

    def paid_again(self) -> Counter[int]:
        """Return how many replies each kill cost: asked for before it, and once more after it.

        Raises:
            AssertionError: one run asked twice for the same.
        """
        asked: dict[tuple[str, ...], float] = {}
        cost: Counter[int] = Counter()
        for turn in self.turns:
            if (before := asked.get(turn.prompts)) is not None:
                between = [n for n, at in enumerate(self.kills) if before < at < turn.began]
                assert between, f"one run asked twice for {turn.prompts}"
                cost[between[0]] += 1
            asked[turn.prompts] = turn.began
        return cost


def killed_runs(folder: Path, *, stores: int, kills: int, within: int) -> list[KilledRun]:
    """Kill runs over ``stores`` stores ``kills`` times; one that is done is followed by another."""
    runs: list[KilledRun] = []
    while sum(len(run.kills) for run in runs) < kills:
        root = folder / str(len(runs))
        root.mkdir()
        write_many_operations(root / "api.json", stores)
        runs.append(killed_run(root, kills - sum(len(run.kills) for run in runs), within))
    return runs


def killed_run(root: Path, kills: int, within: int) -> KilledRun:
    """Kill the run over a document at most so often; return it when it is done."""
    turns: list[Logged] = []
    write = ReferenceWriter()
    with served(lambda body: EmulatedReply(write(body), delay=DELAY)) as server:
        server.emulator.answering = lambda *answer: turns.append(log_entry(*answer))
        environment = {"ANTHROPIC_BASE_URL": server.emulator.base_url, "ANTHROPIC_API_KEY": KEY}
        with patch.dict(os.environ, environment):
            work = "regeneration_work:generate_all"
            at = kill_until_done(work, root, kills, within=within, seed=SEED)
    return KilledRun(root, tuple(at), tuple(sorted(turns, key=lambda turn: turn.began)))


def check_kills(folder: Path, *, stores: int, kills: int, within: int) -> None:
    """Kill ``kills`` times; assert that nothing is lost and what little is paid twice."""
    print(f"REGEN_KILL_SEED={SEED}")  # noqa: T201 - shown where it fails
    for run in killed_runs(folder, stores=stores, kills=kills, within=within):
        run.check_stores(stores)
        assert max(run.paid_again().values(), default=0) <= JOBS


def test_a_run_over_stores_killed_three_times_pays_twice_only_for_what_was_in_flight(
    tmp_path: Path,
) -> None:
    """The same command goes on each time: every page is there, once the last one has ended."""
    check_kills(tmp_path, stores=3, kills=3, within=800)


@pytest.mark.sweep
def test_a_large_run_killed_at_twenty_moments_pays_twice_only_for_what_was_in_flight(
    tmp_path: Path,
) -> None:
    """The same with thirty stores and twenty kills at random moments."""
    check_kills(tmp_path, stores=30, kills=20, within=3_000)
