"""A type that passes because less is tested is kept out of its store."""

from pathlib import Path

import pytest
from store_asking import heal_type
from store_factory import GOOD, make_store

from pytest_regen import CallableProvider
from pytest_regen.regeneration import TurnSettings, heal_store, partial_regenerate
from pytest_regen.stores import RegenStore
from pytest_regen.validation.stores import validate_store

KEY = ("ProjectDataObject", 1)
WRONG = GOOD[KEY].replace('("name")', '("nmae")')
SILENT = GOOD[KEY].replace("public class", "#pragma warning disable CS8618\npublic class")
ASKED: list[str] = []


def answering(*replies: str) -> TurnSettings:
    """Return settings whose model says ``replies`` one after the other, the last for ever."""
    left = list(replies)
    ASKED.clear()

    def answer(messages: list[dict[str, str]]) -> str:
        ASKED.append(messages[-1]["content"])
        return left.pop(0) if len(left) > 1 else left[0]

    return TurnSettings(CallableProvider(answer))


def stored(path: Path) -> str:
    """Return what is stored for the page."""
    return RegenStore.open(path).pages_of(KEY[0])[0].output


def test_it_replaces_nothing_and_the_correction_says_why(tmp_path: Path) -> None:
    """It goes to the page at fault, with its line; the next answer is right."""
    path = make_store(tmp_path / "store", {KEY: WRONG}).path

    heal_store(path, settings=answering(SILENT, GOOD[KEY]), attempts=2)

    assert stored(path) == GOOD[KEY]
    assert "[WEAKENED] adds '#pragma warning disable CS8618'" in ASKED[1]
    assert "Line 1: #pragma warning disable CS8618" in ASKED[1]
    assert len(ASKED) == 2


@pytest.mark.parametrize("way", ["heal", "test", "named"])
def test_no_way_of_asking_keeps_it(tmp_path: Path, way: str) -> None:
    """Errors fall and a test is green; it is kept out all the same."""
    path = make_store(tmp_path / "store", {KEY: WRONG}).path
    said = answering(SILENT)

    if way == "heal":
        heal_store(path, settings=said, attempts=1)
    elif way == "test":
        heal_type(path, KEY[0], settings=said, feedback=["no"], check=lambda: ())
    else:
        partial_regenerate(path, [KEY[0]], {KEY[0]: [1]}, settings=said)

    assert stored(path) == WRONG


@pytest.mark.parametrize("options", [{"accept_any": True}, {"ignore": ["WEAKENED"]}])
def test_it_is_kept_where_that_is_asked_for(tmp_path: Path, options: dict[str, object]) -> None:
    """By ``accept_any``, or where the project ignores the code; then nothing is wrong with it."""
    path = make_store(tmp_path / "store", {KEY: WRONG}).path

    partial_regenerate(path, [KEY[0]], {KEY[0]: [1]}, settings=answering(SILENT), **options)  # type: ignore[arg-type]

    assert stored(path) == SILENT
    assert not validate_store(RegenStore.open(path))[KEY[0]].has_errors


def test_what_stands_there_is_not_looked_at(tmp_path: Path) -> None:
    """A line that a person adopted fails no gate, and may stay in the next answer."""
    path = make_store(tmp_path / "store", {KEY: SILENT.replace('("name")', '("nmae")')}).path

    heal_store(path, settings=answering(SILENT), attempts=1)

    assert stored(path) == SILENT
