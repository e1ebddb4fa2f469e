"""``init``: a project's settings, its first types or functions, and a line for CI."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen.cli import output, starts
from pytest_regen.cli.config_files import Edit, add_lines
from pytest_regen.cli.output import AsJson, choose, say
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.starts import Start, StoreOptions
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.kinds.tongues import language_of
from pytest_regen.modes import TEMPLATE
from pytest_regen.settings_files import load_toml
from pytest_regen.text import shorten


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
            metavar='"METHOD /PATH"', help="One operation in place of all schemas with names."
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
        CiChoice | None, typer.Option(help="Workflow to write; github where .github is.")
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
    project = _project_here()
    _ = project.settings, project.pytest_settings  # What cannot be read is said first.
    asks = output.is_terminal() and not (yes or dry_run or as_json)
    if source is None:
        source = _find_source(project, asks=asks, takes_only=yes)
    options = StoreOptions(operation, language, out and Path(os.path.normpath(out)), provider)
    chooser = choose if asks else lambda _question, _choices: 0
    start = starts.find_start(project, source, options, units or (), chooser)
    project, edits, notes = _plan(project, start, ci)
    is_done = start.is_made and not edits
    # Taken now, because it tells of the files as they are before anything is written.
    report = _describe(start, edits, notes)
    if not as_json:
        _show(start, edits, notes)
    again = output.command_again(
        "init",
        source,
        operation=operation,
        language=language,
        out=out,
        ci=ci,
        provider=None if provider == TEMPLATE else provider,
        unit=units,
        yes=True,
    )
    code, following, is_written = 0, again, False
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


def _project_here() -> Project:
    """Return the project to set up, which does not reach beyond the repository of git.

    Raises:
        UsageError: pytest takes its settings from beyond it.
    """
    project, folder = Project.here(), Path.cwd()
    border = next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)
    if border is None or project.root not in border.parents:
        return project
    if project.pytest_settings is not None:
        path = short_path(border / "pyproject.toml")
        raise UsageError(
            f"pytest reads its settings from {short_path(project.pytest_settings[0])}, "
            "outside this repository",
            why=f"the repository begins at {border}, and init writes to nothing above it",
            hint=f"add a table [tool.pytest.ini_options] to {path}, then init again",
        )
    return Project(border)


def _plan(
    project: Project, start: Start, ci: CiChoice | None
) -> tuple[Project, Sequence[Edit], Sequence[str]]:
    """Return the project as it is to be, the edits that it lacks, and what is said beside them.

    Raises:
        UsageError: a file must not be written, or cannot be edited, or the settings could not be
            read afterwards.
    """
    stores = project.lacking(start.stores)
    table = project.edit_table({**({"stores": stores} if stores else {}), **start.settings})
    planned = project.after(table)
    _ = planned.kinds.files
    attributes = project.root / ".gitattributes"
    workflow, notes = _ci(project, ci)
    edits = [table, Edit(project.root, attributes, add_lines(*start.attributes)), *workflow]
    for edit in edits:
        edit.refuse()
    return planned, [edit for edit in edits if edit.is_needed], notes


def _describe(start: Start, edits: Sequence[Edit], notes: Sequence[str]) -> dict[str, Any]:
    """Return the plan as JSON."""
    paths = [short_path(edit.path).as_posix() for edit in edits]
    return {
        "begins_with": start.title,
        "is_made": start.is_made,
        "stores": [short_path(path).as_posix() for path in start.stores],
        "files": [
            {"path": path, "is_new": edit.is_new, "lines": [*edit.lines]}
            for path, edit in zip(paths, edits, strict=True)
        ],
        "notes": list(notes),
    }


def _show(start: Start, edits: Sequence[Edit], notes: Sequence[str]) -> None:
    """Show each line that is going to be written."""
    say(start.title)
    for edit in edits:
        say(f"{short_path(edit.path)}{' (new)' if edit.is_new else ''}")
        output.show_edit(edit.lines)
    if start.is_made and not edits:
        say("nothing to do: all of it is there", "green")
        return
    for note in notes:
        say(note)


# CI

_GITHUB: Final = """\
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
      - run: {install}
      - run: pytest
"""

_RUNS_PYTEST: Final = re.compile(r"\b(?:pytest|tox|nox)\b")

_GITLAB: Final = """\
pytest-regen:
  image: python:3.12
  script:
    - {install}
    - pytest
"""


def _ci(project: Project, ci: CiChoice | None) -> tuple[list[Edit], list[str]]:
    """Return the workflow to write, if any, and what is to be said of CI."""
    root = project.root
    if ci is None and (root / ".github").is_dir():
        ci = CiChoice.GITHUB
    install = _install_command(root)
    if ci is None:
        return [], [f"CI: {install}, then pytest"]
    if ci is CiChoice.NONE:
        return [], []
    is_github = ci is CiChoice.GITHUB
    folder = root / ".github" / "workflows"
    path = folder / "pytest-regen.yml" if is_github else root / ".gitlab-ci.yml"
    text = (_GITHUB if is_github else _GITLAB).format(install=install)
    if path.exists():
        if is_github or "pytest-regen" in path.read_text("utf-8", "replace"):
            return [], []
        lines = "".join(f"\n    {line}" for line in text.splitlines())
        return [], [f"CI: {short_path(path)} is there and stays as it is; it needs{lines}"]
    running = [
        short_path(workflow).as_posix()
        for workflow in (sorted(folder.glob("*.y*ml")) if is_github else ())
        if _RUNS_PYTEST.search(workflow.read_text("utf-8", "replace"))
    ]
    if running:
        verb = "runs pytest; let it" if len(running) == 1 else "run pytest; let them"
        return [], [f"CI: {shorten(running)} {verb} install 'pytest-regen[all]', too"]
    return [Edit(root, path, lambda present: present or text)], []


def _install_command(root: Path) -> str:
    """Return how CI installs what the tests of a project take, as far as its files say."""
    words = ["'pytest-regen[all]'"]
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-test.txt"):
        words += [f"-r {name}"] if (root / name).is_file() else []
    path = root / "pyproject.toml"
    table = load_toml(path).get("project") if path.is_file() else None
    if isinstance(table, dict) or (root / "setup.py").is_file():
        extras = table.get("optional-dependencies", {}) if isinstance(table, dict) else {}
        extra = next((name for name in ("test", "tests", "testing", "dev") if name in extras), None)
        words.append(f"-e '.[{extra}]'" if extra else "-e .")
    return f"pip install {' '.join(words)}"


# What a project has

_SKIPPED: Final = frozenset({"node_modules", "site-packages", "build", "dist", "__pycache__"})
_DEPTH: Final = 5
_MOST_FILES: Final = 20_000
"""Files that are looked at, because a person may start in a folder that holds a whole disk."""


def _find_source(project: Project, *, asks: bool, takes_only: bool) -> str:
    """Return what a person chooses among what the project has.

    Raises:
        UsageError: nobody can be asked, or there is nothing.
    """
    files = [path for path, _ in zip(_files(Path.cwd()), range(_MOST_FILES), strict=False)]
    sources = list(dict.fromkeys(_sources(project, files)))[:20]
    if not sources:
        functions = (f"{path.as_posix()}::{n}" for path in files for n in _functions_of(path)[1])
        example = next(functions, None)
        raise UsageError(
            f"nothing to begin with was found below {Path.cwd()}",
            why="there is no OpenAPI description, no function with an example (>>>) in its "
            "docstring, no catalogue of translations",
            hint=f"pytest-regen init {shlex.quote(example)}, or another function that has a test"
            if example
            else "add one of these, then pytest-regen init FILE",
        )
    if asks:
        return sources[choose("Begin with which?", sources)]
    if takes_only and len(sources) == 1:
        return sources[0]
    say("found in this project:")
    for source in sources:
        say(f"    pytest-regen init {shlex.quote(source)} --yes")
    raise UsageError(
        "init does not say what to begin with",
        hint=f"pytest-regen init {shlex.quote(sources[0])} --yes",
    )


def _sources(project: Project, files: Sequence[Path]) -> Iterator[str]:
    """Yield descriptions, then modules with examples, then catalogues."""
    claimed = {path.resolve() for path in (project.kinds.files if project.kinds else ())}
    free = [path for path in files if path.resolve() not in claimed]
    yield from (path.as_posix() for path in files if starts.is_description(path))
    yield from (path.as_posix() for path in free if _functions_of(path)[0])
    for path in [path for path in free if path.suffix == ".po"][:1]:
        yield starts.targets_of(path.as_posix())
    translated = {path.resolve() for path in starts.translated(project)}
    for path in files:
        is_english = (language_of(path) or "").partition("-")[0] == "en"
        if path.suffix == ".json" and is_english and path.resolve() not in translated:
            catalogues = [other for other in path.parent.glob("*.json") if language_of(other)]
            if len(catalogues) > 1 or path.parent.name in {"locales", "i18n", "translations"}:
                yield path.as_posix()


def _files(top: Path) -> Iterator[Path]:
    """Yield the files below a folder as they are seen from it."""
    for name, folders, files in os.walk(top):
        folder = Path(name)
        place = folder.relative_to(top)
        folders[:] = sorted(
            name
            for name in folders
            if len(place.parts) < _DEPTH
            and not name.startswith(".")
            and name not in _SKIPPED
            and not (folder / name / "pyvenv.cfg").exists()
            and not (folder / name / "pages.json").exists()
        )
        yield from (place / name for name in sorted(files))


def _functions_of(path: Path) -> tuple[list[str], list[str]]:
    """Return the functions with examples, and all, of a file that is a module and no test."""
    is_test = path.name.startswith("test_") or path.name.endswith("_test.py")
    is_other = is_test or path.suffix != ".py" or path.name in {"conftest.py", "setup.py"}
    if is_other or not path.is_file():  # A pipe would be waited for.
        return [], []
    try:
        return starts.functions_in(path)
    except (OSError, RegenError):
        return [], []
