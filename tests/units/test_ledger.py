"""The ledger: names of its files, hostile content, files that were moved."""

import json
from pathlib import Path

import pytest
from unit_work import GERMAN, PLACE, German, codes, kinds_with, project

from pytest_regen.errors import StoreCorruptError
from pytest_regen.modes import HAND
from pytest_regen.regeneration import verbs
from pytest_regen.units.ledger import entry_name
from pytest_regen.units.place import open_units


def entry_file(root: Path, name: str) -> Path:
    """Return the file of an entry."""
    return root / entry_name(PLACE, name)


def test_one_file_per_unit_and_one_per_system_prompt(tmp_path: Path) -> None:
    """Readable names, made unique by a hash."""
    file = project(tmp_path)

    names = sorted(path.name for path in entry_file(tmp_path, "berth").parent.iterdir())

    assert [name.partition("-")[0] for name in names] == ["berth", "leave", "mooring"]
    entry = json.loads(entry_file(tmp_path, "berth").read_text("utf-8"))
    assert list(entry) == [
        "format",
        "name",
        "prompt_sha256",
        "system_sha256",
        "output",
        "model",
        "generated_at",
        "inputs",
    ]
    assert len(entry_file(tmp_path, "berth").read_bytes()) - len(entry["output"]) <= 600
    assert list(entry["inputs"]) == ["input 1", "the system prompt", "the settings"]
    assert all(len(digits) == 16 for digits in entry["inputs"].values())
    (system,) = (tmp_path / ".regen/systems").glob(f"{entry['system_sha256']}*.txt")
    assert system.read_text("utf-8") == file.kind.system


@pytest.mark.parametrize("content", [b"{", b"", b'{"name": "berth", "prompt_sha256": 3}'])
def test_an_entry_that_cannot_be_read_fails_its_unit_alone(tmp_path: Path, content: bytes) -> None:
    """No JSON, another unit's, or odd: the others are as they were; ``adopt`` writes it anew."""
    file = project(tmp_path)
    other = entry_file(tmp_path, "leave").read_bytes()
    entry_file(tmp_path, "berth").write_bytes(content or other)

    units = file.open()

    assert codes(units) == {"berth": ["LEDGER"]}
    assert "adopt" in units.obstacle("berth")
    verbs.adopt(file)
    assert codes(file.open()) == {}


def test_a_stray_file_in_the_ledger_is_an_error_of_the_file(tmp_path: Path) -> None:
    """And of no unit, by its path from the root; ``forget`` names it and removes it."""
    file = project(tmp_path)
    stray = entry_file(tmp_path, "berth").with_name("stray.json")
    stray.write_text("{}", "utf-8")

    units = file.open()

    assert codes(units) == {}
    (issue,) = units.file_issues
    assert (issue.code, issue.type_name) == ("LEDGER", None)
    assert issue.message.startswith(".regen/units/locales/de.json/stray.json, ")
    assert verbs.forget(file).dropped == (".regen/units/locales/de.json/stray.json",)
    assert not stray.exists()


def test_a_moved_file_keeps_its_ledger(tmp_path: Path) -> None:
    """Recognised by its content; the next write moves the ledger and the history, too."""
    file = project(tmp_path)
    (tmp_path / PLACE).write_text(
        json.dumps({**GERMAN, "berth": "Platz {number}"}, ensure_ascii=False), "utf-8"
    )
    verbs.adopt(file)
    (tmp_path / "i18n").mkdir()
    for name in ("de.json", "en.json"):
        (tmp_path / "locales" / name).rename(tmp_path / "i18n" / name)

    class Moved(German):
        """At its new place."""

        files = "i18n/de.json"

    moved = open_units(kinds_with(tmp_path, Moved()), "i18n/de.json")

    assert codes(moved.open()) == {}
    verbs.forget(moved, ["leave"])
    units = moved.open()
    assert {name: one.model for name, one in units.ledger.entries.items()} == {
        "berth": HAND,
        "mooring": "claude-opus-5",
    }
    assert not list((tmp_path / ".regen/units/locales").rglob("*-*.json"))
    assert [past.reason for past in verbs.history(moved)] == ["adopted", "forgotten"]


def test_a_copied_file_does_not_take_the_ledger_away(tmp_path: Path) -> None:
    """The old file is still there, so that nothing was moved."""
    project(tmp_path)
    for name in ("de.json", "en.json"):
        copy = tmp_path / "other" / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((tmp_path / "locales" / name).read_bytes())

    class Copied(German):
        """Beside the first."""

        files = "other/de.json"

    copied = open_units(kinds_with(tmp_path, Copied()), "other/de.json")

    assert not copied.open().ledger.entries


def test_a_trial_that_nobody_wrote_is_named(tmp_path: Path) -> None:
    """By readers and writers, at once and with what to do."""
    file = project(tmp_path)
    path = tmp_path / ".regen/history/.trial"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"files": {"a": 1}}', "utf-8")

    with pytest.raises(StoreCorruptError, match="not a trial that pytest-regen wrote"):
        file.open()
    with pytest.raises(StoreCorruptError, match="not a trial that pytest-regen wrote"):
        verbs.adopt(file)
