"""What docs/commands.md lists is what the commands take."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import command
from pages import blocks, sessions
from typer.main import get_command

from pytest_regen import __version__
from pytest_regen.cli.app import COMMANDS, app
from pytest_regen.turns.values import DEFAULT_MODEL

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text("utf-8")
SHARED = PAGE.partition("share these:")[2].partition("\n\n`generate")[0]


def options_of(name: str) -> set[str]:
    """Return the options that a command takes, but for those that all take."""
    group = get_command(app)
    found = group.get_command(None, name)  # type: ignore[attr-defined]  # a class of typer's
    return {option for one in found.params for option in one.opts if option.startswith("--")} - {
        "--help",
        "--json",
    }


def listed(text: str) -> set[str]:
    """Return the options that have a row of their own."""
    cells = re.findall(
        r"^\|(?: `\w+ DIR…?` \|| `emulator` \|| \|)? `(--[\w-]+)", text, re.MULTILINE
    )
    return set(cells)


@pytest.mark.parametrize("name", ["generate", "regenerate"])
def test_every_option_of_a_command_that_asks_has_a_row(name: str) -> None:
    """Those of its own, and those that both share."""
    own = PAGE.partition(f"\n`{name} ")[2].partition("\n\n`")[0].partition("\n\nThe others")[0]

    assert listed(own) | listed(SHARED) == options_of(name)


def test_every_option_of_the_others_has_a_row() -> None:
    """Each below its command."""
    rows = PAGE.partition("The others:")[2].partition("\n## ")[0]
    parts = re.split(r"^\| `(\w+)", rows, flags=re.MULTILINE)
    groups = {"cassettes", "review"}
    found = {
        name: set(re.findall(r"`(--[\w-]+)", part))
        for name, part in zip(parts[1::2], parts[2::2], strict=True)
        if name not in groups
    }

    others = [name for name in COMMANDS if name not in {"generate", "regenerate", *groups}]
    assert found == {name: options_of(name) for name in others}


@pytest.mark.usefixtures("api")
def test_what_asking_costs_is_shown_as_it_is(document: Path) -> None:
    """But for numbers and times: prompts are reworded, prices change."""
    assert command("generate", document, "GET /kites", "--out", "generated").code == 0
    document.write_text(document.read_text("utf-8").replace('"name"', '"title"'), "utf-8")
    *_, block = blocks("docs/commands.md", "console")

    for words, shown in sessions(block):
        ran = command(*shlex.split(words)[1:])

        assert ran.code == 0
        assert [masked(line) for line in ran.err.splitlines()] == [masked(line) for line in shown]


def masked(line: str) -> str:
    """Return a line without its numbers and the space around it."""
    return re.sub(r"\d[\d,.:TZ-]*", "N", " ".join(line.split()))


def test_the_default_model_is_named() -> None:
    """The last of those who may be asked."""
    assert f"else `{DEFAULT_MODEL}`" in " ".join(PAGE.split())


def test_the_version_is_shown() -> None:
    """On stdout, for a script to read."""
    ran = command("--version")

    assert (ran.code, ran.out, ran.err) == (0, f"pytest-regen {__version__}\n", "")
