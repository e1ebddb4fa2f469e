"""Commands on files with units: the same verbs and exit codes as for stores."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import command
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


@pytest.mark.usefixtures("recorded")
def test_a_description_beside_kinds_is_told_apart(document: Path) -> None:
    """It is no file of a kind: what it lacks is an operation."""
    done = command("generate", document)

    assert done.code == 2
    assert "api.json is an API description: name what to generate of it" in done.told
    assert "  next: pytest-regen generate api.json 'GET /kites'\n" in done.err


def test_forget_what_nothing_asks_for(recorded: Path) -> None:
    """A key that the English file has no longer."""
    write_json(recorded / "locales/en.json", {"berth": ENGLISH["berth"]})
    sys.modules.pop(
        "regen_kinds", None
    )  # Its strings are cached; each command is a process of its own.
    assert "[ORPHAN]" in command("validate").told

    done = command("forget", FILE)

    assert done.code == 0, done.err
    assert german(recorded) == {"berth": GERMAN["berth"]}
    assert "[ORPHAN]" not in command("validate").told
    assert "everything in it is asked for" in command("forget", FILE).told


def test_commands_name_files_from_where_they_run(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(recorded / FILE, {**GERMAN, "berth": "Platz {number}"})
    monkeypatch.chdir(recorded / "locales")

    done = command("validate", "de.json")

    assert done.code == 1
    assert "next: pytest-regen adopt de.json" in done.told


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


@pytest.mark.parametrize("place", ["module", "check"])
def test_a_kind_that_exits_is_exit_2(recorded: Path, place: str) -> None:
    """Not the exit code that it asks for."""
    text = {
        "module": "import sys\nsys.exit(0)\n",
        "check": KIND.replace("        source =", "        raise SystemExit(0)\n        source ="),
    }[place]
    (recorded / "regen_kinds.py").write_text(text, "utf-8")
    sys.modules.pop("regen_kinds", None)

    assert command("validate", FILE).code == 2


def test_what_a_kind_prints_stays_out_of_the_json(recorded: Path) -> None:
    """It goes to stderr; stdout is the one document."""
    (recorded / "regen_kinds.py").write_text(f"print('loaded')\n{KIND}", "utf-8")
    sys.modules.pop("regen_kinds", None)

    done = command("validate", "--json")

    assert done.json["files"][0]["ok"]
    assert "loaded" in done.told


def test_a_region_that_raises_is_an_error_of_the_kind(recorded: Path) -> None:
    """Also where a command writes the file without a model; it stays as it was."""
    region = (
        "class Broken(regions.JsonStrings):\n"
        "    def replace(self, text, texts):\n"
        "        raise ZeroDivisionError\n"
    )
    kind = KIND.replace("class German", f"{region}\n\nclass German")
    kind = kind.replace("regions.JsonStrings()", "Broken()")
    (recorded / "regen_kinds.py").write_text(kind, "utf-8")
    write_json(recorded / FILE, {**WRONG, "more": "Mehr"})
    before = (recorded / FILE).read_bytes()
    sys.modules.pop("regen_kinds", None)

    done = command("rebuild", FILE, "--json")

    assert done.code == 2
    assert done.json["error"] == "KindError"
    assert (recorded / FILE).read_bytes() == before


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
def test_a_misspelt_unit_is_named_before_a_key_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With near names; no key would help."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    done = command("generate", FILE, "--unit", "bert")

    assert done.code == 2
    assert "locales/de.json has no unit 'bert'" in done.err
    assert "near are berth" in done.err


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("verb", ["generate", "adopt"])
def test_a_misspelt_path_names_the_near_one(verb: str) -> None:
    """Whatever the path is of: nobody meant a store there."""
    done = command(verb, "locales/dee.json")

    assert done.code == 2
    assert "locales/dee.json is not there" in done.err
    assert "  next: name locales/de" in done.err


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
