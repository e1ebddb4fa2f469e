"""The gate of 1,000 types in two processes beside the same in one, as ratios.

    python benchmarks/gate.py [LANGUAGE]

Whole runs, the shortest of several. What 1,000 empty tests take with the same flags of pytest is
subtracted, so that what workers cost by themselves does not count. Cold is a run in a checkout that
was never gated, warm one that repeats it. Every type of a Python store is run with JSON of its
document, too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from big_store import make_store
from byte_code import keep_byte_code
from table import print_table

SHAPES = ((1, 1000), (20, 50), (250, 4))
"""Stores, and types in each."""
ROUNDS = 5
FLAGS = ("-q", "-p", "no:cacheprovider", "-p", "pytest_regen.pytest_plugin.plugin")
WORKERS = ("-p", "xdist", "-n", "2")


def main(language: str) -> None:
    """Print a row per shape."""
    keep_byte_code()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        empty = write_empty(Path(folder, "empty"))
        for stores, types in SHAPES:
            project = write_project(Path(folder, f"stores{stores}"), stores, types, language)
            alone, alone_cold = gate(project, empty, ())
            both, both_cold = gate(project, empty, WORKERS)
            rows.append(
                (
                    f"{stores} of {types:,} types",
                    *(f"{taken:.2f} s" for taken in (alone_cold, both_cold)),
                    f"{both_cold / alone_cold:.2f}",
                    *(f"{taken:.2f} s" for taken in (alone, both)),
                    f"{both / alone:.2f}",
                )
            )
        head = ("stores", "`pytest`, cold", "`-n 2`, cold", "ratio", "warm", "`-n 2`", "ratio")
        print(f"{language}; bar: a ratio of 1")
        print_table(head, rows)


def write_project(root: Path, stores: int, types: int, language: str) -> Path:
    """Write a project with as many stores of as many types each, all of them right."""
    root.mkdir()
    (root / "pytest.ini").write_text("[pytest]\nregen_stores = generated/*\n", "utf-8")
    for number in range(stores):
        make_store(root / "generated" / f"store{number}", types, language)
    return root


def write_empty(root: Path) -> Path:
    """Write a project with 1,000 empty tests."""
    root.mkdir()
    (root / "pytest.ini").write_text("[pytest]\n", "utf-8")
    tests = "".join(f"def test_{n}(): pass\n" for n in range(1000))
    (root / "test_empty.py").write_text(tests, "utf-8")
    return root


def gate(project: Path, empty: Path, flags: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds of a run that repeats another, and of one in a fresh checkout."""
    seconds(empty, flags)  # Byte code is written once.
    warm, cold, alone = [], [], []
    for _ in range(ROUNDS):
        shutil.rmtree(project / ".regen", ignore_errors=True)
        alone.append(seconds(empty, flags))
        cold.append(seconds(project, flags))
        warm.append(seconds(project, flags))
    return min(warm) - min(alone), min(cold) - min(alone)


def seconds(root: Path, flags: tuple[str, ...]) -> float:
    """Return how long a run of pytest takes in which 1,000 items pass."""
    taken, told = run(root, ["-m", "pytest", *FLAGS, *flags])
    if "1000 passed" not in told:
        raise SystemExit(told[-2000:])
    return taken


def run(root: Path, words: list[str]) -> tuple[float, str]:
    """Return how long Python takes, and what it prints."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    begin = time.perf_counter()
    completed = subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return time.perf_counter() - begin, completed.stdout


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "csharp")
