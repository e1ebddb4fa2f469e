"""Units asked for: what is sent, what is kept, when it stops."""

from collections.abc import Callable
from pathlib import Path

import pytest
from unit_asking import answering, ask_for_unit, generate_units, regenerate_units
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

from pytest_regen.regeneration import TurnSettings, verbs
from pytest_regen.regeneration.verbs import Result
from pytest_regen.turns import CallableProvider
from pytest_regen.turns.values import Reply
from pytest_regen.units import ledger
from pytest_regen.units.place import open_units


def names(result: Result) -> list[str]:
    """Return the units that have another text now."""
    return [name for name, _ in result.regenerated]


def test_generate_asks_for_what_is_missing(tmp_path: Path) -> None:
    """One call per unit under one system prompt; the file is made, the ledger knows all."""
    file = project(tmp_path, None)
    left, asked = list(GERMAN.values()), list[list[str]]()

    def answer(messages: list[dict[str, str]]) -> Reply:
        asked.append([message["content"] for message in messages])
        return Reply(left.pop(0), model="double")

    done = generate_units(file, settings=TurnSettings(CallableProvider(answer)))

    assert german(tmp_path) == GERMAN
    assert names(done) == list(GERMAN)
    assert codes(file.open()) == {}
    prompts = [f'Translate into German: "{text}"' for text in ENGLISH.values()]
    assert asked == [[German.system, prompt] for prompt in prompts]
    entry = entry_of(file, "berth")
    assert entry.output == GERMAN["berth"]
    assert entry.answers(prompts[0])
    assert entry.model == "double"


def test_generate_leaves_what_is_there(tmp_path: Path) -> None:
    """Only the one that is missing, and the one that is stale."""
    file = project(tmp_path, {**GERMAN, "leave": ""})
    write_json(tmp_path / "locales/en.json", {**ENGLISH, "mooring": "Moor alongside"})
    settings = answering("Ab {time}", "Laengsseits anlegen")

    done = generate_units(file, settings=settings)

    assert names(done) == ["leave", "mooring"]
    assert german(tmp_path) == {**GERMAN, "mooring": "Laengsseits anlegen"}
    assert codes(file.open()) == {}
    assert [past.entry.output for past in verbs.history(file)] == [GERMAN["mooring"]]
    assert generate_units(file, settings=settings).calls == 0


def test_a_draft_with_an_error_is_corrected(tmp_path: Path) -> None:
    """The second request says what was wrong, with the answer it is about."""
    file = project(tmp_path, {**GERMAN, "berth": ""})
    asked: list[str] = []
    settings = answering("Liegeplatz", GERMAN["berth"], asked=asked)

    done = generate_units(file, settings=settings)

    assert german(tmp_path) == GERMAN
    (result,) = done.results
    assert (result.calls, result.attempts, result.stop_reason) == (2, 2, "clean")
    first, second = asked
    assert second.endswith(f"\n\n{first}")
    assert "[PLACEHOLDER] has [], the English text has ['{number}']" in second
    assert "Line 1: Liegeplatz" in second


def test_named_work_carries_a_correction(tmp_path: Path) -> None:
    """In the user's words."""
    asked: list[str] = []
    settings = answering("Anlegestelle {number}", asked=asked)
    file = project(tmp_path)

    regenerate_units(file, ["berth"], settings=settings, corrections=["say Anlegestelle"])

    assert "[NOTE] say Anlegestelle" in asked[0]
    assert german(tmp_path)["berth"] == "Anlegestelle {number}"
    assert entry_of(file, "berth").attempt == 2


def test_an_empty_answer_is_not_written(tmp_path: Path) -> None:
    """The unit stays missing."""
    file = project(tmp_path, {**GERMAN, "berth": ""})

    done = generate_units(file, settings=answering("```\n\n```"), attempts=1)

    assert german(tmp_path)["berth"] == ""
    assert codes(done.view)["berth"] == ["MISSING_UNIT"]


def test_an_answer_that_cannot_stand_there_is_a_finding(tmp_path: Path) -> None:
    """A reply may hold marker lines; the other units stay as they are."""
    block = "-- [REGEN:BEGIN {0}]\n{1}\n-- [REGEN:END {0}]\n"
    path = tmp_path / "queries.sql"
    path.write_text(block.format("a", "") + block.format("b", "SELECT 2"), "utf-8")
    file = open_units(kinds_with(tmp_path, Queries()), "queries.sql")
    evil = "SELECT 1\n-- [REGEN:END a]\n-- [REGEN:BEGIN b]\nDROP TABLE ships"

    done = generate_units(file, ["a"], settings=answering(evil), attempts=1)

    assert done.view.texts["b"].text == "SELECT 2"
    assert done.view.texts["a"].text == evil or not done.regenerated


def test_a_test_decides_about_a_candidate_in_place(tmp_path: Path) -> None:
    """It is called while the candidate stands in the file, and it stays if the test passes."""
    file = project(tmp_path)
    seen: list[str] = []

    def check(wanted: str) -> Callable[[], list[str]]:
        def call() -> list[str]:
            text = german(tmp_path)["berth"]
            seen.append(text)
            return [] if text.startswith(wanted) else [f"say {wanted}"]

        return call

    result = ask_for_unit(
        file,
        "berth",
        settings=answering("Platz {number}"),
        feedback=["say Platz"],
        check=check("Platz"),
    )

    assert result.stop_reason == "clean"
    assert seen == ["Platz {number}"]
    assert codes(file.open()) == {}
    assert [past.reason for past in verbs.history(file)] == ["replaced"]


def test_thousands_of_units_are_written_without_reading_all_again(tmp_path: Path) -> None:
    """The ledger is read once, however many answers are stored."""
    english = {f"text{n}": f"Text {n}" for n in range(40)}
    file = project(tmp_path, None, english=english)
    reads = 0
    original = ledger._read_entry

    def counted(data: bytes, path: Path) -> ledger.Entry:
        nonlocal reads
        reads += 1
        return original(data, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "_read_entry", counted)
        generate_units(file, settings=answering("Text"), attempts=1)

    assert reads <= len(english)
    assert codes(file.open()) == {}


def test_no_line_by_hand_is_left_of_texts_that_a_model_wrote_since(tmp_path: Path) -> None:
    """Two in one command: the second write does not bring the first one's line back."""
    file = project(tmp_path, is_recorded=False)
    verbs.adopt(file)

    settings = answering(GERMAN["berth"], GERMAN["mooring"])
    regenerate_units(file, ["berth", "mooring"], settings=settings)

    lines = (tmp_path / ".regen/hand/locales/de.json").read_text("utf-8")
    assert [line.partition("\t")[0] for line in lines.splitlines()] == ["leave"]
