"""Examples in docstrings, run in the real sandbox: what each unit of one file is told."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tables import each

from pytest_regen import sandbox
from pytest_regen.kinds.functions import Function, function_kinds
from pytest_regen.units.kind import Unit, issues_from
from pytest_regen.validation.issues import Issue

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")

HEAD = '''\
"""A module."""

import asyncio
import os

from acme.units import FACTOR
from acme.helpers import double

calls = []
'''
# Name: examples of its docstring, its code.
UNITS = {
    "right": (">>> right(2)\n8", "return double(x) * FACTOR"),
    "wrong": (">>> wrong(2)\n5\n>>> wrong(3)\n3", "return x"),
    "raises": (">>> raises(0)\n1", "y = 1\nreturn y / x"),
    "refuses": (
        '>>> refuses("x")\nTraceback (most recent call last):\n    ...\nValueError: no x',
        'raise ValueError(f"no {x}")',
    ),
    "loops": (">>> loops(0)\n0\n>>> loops(1)\n1", "while x:\n    pass\nreturn x"),
    "exits": (">>> exits(0)\n0\n>>> exits(1)\n1", "if x:\n    os._exit(0)\nreturn x"),
    "broken": (">>> broken(1)\n1", "return ("),
    "refused": (">>> refused(1)\n1", 'return eval("1")'),
    "stub": (">>> stub(1)\n1", "raise NotImplementedError"),
    "plain": ("Nothing to show.", "return x"),
    "looks_it_up": (
        ">>> looks_it_up(1)\n42",
        'import inspect\nreturn int(inspect.getdoc(looks_it_up).split("\\n")[-1])',
    ),
}
ASYNC = '''

async def waits(x):
    """Wait.

    >>> asyncio.run(waits(3))
    3
    """
    # [REGEN:BEGIN waits]
    return x
    # [REGEN:END waits]
'''


def write(root: Path, units: Mapping[str, tuple[str, str]], *, head: str = HEAD) -> Path:
    """Write a module of such units."""
    parts = [head]
    for name, (examples, code) in units.items():
        lines = [f'"""Do {name}.', "", *examples.split("\n"), '"""', f"# [REGEN:BEGIN {name}]"]
        lines += [*code.split("\n"), f"# [REGEN:END {name}]"]
        body = "\n".join(f"    {line}" if line else "" for line in lines)
        parts.append(f"\n\ndef {name}(x):\n{body}\n")
    package = root / "src" / "acme"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("from acme.work import calls\n", "utf-8")
    (package / "units.py").write_text("FACTOR = 2\n", "utf-8")
    (package / "helpers.py").write_text("def double(x):\n    return 2 * x\n", "utf-8")
    path = package / "work.py"
    path.write_text("".join(parts), "utf-8")
    return path


def issues(kind: Function, path: Path) -> dict[str, tuple[Issue, ...]]:
    text = path.read_text("utf-8")
    found = {}
    for name, span in kind.region.find(text).items():
        unit = Unit(name, path, span.text, text, kind)
        found[name] = issues_from(kind.check(unit), unit)
    return found


def kind_of(root: Path, **entry: object) -> Function:
    (kind,) = function_kinds([{"files": "src/acme/*.py", **entry}], root)
    return kind


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Issue, ...]]:
    """What is said of each unit of one module."""
    root = tmp_path_factory.mktemp("project")
    path = write(root, UNITS)
    with path.open("a", encoding="utf-8") as file:
        file.write(ASYNC)
    return issues(kind_of(root, timeout=1), path)


@each(
    ("name", "line", "message", "detail"),
    [
        ("wrong", None, "the example 'wrong(2)' (line ", "expected: 5\ngot:      2"),
        ("raises", 2, "raises", "ZeroDivisionError: division by zero"),
        ("exits", None, "'exits(1)' (line 81) ends the process: ", ""),
        ("loops", None, "'loops(1)' (line 66) does not end within 1 seconds", ""),
        ("looks_it_up", 2, "raises", ""),
    ],
)
def test_what_is_wrong_is_told(
    told: dict[str, tuple[Issue, ...]], name: str, line: int | None, message: str, detail: str
) -> None:
    """With the example and its line in the file, what was expected, and what came."""
    (issue,) = told[name]

    assert (issue.code, issue.line) == ("DOCTEST", line)
    assert message in issue.message
    assert detail in (issue.detail or "")


def test_units_of_a_file_are_told_apart(told: dict[str, tuple[Issue, ...]]) -> None:
    """A stub is told of elsewhere; what lint refuses is not run, and no docstring can be read."""
    codes = {name: [issue.code for issue in found] for name, found in told.items()}

    assert {name for name, found in codes.items() if found == ["DOCTEST"]} == {
        *("wrong", "raises", "loops", "exits", "looks_it_up")
    }
    assert (codes.pop("broken"), codes.pop("refused")) == (["SYNTAX"], ["NOT_ALLOWED"])
    assert sorted(name for name, found in codes.items() if not found) == [
        *("plain", "refuses", "right", "stub", "waits")
    ]


def test_a_unit_that_breaks_the_import(tmp_path: Path) -> None:
    """It is no fault of the units, unless one of them is called by the import."""
    right = {"right": (">>> right(1)\n1", "return x")}
    lost = write(tmp_path / "lost", right, head="import gone\n")
    (issue,) = issues(kind_of(tmp_path / "lost"), lost)["right"]
    assert issue.code == "IMPORT_FAILED"
    assert "No module named 'gone'" in (issue.detail or "")

    units = {**right, "makes": (">>> makes(2)\n2", "return 1 / x")}
    path = write(tmp_path, units, head="calls = []\n")
    path.write_text(path.read_text("utf-8") + "\n\nMADE = makes(0)\n", "utf-8")
    found = issues(kind_of(tmp_path), path)

    assert found["right"] == ()
    assert [(issue.code, issue.line) for issue in found["makes"]] == [("DOCTEST", 1)]
    assert "cannot be imported, as it calls this function" in found["makes"][0].message


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many modules each run of the sandbox was about."""
    runs: list[int] = []
    run = sandbox.run_examples

    def counting(jobs: Sequence[Any], **options: Any) -> Any:
        runs.append(len(jobs))
        return run(jobs, **options)

    monkeypatch.setattr(sandbox, "run_examples", counting)
    return runs


def test_a_verdict_is_kept_until_something_changes(tmp_path: Path, counted: list[int]) -> None:
    """The module, what it imports from the project, directly or not, and the settings count."""
    path = write(tmp_path, {"right": UNITS["right"], "wrong": UNITS["wrong"]})
    first = issues(kind_of(tmp_path), path)
    assert issues(kind_of(tmp_path), path) == first
    assert counted == [1]

    helpers = path.with_name("helpers.py")
    helpers.write_text("from acme.deep import twice as double\n", "utf-8")
    path.with_name("deep.py").write_text("def twice(x):\n    return 2 * x\n", "utf-8")
    assert issues(kind_of(tmp_path), path) == first
    path.with_name("deep.py").write_text("def twice(x):\n    return 3 * x\n", "utf-8")
    assert [issue.code for issue in issues(kind_of(tmp_path), path)["right"]] == ["DOCTEST"]
    assert counted == [1] * 3

    shutil.rmtree(tmp_path / ".regen")
    issues(kind_of(tmp_path, allow=["os"]), path)
    assert counted == [1] * 4


def test_files_are_judged_together(tmp_path: Path, counted: list[int]) -> None:
    """One sandbox, a process for each file; what is known is not run again."""
    path = write(tmp_path, {"right": UNITS["right"]})
    other = path.with_name("other.py")
    other.write_text(path.read_text("utf-8"), "utf-8")
    kind = kind_of(tmp_path)

    kind.prepare([path, other, path.with_name("absent.py")])
    assert issues(kind, path) == issues(kind, other) == {"right": ()}
    kind_of(tmp_path).prepare([path, other])

    assert counted == [2]


def test_what_a_person_wrote_may_use_more(tmp_path: Path) -> None:
    runs = (">>> refused(1)\n2", 'return eval("2")')
    path = write(tmp_path, {"refused": runs})
    kind = kind_of(tmp_path)
    text = path.read_text("utf-8")

    def codes(file_text: str, *, is_by_hand: bool) -> list[str]:
        found = kind.region.find(file_text)["refused"].text
        unit = Unit("refused", path, found, file_text, kind, is_by_hand=is_by_hand)
        return [issue.code for issue in issues_from(kind.check(unit), unit)]

    assert codes(text, is_by_hand=True) == []
    assert codes(text.replace('"2"', '"3"'), is_by_hand=True) == ["DOCTEST"]
    assert codes(text, is_by_hand=False) == ["NOT_ALLOWED"]
