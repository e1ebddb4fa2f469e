"""An answer that passes because less is tested is kept out, told about, and may be let in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unit_asking import (
    answering,
    ask_for_unit,
    generate_units,
    heal_units,
    regenerate_units,
)
from unit_work import GERMAN, German, codes, entry_of, project, write_json

from pytest_regen import Unit
from pytest_regen.regeneration import verbs
from pytest_regen.units.place import UnitFile
from pytest_regen.validation import Issue
from pytest_regen.validation.issues import FailedTest

SILENT = "Liegeplatz {number} <!-- vale off -->"
WRONG = {**GERMAN, "berth": "Liegeplatz"}


def text_of(file: UnitFile, name: str = "berth") -> str:
    """Return what stands in the file."""
    return file.open().texts[name].text


def test_it_replaces_nothing_and_the_correction_says_why(tmp_path: Path) -> None:
    """The next answer is right; the first is in the history with its issue."""
    file = project(tmp_path, WRONG)
    asked: list[str] = []

    done = heal_units(file, ["berth"], settings=answering(SILENT, GERMAN["berth"], asked=asked))

    assert text_of(file) == GERMAN["berth"]
    assert done.results[0].stop_reason == "clean"
    assert "[WEAKENED] adds 'vale off'" in asked[1]
    assert f"Line 1: {SILENT}" in asked[1]
    assert "silence no check of it" in asked[1]
    past = [entry for entry in verbs.history(file) if entry.reason == "rejected"]
    assert [issue.code for entry in past for issue in entry.issues] == ["WEAKENED"]


class Strict(German):
    """Has three errors in any text that is not polite."""

    def check(self, unit: Unit) -> Iterator[tuple[str, str]]:
        """Yield them."""
        if "bitte" not in unit.text:
            yield from (("CHECK", f"mistake {number}") for number in range(3))


@pytest.mark.parametrize("ask", [heal_units, regenerate_units])
def test_no_fall_of_errors_speaks_for_it(tmp_path: Path, ask: Callable[..., object]) -> None:
    """Three errors corrected and one check silenced: it is kept out all the same."""
    file = project(tmp_path, kind=Strict())

    ask(file, ["berth"], settings=answering("Liegeplatz, bitte <!-- vale off -->"), attempts=1)

    assert text_of(file) == GERMAN["berth"]


def test_a_test_that_passes_does_not_speak_for_it(tmp_path: Path) -> None:
    """A marked test is green with it; it is taken out again."""
    file = project(tmp_path)

    result = ask_for_unit(
        file,
        "berth",
        settings=answering(SILENT),
        feedback=["say Platz"],
        check=list,
    )

    assert text_of(file) == GERMAN["berth"]
    assert result.stop_reason == "attempts"


@pytest.mark.parametrize(
    ("text", "accept_any"),
    [("Liegeplatz", True), ("Liegeplatz <!-- vale off -->", False)],
    ids=["any answer is kept", "the old text has it too"],
)
def test_it_is_kept_where_nothing_is_lost(tmp_path: Path, text: str, *, accept_any: bool) -> None:
    """And then it is what stands there: nothing is compared any more."""
    file = project(tmp_path, {**GERMAN, "berth": text})

    done = heal_units(
        file, ["berth"], settings=answering(SILENT), accept_any=accept_any, attempts=1
    )

    assert text_of(file) == SILENT
    assert done.results[0].issues_after == ()
    assert codes(file.open()) == {}


def test_a_draft_and_a_stale_text_are_compared_with_nothing(tmp_path: Path) -> None:
    """There is nothing to lose, or what was asked for is another text now."""
    file = project(tmp_path, {**GERMAN, "berth": ""})
    generate_units(file, settings=answering(SILENT))
    assert text_of(file) == SILENT
    write_json(file.path.with_name("en.json"), {"berth": "Quay {number}", "mooring": "Moor"})
    stale = answering("Kai {number} <!-- vale off --> <!-- noqa -->")

    regenerate_units(file, ["berth"], settings=stale)

    assert text_of(file).startswith("Kai")


class Polite(German):
    """Says by itself what is a shortcut."""

    def weakens(self, old: Unit, new: Unit) -> Iterator[Issue | tuple[str, str] | str]:
        """Yield in each form there is."""
        if "bitte" in old.text and "bitte" not in new.text:
            yield "is no longer polite"
        if any("harbour" in test for test in new.tests):
            yield "RUDE", "knows the test"


def test_a_kind_says_what_weakens(tmp_path: Path) -> None:
    """Sentences are WEAKENED; it sees both texts, and the tests that asked."""
    file = project(tmp_path, {**GERMAN, "berth": "Liegeplatz bitte"}, kind=Polite())
    asked: list[str] = []
    test = FailedTest("[TEST] test_it fails", "def test_it():\n    assert harbour\n")

    ask_for_unit(
        file,
        "berth",
        settings=answering(GERMAN["berth"], asked=asked),
        feedback=[test],
        check=list,
        rounds=2,
    )

    assert text_of(file) == "Liegeplatz bitte"
    assert "[WEAKENED] is no longer polite" in asked[1]
    assert "[RUDE] knows the test" in asked[1]


class Careless(German):
    """Finds by itself that less is tested."""

    def check(self, unit: Unit) -> Iterator[tuple[str, str]]:
        """Yield it."""
        if "noqa" in unit.text:
            yield "WEAKENED", "silences a check"


def test_what_a_check_says_is_weaker_is_an_error_of_a_model_alone(tmp_path: Path) -> None:
    """Adopted as it is or not; by a person it is a warning, which a repair may keep."""
    file = project(tmp_path, {**GERMAN, "berth": "Platz # noqa"}, kind=Careless())

    verbs.adopt(file, ["berth"])
    assert [issue.severity for issue in file.open().issues("berth")] == ["error"]
    write_json(file.path, {**GERMAN, "berth": "Stelle # noqa"})
    verbs.adopt(file, ["berth"])

    assert entry_of(file, "berth").model == "hand"
    (issue,) = file.open().issues("berth")
    assert (issue.code, issue.severity) == ("WEAKENED", "warning")
    regenerate_units(file, ["berth"], settings=answering("Anleger # noqa"))
    assert text_of(file) == "Anleger # noqa"
