"""What is wrong with a unit, by how its text, its inputs and its entry in the ledger stand."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from unit_work import (
    ENGLISH,
    GERMAN,
    PLACE,
    German,
    Queries,
    codes,
    kinds_with,
    project,
    record,
    write_json,
)

from pytest_regen import Issue, Kind, Unit, regions
from pytest_regen.errors import KindError, SourceError
from pytest_regen.regeneration import verbs
from pytest_regen.units.place import UnitFile, open_units


def all_with(code: str) -> dict[str, list[str]]:
    """Return what ``codes`` says where every unit has this one."""
    return {name: [code] for name in ENGLISH}


def test_each_unit_is_told_by_its_text_its_input_and_its_entry(tmp_path: Path) -> None:
    """Another text than the recorded one, another input, a blank in its place."""
    file = project(tmp_path, {**GERMAN, "leave": " "})
    write_json(tmp_path / "locales/en.json", {**ENGLISH, "mooring": "Moor alongside"})
    write_json(file.path, {**GERMAN, "berth": "Liegeplatz", "leave": " "})

    units = file.open()

    assert codes(units) == {
        "berth": ["DRIFT", "PLACEHOLDER"],
        "mooring": ["STALE"],
        "leave": ["MISSING_UNIT"],
    }
    assert "adopt locales/de.json --unit berth" in units.obstacle("berth")
    assert not units.obstacle("leave")
    assert units.missing("leave") == (1,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"system": "Say Sie."}, "the system prompt has"),
        ({"settings": {"longest": 20}}, "the settings have"),
    ],
    ids=["system", "settings"],
)
def test_stale_says_what_changed(tmp_path: Path, change: dict[str, object], said: str) -> None:
    """System prompt and settings count for all, whatever ``inputs`` says; each has its name."""
    project(tmp_path)
    kind = type("Other", (German,), change)()
    english = {**ENGLISH, "mooring": "Moor alongside"}

    units = project(tmp_path, is_recorded=False, kind=kind, english=english).open()

    assert codes(units) == all_with("STALE")
    ends = "changed since it was written"
    assert units.issues("berth")[0].message == f"{said} {ends}"
    both = f"input 1 and {said.rpartition(' ')[0]} have {ends}"
    assert units.issues("mooring")[0].message == both


def test_an_input_may_be_a_file(tmp_path: Path) -> None:
    """Its content counts, over LF line ends."""
    glossary = tmp_path / "glossary.txt"
    glossary.write_bytes(b"berth: Liegeplatz\r\n")

    class Glossed(German):
        """Made from a glossary too."""

        def inputs(self, unit: Unit) -> list[str | Path]:
            """The English string and the glossary."""
            return [*super().inputs(unit), Path("glossary.txt")]

    file = project(tmp_path, kind=Glossed())

    glossary.write_bytes(b"berth: Liegeplatz\n")
    assert codes(file.open()) == {}
    glossary.write_bytes(b"berth: Anleger\n")
    assert codes(file.open()) == all_with("STALE")
    glossary.unlink()
    assert codes(file.open()) == all_with("STALE")


def test_an_answer_is_no_input_of_its_own_unit(tmp_path: Path) -> None:
    """``prompt`` and ``inputs`` see neither the text nor the file."""
    seen = []

    class Nosy(German):
        """Looks at everything."""

        def prompt(self, unit: Unit) -> str:
            """Note what is there."""
            seen.append((unit.text, unit.file_text))
            return super().prompt(unit)

    project(tmp_path, kind=Nosy())

    assert set(seen) == {("", "")}


def test_what_nothing_asks_for_is_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text, an entry of the ledger, or both; in CI an error until ``forget`` where recorded."""
    file = project(tmp_path)
    write_json(tmp_path / "locales/en.json", {"berth": ENGLISH["berth"]})
    write_json(file.path, {"berth": GERMAN["berth"], "leave": GERMAN["leave"], "extra": "Mehr"})

    units = file.open()

    assert codes(units) == {}
    assert {issue.type_name: issue.message for issue in units.orphans} == {
        "leave": "it is in the file and in the ledger, and nothing asks for it",
        "extra": "it is in the file, and nothing asks for it",
        "mooring": "it is in the ledger, and nothing asks for it",
    }
    assert {issue.severity for issue in units.orphans} == {"warning"}
    monkeypatch.setenv("CI", "true")
    severities = {issue.type_name: issue.severity for issue in file.open().orphans}
    assert severities == {"mooring": "error", "leave": "error", "extra": "warning"}
    verbs.forget(file)
    assert file.open().orphans == ()


CONFLICT = """{
<<<<<<< HEAD
  "berth": "Liegeplatz {number}",
=======
  "berth": "Anleger {number}",
>>>>>>> theirs
  "mooring": "Hier anlegen",
  "leave": "Ab {time}"
}
"""


def test_conflict_markers_fail_each_unit_of_the_file(tmp_path: Path) -> None:
    """On the line of the first of them, for no other fault of the file is one by itself."""
    file = project(tmp_path)
    file.path.write_text(CONFLICT, "utf-8")

    units = file.open()

    assert codes(units) == all_with("CONFLICT")
    assert units.issues("leave")[0].line == 2


def test_a_region_decides_what_is_the_same(tmp_path: Path) -> None:
    """JSON that is written otherwise is no DRIFT where values are compared."""

    class Values(German):
        """Values as JSON."""

        region = regions.JsonValues()

    file = project(tmp_path, kind=Values())
    file.path.write_text(
        file.path.read_text("utf-8").replace(" anlegen", "\\u0020anlegen"), "utf-8"
    )

    assert codes(file.open()) == {}


@pytest.mark.parametrize("method", ["units", "prompt", "inputs", "check"])
def test_an_exception_in_a_kind_is_its_own_error(tmp_path: Path, method: str) -> None:
    """It has the user's traceback and nothing of ours, and no model is asked about it."""
    project(tmp_path)

    def broken(*_: object) -> object:
        # An exit would pass for a run without faults.
        raise SystemExit(0) if method == "check" else KeyError("no such key")

    kind = type("Broken", (German,), {method: broken})()
    file = project(tmp_path, is_recorded=False, kind=kind)

    units = file.open()
    if method == "units":
        with pytest.raises(KindError, match=r"Broken.units raised KeyError") as raised:
            _ = units.names
        assert "no such key" in raised.value.trace
        assert "pytest_regen/units" not in raised.value.trace
        return
    found = units.issues("berth")
    if method == "prompt":
        assert not found  # Its inputs are the English text alone.
        return
    assert found[-1].code == "KIND_ERROR"
    assert ("SystemExit" if method == "check" else "no such key") in (found[-1].detail or "")
    assert units.obstacle("berth")


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("not like this", "CHECK", "not like this"),
        (["one"], "CHECK", "one"),
        ([("TONE", "say du")], "TONE", "say du"),
        ([3], "KIND_ERROR", "Strict.check raised TypeError for berth"),
    ],
)
def test_what_check_may_give(tmp_path: Path, given: object, code: str, message: str) -> None:
    """A sentence, or a code with a message, alone or in a list; a number is the kind's mistake."""
    kind = type("Strict", (German,), {"check": lambda *_: given})()

    issue = project(tmp_path, kind=kind).open().issues("berth")[0]

    assert (issue.code, issue.message, issue.type_name) == (code, message, "berth")
    if code != "KIND_ERROR":
        assert issue.excerpt is not None
        assert issue.excerpt.text == GERMAN["berth"]


def test_a_line_of_check_is_one_of_the_file(tmp_path: Path) -> None:
    """It counts in the text of the unit; people read the file."""

    class Slow(Queries):
        """Finds fault with the second line."""

        def check(self, _unit: Unit) -> list[Issue]:
            """The second line is wrong."""
            return [Issue.of("SLOW", "no index", line=2)]

    (tmp_path / "queries.sql").write_text(
        "-- [REGEN:BEGIN ships]\nSELECT *\nFROM ships\n-- [REGEN:END ships]\n", "utf-8"
    )
    units = open_units(kinds_with(tmp_path, Slow()), "queries.sql").open()

    issue = units.issues("ships")[-1]
    assert (issue.line, issue.excerpt and issue.excerpt.text) == (3, "FROM ships")
    assert issue.type_name == "ships"


class Notes(Kind):
    """Blocks of a page."""

    files = "notes.md"

    def units(self, file: Path) -> list[str]:
        """Two releases."""
        return ["1.0", "1.1"]

    def prompt(self, unit: Unit) -> str:
        """The order."""
        return f"Write notes on {unit.name}."


def block(name: str, text: str) -> str:
    """Return a heading and a block."""
    return f"## {name}\n<!-- [REGEN:BEGIN {name}] -->\n{text}<!-- [REGEN:END {name}] -->\n"


def notes(root: Path, text: str) -> UnitFile:
    """Return a page."""
    (root / "notes.md").write_text(text, "utf-8")
    return open_units(kinds_with(root, Notes()), "notes.md")


def test_a_unit_without_a_place_is_not_asked_for(tmp_path: Path) -> None:
    """Its answer could not be put anywhere; what to write into the file is said instead."""
    whole = block("1.0", "- first\n") + block("1.1", "- second\n")
    record(notes(tmp_path, whole))
    units = notes(tmp_path, block("1.0", "- first\n")).open()

    (issue,) = units.issues("1.1")
    assert issue.code == "MISSING_UNIT"
    first, last = (issue.detail or "").splitlines()
    assert "[REGEN:BEGIN 1.1]" in first
    assert last.startswith("then its recorded text is put back by: pytest-regen rebuild")
    assert "[REGEN:BEGIN 1.1]" in units.obstacle("1.1")
    assert not notes(tmp_path, block("1.0", "- first\n") + block("1.1", "")).open().obstacle("1.1")


def test_the_line_of_drift_is_the_line_that_changed(tmp_path: Path) -> None:
    """Not the first of the region."""
    record(notes(tmp_path, block("1.0", "- a\n- b\n") + block("1.1", "- c\n")))

    units = notes(tmp_path, block("1.0", "- a\n- B\n") + block("1.1", "- c\n")).open()

    (drift,) = units.issues("1.0")
    assert (drift.code, drift.line) == ("DRIFT", 4)
    assert drift.detail == "--- recorded\n+++ stands\n- - b\n+ - B"


def test_a_conflict_that_can_be_read_is_no_edit_to_adopt(tmp_path: Path) -> None:
    """``adopt`` would record the markers; ``rebuild`` puts the recorded text back."""
    record(notes(tmp_path, block("1.0", "- first\n") + block("1.1", "- second\n")))
    torn = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n"

    file = notes(tmp_path, block("1.0", torn) + block("1.1", "- second\n"))

    assert codes(file.open()) == {"1.0": ["CONFLICT"], "1.1": ["CONFLICT"]}
    assert file.open().obstacle("1.1")
    with pytest.raises(SourceError, match="conflict markers of git"):
        verbs.adopt(file, ["1.0"])
    verbs.rebuild(file, ["1.0"])
    assert codes(file.open()) == {}


class Nameless(German):
    """A kind that names no unit."""

    def units(self, file: Path) -> Mapping[str, str]:
        """None."""
        return {}


def test_a_file_without_names_is_an_issue_of_its_own(tmp_path: Path) -> None:
    """A gate that checks nothing must not pass; a file with units has no such issue."""
    (issue,) = project(tmp_path, kind=Nameless(), is_recorded=False).open().file_issues

    assert (issue.code, issue.message) == (
        "MISSING_UNIT",
        f"Nameless names no unit of {PLACE}",
    )
    assert project(tmp_path).open().file_issues == ()


def test_a_file_that_is_not_utf8_is_at_fault_itself(tmp_path: Path) -> None:
    """Each of its units says so, with the line, and what is recorded stays."""
    file = project(tmp_path)
    file.path.write_bytes(file.path.read_bytes().replace(b"Hier", b"H\xefer"))

    (issue,) = file.open().issues("berth")

    assert (issue.code, issue.line) == ("SYNTAX", 3)
    not_utf8 = "is not UTF-8 (line 3); save it as UTF-8"
    assert issue.message == f"{PLACE} {not_utf8}"
    with pytest.raises(SourceError, match=re.escape(not_utf8)):
        verbs.adopt(file)
