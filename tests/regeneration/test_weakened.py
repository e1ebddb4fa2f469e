"""A type that passes because less is tested is kept out of its store."""

from pathlib import Path

from store_factory import GOOD, make_store

from pytest_regen import CallableProvider
from pytest_regen.regeneration import TurnSettings, heal_store
from pytest_regen.stores import RegenStore

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


def test_what_stands_there_is_not_looked_at(tmp_path: Path) -> None:
    """A line that a person adopted fails no gate, and may stay in the next answer."""
    path = make_store(tmp_path / "store", {KEY: SILENT.replace('("name")', '("nmae")')}).path

    heal_store(path, settings=answering(SILENT), attempts=1)

    assert stored(path) == SILENT
