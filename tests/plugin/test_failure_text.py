"""What a failing type shows."""

import re

import pytest
from plugin_project import Project
from syrupy.assertion import SnapshotAssertion


def failures(result: pytest.RunResult) -> str:
    """Return the section of failures and all below it, without the times."""
    text = "\n".join(result.outlines)
    return re.sub(r"in \d+\.\d+s", "in …", text[text.index("= FAILURES =") :]).strip("=\n ")


def test_a_misspelt_field(project: Project, snapshot: SnapshotAssertion) -> None:
    """Unit, place, code, the lines with a caret, the stored prompt, the commands."""
    project.broken()

    assert failures(project.run()) == snapshot


def test_an_edit_by_hand(project: Project, snapshot: SnapshotAssertion) -> None:
    """It is kept or dropped: regenerating would refuse to touch it."""
    path = project.store() / "ProjectDataObject.cs"
    before, begin, owner = path.read_text("utf-8").partition("BEGIN Owner")
    path.write_text(before + begin + owner.replace("? Name ", "? FullName "), "utf-8")

    assert failures(project.run()) == snapshot


def test_a_store_that_cannot_be_opened(project: Project, snapshot: SnapshotAssertion) -> None:
    (project.store() / "pages.json").unlink()

    text = failures(project.run()).replace(str(project.path), "<project>")

    assert text.partition("\n====")[0] == snapshot


def test_a_fault_around_the_blocks_is_not_regenerated(project: Project) -> None:
    """The failure names the line to put back; nothing is asked for, and no circle is walked."""
    store = project.store()
    source = store / "ProjectDataObject.cs"
    using = "using System.Text.Json.Serialization;\n"
    source.write_text(source.read_text("utf-8").replace(using, ""), "utf-8")
    project.answered_by("Good")

    result = project.run("--regen")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*ProjectDataObject.cs:1: MISSING_USING: the file lacks *"])
    result.stdout.no_fnmatch_line("next: *--regen*")
    result.stdout.no_fnmatch_line("*regenerate: *")
