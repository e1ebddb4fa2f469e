"""``review`` at a terminal: a candidate after the other, each with a question."""

from pathlib import Path

import pytest
from command_line import at_terminal, command
from review_work import FILE, TRANSLATOR, WRONG, german, write_project
from unit_work import GERMAN, write_json


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which candidates wait for two strings."""
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, monkeypatch)
    command("regenerate", FILE, "--from-errors", "--pending", *TRANSLATOR)
    return tmp_path


def test_each_is_shown_and_asked_about(here: Path) -> None:
    """Accepted with a letter, skipped with Enter; what was decided stays decided."""
    seen = at_terminal("review", cwd=here, typed="accept\n\n")

    assert seen.code == 1
    lines = seen.err.splitlines()
    assert any(line.startswith("1 of 2") for line in lines)
    assert any("berth" in line and "Liegeplatz {number}" in line for line in lines)
    assert "  was wrong   [PLACEHOLDER]" in seen.err
    assert "  accepted    locales/de.json::berth" in seen.err
    assert "1 accepted, 0 rejected, 1 left" in seen.err
    assert german(here) == {**GERMAN, "leave": WRONG["leave"]}
    assert command("review", "--check").code == 1


def test_what_no_longer_fits_cannot_be_accepted(here: Path) -> None:
    """The reason stands there; it can be rejected. After q nothing more is asked."""
    write_json(here / FILE, {**WRONG, "berth": "Platz {number}"})

    seen = at_terminal("review", cwd=here, typed="a\nq\n")
    rest = at_terminal("review", cwd=here, typed="r\nr\n")

    assert (seen.code, "not now" in seen.err) == (1, True)
    assert "it was edited by hand" in seen.err
    assert "0 accepted, 0 rejected, 2 left" in seen.err
    assert (rest.code, "0 accepted, 2 rejected, 0 left" in rest.err) == (0, True)
    assert german(here)["leave"] == WRONG["leave"]
