"""How two texts of a unit differ, in a few lines."""

from pathlib import Path
from textwrap import indent

import pytest
from unit_work import kinds_with, record

from pytest_regen import Kind, Unit, regions
from pytest_regen.units.place import open_units
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


def test_the_line_of_drift_is_the_line_that_changed(tmp_path: Path) -> None:
    """Not the first of the region."""
    body = "digits = text.strip()\nif not digits:\n    return 0\nreturn int(digits)\n"
    module = "def f(text):\n    # [REGEN:BEGIN f]\n{}    # [REGEN:END f]\n"
    path = tmp_path / "f.py"

    class Bodies(Kind):
        """Blocks between markers."""

        files = "f.py"
        region = regions.Marked()
        system = "s"

        def prompt(self, unit: Unit) -> str:
            """The order."""
            return f"Write {unit.name}"

    def write(text: str) -> None:
        path.write_text(module.format(indent(text, "    ")), "utf-8")

    write(body)
    file = open_units(kinds_with(tmp_path, Bodies()), path)
    record(file)
    write(body.replace("int(digits)", "int(digits, 8)"))

    (drift,) = file.open().issues("f")
    assert (drift.code, drift.line) == ("DRIFT", 6)
    assert drift.detail == (
        "--- recorded\n+++ stands\n- return int(digits)\n+ return int(digits, 8)"
    )
