"""docs/review.md: the sessions, in their order, show what pytest and the commands say."""

import re
import shlex
import sys

import pytest
from command_line import command
from pages import ROOT, blocks, sessions
from plugin_project import emulated
from unit_project import UnitProject, translate
from unit_work import GERMAN

from pytest_regen.cli.review import review

PAGE = "docs/review.md"


def is_shown(lines: list[str], shown: list[str]) -> bool:
    """Return whether output has the lines of a page; ``…`` stands for any text or lines."""
    pattern = ""
    for line in shown:
        pattern += r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
    return re.search(rf"^{pattern}", "\n".join([*lines, ""]), re.MULTILINE) is not None


def test_the_sessions_are_what_is_shown(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate is left by pytest, listed, shown and accepted; then the item passes."""
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    project = UnitProject(pytester)
    project.write(german={**GERMAN, "berth": "Liegeplatz"})
    command("adopt", project.german_file)
    parts = [part for block in blocks(PAGE, "console") for part in sessions(block)]

    assert len(parts) == 5
    for words, shown in parts:
        program, *args = shlex.split(words)
        if program == "pytest":
            with emulated(monkeypatch, translate):
                lines = project.run(*args).stdout.lines
        else:
            lines = command(*args).err.splitlines()
        assert is_shown([line.strip() for line in lines], shown), "\n".join(lines)


def test_the_commands_are_those_there_are() -> None:
    """The table of scripts has each of them."""
    text = (ROOT / PAGE).read_text("utf-8")
    named = {
        each.name or getattr(each.callback, "__name__", "") for each in review.registered_commands
    }

    assert named - {"candidates"} == {"list", "show", "accept", "reject"}
    assert all(f"| `review {name}" in text for name in named - {"candidates"})
