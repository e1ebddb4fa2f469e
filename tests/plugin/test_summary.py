"""The section at the end of a run."""

import re

import pytest
from plugin_project import Project
from syrupy.assertion import SnapshotAssertion


def section(result: pytest.RunResult) -> str:
    """Return our section and the line below it, without the times."""
    text = "\n".join(result.outlines)
    return re.sub(r"in \d+\.\d+s", "in …", text[text.index("= regen =") :]).strip("=\n ")


def test_a_regenerated_type(project: Project, snapshot: SnapshotAssertion) -> None:
    """Pages, calls, tokens, the diff, what changed and the next command."""
    project.broken()
    project.answered_by("Good")

    assert section(project.run("--regen")) == snapshot


def test_a_type_that_could_not_be_mended(project: Project, snapshot: SnapshotAssertion) -> None:
    """The stop reason in words and the next command."""
    project.broken()
    project.answered_by("Stubborn")

    assert section(project.run("--regen")) == snapshot


def test_nothing_to_tell_is_no_section(project: Project) -> None:
    """A green gate is silent."""
    project.store()

    project.run("--regen").stdout.no_fnmatch_line("*= regen =*")


def test_warnings_are_told_and_do_not_fail(project: Project) -> None:
    """A stale type passes; the summary says that it is stale."""
    path = project.store() / "ir.json"
    path.write_text(path.read_text("utf-8").replace('"closed"', '"shut"'), "utf-8")

    result = project.run("--regen", f"{path.parent.relative_to(project.path)}::Owner")

    assert result.ret == 0
