"""docs/functions.md: what the page shows works as shown."""

import tomllib
from pathlib import Path

import pytest
from pages import blocks, printed, sessions
from plugin_project import emulated

from pytest_regen import sandbox
from pytest_regen.kinds.functions import function_kinds

PAGE = "docs/functions.md"
ANSWER = """\
hours, _, minutes = text.replace(" ", "").rpartition("h")
return int(hours or 0) * 60 + int(minutes.rstrip("m") or 0)
"""
TIDES = '''\
def height(hour):
    """Return the height of the tide.

    >>> height(3)
    6
    """
    return 2 * hour
'''

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


def shows(lines: list[str], shown: list[str]) -> None:
    """Hold what the page shows of a session against what was printed, but for blanks."""
    text = [" ".join(line.split()) for line in lines]
    missing = [
        line
        for line in shown
        if line != "…" and not any(" ".join(line.split()) in output for output in text)
    ]
    assert not missing, "\n".join(lines)


def test_the_start_works_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stub is filled and gated; a function that was there is adopted and gated."""
    module, settings = blocks(PAGE, "python")[0], blocks(PAGE, "toml")[0]
    (tmp_path / "src" / "acme").mkdir(parents=True)
    (tmp_path / "src" / "acme" / "durations.py").write_text(module, "utf-8")
    (tmp_path / "pyproject.toml").write_text(settings, "utf-8")
    told = [session for block in blocks(PAGE, "console") for session in sessions(block)]

    with emulated(monkeypatch, lambda _: f"```python\n{ANSWER}```"):
        for command, shown in told[:2]:
            shows(printed(command, tmp_path), shown)
    (tmp_path / "src" / "acme" / "tides.py").write_text(TIDES, "utf-8")
    for command, shown in told[2:]:
        shows(printed(command, tmp_path), shown)

    assert len(told) == 4
    assert sum(bool(line.strip()) for line in f"{module}{settings}".splitlines()) <= 20


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    """Every key of the kind, and none besides."""
    table = tomllib.loads(blocks(PAGE, "toml")[1])["tool"]["pytest-regen"]["functions"]

    (kind,) = function_kinds(table, tmp_path)

    assert kind.files == ("src/acme/*.py",)
    assert "Raise ValueError for bad input." in kind.system
    assert "Allowed all the same: open, subprocess." in kind.system
