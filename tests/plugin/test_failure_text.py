"""What a failing type shows."""

import re

import pytest
from plugin_project import Project
from store_factory import GOOD
from syrupy.assertion import SnapshotAssertion


def failures(result: pytest.RunResult) -> str:
    """Return the section of failures and all below it, without the times."""
    text = "\n".join(result.outlines)
    return re.sub(r"in \d+\.\d+s", "in …", text[text.index("= FAILURES =") :]).strip("=\n ")


def test_a_misspelt_field(project: Project, snapshot: SnapshotAssertion) -> None:
    """Unit, place, code, the lines with a caret, the stored prompt, the commands."""
    project.broken()

    assert failures(project.run()) == snapshot


def test_a_fault_on_the_second_page(project: Project, snapshot: SnapshotAssertion) -> None:
    """The command regenerates just that page."""
    wrong = GOOD["ProjectDataObject", 2].replace("List<string>", "List<Tag>")
    project.store(wrong={("ProjectDataObject", 2): wrong})

    assert failures(project.run()) == snapshot


def test_a_store_that_cannot_be_opened(project: Project, snapshot: SnapshotAssertion) -> None:
    """The error's own three lines."""
    (project.store() / "pages.json").unlink()

    text = failures(project.run()).replace(str(project.path), "<project>")

    assert text.partition("\n====")[0] == snapshot


def test_the_short_summary_names_the_first_error(project: Project) -> None:
    """One line per item, with code and message."""
    project.broken()

    result = project.run("--tb=no")

    result.stdout.fnmatch_lines(["FAILED generated/GET_v1_projects::Owner - *_FIELD: *"])


def test_a_folder_to_be_quoted_is_quoted_in_commands(project: Project) -> None:
    """What is printed can be pasted into a shell."""
    project.broken("GET_x[1] y")

    result = project.run()

    result.stdout.fnmatch_lines(["*pytest 'generated/GET_x?1? y::Owner' --regen"])
    result.stdout.fnmatch_lines(["*regenerate 'generated/GET_x?1? y' --type Owner --page 1"])
