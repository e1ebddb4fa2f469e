"""Healing in pytest: 40 stores with a wrong type each, a model of 0.3 s, 1 and 16 jobs, in one run.

    python benchmarks/healing.py [STORES]

The model is the emulator, in this process, over real HTTP on loopback. What nothing could be faster
than is the time that the model takes with so many requests at once; what pytest takes for the same
items that are right is subtracted.
"""

import math
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from byte_code import keep_byte_code
from table import print_table

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "support")]

import pytest  # noqa: E402 - the path has to be there first
from plugin_project import emulated  # noqa: E402
from store_factory import GOOD, MISSPELT, make_store  # noqa: E402

from pytest_regen.emulator import EmulatedReply  # noqa: E402

DELAY = 0.3
JOBS = (1, 16)


def seconds(project: Path, *options: str) -> float:
    """Return how long pytest takes there."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    completed = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True)
    if completed.returncode:
        raise SystemExit(completed.stdout[-2000:] + completed.stderr)
    return time.perf_counter() - begin


def main(stores: int) -> None:
    """Measure each number of jobs and print the share of what was possible."""
    keep_byte_code()
    rows = []
    reply = EmulatedReply(GOOD["Owner", 1], delay=DELAY)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        project = Path(folder)
        (project / "pytest.ini").write_text("[pytest]\nregen_stores = generated/*\n", "utf-8")
        with emulated(patch, lambda _: reply) as api:
            for jobs in JOBS:
                for name in ("generated", "cassettes", ".regen"):
                    shutil.rmtree(project / name, ignore_errors=True)
                for number in range(stores):
                    make_store(project / f"generated/GET_{number}", MISSPELT)
                requests = len(api.requests)
                live = ("--regen", "--regen-record=once", f"--regen-jobs={jobs}")
                took = seconds(project, *live) - seconds(project)
                assert len(api.requests) - requests == stores
                # The first request is sent alone: it warms the prompt cache.
                possible = DELAY * (stores if jobs == 1 else 1 + math.ceil((stores - 1) / jobs))
                rows.append(
                    (str(jobs), f"{took:.1f} s", f"{possible:.1f} s", f"{possible / took:.0%}")
                )
    print_table(("jobs", f"{stores} types healed in", "possible", "share"), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
