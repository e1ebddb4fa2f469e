"""What cassettes cost and lose: ours beside vcrpy with pytest-recording, and cassetter, in one run.

The rivals are measured where they are installed; in folders of their own, because plugins of one
environment change each other:

    python -m pip install --no-deps --target rivals pytest-recording cassetter
    REGEN_BENCH_RIVALS=rivals python benchmarks/cassettes.py

Each figure comes from a process of its own; times are CPU time, the best of several, but for the
rows that wait (a miss, a retry), which are wall time. A figure that a subject has not is the error
it gave.
"""

import argparse
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import cassette_clients
import cassette_files
import cassette_safety
import cassette_tests
from byte_code import keep_byte_code
from cassette_figures import RIVALS, child
from cassette_subjects import MAKERS, Subject, made
from table import print_table

SUPPORT = Path(__file__).parents[1] / "tests" / "support"
SUBJECTS = ("pytest-regen", "vcrpy", "cassetter")
NEEDS = {"pytest-regen": "pytest_regen", "vcrpy": "pytest_recording", "cassetter": "cassetter"}
ROWS: dict[str, Callable[[Subject, Path], str]] = {
    **cassette_files.ROWS,
    **cassette_tests.ROWS,
    **cassette_clients.ROWS,
    **cassette_safety.ROWS,
}


def one(name: str, row: str, *words: str) -> None:
    """Print one figure, or do what one is about."""
    subject = MAKERS[name]()
    if row == "_made":
        made(subject, Path(words[0]), int(words[1]))
    elif row == "_record":
        path, prefix, calls, end = words
        cassette_safety.record_some(subject, Path(path), prefix, int(calls), crash=bool(end))
    else:
        print(ROWS[row](subject, Path(words[0])))


def is_there(subject: str) -> bool:
    """Whether a subject can be measured."""
    folders = filter(None, os.environ.get(RIVALS, "").split(os.pathsep))
    spec = importlib.machinery.PathFinder.find_spec(NEEDS[subject], [*folders, *sys.path])
    return spec is not None


def main() -> None:
    """Print the table."""
    keep_byte_code()
    sys.path.append(str(SUPPORT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--rows", default="", help="only rows that contain this")
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    os.environ[RIVALS] = os.pathsep.join(
        str(Path(folder).resolve())
        for folder in os.environ.get(RIVALS, "").split(os.pathsep)
        if folder
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            if options.rows not in row:
                continue
            figures = [
                child(subject, row, tempfile.mkdtemp(dir=folder))
                if is_there(subject)
                else "not installed"
                for subject in SUBJECTS
            ]
            rows.append((row, *figures))
            print(f"{row}: {' | '.join(figures)}", file=sys.stderr)
    print_table(("", "pytest-regen", "vcrpy / pytest-recording", "cassetter"), rows)


if __name__ == "__main__":
    main()
