"""Units recorded, put back, restored and forgotten, without a model."""

import json
import re
from pathlib import Path

import pytest
from branches import project_in
from unit_work import (
    ENGLISH,
    GERMAN,
    German,
    Queries,
    codes,
    entry_of,
    german,
    kinds_with,
    project,
    write_json,
)

from pytest_regen.errors import UsageError
from pytest_regen.modes import HAND
from pytest_regen.regeneration import verbs
from pytest_regen.units.ledger import entry_name
from pytest_regen.units.place import open_units


def hand_lines(root: Path) -> list[list[str]]:
    """Return what ``.regen/hand`` has of the file."""
    text = (root / ".regen/hand/locales/de.json").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()]


def test_adopt_writes_a_line_for_each_text_by_hand(tmp_path: Path) -> None:
    """In one file, sorted, with a hash of the source text and nothing of the text."""
    file = project(tmp_path, is_recorded=False)

    done = verbs.adopt(file)

    assert done.names == ("berth", "mooring", "leave")
    assert codes(file.open()) == {}
    assert [name for name, _ in hand_lines(tmp_path)] == ["berth", "leave", "mooring"]
    assert all(re.fullmatch("[0-9a-f]{16}", digits) for _, digits in hand_lines(tmp_path))
    assert not (tmp_path / ".regen/units").exists()
    # A person edits their own text without a command; checks apply.
    write_json(file.path, {**GERMAN, "berth": "Platz"})
    assert codes(file.open()) == {"berth": ["PLACEHOLDER"]}


def test_another_source_text_makes_a_persons_text_stale(tmp_path: Path) -> None:
    """And nothing else does: not the system prompt, not a setting. No model is asked for it."""
    verbs.adopt(project(tmp_path, is_recorded=False))
    english = {**ENGLISH, "mooring": "Moor alongside"}

    class Formal(German):
        """Another tone."""

        system = "Say Sie."

    file = project(tmp_path, is_recorded=False, kind=Formal(), english=english)

    assert codes(file.open()) == {"mooring": ["STALE"]}
    (issue,) = file.open().issues("mooring")
    assert issue.message == "input 1 has changed since a person wrote it"
    assert (issue.severity, issue.is_by_hand) == ("warning", True)
    assert not file.open().needs_answer("mooring")
    assert verbs.adopt(file, with_stale=True).names == ("mooring",)
    assert codes(file.open()) == {}


def test_adopt_of_a_models_text_keeps_its_author(tmp_path: Path) -> None:
    """Its inputs are renewed; its prompt is the one that was sent."""
    file = project(tmp_path)
    before = entry_of(file, "mooring")
    write_json(tmp_path / "locales/en.json", {**ENGLISH, "mooring": "Moor alongside"})

    assert verbs.adopt(file).names == ()
    assert verbs.adopt(file, with_stale=True).names == ("mooring",)

    assert codes(file.open()) == {}
    after = entry_of(file, "mooring")
    assert (after.model, after.prompt_sha256, after.output) == (
        before.model,
        before.prompt_sha256,
        before.output,
    )
    assert "note: mooring: " in file.open().notes[0]


def test_adopt_of_an_edited_text_says_whose_it_was(tmp_path: Path) -> None:
    """It is a person's, in the unit's one file, which has no text any more."""
    file = project(tmp_path)
    asked = entry_of(file, "berth").prompt_sha256
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})

    done = verbs.adopt(file)

    assert done.names == ("berth",)
    after = {"model": "claude-opus-5", "prompt_sha256": asked}
    stored = json.loads((tmp_path / entry_name("locales/de.json", "berth")).read_text("utf-8"))
    assert stored.pop("own_inputs")
    assert stored == {"format": 1, "name": "berth", "by": "hand", "after": after}
    assert not (tmp_path / ".regen/hand").exists()
    write_json(file.path, {**GERMAN, "berth": "Stelle {number}"})
    assert codes(file.open()) == {}
    verbs.adopt(file, ["berth"])
    assert entry_of(file, "berth").after == after
    (past,) = verbs.history(file)
    assert (past.reason, past.entry.output) == ("adopted", GERMAN["berth"])


def test_adopt_has_nothing_to_record_of_a_stub_or_of_no_unit(tmp_path: Path) -> None:
    """It says how a text comes there, or what is near."""
    file = project(tmp_path, {**GERMAN, "berth": ""}, is_recorded=False)

    with pytest.raises(UsageError, match="no text of 'berth' to record") as raised:
        verbs.adopt(file, ["berth"])

    assert raised.value.hint == "pytest-regen generate locales/de.json --unit berth"
    assert "berth" not in verbs.adopt(file).names
    with pytest.raises(UsageError, match="has no unit 'bert'") as raised:
        verbs.adopt(file, ["bert"])
    assert raised.value.why == "close to it: berth"


def test_rebuild_puts_recorded_texts_back(tmp_path: Path) -> None:
    """The edit goes to the history; what was deleted comes back at its place."""
    file = project(tmp_path)
    write_json(file.path, {"berth": "Platz", "leave": GERMAN["leave"]})

    done = verbs.rebuild(file)

    assert done.names == ("berth", "mooring")
    assert list(german(tmp_path).items()) == list(GERMAN.items())
    assert '-  "berth": "Platz"' in done.diff
    (past,) = verbs.history(file)
    assert (past.reason, past.entry.output, past.entry.model) == ("dropped", "Platz", HAND)
    assert codes(file.open()) == {}


def test_forget_drops_what_nothing_asks_for(tmp_path: Path) -> None:
    """From the ledger and from the file; the texts are in the history."""
    file = project(tmp_path)
    write_json(tmp_path / "locales/en.json", {"berth": ENGLISH["berth"]})
    write_json(file.path, {"berth": GERMAN["berth"], "leave": "Weg", "extra": "Mehr"})

    done = verbs.forget(file)

    assert set(done.names) == {"leave", "mooring", "extra"}
    assert german(tmp_path) == {"berth": GERMAN["berth"]}
    assert file.open().orphans == ()
    texts = {(past.entry.name, past.entry.output) for past in verbs.history(file)}
    assert texts == {
        ("leave", GERMAN["leave"]),
        ("leave", "Weg"),
        ("mooring", GERMAN["mooring"]),
        ("extra", "Mehr"),
    }


def test_forget_says_what_is_left_to_do_by_hand(tmp_path: Path) -> None:
    """Where a region cannot take a text out."""

    class OneQuery(Queries):
        """Names one of two."""

        def units(self, _file: Path) -> list[str]:
            """Only one of two."""
            return ["ships"]

    block = "-- [REGEN:BEGIN {0}]\nSELECT 1\n-- [REGEN:END {0}]\n"
    (tmp_path / "queries.sql").write_text(block.format("ships") + block.format("old"), "utf-8")
    file = open_units(kinds_with(tmp_path, OneQuery()), "queries.sql")

    done = verbs.forget(file)

    assert done.notes == ("take 'old' out of queries.sql by hand",)


def test_rebuild_leaves_texts_by_hand_alone(tmp_path: Path) -> None:
    """It says how many; one that is named has nothing to be rebuilt from."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})
    verbs.adopt(file)
    write_json(file.path, {**GERMAN, "berth": "Stelle {number}", "leave": "Weg um {time}"})

    done = verbs.rebuild(file)

    assert (done.names, done.by_hand) == (("leave",), 1)
    assert german(tmp_path) == {**GERMAN, "berth": "Stelle {number}"}
    with pytest.raises(UsageError, match="nothing is recorded that 'berth' could be rebuilt from"):
        verbs.rebuild(file, ["berth"])


def test_a_name_with_two_lines_is_fresh_if_one_fits(tmp_path: Path) -> None:
    """As git leaves it where both branches recorded the text, and the next write settles it."""
    file = project(tmp_path, is_recorded=False)
    verbs.adopt(file)
    lines = tmp_path / ".regen/hand/locales/de.json"
    lines.write_text(lines.read_text("utf-8") + "berth\t0123456789abcdef\n", "utf-8")

    assert codes(file.open()) == {}
    verbs.adopt(file, ["berth"])

    assert len(hand_lines(tmp_path)) == 3


def test_a_line_that_says_nothing_is_an_error_of_the_file(tmp_path: Path) -> None:
    """As a conflict marker; ``adopt`` writes the lines anew, and no name is lost."""
    file = project(tmp_path, is_recorded=False)
    verbs.adopt(file)
    lines = tmp_path / ".regen/hand/locales/de.json"
    before = lines.read_bytes()
    lines.write_bytes(b"<<<<<<< HEAD\n" + before)

    (issue,) = file.open().file_issues
    assert (issue.code, issue.type_name) == ("LEDGER", None)
    assert "line 1" in issue.message
    verbs.adopt(file)

    assert file.open().file_issues == ()
    assert lines.read_bytes() == before


def test_a_text_that_git_could_not_join_keeps_its_author(tmp_path: Path) -> None:
    """One of the two sides wrote what stands there."""
    file = project(tmp_path)
    path = tmp_path / entry_name(file.place, "berth")
    entry = path.read_text("utf-8")
    other = entry.replace("claude-opus-5", "claude-haiku-4-5").replace("Liegeplatz", "Box")
    path.write_text(f"<<<<<<< HEAD\n{other}=======\n{entry}>>>>>>> other\n", "utf-8")

    verbs.adopt(file)

    assert entry_of(file, "berth").model == "claude-opus-5"
    assert codes(file.open()) == {}


def test_the_history_is_ignored_by_git_and_the_ledger_is_not(tmp_path: Path) -> None:
    """Each folder ignores itself, so that ``git add .regen`` adds what is to be committed."""
    file = project(tmp_path)
    write_json(file.path, {**GERMAN, "berth": "Platz {number}"})
    verbs.adopt(file)

    listed = project_in(tmp_path).git("ls-files").split()

    assert len([name for name in listed if name.startswith(".regen/units/")]) == 3
    assert len([name for name in listed if name.startswith(".regen/systems/")]) == 1
    assert not [name for name in listed if "history" in name or "locks" in name], listed
