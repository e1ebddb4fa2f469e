"""The recipes of docs/scale.md run as they stand there, on a real cluster and in processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, blocks_of
from plugin_project import emulated
from store_factory import GOOD, MISSPELT, make_store

from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store

RECIPES = [block for block in blocks_of(ROOT / "docs/scale.md") if block.title]
STORES = [f"generated/GET_{number}" for number in range(4)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the recipes, and stores of which each has a type that is wrong."""
    for recipe in RECIPES:
        (tmp_path / recipe.title).write_text(recipe.text, "utf-8")
    for store in STORES:
        make_store(tmp_path / store, MISSPELT)
    return tmp_path


class Model:
    """Knows the right code; once two requests wait together it may call something."""

    def __init__(self, at_two: Callable[[], None] = lambda: None) -> None:
        self.asked = 0
        self._at_two = at_two
        self._guard = threading.Condition()

    def __call__(self, _body: Mapping[str, Any]) -> str:
        """Return the code."""
        with self._guard:
            self.asked += 1
            self._guard.notify_all()
            self._guard.wait_for(lambda: self.asked > 1, timeout=60)
            if self.asked == 2:
                at_two, self._at_two = self._at_two, lambda: None
                at_two()
        return GOOD["Owner", 1]


def run(project: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in the project."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def faults(project: Path) -> list[str]:
    """Return what is wrong with the stores."""
    stores = [RegenStore.open(project / store) for store in STORES]
    found = [result.errors for store in stores for result in validate_store(store).values()]
    return [issue.message for errors in found for issue in errors]


@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_a_cluster_whose_worker_is_killed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stores go to another worker; nothing but what was under way is asked twice."""
    import psutil

    def kill() -> None:
        # Of what the program began, its workers are what is connected to the model.
        port = int(os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[2])
        for process in psutil.Process().children(recursive=True):
            if any(to.raddr and to.raddr.port == port for to in process.net_connections("tcp")):
                process.kill()
                killed.append(process.pid)
                return

    # Workers come of a process that has imported Dask already, because each import takes seconds.
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")
    killed: list[int] = []
    model = Model(kill)
    with emulated(monkeypatch, model):
        done = run(project, "cluster.py")

    names = [Path(store).name for store in STORES]
    assert sorted(done.stdout.splitlines()) == [f"{name}: 0 errors" for name in names], done.stderr
    assert (len(killed), faults(project)) == (1, [])
    assert model.asked == len(STORES) + 1


@pytest.mark.sweep
def test_a_pool_of_processes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same work, from one budget in a file: what it does not cover is not asked."""
    program = "import recipe; print(recipe.heal_in_processes({}, {}, 2))"

    with emulated(monkeypatch, few := Model()):
        short = run(project, "-c", program.format(STORES, 6_000))
    with emulated(monkeypatch, rest := Model()):
        whole = run(project, "-c", program.format(STORES, 1_000_000))

    assert "the token budget of 6,000 does not cover" in short.stdout, short.stderr
    assert whole.stdout.count("0 errors") == len(STORES), whole.stderr
    assert faults(project) == []
    assert 0 < few.asked < len(STORES)
    assert few.asked + rest.asked == len(STORES)
