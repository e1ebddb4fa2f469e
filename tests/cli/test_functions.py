"""Commands on modules with functions: a function that is there becomes a unit."""

from pathlib import Path

import pytest
from command_line import command

from pytest_regen import sandbox

FILE = "src/acme/tides.py"
MODULE = '''\
def height(hour):
    """Return the height of the tide.

    >>> height(3)
    6
    """
    return 2 * hour
'''
SETTINGS = '[tool.pytest-regen]\nfunctions = ["src/acme/*.py"]\n'

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a function of the user's own, as the working directory."""
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).write_text(MODULE, "utf-8")
    (tmp_path / "pyproject.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [(f"{FILE}::height",), (FILE, "--unit", "height")])
def test_a_function_that_is_there_becomes_a_unit(here: Path, words: tuple[str, ...]) -> None:
    """Its body gets the markers, and is recorded as written by hand; twice changes nothing."""
    assert command("adopt", *words).code == 0
    made = (here / FILE).read_text("utf-8")
    assert command("adopt", *words).code == 0

    marked = "    # [REGEN:BEGIN height]\n    return 2 * hour\n    # [REGEN:END height]\n"
    assert made == MODULE.replace("    return 2 * hour\n", marked)
    assert (here / FILE).read_text("utf-8") == made
    assert "1 unit, no errors" in command("validate", FILE).err


def test_a_file_that_the_settings_do_not_name(here: Path) -> None:
    """The error has the line to write."""
    (here / "pyproject.toml").write_text("[tool.pytest-regen]\n", "utf-8")

    done = command("adopt", f"{FILE}::height")

    assert done.code == 2
    assert f'write `functions = ["{FILE}"]` below [tool.pytest-regen]' in done.err
    assert (here / FILE).read_text("utf-8") == MODULE


def test_a_function_that_is_not_there(here: Path) -> None:
    """The error lists those there are."""
    done = command("adopt", f"{FILE}::hight")

    assert done.code == 2
    assert "no function 'hight'" in done.err
    assert (here / FILE).read_text("utf-8") == MODULE
