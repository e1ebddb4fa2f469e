"""The ledger is the inventory of the gate: what is recorded is tested, or says where it went."""

from typing import TYPE_CHECKING

import pytest
from command_line import command

if TYPE_CHECKING:
    from pathlib import Path


MODULE = '''\
def first(text: str) -> str:
    """Return the first letter.

    >>> first("kite")
    'k'
    """
    # [REGEN:BEGIN first]
    letters = text.strip()
    return letters[0]
    # [REGEN:END first]


def last(text: str) -> str:
    """Return the last letter.

    >>> last("kite")
    'e'
    """
    # [REGEN:BEGIN last]
    letters = text.strip()
    return letters[-1]
    # [REGEN:END last]
'''
SETTINGS = """\
[tool.pytest.ini_options]
[tool.pytest-regen]
functions = ["src/acme/*.py"]
"""
NAMES = "src/acme/names.py"
BOTH = "--unit first --unit last"


class Project:
    """Two functions of a module, recorded."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root: Path = pytester.path
        self.write("pyproject.toml", SETTINGS)
        self.write("src/acme/__init__.py", "")
        self.write("tests/test_ok.py", "def test_ok(): pass\n")
        self.write(NAMES, MODULE)
        assert command("adopt", NAMES).code == 0

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def read(self, name: str) -> str:
        """Return a file."""
        return (self.root / name).read_text("utf-8")

    def unmark(self, *names: str) -> None:
        """Take marker lines away, as a clean-up of comments does."""
        lines = self.read(NAMES).splitlines(keepends=True)
        ends = tuple(f"{name}]\n" for name in names)
        kept = [line for line in lines if not ("[REGEN:" in line and line.endswith(ends))]
        self.write(NAMES, "".join(kept))

    def move(self, to: str) -> None:
        """Move the module."""
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        (self.root / NAMES).rename(self.root / to)

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process."""
        return self.pytester.runpytest_inprocess("-q", *args)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, outside of CI."""
    monkeypatch.chdir(pytester.path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return Project(pytester)


def test_a_function_without_its_marker_lines_fails(project: Project) -> None:
    """Under its own id, wherever it is run, once; and says what puts them back.

    Who asks for some tests gets those.
    """
    project.unmark("first")

    for args in ((), (f"{NAMES}::first",), ("--lf",)):
        result = project.run(*args)

        assert result.parseoutcomes()["failed"] == 1
        result.stdout.fnmatch_lines(
            [
                f"{NAMES}: MISSING_UNIT: its function still stands in the file, *",
                f"    put them back: *init {NAMES} --unit first --yes; or *forget * --unit first",
                f"FAILED {NAMES}::first - MISSING_UNIT: its function still stands in the file, *",
                f"next: pytest-regen init {NAMES} --unit first --yes",
            ]
        )
    assert [project.run(*args).ret for args in (("tests",), ("-k", "ok"))] == [0, 0]


def test_a_function_deleted_whole_is_an_orphan(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning with its own id; in CI an error, until somebody says that it is to be gone."""
    project.write(NAMES, project.read(NAMES).partition("\n\n\n")[2])
    results = [project.run()]
    monkeypatch.setenv("CI", "true")
    results.append(project.run())

    assert [result.parseoutcomes().get("failed", 0) for result in results] == [0, 1]
    for result in results:
        result.stdout.fnmatch_lines([f"*{NAMES}::first*ORPHAN: it is in the ledger, *"])
    assert command("forget", NAMES).code == 0
    assert project.run().parseoutcomes() == {"passed": 2}


@pytest.mark.parametrize(
    ("lose", "mends"),
    [
        (("unmark", "first"), f"init {NAMES} --unit first --yes"),
        (("unmark", "first", "last"), f"init {NAMES} {BOTH} --yes"),
        (("move", "src/acme/text/names.py"), f"init src/acme/text/names.py {BOTH} --yes"),
        (("move", "../names.py"), f"forget {NAMES}"),
        (("write", "pyproject.toml", "[tool.pytest.ini_options]\n"), f"init {NAMES} {BOTH} --yes"),
    ],
)
def test_one_command_mends_what_was_lost(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    lose: tuple[str, ...],
    mends: str,
) -> None:
    """It is the last word of the run, in CI as elsewhere, and the run after it passes."""
    monkeypatch.setenv("CI", "true")
    method, *args = lose
    getattr(project, method)(*args)

    result = project.run()

    result.stdout.fnmatch_lines([f"next: pytest-regen {mends}"])
    result.stdout.no_fnmatch_line("*no function of*has markers yet*")
    assert f"  next: pytest-regen {mends}\n" in command("validate").told
    assert "forget first, last: " in result.stdout.str() or "first --yes" in mends
    assert command(*mends.split()).code == 0
    assert project.run().ret == 0
