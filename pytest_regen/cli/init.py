"""``init``: a project's settings, its first types or functions, and a line for CI."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen.cli.config_files import Edit, add_lines
from pytest_regen.cli.output import (
    AsJson,
    choose,
    confirm,
    emit_json,
    fail,
    is_terminal,
    next_step,
    say,
    show_edit,
)
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.starts import Start, StoreOptions, find_start, functions_in, targets_of
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.kinds.tongues import language_of
from pytest_regen.kinds.translation import Translation
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
            help="OpenAPI or Swagger document or JSON Schema; a Python file, also as "
            "FILE.py::FUNCTION; or a catalogue of translations (.json, .arb, .po). Without one, "
            "what the project has is listed.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    operation: Annotated[
        str | None,
        typer.Option(
            "--operation",
            metavar='"METHOD /PATH"',
            help="Operation to begin with; by default the first that can be read.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", help="Target language; by default python in a project without stores."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder that holds a folder per operation (default: generated); of a catalogue, "
            "the catalogue to make.",
        ),
    ] = None,
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            metavar="NAME",
            help="This function; may be repeated. By default those with examples.",
        ),
    ] = None,
    ci: Annotated[
        CiChoice | None,
        typer.Option(
            "--ci", help="Workflow to write; by default github where there is a folder .github."
        ),
    ] = None,
    provider: Annotated[
        str,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="Who writes the types; template takes no model, and no key.",
        ),
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
    asks = is_terminal() and not (yes or dry_run or as_json)
    if source is None:
        source = _find_source(project, asks=asks, takes_only=yes)
    out = Path(os.path.normpath(out)) if out else None
    start = find_start(
        project,
        source,
        options=StoreOptions(operation, language, out or Path("generated"), provider),
        units=units or (),
        out=out,
        choose=choose if asks else lambda _question, _choices: 0,
    )
    plan = _Plan.of(project, start, ci)
    kept: dict[str, Any] = {"--operation": operation, "--language": language, "--out": out}
    kept |= {"--ci": ci, "--provider": provider if provider != TEMPLATE else None}
    words = [word for option, value in kept.items() if value for word in (option, str(value))]
    words += [word for name in units or () for word in ("--unit", name)]
    again = shlex.join(["pytest-regen", "init", source, *words, "--yes"])
    if as_json:
        _ = plan.report
    else:
        plan.show()
    if plan.is_done:
        _finish(plan, 0, start.following(), as_json=as_json)
    if dry_run:
        _finish(plan, 0, again, as_json=as_json)
    if not yes and not (asks and confirm("Do this?", default=True)):
        if not as_json and not asks:
            fail("nothing was written", why="init asks before it writes, and there is no terminal")
        _finish(plan, 0 if asks else 2, again, as_json=as_json)
    code = plan.carry_out()
    _finish(plan, code, start.following() if code < 2 else "", as_json=as_json, is_written=True)


def _project_here() -> Project:
    """Return the project to set up, which does not reach beyond the repository of git.

    Raises:
        UsageError: pytest takes its settings from beyond it.
    """
    project, here = Project.here(), Path.cwd()
    border = next((each for each in (here, *here.parents) if (each / ".git").exists()), None)
    if border is None or project.root not in border.parents:
        return project
    if project.pytest_settings is not None:
        path = border / "pyproject.toml"
        raise UsageError(
            f"pytest reads its settings from {short_path(project.pytest_settings[0])}, "
            "outside this repository",
            why=f"the repository begins at {border}, and init writes to nothing above it",
            hint=f"add a table [tool.pytest.ini_options] to {short_path(path)}, then init again",
        )
    return Project(border)


def _finish(
    plan: "_Plan", code: int, following: str, *, as_json: bool, is_written: bool = False
) -> None:
    """Say the next command, or the whole as JSON, and end the command."""
    if as_json:
        emit_json(
            {**plan.report, "written": is_written, "ok": code == 0, "next": following or None}
        )
    elif following:
        next_step(following)
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Plan:
    """What is to be written, and shown before."""

    start: Start
    project: Project
    """As it is once the edits are made."""
    edits: Sequence[Edit]
    notes: Sequence[str]

    @classmethod
    def of(cls, project: Project, start: Start, ci: CiChoice | None) -> "_Plan":
        """Return the plan of a project.

        Raises:
            UsageError: a file must not be written, or cannot be edited, or the settings could not
                be read afterwards.
        """
        lacking = project.lacking(start.stores)
        table = project.edit_table({**({"stores": lacking} if lacking else {}), **start.settings})
        planned = project.after(table)
        _ = planned.kinds.files
        attributes = project.root / ".gitattributes"
        workflow, notes = _ci(project, ci)
        edits = [table, Edit(project.root, attributes, add_lines(*start.attributes)), *workflow]
        for edit in edits:
            edit.refuse()
        return cls(start, planned, [edit for edit in edits if edit.is_needed], notes)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do."""
        return self.start.is_made and not self.edits

    @cached_property
    def files(self) -> Sequence[tuple[Path, bool, Sequence[str]]]:
        """The files that change, whether each is new, and its lines; as they are now."""
        return [(short_path(edit.path), edit.is_new, [*edit.lines]) for edit in self.edits]

    @cached_property
    def report(self) -> dict[str, Any]:
        """As JSON, as it is now."""
        return {
            "begins_with": self.start.title,
            "is_made": self.start.is_made,
            "stores": [short_path(path).as_posix() for path in self.start.stores],
            "files": [
                {"path": path.as_posix(), "is_new": is_new, "lines": lines}
                for path, is_new, lines in self.files
            ],
            "notes": list(self.notes),
        }

    def show(self) -> None:
        """Show each line that is going to be written."""
        say(self.start.title)
        for path, is_new, lines in self.files:
            say(f"{path}{' (new)' if is_new else ''}")
            show_edit(lines)
        if self.is_done:
            outdated = [short_path(path).as_posix() for path in self.start.outdated]
            if outdated:
                verb = "is" if len(outdated) == 1 else "are"
                say(f"all of it is there; {shorten(outdated)} {verb} older than the description")
            else:
                say("nothing to do: all of it is there", "green")
        else:
            for note in self.notes:
                say(note)

    def carry_out(self) -> int:
        """Make it, and write the files; return the exit code."""
        # Stores are named once they are there: a run that is killed leaves settings that hold.
        first = self.project.edit_table(self.start.settings)
        before = None if first.is_new else first.text()
        first.write()
        code = 2
        try:
            code = self.start.make(self.project)
        finally:
            if code > 1:
                first.undo(before)
        for edit in self.edits if code < 2 else ():
            edit.write()
        return code


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
    if ci is CiChoice.NONE:
        return [], []
    install = _install_command(root)
    if ci is None:
        return [], [f"CI: {install}, then pytest"]
    folder = root / ".github" / "workflows"
    is_github = ci is CiChoice.GITHUB
    path = folder / "pytest-regen.yml" if is_github else root / ".gitlab-ci.yml"
    text = (_GITHUB if is_github else _GITLAB).format(install=install)
    others = sorted(folder.glob("*.y*ml")) if is_github else [path]
    texts = {each: _text_of(each) for each in others if each != path}
    running = [each for each in texts if _RUNS_PYTEST.search(texts[each])]
    if running:
        # Because a workflow that publishes runs pytest as well: pull requests tell which one tests.
        name = short_path(min(running, key=lambda each: "pull_request" not in texts[each]))
        return [], [f"CI: {name} runs pytest; let it install 'pytest-regen[all]', too"]
    if path.exists():
        if is_github or "pytest-regen" in _text_of(path):
            return [], []
        lines = "".join(f"\n    {line}" for line in text.splitlines())
        return [], [f"CI: {short_path(path)} is there and stays as it is; it needs{lines}"]
    return [Edit(root, path, lambda there: there or text)], []


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _install_command(root: Path) -> str:
    """Return how CI installs what the tests of a project take, as far as its files say."""
    words = ["'pytest-regen[all]'"]
    words += [
        f"-r {name}"
        for name in ("requirements.txt", "requirements-dev.txt", "requirements-test.txt")
        if (root / name).is_file()
    ]
    path = root / "pyproject.toml"
    data = load_toml(path) if path.is_file() else {}
    table = data.get("project")
    if isinstance(table, dict) or (root / "setup.py").is_file():
        extras = table.get("optional-dependencies", {}) if isinstance(table, dict) else {}
        names = extras if isinstance(extras, dict) else {}
        extra = next((name for name in ("test", "tests", "testing", "dev") if name in names), None)
        words.append(f"-e '.[{extra}]'" if extra else "-e .")
    return f"pip install {' '.join(words)}"


# What a project has

_SKIPPED: Final = frozenset({"node_modules", "site-packages", "build", "dist", "__pycache__"})
_DEPTH: Final = 5
_FILES: Final = 20_000
"""Files that are looked at: a whole disk is not searched."""
_HEAD: Final = 4_096
_DESCRIPTION: Final = re.compile(rb"""^\s*\{?\s*["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)


def _find_source(project: Project, *, asks: bool, takes_only: bool) -> str:
    """Return what a person chooses among what the project has.

    Raises:
        UsageError: nobody can be asked, or there is nothing.
    """
    files = list(_files(Path.cwd()))
    found = list(dict.fromkeys(_sources(project, files)))[:20]
    if not found:
        named = (f"{_shown(path)}::{name}" for path in files for name in _functions_of(path)[1])
        example = next(named, None)
        raise UsageError(
            f"nothing to begin with was found below {Path.cwd()}",
            why="there is no OpenAPI description, no function with an example (>>>) in its "
            "docstring, no catalogue of translations",
            hint=f"pytest-regen init {shlex.quote(example)}, or another function that has a test"
            if example
            else "add one of these, then pytest-regen init FILE",
        )
    if asks:
        return found[choose("Begin with which?", found)]
    if takes_only and len(found) == 1:
        return found[0]
    say("found in this project:")
    for source in found:
        say(f"    pytest-regen init {shlex.quote(source)} --yes")
    raise UsageError(
        "init does not say what to begin with",
        hint=f"pytest-regen init {shlex.quote(found[0])} --yes",
    )


def _sources(project: Project, files: Sequence[Path]) -> Iterator[str]:
    """Yield descriptions, then modules with examples, then catalogues."""
    claimed = {path.resolve() for path in (project.kinds.files if project.kinds else ())}
    yield from (_shown(path) for path in files if is_description(path))
    for path in files:
        if path.resolve() not in claimed and _functions_of(path)[0]:
            yield _shown(path)
    sources = {
        one.kind.source.resolve()
        for one in (project.kinds.kinds if project.kinds else ())
        if isinstance(one.kind, Translation)
    }
    gettext = [path for path in files if path.suffix == ".po" and path.resolve() not in claimed]
    for path in gettext[:1]:
        yield Path(os.path.relpath(targets_of(path.as_posix()))).as_posix()
    for path in files:
        if path.resolve() in sources:
            continue
        if path.suffix == ".json" and (language_of(path) or "").partition("-")[0] == "en":
            others = [each for each in path.parent.glob("*.json") if language_of(each)]
            if len(others) > 1 or path.parent.name in {"locales", "i18n", "translations"}:
                yield _shown(path)


def _shown(path: Path) -> str:
    return path.relative_to(Path.cwd()).as_posix()


def _files(top: Path) -> Iterator[Path]:
    seen = 0
    for folder, names, files in os.walk(top):
        here = Path(folder)
        depth = len(here.relative_to(top).parts)
        names[:] = sorted(
            name
            for name in names
            if depth < _DEPTH
            and not name.startswith(".")
            and name not in _SKIPPED
            and not (here / name / "pyvenv.cfg").exists()
            and not (here / name / "pages.json").exists()
        )
        for name in sorted(files):
            seen += 1
            if seen > _FILES:
                return
            yield here / name


def is_description(path: Path) -> bool:
    """Return whether the head of a file says that it describes an API."""
    if path.suffix not in {".json", ".yaml", ".yml"} or not path.is_file():
        return False  # A pipe would be waited for.
    try:
        with path.open("rb") as file:
            return _DESCRIPTION.search(file.read(_HEAD)) is not None
    except OSError:
        return False


def _functions_of(path: Path) -> tuple[list[str], list[str]]:
    """Return the functions with examples, and all, of a file that is a module and no test."""
    is_test = path.name.startswith("test_") or path.name.endswith("_test.py")
    is_other = is_test or path.suffix != ".py" or path.name in {"conftest.py", "setup.py"}
    if is_other or not path.is_file():  # A pipe would be waited for.
        return [], []
    try:
        return functions_in(path)
    except (OSError, RegenError):
        return [], []
