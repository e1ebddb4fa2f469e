"""CPU time of the same run of pytest in two environments, side by side.

    python benchmarks/side_by_side.py THEIRS/bin/python OURS/bin/python -- -q tests/models

Both run in the working directory, in turn. What is printed of each is how the last run ended and
the median of its CPU time, child processes included.
"""

import argparse
import statistics
import subprocess

from processor_time import children_seconds
from table import print_table


def run(python: str, words: list[str]) -> tuple[float, str]:
    """Return the CPU seconds of a run, and its last line."""
    before = children_seconds()
    completed = subprocess.run(
        [python, "-m", "pytest", *words], check=False, stdout=subprocess.PIPE, text=True
    )
    taken = children_seconds() - before
    lines = completed.stdout.strip().splitlines() or [f"exit code {completed.returncode}"]
    return taken, lines[-1].strip("= ")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs=2, help="interpreters of the two environments")
    parser.add_argument("words", nargs="*", help="arguments of pytest, behind --")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    # Intermixed, because an option before ``--`` ends what a list of words takes else.
    options = parser.parse_intermixed_args()
    rounds = [
        [run(python, options.words) for python in options.python] for _ in range(options.rounds)
    ]
    rows = []
    for python, runs in zip(options.python, zip(*rounds, strict=True), strict=True):
        rows.append((python, runs[-1][1], f"{statistics.median(cpu for cpu, _ in runs):.2f} s"))
    print_table(("environment", "ended", "CPU time"), rows)


if __name__ == "__main__":
    main()
