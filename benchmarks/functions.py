"""The gate of 500 functions with doctests in 50 files, as ratios of one run.

Beside what one would otherwise use: ``python -m doctest FILE`` for each file; and, where nothing
has changed since, as many empty test items.

python benchmarks/functions.py [FILES [FUNCTIONS_PER_FILE]]
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_regen.regeneration import verbs
from pytest_regen.settings import read_settings
from pytest_regen.units.loading import load_kinds
from pytest_regen.units.place import open_units

ROUNDS = 3
FUNCTION = '''

def scale_{n}(values: Iterable[float], factor: float = {n}) -> list[float]:
    """Return the values times a factor, but none below zero.

    >>> scale_{n}([1, -2], 2)
    [2, 0]
    >>> scale_{n}([])
    []
    >>> scale_{n}([1])
    [{n}]
    >>> scale_{n}(["x"], -1)
    Traceback (most recent call last):
    ...
    TypeError: no number: 'x'
    """
    # [REGEN:BEGIN scale_{n}]
    found = []
    for value in values:
        if not isinstance(value, int | float):
            raise TypeError(f"no number: {{value!r}}")
        found.append(max(value * factor, 0))
    return found
    # [REGEN:END scale_{n}]
'''
HEAD = '"""A module."""\n\nimport math\nimport re\nfrom collections.abc import Iterable\n'
SETTINGS = '[tool.pytest.ini_options]\n[tool.pytest-regen]\nfunctions = ["src/scales/*.py"]\n'


def write_functions(root: Path, files: int, each: int) -> list[Path]:
    """Write a project with recorded functions, all of them right; return its modules."""
    package = root / "src" / "scales"
    package.mkdir(parents=True)
    (root / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (package / "__init__.py").touch()
    paths = [package / f"scale{number}.py" for number in range(files)]
    for path in paths:
        path.write_text(HEAD + "".join(FUNCTION.format(n=n) for n in range(each)), "utf-8")
    kinds = load_kinds(root, read_settings(root))
    for path in paths:
        verbs.adopt(open_units(kinds, path))
    forget(root)
    return paths


def forget(root: Path) -> None:
    """Drop what is known of earlier runs."""
    shutil.rmtree(root / ".regen" / "cache", ignore_errors=True)


def write_empty(root: Path, count: int) -> None:
    """Write a project with as many empty tests."""
    root.mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n", "utf-8")
    tests = "".join(f"def test_{n}(): pass\n" for n in range(count))
    (root / "test_empty.py").write_text(tests, "utf-8")


def seconds(root: Path, *command: str) -> float:
    """Return how long a program of Python takes there."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=root, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr)
    return time.perf_counter() - begin


def gate(root: Path) -> float:
    """Return how long pytest takes there."""
    return seconds(root, "pytest", "-q", "-p", "no:cacheprovider")


def doctests(root: Path, paths: Sequence[Path]) -> float:
    """Return how long ``python -m doctest`` takes for all files, one after the other."""
    return sum(seconds(root, "doctest", str(path)) for path in paths)


def main(files: int, each: int) -> None:
    """Measure all in turns, and print ratios."""
    with tempfile.TemporaryDirectory() as folder:
        root, empty = Path(folder, "functions"), Path(folder, "empty")
        paths = write_functions(root, files, each)
        write_empty(empty, files * each)
        gate(empty)  # Bytecode is written once.
        cold, plain, warm, none = [], [], [], []
        for _ in range(ROUNDS):
            forget(root)
            cold.append(gate(root))
            plain.append(doctests(root, paths))
            warm.append(gate(root))
            none.append(gate(empty))
    count = files * each
    print(f"{count:,} functions in {files} files, never seen: {min(cold):.2f} s")
    print(f"python -m doctest FILE, {files} times: {min(plain):.2f} s")
    print(f"ratio {min(cold) / min(plain):.2f} (bar: 2)")
    print(f"{count:,} functions, nothing changed: {min(warm):.2f} s")
    print(f"{count:,} empty tests: {min(none):.2f} s")
    print(f"ratio {min(warm) / min(none):.2f} (bar: 2)")


if __name__ == "__main__":
    given = [int(arg) for arg in sys.argv[1:]]
    main(*(given + [50, 10][len(given) :]))
