"""What the plugin costs a suite that has it installed and does not use it.

    python benchmarks/unused.py

Pairs of runs, with the plugin and with ``-p no:regen``, in turn; the median of the differences of
processor time within a pair, and the modules that the plugin adds.
"""

import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

from byte_code import keep_byte_code
from processor_time import children_seconds
from table import print_table

RUNS = 31
_REPORT = "import sys\ndef pytest_unconfigure():\n    print('MODULES', len(sys.modules))\n"


def main() -> None:
    """Print the row."""
    keep_byte_code()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "test_one.py").write_text("def test_one():\n    pass\n", "utf-8")
        (root / "conftest.py").write_text(_REPORT, "utf-8")
        with_it, without = [], []
        for _ in range(RUNS):
            with_it.append(measure(root))
            without.append(measure(root, "-p", "no:regen"))
    ours, bare = (statistics.median(time for time, _ in runs) for runs in (with_it, without))
    modules = with_it[0][1] - without[0][1]
    head = ("suite that does not use the plugin", "pytest alone", "plugin installed", "difference")
    pairs = zip(with_it, without, strict=True)
    added = statistics.median(mine - alone for (mine, _), (alone, _) in pairs)
    cost = f"{added * 1000:+.0f} ms, {modules:+d} modules ({1 + added / bare:.2f}x)"
    print_table(head, [("one empty test", f"{bare * 1000:.0f} ms", f"{ours * 1000:.0f} ms", cost)])


def measure(folder: Path, *options: str) -> tuple[float, int]:
    """Return the processor time of one run in seconds, and its modules."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    # Not by `-p` and without loading others by themselves, because pytest would look through what
    # is installed for us alone.
    plugins = {point.name for point in entry_points(group="pytest11")} - {"regen"}
    command += [word for name in sorted(plugins) for word in ("-p", f"no:{name}")]
    before = children_seconds()
    result = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    spent = children_seconds() - before
    line = next(line for line in result.stdout.splitlines() if "MODULES" in line)
    return spent, int(line.split()[-1])


if __name__ == "__main__":
    main()
