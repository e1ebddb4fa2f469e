"""docs/functions.md: every setting it lists is one."""

import tomllib
from pathlib import Path

from pages import blocks

from pytest_regen.kinds.functions import function_kinds

PAGE = "docs/functions.md"


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    """Every key of the kind, and none besides."""
    table = tomllib.loads(blocks(PAGE, "toml")[1])["tool"]["pytest-regen"]["functions"]

    (kind,) = function_kinds(table, tmp_path)

    assert kind.files == ("src/acme/*.py",)
    assert "Raise ValueError for bad input." in kind.system
    assert "Allowed all the same: open, subprocess." in kind.system
