"""Commands on files with units: the same verbs and exit codes as for stores."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Ran, command
from plugin_project import emulated
from unit_project import KIND, SETTINGS, record_file, translate
from unit_work import ENGLISH, GERMAN, write_json

from pytest_regen.emulator import Emulator

FILE = "locales/de.json"
WRONG = {**GERMAN, "berth": "Liegeplatz"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the documentation, as the working directory."""
    (tmp_path / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (tmp_path / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(tmp_path / "locales/en.json", ENGLISH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    return tmp_path


@pytest.fixture
def recorded(here: Path) -> Path:
    """The same with all strings, as a model wrote them."""
    write_json(here / FILE, GERMAN)
    record_file(here, here / FILE)
    return here


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A model that knows the strings."""
    with emulated(monkeypatch, translate) as running:
        yield running


def german(root: Path) -> dict[str, str]:
    """Return what stands in the file."""
    strings: dict[str, str] = json.loads((root / FILE).read_text("utf-8"))
    return strings


PO = """\
msgid ""
msgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "Hello %(name)s"
msgstr "Hallo"

#, fuzzy
msgid "Bye"
msgstr "Hallo"

msgid "%(n)d boat"
msgid_plural "%(n)d boats"
msgstr[0] ""
msgstr[1] ""
"""


def test_what_comes_next_in_a_catalogue_of_gettext(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asks for all that is wrong; of a model that repeats itself, what says it otherwise."""
    (here / "de.po").write_text(PO, "utf-8")
    settings = '[[tool.pytest-regen.translations]]\ntargets = "de.po"\n'
    (here / "pyproject.toml").write_text(settings, "utf-8")

    wrong = command("validate").told
    with emulated(monkeypatch, lambda _: "Boot"):
        stuck = command("generate", "de.po", "--unit", "%(n)d boat", "--model", "claude-opus-5")

    assert "Bye [MISSING_UNIT] it is marked fuzzy; if its text is right, delete that mark" in wrong
    assert wrong.endswith("  next: pytest-regen regenerate de.po --from-errors\n")
    again = "regenerate de.po --unit '%(n)d boat' --correction 'what is wrong'"
    assert stuck.told.endswith(f"  next: pytest-regen {again} --model claude-opus-5\n")


def test_status_has_a_line_per_unit(recorded: Path) -> None:
    """State, who wrote it, when, and which of its texts it is."""
    write_json(recorded / FILE, {"berth": "Liegeplatz", "leave": GERMAN["leave"], "extra": "Mehr"})

    done = command("status")

    assert done.code == 0
    first, *lines, written, total, following = done.out.splitlines()
    assert written == "units written: 3 by claude-opus-5"
    assert first == FILE
    assert total.startswith(
        "1 unit missing, 1 unit edited by hand, 1 unit that nothing asks for: 1 to ask, about "
    )
    assert following == f"  next: pytest-regen generate {FILE}"
    cells = [line.split() for line in lines]
    assert [cell[:3] for cell in cells] == [
        ["berth", "DRIFT", "claude-opus-5"],
        ["mooring", "MISSING_UNIT", "claude-opus-5"],
        ["leave", "ok", "claude-opus-5"],
        ["extra", "ORPHAN", "-"],
    ]
    assert cells[0][4:] == ["text", "1"]


def test_faults_of_a_kind_are_told_as_such(recorded: Path) -> None:
    """What it prints goes to stderr, and neither its exit nor its exception is the command's."""
    region = (
        "class Broken(regions.JsonStrings):\n"
        "    def replace(self, text, texts):\n"
        "        raise ZeroDivisionError\n"
    )
    raising = KIND.replace("class German", f"{region}\n\nclass German")
    raising = raising.replace("regions.JsonStrings()", "Broken()")
    write_json(recorded / FILE, {**WRONG, "more": "Mehr"})
    before = (recorded / FILE).read_bytes()

    printing = run_with(recorded, f"print('loaded')\n{KIND}", "validate", "--json")
    exiting = run_with(recorded, "import sys\nsys.exit(0)\n", "validate", FILE)
    broken = run_with(recorded, raising, "rebuild", FILE, "--json")

    assert (printing.json["files"][0]["ok"], "loaded" in printing.told) == (False, True)
    assert exiting.code == 2
    assert (broken.code, broken.json["error"]) == (2, "KindError")
    assert (recorded / FILE).read_bytes() == before


def run_with(root: Path, kind: str, *words: str) -> Ran:
    """Run a command in the project with another module of kinds, as a process of its own would."""
    (root / "regen_kinds.py").write_text(kind, "utf-8")
    sys.modules.pop("regen_kinds", None)
    return command(*words)


@pytest.mark.usefixtures("model")
def test_several_files_are_asked_for_at_once(here: Path) -> None:
    """Named one by one or by their folder; each is told of, and a sum follows."""
    twin = "locales/at.json"
    both = KIND.replace('"locales/de.json"', '"locales/[ad]?.json"')
    (here / "regen_kinds.py").write_text(both, "utf-8")
    for file in (FILE, twin):
        write_json(here / file, {})
    done = command("generate", FILE, twin, "--jobs", "4")

    assert done.code == 0, done.err
    assert german(here) == json.loads((here / twin).read_text("utf-8")) == GERMAN
    assert done.err.splitlines()[-2] == "2 files, 2 changed"
    write_json(here / FILE, WRONG)
    wrong = command("regenerate", "locales", "--from-errors", "--discard-edits", "--json")
    assert [report["path"] for report in wrong.json["files"]] == sorted([twin, FILE])
    assert german(here) == GERMAN
    assert [
        plan["asked"] for plan in command("generate", "locales", "--check", "--json").json["files"]
    ] == [[], []]


@pytest.mark.usefixtures("recorded")
def test_a_misspelt_name_names_the_near_one() -> None:
    """Whatever the path is of: nobody meant a store there; of a unit no key would help."""
    path = command("adopt", "locales/dee.json")
    unit = command("generate", FILE, "--unit", "bert")

    assert (path.code, unit.code) == (2, 2)
    assert "locales/dee.json is not there" in path.err
    assert "  next: name locales/de" in path.err
    assert "locales/de.json has no unit 'bert'" in unit.err
    assert "close to it: berth" in unit.err


MAILS = """
from pytest_regen import Kind, regions


class Mails(Kind):
    files = "mails/*.txt"
    region = regions.WholeFile()
    system = "You write mails."

    def prompt(self, unit):
        return f"Write {unit.path.name}"
"""


def test_a_whole_file_that_is_absent_is_generated(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one unit; the gate says that it is missing."""
    (here / "pyproject.toml").write_text(SETTINGS.replace("regen_kinds:German", "mails:Mails"))
    (here / "mails.py").write_text(MAILS, "utf-8")
    (here / "mails").mkdir()
    (here / "mails/late.txt").write_text("Dear you\n", "utf-8")
    monkeypatch.delitem(sys.modules, "mails", raising=False)

    gate = command("validate", "mails/lost.txt")
    with emulated(monkeypatch, lambda _: "Dear all"):
        done = command("generate", "mails/lost.txt")

    assert "file [MISSING_UNIT] mails/lost.txt is not there" in gate.told
    assert gate.told.endswith("  next: pytest-regen generate mails/lost.txt\n")
    assert done.code == 0, done.err
    assert (here / "mails/lost.txt").read_text("utf-8") == "Dear all\n"
