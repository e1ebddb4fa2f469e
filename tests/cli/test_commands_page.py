"""What docs/commands.md says is what the commands do."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import command
from pages import blocks, sessions

from pytest_regen import __version__
from pytest_regen.turns.values import DEFAULT_MODEL

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text("utf-8")


@pytest.mark.usefixtures("api")
def test_what_asking_costs_is_shown_as_it_is(document: Path) -> None:
    """But for numbers and times: prompts are reworded, prices change."""
    assert command("generate", document, "GET /kites", "--out", "generated").code == 0
    document.write_text(document.read_text("utf-8").replace('"name"', '"title"'), "utf-8")
    *_, block = blocks("docs/commands.md", "console")

    for words, shown in sessions(block):
        ran = command(*shlex.split(words)[1:])

        assert ran.code == 0
        assert [masked(line) for line in ran.told.splitlines()] == [masked(line) for line in shown]


def masked(line: str) -> str:
    """Return a line without its numbers and the space around it."""
    return re.sub(r"\d[\d,.:TZ-]*", "N", " ".join(line.split()))


def test_the_default_model_is_named() -> None:
    assert f"`{DEFAULT_MODEL}`" in PAGE.partition("## Who answers")[2].partition("\n## ")[0]


def test_the_version_is_shown() -> None:
    """On stdout, for a script to read."""
    ran = command("--version")

    assert (ran.code, ran.out, ran.err) == (0, f"pytest-regen {__version__}\n", "")
