"""What functions with doctests cost a suite, in processor time, as ratios of one run.

Beside what one would otherwise use, ``pytest --doctest-modules``: 300 functions in 30 files; and
what 100 functions that have not changed add to a suite of 2,000 plain tests.

python benchmarks/functions.py [FILES [FUNCTIONS_PER_FILE]]
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from byte_code import keep_byte_code
from processor_time import children_seconds
from table import print_table

from pytest_regen.regeneration import verbs
from pytest_regen.settings import read_settings
from pytest_regen.units.loading import load_kinds
from pytest_regen.units.place import open_units

ROUNDS = 5
PLAIN = 2000
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


def write_functions(root: Path, files: int, per_file: int) -> list[Path]:
    """Write a project with recorded functions, all of them right; return its modules."""
    package = root / "src" / "scales"
    package.mkdir(parents=True)
    (root / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (package / "__init__.py").touch()
    paths = [package / f"scale{number}.py" for number in range(files)]
    for path in paths:
        path.write_text(HEAD + "".join(FUNCTION.format(n=n) for n in range(per_file)), "utf-8")
    kinds = load_kinds(root, read_settings(root))
    for path in paths:
        verbs.adopt(open_units(kinds, path))
    forget(root)
    return paths


def forget(root: Path) -> None:
    """Drop what is known of earlier runs."""
    shutil.rmtree(root / ".regen" / "cache", ignore_errors=True)


def write_plain(root: Path, count: int) -> None:
    """Add tests that have nothing to do with functions of a model."""
    tests = "".join(f"def test_{n}():\n    assert {n} + 1 == {n + 1}\n\n\n" for n in range(count))
    (root / "tests").mkdir()
    (root / "tests/test_plain.py").write_text(tests, "utf-8")


def seconds(root: Path, *options: str) -> float:
    """Return the processor time that pytest takes there, its children included."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    before = children_seconds()
    completed = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    spent = children_seconds() - before
    if completed.returncode:
        raise SystemExit(completed.stdout[-2000:] + completed.stderr)
    return spent


def compare(
    label: str, gate: Callable[[], float], beside: str, other: Callable[[], float]
) -> tuple[str, ...]:
    """Measure two things in turn; return a row with the shortest of each, and their ratio."""
    rounds = [(gate(), other()) for _ in range(ROUNDS + 1)]
    # The first writes byte code and what is kept between runs.
    ours, theirs = (min(times) for times in zip(*rounds[1:], strict=True))
    return label, f"{ours:.2f} s", f"{beside}: {theirs:.2f} s", f"{ours / theirs:.2f}"


def main(files: int, per_file: int) -> None:
    """Print the rows."""
    keep_byte_code()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "functions")
        write_functions(root, files, per_file)

        def cold() -> float:
            forget(root)
            return seconds(root)

        beside = "pytest --doctest-modules"
        doctests = partial(seconds, root, "-p", "no:regen", "--doctest-modules", "src")
        label = f"{files * per_file:,} functions in {files} files"
        rows = [
            compare(f"{label}, never seen", cold, beside, doctests),
            compare(f"{label}, unchanged", partial(seconds, root), beside, doctests),
        ]
        suite = Path(folder, "suite")
        write_functions(suite, files // 3, per_file)
        write_plain(suite, PLAIN)
        label = f"{PLAIN:,} plain tests beside {files // 3 * per_file} unchanged functions"
        without = partial(seconds, suite, "-p", "no:regen")
        rows.append(compare(label, partial(seconds, suite), "without the plugin", without))
    print_table(("suite", "pytest with the plugin", "beside", "ratio"), rows)


if __name__ == "__main__":
    counts = [int(arg) for arg in sys.argv[1:]]
    main(*(counts + [30, 10][len(counts) :]))
