"""``init``: a project's settings, its first types or functions, and a line for CI."""

import os
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen.cli import output, starts
from pytest_regen.cli.config_files import Edit, add_lines
from pytest_regen.cli.output import AsJson, say
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.starts import Start, StoreOptions
from pytest_regen.errors import UsageError
from pytest_regen.modes import TEMPLATE


class CiChoice(StrEnum):
    """Whose workflow is to be written."""

    GITHUB = "github"
    GITLAB = "gitlab"
    NONE = "none"


def init(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="API description or JSON Schema; Python file, FILE.py::FUNCTION; or catalogue of "
            "translations. Without one, what the project has is listed.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    operation: Annotated[
        str | None,
        typer.Option(
            metavar='"METHOD /PATH"', help="One operation instead of all schemas with names."
        ),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Target language; by default that of the project, or python.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of stores (generated), or catalogue to make.")
    ] = None,
    units: Annotated[
        list[str] | None,
        typer.Option("--unit", help="This function; repeatable. By default those with examples."),
    ] = None,
    ci: Annotated[
        CiChoice | None, typer.Option(help="Workflow to write; by default one line is shown.")
    ] = None,
    provider: Annotated[
        str, typer.Option(help="Who writes the types; template takes no model, and no key.")
    ] = TEMPLATE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set a project up: settings, and the first types or functions, so that pytest tests them.

    Shows every line before it is written. Run again it adds only what is missing.
    """
    project, folder = Project.here(), Path.cwd()
    # Not beyond the repository of git, because what lies around it is another project.
    border = next((f for f in (folder, *folder.parents) if (f / ".git").exists()), project.root)
    project = Project(border) if project.root in border.parents else project
    _ = project.settings, project.pytest_settings  # What cannot be read is said first.
    chosen = [] if source else [_only_source(starts.sources(project), is_enough=yes)]
    source = source or chosen[0]
    options = StoreOptions(operation, language, out and Path(os.path.normpath(out)), provider)
    start = starts.find_start(project, source, options, units or ())
    project, edits = _plan(project, start, ci)
    is_done = start.is_made and not edits
    # Taken now, because it tells of the files as they are before anything is written.
    report: dict[str, Any] = {
        "begins_with": start.title,
        "is_made": start.is_made,
        "stores": [short_path(path).as_posix() for path in start.stores],
        "files": [
            {
                "path": short_path(edit.path).as_posix(),
                "is_new": edit.is_new,
                "lines": [*edit.lines],
            }
            for edit in edits
        ],
        "notes": [],
    }
    if not as_json:
        _show(start, edits)
        if ci is None and not is_done:
            say(f"CI: {_INSTALL}, then pytest")
    code, following, is_written = 0, output.command_again(*chosen, "--yes"), False
    # Nobody is asked in a dry run, because the answer could not make a difference.
    asks = output.is_terminal() and not (dry_run or as_json)
    if is_done:
        following = start.following()
    elif not dry_run and (yes or (asks and output.confirm("Do this?", default=True))):
        code = _carry_out(project, start, edits)
        following, is_written = start.following() if code < 2 else "", True
    elif not (asks or dry_run):
        code = 2
        if not as_json:
            why = "init asks before it writes, and there is no terminal"
            output.fail("nothing was written", why=why)
    if as_json:
        sums = {"written": is_written, "ok": code == 0, "next": following or None}
        output.emit_json({**report, **sums})
    elif following:
        output.next_step(following)
    raise typer.Exit(code)


def _only_source(sources: Sequence[str], *, is_enough: bool) -> str:
    """Return the one thing to begin with.

    Raises:
        UsageError: there is none, or more than one: they are listed.
    """
    if not sources:
        raise UsageError(
            f"nothing to begin with was found below {Path.cwd()}",
            why="there is no OpenAPI description, no function with an example (>>>) in its "
            "docstring, no catalogue of translations",
            hint="add one of these, then pytest-regen init FILE; or name a function that has a "
            "test: pytest-regen init FILE.py::NAME",
        )
    if is_enough and len(sources) == 1:
        return sources[0]
    say("found in this project:")
    for source in sources:
        say(f"    pytest-regen init {shlex.quote(source)} --yes")
    raise UsageError(
        "init does not say what to begin with",
        hint=f"pytest-regen init {shlex.quote(sources[0])} --yes",
    )


def _plan(project: Project, start: Start, ci: CiChoice | None) -> tuple[Project, Sequence[Edit]]:
    """Return the project as it is to be, and the edits that it lacks.

    Raises:
        UsageError: a file must not be written, or cannot be edited, or the settings could not be
            read afterwards.
    """
    stores = project.lacking(start.stores)
    table = project.edit_table({**({"stores": stores} if stores else {}), **start.settings})
    planned = project.after(table)
    # Read now, because a kind that cannot be loaded stops this before anything is written.
    _ = planned.kinds.files
    edits = [
        table,
        Edit(project.root, project.root / ".gitattributes", add_lines(*start.attributes)),
    ]
    if ci in _WORKFLOWS:
        name, text = _WORKFLOWS[ci]
        # One that is there stays, because a workflow holds what a team has worked out.
        edits.append(Edit(project.root, project.root / name, lambda present: present or text))
    return planned, [edit for edit in edits if edit.is_needed]


def _carry_out(project: Project, start: Start, edits: Sequence[Edit]) -> int:
    """Make what there is to begin with, and write the files; return the exit code."""
    # Settings first, because locks lie below the root that they make; but for the globs of stores,
    # because one that matches nothing stops pytest: a killed run leaves a project that works.
    first = project.edit_table(start.settings)
    before = None if first.is_new else first.text()
    first.write()
    code = 2
    try:
        code = start.make(project)
    finally:
        if code > 1:
            first.undo(before)
    for edit in edits if code < 2 else ():
        edit.write()
    return code


def _show(start: Start, edits: Sequence[Edit]) -> None:
    """Show each line that is going to be written."""
    say(start.title)
    for edit in edits:
        say(f"{short_path(edit.path)}{' (new)' if edit.is_new else ''}")
        output.show_edit(edit.lines)
    if start.is_made and not edits:
        say("nothing to do: all of it is there", "green")


_INSTALL: Final = "pip install 'pytest-regen[all]'"
_GITHUB: Final = f"""\
name: pytest-regen
on: [push, pull_request]
permissions:
  contents: read
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: {_INSTALL}  # and what the tests of the project need
      - run: pytest
"""
_GITLAB: Final = f"""\
pytest-regen:
  image: python:3.12
  script:
    - {_INSTALL}  # and what the tests of the project need
    - pytest
"""
_WORKFLOWS: Final = {
    CiChoice.GITHUB: (".github/workflows/pytest-regen.yml", _GITHUB),
    CiChoice.GITLAB: (".gitlab-ci.yml", _GITLAB),
}
"""The file of each, which stays as it is where it is there."""
