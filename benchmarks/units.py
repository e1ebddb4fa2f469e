"""The gate of 5,000 units beside as many empty test items, in one run each, as ratios.

python benchmarks/units.py [UNITS]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "support")]

from unit_project import KIND, SETTINGS  # noqa: E402 - the path has to be there first

from pytest_regen.regeneration import verbs  # noqa: E402
from pytest_regen.settings import read_settings  # noqa: E402
from pytest_regen.units.loading import load_kinds  # noqa: E402
from pytest_regen.units.place import open_units  # noqa: E402

ROUNDS = 3


def write_units(root: Path, count: int) -> None:
    """Write a project with as many recorded units, all of them right."""
    names = {f"harbour.page{n // 50}.text{n}": n for n in range(count)}
    (root / "locales").mkdir(parents=True)
    english = {name: f"Berth {{ship}} number {n}" for name, n in names.items()}
    german = {name: f"Liegeplatz {{ship}} Nummer {n}" for name, n in names.items()}
    (root / "locales/en.json").write_text(json.dumps(english, indent=2), "utf-8")
    (root / "locales/de.json").write_text(json.dumps(german, indent=2) + "\n", "utf-8")
    (root / "regen_kinds.py").write_text(KIND, "utf-8")
    (root / "pyproject.toml").write_text(SETTINGS, "utf-8")
    kinds = load_kinds(root, read_settings(root))
    verbs.adopt(open_units(kinds, root / "locales/de.json"))


def write_empty(root: Path, count: int) -> None:
    """Write a project with as many empty tests."""
    root.mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n", "utf-8")
    tests = "".join(f"def test_{n}(): pass\n" for n in range(count))
    (root / "test_empty.py").write_text(tests, "utf-8")


def seconds(root: Path) -> float:
    """Return how long pytest takes there."""
    begin = time.perf_counter()
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise SystemExit(completed.stdout[-2000:] + completed.stderr)
    return time.perf_counter() - begin


def main(count: int) -> None:
    """Measure both in turns and print the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        units, empty = Path(folder, "units"), Path(folder, "empty")
        write_units(units, count)
        write_empty(empty, count)
        seconds(empty)  # Bytecode is written once.
        pairs = [(seconds(units), seconds(empty)) for _ in range(ROUNDS)]
    ours, theirs = (
        min(mine for mine, _ in pairs),
        min(other for _, other in pairs),
    )
    print(f"{count:,} units {ours:.2f} s, {count:,} empty tests {theirs:.2f} s")
    print(f"ratio {ours / theirs:.2f} (bar: 2)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
