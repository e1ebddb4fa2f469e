"""Branches that change different units merge without a conflict below ``.regen``."""

import json
from pathlib import Path

import pytest
from branches import GIT, project_in
from unit_asking import generate_units, regenerate_units
from unit_work import GERMAN, PLACE, German, codes, kinds_with, project, write_json

from pytest_regen.regeneration import TurnSettings, verbs
from pytest_regen.turns import CallableProvider
from pytest_regen.units.ledger import entry_name
from pytest_regen.units.place import UnitFile, open_units

NAMES = [f"text{n}" for n in range(12)]


def stamping(branch: str) -> TurnSettings:
    """Return turns in which every request gets a text that no other branch gets."""
    return TurnSettings(
        CallableProvider(lambda messages: f"{branch} {messages[-1]['content'][-12:]}")
    )


def opened(root: Path) -> UnitFile:
    """Return the file with units."""
    return open_units(kinds_with(root, German()), PLACE)


def write_english(root: Path, names: list[str]) -> None:
    """Write English strings without placeholders."""
    write_json(root / "locales/en.json", {name: f"The {name}" for name in names})


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_two_branches_merge(tmp_path: Path) -> None:
    """Nothing below ``.regen`` conflicts, every answer is there, and all units are clean.

    The file with units may conflict: it is rebuilt from the ledger without a model.
    """
    write_english(tmp_path, NAMES)
    generate_units(opened(tmp_path), settings=stamping("main"))

    def ours() -> None:
        regenerate_units(opened(tmp_path), NAMES[:3], settings=stamping("ours"))
        write_english(tmp_path, [*NAMES[:3], *NAMES[5:], "added"])
        verbs.forget(opened(tmp_path))
        generate_units(opened(tmp_path), settings=stamping("ours"))

    def theirs() -> None:
        regenerate_units(opened(tmp_path), NAMES[6:9], settings=stamping("theirs"))

    merge = project_in(tmp_path).merge(ours, theirs)

    assert set(merge.conflicts) <= {PLACE}
    verbs.rebuild(opened(tmp_path))
    verbs.forget(opened(tmp_path))
    units = opened(tmp_path).open()
    assert codes(units) == {}
    assert units.orphans == ()
    texts = {name: unit.text.partition(" ")[0] for name, unit in units.texts.items()}
    assert {name for name in texts if texts[name] == "ours"} == {*NAMES[:3], "added"}
    assert {name for name in texts if texts[name] == "theirs"} == {*NAMES[6:9]}


def test_rebuild_ends_a_conflict_about_one_unit(tmp_path: Path) -> None:
    """In the file and in the ledger at once; their answer goes to the history."""
    file = project(tmp_path)
    path = tmp_path / entry_name(PLACE, "berth")
    entry, theirs = path.read_text("utf-8"), path.read_text("utf-8").replace("Liegeplatz", "Box")
    path.write_text(f"<<<<<<< HEAD\n{entry}=======\n{theirs}>>>>>>> other\n", "utf-8")
    text = file.path.read_text("utf-8")
    other = text.replace("Liegeplatz", "Box")
    torn = f"<<<<<<< HEAD\n{text}=======\n{other}>>>>>>> other\n"
    file.path.write_text(torn, "utf-8")

    kept = verbs.rebuild(file).history[0]

    assert codes(file.open()) == {}
    assert json.loads(file.path.read_text("utf-8")) == GERMAN
    assert "Box {number}" in {past.entry.output for past in verbs.history(file)}
    assert (tmp_path / ".regen/history" / PLACE / kept).read_text("utf-8") == torn
