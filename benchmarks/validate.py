"""How long it takes to validate stores of 10, 100 and 1,000 types with 20 fields each.

    python benchmarks/validate.py

Whole processes, as a user runs them, without whatever other plugins are installed beside ours; the
time per type must stay flat.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from big_store import FIELDS, make_store
from byte_code import keep_byte_code
from table import print_table

SIZES = (10, 100, 1000)
RUNS = 5
PLUGIN = "pytest_regen.pytest_plugin.plugin"


def main() -> None:
    """Print a row per size."""
    keep_byte_code()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for size in SIZES:
            make_store(root / f"store{size}", size)
        empty = best([sys.executable, "-c", "pass"], root)
        for size in SIZES:
            store = f"store{size}"
            command = [sys.executable, "-m", "pytest_regen", "validate", "--no-write", store]
            ini = ["-o", f"regen_stores={store}", "-p", "no:cacheprovider", "-q"]
            pytest = [sys.executable, "-m", "pytest", "-p", PLUGIN, *ini]
            workers = [*pytest, "-p", "xdist", "-n", "2"]
            rows.append(
                (
                    f"{size:,} types, {size * FIELDS:,} fields",
                    inside(root / store, size),
                    f"{best(command, root) - empty:.2f} s",
                    f"{best(pytest, root) - empty:.2f} s",
                    f"{best(workers, root) - empty:.2f} s",
                )
            )
    head = ("store", "validation per type", "`pytest-regen validate`", "`pytest`", "`pytest -n 2`")
    print_table(head, rows)


def best(command: list[str], folder: Path) -> float:
    """Return the shortest wall time of several runs, in seconds."""
    times = []
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def inside(path: Path, size: int) -> str:
    """Return the time per type of opening and validating, imports aside, in a fresh process."""
    code = (
        "import sys, time\n"
        "from pytest_regen.stores import RegenStore\n"
        "from pytest_regen.validation import validate_store, validate_generated_code\n"
        "validate_generated_code('', {'version': 1, 'endpoint': {'method': 'GET', 'path': '/'},"
        " 'language': 'csharp', 'types': []})\n"
        "start = time.perf_counter()\n"
        "validate_store(RegenStore.open(sys.argv[1]))\n"
        "print(time.perf_counter() - start)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    times = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(RUNS)
    ]
    return f"{min(times) / size * 1000:.2f} ms"


if __name__ == "__main__":
    main()
