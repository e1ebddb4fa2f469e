"""The ledger is the inventory of the gate: what is recorded is tested, or says where it went."""

import sys
from typing import TYPE_CHECKING, cast

import pytest
from command_line import command
from unit_work import record

from pytest_regen.cli.project import Project as Kinds
from pytest_regen.units.ledger import entry_name

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_regen.units.place import UnitFile

MODULE = '''\
def {first}(text: str) -> str:
    """Return the first letter.

    >>> {first}("kite")
    'k'
    """
    # [REGEN:BEGIN {first}]
    letters = text.strip()
    return letters[0]
    # [REGEN:END {first}]


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


class Project:
    """Two functions of a module, recorded."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root: Path = pytester.path
        self.write("pyproject.toml", SETTINGS)
        self.write("src/acme/__init__.py", "")
        self.write("tests/test_ok.py", "def test_ok(): pass\n")
        self.write(NAMES, MODULE.format(first="first"))
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
        """Run pytest in this process, without plugins that have no part in it."""
        plugins = ("-p", "no:syrupy", "-p", "no:randomly", "-p", "no:hypothesispytest")
        return self.pytester.runpytest_inprocess(*plugins, "-q", *args)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, outside of CI."""
    monkeypatch.chdir(pytester.path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return Project(pytester)


@pytest.mark.parametrize("args", [(), (f"{NAMES}::first",), ("--lf",)])
def test_a_function_without_its_marker_lines_fails(project: Project, args: tuple[str, ...]) -> None:
    """Under its own id, wherever it is run, once; and says what puts them back."""
    project.unmark("first")
    if args == ("--lf",):
        project.run()

    result = project.run(*args)

    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        [
            f"{NAMES}: MISSING_UNIT: its function still stands in the file, *",
            f"    put them back: pytest-regen init {NAMES}::first --yes; *forget * --unit first",
            f"FAILED {NAMES}::first - MISSING_UNIT: its function still stands in the file, *",
            f"next: pytest-regen init {NAMES}::first --yes",
        ]
    )


def test_init_records_no_edit_of_a_models_text(project: Project) -> None:
    """The marker lines come back, the ledger stays, and the gate says what was edited."""
    entry = write_models_entry(project)
    before = project.read(entry)
    project.unmark("first")
    project.write(NAMES, project.read(NAMES).replace("letters[0]", "letters[:1]"))

    assert command("init", f"{NAMES}::first", "--yes").code == 0

    assert project.read(entry) == before
    assert "first [DRIFT]" in command("validate", NAMES).told


def write_models_entry(project: Project) -> str:
    """Make the first function a model's; return the file of its entry."""
    record(cast("UnitFile", Kinds.here().place(project.root / NAMES)))
    return entry_name(NAMES, "first")


def tear(text: str, ours: str, theirs: str, old: str) -> str:
    """Return a text of which git could not join one line."""
    both = f"<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n"
    assert old in text
    return text.replace(old, both)


LINE = "    return letters[0]\n"
OTHER = "    return letters[:1]\n"


@pytest.mark.parametrize("is_ours_by_hand", [True, False])
def test_rebuild_joins_an_adopted_text_with_a_models(
    project: Project, *, is_ours_by_hand: bool
) -> None:
    """File and entry are ours; what the ledger has of theirs is kept."""
    entry = write_models_entry(project)
    by_model, old = project.read(entry), project.read(NAMES)
    project.write(NAMES, old.replace(LINE, OTHER))
    assert command("adopt", NAMES, "--unit", "first").code == 0
    sides = [(LINE, by_model), (OTHER, project.read(entry))]
    (ours, our_entry), (theirs, their_entry) = reversed(sides) if is_ours_by_hand else sides
    project.write(NAMES, tear(old, ours, theirs, LINE))
    project.write(entry, tear("x", our_entry, their_entry, "x"))

    done = command("rebuild", NAMES)

    assert done.code == 0, done.told
    assert (project.read(NAMES), project.read(entry)) == (old.replace(LINE, ours), our_entry)
    assert command("validate", NAMES).code == 0


def test_a_msgid_that_was_renamed_is_an_orphan(project: Project) -> None:
    """It was not moved to a catalogue of another language, which has had it anyway."""
    po = "locale/{}/LC_MESSAGES/app.po"
    entry = 'msgid "{}"\nmsgstr "{}"\n'
    german, arabic = po.format("de"), po.format("ar")
    settings = f'{SETTINGS}[[tool.pytest-regen.translations]]\ntargets = "{german}"\n'
    project.write("pyproject.toml", settings)
    project.write(german, entry.format("Open", "Auf"))
    project.write(arabic, entry.format("Open", "x"))
    assert command("adopt", german).code == 0
    project.write(german, entry.format("Open it", "Mach auf"))

    result = project.run()

    result.stdout.fnmatch_lines([f"*{german}::Open*ORPHAN: it is in the ledger, *"])
    result.stdout.no_fnmatch_line("*was it moved*")


@pytest.mark.parametrize(("in_ci", "outcomes"), [(True, {"failed": 1}), (False, {})])
def test_a_function_deleted_whole_is_an_orphan(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    *,
    in_ci: bool,
    outcomes: dict[str, int],
) -> None:
    """A warning with its own id; in CI an error, until somebody says that it is to be gone."""
    start, _, rest = project.read(NAMES).partition("\n\n\n")
    project.write(NAMES, rest)
    monkeypatch.setenv("CI", "true" if in_ci else "")

    result = project.run()

    assert start
    assert result.parseoutcomes() == {"passed": 2, **outcomes}
    result.stdout.fnmatch_lines([f"*{NAMES}::first*ORPHAN: it is in the ledger, *"])
    assert command("forget", NAMES).code == 0
    assert project.run().parseoutcomes() == {"passed": 2}


def test_a_file_deleted_whole_is_forgotten_by_name(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is not there; nothing else is touched."""
    (project.root / NAMES).unlink()
    assert project.run().ret == 0
    monkeypatch.setenv("CI", "true")
    assert project.run().parseoutcomes() == {"passed": 1, "failed": 2}

    done = command("forget", NAMES)

    assert done.code == 0
    assert "forgotten   2 units: first, last" in done.err
    assert not [path for path in (project.root / ".regen/hand").rglob("*") if path.is_file()]
    assert project.run().parseoutcomes() == {"passed": 1}


@pytest.mark.parametrize("args", [("tests",), ("-k", "ok")])
def test_a_selection_is_no_inventory(project: Project, args: tuple[str, ...]) -> None:
    """Who asks for some tests gets those."""
    project.unmark("first", "last")

    assert project.run(*args).parseoutcomes()["passed"] == 1
    assert project.run(*args).ret == 0


def test_validate_and_status_work_without_a_store(project: Project) -> None:
    """In a project of functions alone, before there is one, and where the ledger has lost some."""
    assert command("validate").code == 0
    assert command("status").code == 0
    project.unmark("first", "last")

    validated, listed = command("validate"), command("status")

    assert validated.code == 1
    told = validated.out + validated.err
    assert f"{NAMES}: first [MISSING_UNIT] its function still stands in the file" in told
    assert listed.code == 0
    following = f"next: pytest-regen validate {NAMES}"
    assert following in listed.out + listed.err
    assert command("forget", NAMES).code == 0
    nothing = command("validate").told
    assert "no store is named" not in nothing
    assert "no function of src/acme/*.py has markers yet" in nothing


KIND = '''\
import re

from pytest_regen import Kind


class Messages:
    """Finds what it can read, as a finditer does."""

    pattern = re.compile(r'msgid "(.*)"\\nmsgstr "(.*)"\\n')

    def find(self, text):
        return {found[1]: found[2] for found in self.pattern.finditer(text)}

    def replace(self, text, texts):
        return text


class Catalogue(Kind):
    files = "messages.po"
    region = Messages()

    def prompt(self, unit):
        return unit.name
'''


@pytest.fixture
def catalogue(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A kind of one's own whose region passes over what it cannot read."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    project.write("regen_kinds.py", KIND)
    kinds = '[tool.pytest.ini_options]\n[tool.pytest-regen]\nkinds = ["regen_kinds:Catalogue"]\n'
    project.write("pyproject.toml", kinds)
    assert command("forget", NAMES).code == 0
    project.write("messages.po", 'msgid "a"\nmsgstr "A"\n\nmsgid "b"\nmsgstr "B"\n')
    assert command("adopt", "messages.po").code == 0
    return project


TORN = (
    'msgid "a"\nmsgstr "A"\n\nmsgid "b"\n<<<<<<< HEAD\nmsgstr "X"\n=======\nmsgstr "Y"\n>>>>>>> b\n'
)


def test_conflict_markers_let_no_unit_vanish(catalogue: Project) -> None:
    """They are an error of the file and of the unit, in pytest and in `validate`."""
    catalogue.write("messages.po", TORN)

    result = catalogue.run()

    result.stdout.fnmatch_lines(["FAILED messages.po::b - CONFLICT: messages.po holds conflict *"])
    assert result.ret == 1
    assert command("validate").code == 1


def test_conflict_markers_beside_all_units_fail_the_file(catalogue: Project) -> None:
    """Nobody commits them on the strength of a green gate."""
    header = "<<<<<<< HEAD\n# ours\n=======\n# theirs\n>>>>>>> b\n"
    catalogue.write("messages.po", header + catalogue.read("messages.po"))

    result = catalogue.run()

    assert result.parseoutcomes() == {"passed": 3, "failed": 1}
    result.stdout.fnmatch_lines(
        [
            "  our side:      pytest-regen rebuild messages.po",
            "  by hand:       correct the file, then pytest-regen adopt messages.po",
            "FAILED messages.po::file - CONFLICT: *",
        ]
    )
    assert command("rebuild", "messages.po").code == 0
    assert catalogue.run().parseoutcomes() == {"passed": 3}


def test_another_docstring_is_a_warning_for_a_persons_function(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CI as well; `generate` asks no model for it, and one command says that it is right."""
    monkeypatch.setenv("CI", "true")
    project.write(NAMES, project.read(NAMES).replace("the first letter", "its first letter"))

    result = project.run()

    assert result.parseoutcomes() == {"passed": 3}
    what = "STALE: the signature or the docstring has changed since a person wrote it"
    result.stdout.fnmatch_lines(
        [f"warning: {NAMES}::first: {what}", f"next: pytest-regen adopt {NAMES} --stale"]
    )
    assert command("validate").code == 0
    assert "up to date" in command("generate", NAMES, "--check").told
    assert command("adopt", NAMES, "--stale").code == 0
    assert "STALE" not in project.run().stdout.str()


@pytest.mark.parametrize(
    ("lose", "mends"),
    [
        (("unmark", "first"), f"init {NAMES}::first --yes"),
        (("unmark", "first", "last"), f"init {NAMES} --yes"),
        (("move", "src/acme/text/names.py"), "init src/acme/text/names.py --yes"),
        (("move", "../names.py"), f"forget {NAMES}"),
        (("write", "pyproject.toml", "[tool.pytest.ini_options]\n"), f"init {NAMES} --yes"),
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
    assert command(*mends.split()).code == 0
    assert project.run().ret == 0


def test_a_torn_entry_is_an_error_of_the_file(catalogue: Project) -> None:
    """It stands for no other unit, and `forget` says that it drops it."""
    entry = catalogue.root / ".regen/units/messages.po/gone-123456789abc.json"
    entry.parent.mkdir(parents=True)
    entry.write_text("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> b\n", "utf-8")

    result = catalogue.run()

    assert result.parseoutcomes() == {"passed": 3, "failed": 1}
    name = ".regen/units/messages.po/gone-123456789abc.json"
    result.stdout.fnmatch_lines([f"FAILED messages.po::file - LEDGER: {name}: a conflict marker *"])
    done = command("forget", "messages.po")
    assert f"dropped     {name}" in done.err
    assert "everything in it is asked for" not in done.err
    assert not entry.exists()
