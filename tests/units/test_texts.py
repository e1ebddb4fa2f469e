"""How two texts of a unit differ, in a few lines."""

import pytest

from pytest_regen.units.texts import difference

LONG = "a number that goes on " * 12


def shown(recorded: str, stands: str) -> list[str]:
    """Return what is shown of two texts."""
    return difference(("recorded", recorded), ("stands", stands))[1].splitlines()


@pytest.mark.parametrize(
    ("recorded", "stands", "lines"),
    [
        ("Ab {time}", "Ab um {time}", ['recorded: "Ab {time}"', 'stands:   "Ab um {time}"']),
        ("a\nb\nc\nd", "a\nb\nC\nd", ["--- recorded", "+++ stands", "- c", "+ C"]),
        ("-- a\nb", "b", ["--- recorded", "+++ stands", "- -- a"]),
        ("a\nb", "a\nb ", ["--- recorded", "+++ stands", "- b", '+ "b "']),
    ],
    ids=["one line", "many lines", "a comment of SQL", "a blank at the end"],
)
def test_what_differs_is_shown(recorded: str, stands: str, lines: list[str]) -> None:
    """Of one line both, of many those that differ."""
    assert shown(recorded, stands) == lines


def test_what_is_long_is_cut() -> None:
    """A line around the difference, a diff after a few lines."""
    old, new = shown(f"{LONG}end", f"{LONG}End")

    assert old.endswith('goes on end"')
    assert new.endswith('goes on End"')
    assert len(new) < 100
    assert shown("\n".join("abcdefghi"), "x\n" * 9)[-1].endswith(" more lines")
