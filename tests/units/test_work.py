"""Units recorded, put back, restored and forgotten, without a model."""

import json
import subprocess
from pathlib import Path

import pytest
from unit_work import ENGLISH, GERMAN, codes, entry_of, kinds_with, project, write_json

from pytest_regen import Kind, Unit
from pytest_regen.errors import HandEditError, SourceError, UsageError
from pytest_regen.units.ledger import HAND
from pytest_regen.units.place import open_units
from pytest_regen.units.work import (
    adopt_units,
    forget_units,
    rebuild_units,
    restore_unit,
    unit_history,
)


def german(root: Path) -> dict[str, str]:
    """Return what stands in the file."""
    strings: dict[str, str] = json.loads((root / "locales/de.json").read_text("utf-8"))
    return strings


def test_adopt_records_what_is_there(tmp_path: Path) -> None:
    """As written by hand, with the prompt and the inputs of this moment."""
    file = project(tmp_path, is_recorded=False)

    done = adopt_units(file)

    assert done.names == ("berth", "mooring", "leave")
    assert codes(file.open()) == {}
    entry = entry_of(file, "berth")
    assert (entry.model, entry.output, entry.attempt) == (HAND, GERMAN["berth"], 1)
    assert entry.prompt == 'Translate into German: "Berth {number}"'


def test_adopt_keeps_an_edit_and_the_old_text_goes_to_the_history(tmp_path: Path) -> None:
    """Only what was edited is recorded anew."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})

    done = adopt_units(file)

    assert done.names == ("berth",)
    assert entry_of(file, "berth").output == "Platz {number}"
    assert entry_of(file, "berth").attempt == 2
    (past,) = unit_history(file)
    assert (past.reason, past.entry.output) == ("adopted", GERMAN["berth"])


def test_adopt_by_name_takes_a_stale_text_for_right(tmp_path: Path) -> None:
    """A person looked at it; without a name stale texts stay stale."""
    file = project(tmp_path)
    write_json(tmp_path / "locales/en.json", {**ENGLISH, "mooring": "Moor right here"})

    assert adopt_units(file).names == ()
    adopt_units(file, ["mooring"])

    assert codes(file.open()) == {}


def test_adopt_has_nothing_to_record_of_a_stub(tmp_path: Path) -> None:
    """It says how a text comes there."""
    file = project(tmp_path, {**GERMAN, "berth": ""}, is_recorded=False)

    with pytest.raises(UsageError, match="no text of 'berth' to record") as raised:
        adopt_units(file, ["berth"])

    assert raised.value.hint == "pytest-regen generate locales/de.json --unit berth"
    assert "berth" not in adopt_units(file).names


def test_an_unknown_unit_is_named_with_its_neighbours(tmp_path: Path) -> None:
    """A typing error is a usage error."""
    with pytest.raises(UsageError, match="has no unit 'bert'") as raised:
        adopt_units(project(tmp_path), ["bert"])

    assert raised.value.why == "near are berth"


def test_rebuild_puts_recorded_texts_back(tmp_path: Path) -> None:
    """The edit goes to the history; what was deleted comes back at its place."""
    file = project(tmp_path)
    write_json(file.path, {"berth": "Platz", "leave": GERMAN["leave"]})

    done = rebuild_units(file)

    assert done.names == ("berth", "mooring")
    assert list(german(tmp_path).items()) == list(GERMAN.items())
    assert '-  "berth": "Platz"' in done.diff
    (past,) = unit_history(file)
    assert (past.reason, past.entry.output, past.entry.model) == ("dropped", "Platz", HAND)
    assert codes(file.open()) == {}


def test_rebuild_makes_a_file_that_is_gone(tmp_path: Path) -> None:
    """From the ledger alone, without a model."""
    file = project(tmp_path)
    file.path.unlink()

    rebuild_units(file)

    assert german(tmp_path) == GERMAN


def test_rebuild_of_one_unit_leaves_the_others(tmp_path: Path) -> None:
    """Only what was named."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz", "leave": "Weg"})

    rebuild_units(file, ["berth"])

    assert german(tmp_path) == {**GERMAN, "leave": "Weg"}


def test_rebuild_resolves_a_conflict_of_git(tmp_path: Path) -> None:
    """Our side with every recorded text; the file as it was is kept, and is no text of a unit."""
    file = project(tmp_path)
    conflict = '{\n<<<<<<< HEAD\n  "berth": "A"\n=======\n  "berth": "B"\n>>>>>>> other\n}\n'
    file.path.write_text(conflict, "utf-8")

    with pytest.raises(SourceError, match="conflict markers of git, about berth"):
        adopt_units(file)
    (kept,) = rebuild_units(file).history

    assert german(tmp_path) == GERMAN
    assert (tmp_path / ".regen/history/locales/de.json" / kept).read_text("utf-8") == conflict
    assert unit_history(file) == ()


def test_forget_drops_what_nothing_asks_for(tmp_path: Path) -> None:
    """From the ledger and from the file; the texts are in the history."""
    file = project(tmp_path)
    write_json(tmp_path / "locales/en.json", {"berth": ENGLISH["berth"]})
    write_json(file.path, {"berth": GERMAN["berth"], "leave": "Weg", "extra": "Mehr"})

    done = forget_units(file)

    assert set(done.names) == {"leave", "mooring", "extra"}
    assert german(tmp_path) == {"berth": GERMAN["berth"]}
    assert file.open().orphans == ()
    texts = {(past.entry.name, past.entry.output) for past in unit_history(file)}
    assert texts == {
        ("leave", GERMAN["leave"]),
        ("leave", "Weg"),
        ("mooring", GERMAN["mooring"]),
        ("extra", "Mehr"),
    }


def test_forget_of_a_unit_in_use_drops_its_entry_alone(tmp_path: Path) -> None:
    """The text is somebody's now."""
    file = project(tmp_path)

    forget_units(file, ["berth"])

    assert codes(file.open()) == {"berth": ["UNRECORDED"]}
    assert german(tmp_path) == GERMAN


def test_forget_says_what_is_left_to_do_by_hand(tmp_path: Path) -> None:
    """Where a region cannot take a text out."""

    class Query(Kind):
        """One block between markers."""

        files = "queries.sql"

        def units(self, _file: Path) -> list[str]:
            """Only one of two."""
            return ["ships"]

        def prompt(self, unit: Unit) -> str:
            """The order."""
            return unit.name

    block = "-- [REGEN:BEGIN {0}]\nSELECT 1\n-- [REGEN:END {0}]\n"
    (tmp_path / "queries.sql").write_text(block.format("ships") + block.format("old"), "utf-8")
    file = open_units(kinds_with(tmp_path, Query()), "queries.sql")

    done = forget_units(file)

    assert done.notes == ("take 'old' out of queries.sql by hand",)


def test_restore_brings_a_past_text_back(tmp_path: Path) -> None:
    """And what it replaces goes to the history."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})
    adopt_units(file)

    past, done = restore_unit(file, "berth")

    assert past.entry.output == GERMAN["berth"]
    assert german(tmp_path) == GERMAN
    assert codes(file.open()) == {}
    assert [one.reason for one in unit_history(file, "berth")] == ["adopted", "restored"]
    assert done.history == (unit_history(file)[-1].id,)
    restore_unit(file, "berth", done.history[0])
    assert german(tmp_path)["berth"] == "Platz {number}"


def test_restore_does_not_discard_an_edit(tmp_path: Path) -> None:
    """It says how the edit is kept or dropped."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})
    adopt_units(file)
    write_json(file.path, {**GERMAN, "berth": "Stelle {number}"})

    with pytest.raises(HandEditError, match=r"berth in locales/de\.json was edited by hand"):
        restore_unit(file, "berth")


def test_restore_without_a_past_text(tmp_path: Path) -> None:
    """It is a usage error that names the history."""
    with pytest.raises(UsageError, match="no text of 'berth'"):
        restore_unit(project(tmp_path), "berth")


def test_the_history_is_ignored_by_git_and_the_ledger_is_not(tmp_path: Path) -> None:
    """Each folder ignores itself, so that ``git add .regen`` adds what is to be committed."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})
    adopt_units(file)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-o", "--exclude-standard"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()

    assert len([name for name in listed if name.startswith(".regen/units/")]) == 3
    assert len([name for name in listed if name.startswith(".regen/systems/")]) == 1
    assert not [name for name in listed if "history" in name or "locks" in name], listed


def test_an_adopted_text_is_written_with_nothing_else(tmp_path: Path) -> None:
    """The user's file keeps its bytes."""
    file = project(tmp_path, is_recorded=False)
    text = '{ "berth":"Liegeplatz {number}",\r\n\t"mooring": "Hier anlegen", "leave": "Ab {time}"}'
    file.path.write_bytes(text.encode())

    adopt_units(file)

    assert file.path.read_bytes() == text.encode()
