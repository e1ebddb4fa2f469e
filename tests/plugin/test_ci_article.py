"""What docs/ci.md shows is what happens."""

import pytest
from command_line import command
from pages import blocks
from plugin_project import Project

PAGE = "docs/ci.md"


def test_what_is_shown_is_what_is_printed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The annotation of a command, and the part of the job's page that pytest writes."""
    (console,) = blocks(PAGE, "console")
    (page,) = blocks(PAGE, "markdown")
    project.broken()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    first, _, annotation = console.strip().splitlines()
    assert first == "$ GITHUB_ACTIONS=true pytest-regen validate"

    assert annotation in command("validate").err.splitlines()

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "page.md"))
    project.run()
    assert (project.path / "page.md").read_text("utf-8").startswith(page.strip())
