"""Commands that ask no model: ``validate``, ``history``, and what keeps or drops texts."""

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

from pytest_regen.cli import output
from pytest_regen.cli.asking import advise
from pytest_regen.cli.output import AsJson, UnitNames, emit_json, fact, next_step, say
from pytest_regen.cli.places import (
    FileHere,
    Kept,
    PlaceHere,
    StoreHere,
    enclose_in_file,
    place_at,
    stores_in,
    tell_issues,
    tell_unmarked,
)
from pytest_regen.cli.project import Project
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.github import tell_validated
from pytest_regen.modes import StalePolicy
from pytest_regen.text import plural
from pytest_regen.units.loading import prepare_kinds

_STORES: Final = 4
"""Stores of a part: handing it to a process takes less than a hundredth of validating them."""
_FILES: Final = 16

TypeNames = Annotated[
    list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
]
Folder = Annotated[
    Path, typer.Argument(metavar="PATH", help="Folder of a store, or a file with units.")
]


def validate(
    dirs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Stores, files with units, or folders of them; without one, all of the project.",
        ),
    ] = None,
    by_type: Annotated[bool, typer.Option("--by-type", help="Group issues by type.")] = False,
    no_write: Annotated[
        bool, typer.Option("--no-write", help="Leave the summary in ir.json as it is.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Processes at the same time; 0: one per core.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Validate stores and units; update the summary in ir.json of stores. Calls no model."""
    output.answer_on_stdout(is_wanted=not as_json)
    project = Project.here()
    validation = _Validation(project.root, project.stale, by_type, no_write, as_json)
    files = project.recorded_files(dirs)
    stores = stores_in(project, dirs, files)
    if not (files or stores or as_json):
        tell_unmarked(project)
    has_affinity = hasattr(os, "sched_getaffinity")
    jobs = jobs or (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)
    parts = _parts([file.path for file in files], stores, jobs)
    reports: dict[str, list[dict[str, Any]]] = {"stores": [], "files": []}
    code = 0
    with closing(_run(project, validation, parts, jobs)) as verdicts:
        for part, (listed, part_code) in zip(parts, verdicts, strict=True):
            reports[part.group].extend(listed)
            code = max(code, part_code)
    # Once for all stores of a document, because a release makes all of them old at once.
    notes = {report["note"]: None for report in reports["stores"] if report["note"]}
    if as_json:
        emit_json(reports if files else {"stores": reports["stores"]})
    else:
        for note in notes:
            say(f"note: {note}")
    tell_validated(project, reports["stores"], reports["files"])
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Part:
    """Files with units, or stores, that one process validates."""

    paths: Sequence[Path]
    group: str = "stores"


def _parts(files: Sequence[Path], stores: Sequence[Path], jobs: int) -> list[_Part]:
    """Return the work in parts; of files as few as there are jobs, for kinds prepare them at once.

    Files that are not there any more belong to their kind all the same.
    """
    size = max(_FILES, -(-len(files) // jobs)) if jobs > 1 else max(1, len(files))
    count = min(_STORES, max(1, -(-len(stores) // jobs)))
    return [
        *(_Part(files[n : n + size], "files") for n in range(0, len(files), size)),
        *(_Part(stores[n : n + count]) for n in range(0, len(stores), count)),
    ]


def _run(
    project: Project, validation: "_Validation", parts: Sequence[_Part], jobs: int
) -> Generator[tuple[list[dict[str, Any]], int], None, None]:
    """Yield the reports of each part and its exit code, found here or in other processes."""
    if jobs == 1 or len(parts) == 1:
        for part in parts:
            yield validation.run(project, part)
        return
    from pytest_regen.cli.pool import map_in_order

    yield from map_in_order(validation, parts, jobs, title="validating")


@dataclass(frozen=True, slots=True)
class _Validation:
    """What ``validate`` was asked to do; may be handed to another process."""

    root: Path
    stale: StalePolicy
    by_type: bool
    no_write: bool
    as_json: bool

    def __call__(self, part: _Part) -> tuple[list[dict[str, Any]], int]:
        """Validate a part in a process of a pool."""
        return self.run(_project_at(self.root), part)

    def run(self, project: Project, part: _Part) -> tuple[list[dict[str, Any]], int]:
        """Validate a part; tell what was found, and return the reports."""
        places: list[PlaceHere] = [StoreHere(project, path) for path in part.paths]
        if part.group == "files":
            files = project.recorded_files(part.paths)
            prepare_kinds(project.kinds, [file.path for file in files])
            places = [FileHere(file) for file in files]
        code, reports = 0, []
        for place in places:
            verdict = place.verdict(self.stale, writes=not self.no_write)
            code = max(code, verdict.code)
            advice = verdict.following
            reports.append({**verdict.report, "next": advice.command if advice else ""})
            if self.as_json:
                continue
            if self.by_type and verdict.by_type is not None:
                say(verdict.source)
                output.show_issues_by_type(verdict.by_type)
            else:
                tell_issues(verdict.issues, verdict.source)
            for line in verdict.lines:
                say(*line)
            advise(advice)
        return reports, code


@lru_cache(maxsize=1)
def _project_at(root: Path) -> Project:
    """Return the project, whose settings and kinds a process of a pool reads once."""
    return Project(root)


def history(
    path: Folder,
    type_name: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """List outputs that were replaced or rejected; newest last."""
    place = place_at(Project.here(), path, units, type=type_name)
    past = place.past(units or ([type_name] if type_name else None))
    if as_json:
        emit_json({"entries": [{"id": text.id, **text.entry.to_json()} for text in past]})
        return
    rows = []
    for text in past:
        errors = sum(issue.severity == "error" for issue in text.issues)
        rows.append([*place.past_cells(text), plural(errors, "error") if errors else ""])
    for text, line in zip(past, output.aligned(rows), strict=True):
        say(line)
        output.show_errors(text.issues)
    if not past:
        say(f"{place.here}: nothing was replaced or rejected yet")
        next_step(*place.tests())
        return
    newest, name = past[-1], rows[-1][2]
    if newest.reason == "rejected":  # Whoever reads why it was does not want it back.
        next_step(place.command("regenerate", name, "--correction", "what is wrong"))
    else:
        next_step(place.command("restore", name, "--to", newest.id))


def restore(
    path: Folder,
    type_name: Annotated[
        str | None, typer.Option("--type", help="Type to restore; of a store one is needed.")
    ] = None,
    page: Annotated[int | None, typer.Option("--page", min=1, help="Only this page.")] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="ID", help="History entry; by default the last.")
    ] = None,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Make an output from the history the stored one."""
    place = place_at(Project.here(), path, units, type=type_name, page=page)
    names = units or ([type_name] if type_name else [])
    if len(names) != 1:
        what = "an output belongs to one type" if place.group == "stores" else ""
        raise UsageError(
            f"restore does not say which {place.option} of {place.at.place}",
            why=what or "a text belongs to one unit",
            hint=f"name it with --{place.option}; {place.command('history')} lists what there is",
        )
    _finish(place.here, place.restore(names[0], page, to), as_json=as_json)


def adopt(
    path: Folder,
    types: TypeNames = None,
    units: UnitNames = None,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Also texts that are stale, each with its author."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make blocks edited by hand the stored outputs, and functions that exist units."""
    project = Project.here()
    file_name, separator, unit = str(path).partition("::")
    if separator and not path.exists():
        path, units = Path(file_name), [*(units or ()), unit]
    units = units or _only_function(project, path)
    if units and path.is_file():
        enclose_in_file(project, path, units)
        project = Project.here()  # What is marked now is claimed now.
    place = place_at(project, path, units, type=types)
    _finish(place.here, place.adopt(units or types, with_stale=stale), as_json=as_json)


def _only_function(project: Project, path: Path) -> list[str] | None:
    """Return the one function of a module without markers; ``None`` of any other file."""
    if path.suffix != ".py" or not path.is_file():
        return None
    real = Path.cwd() / path
    if project.kinds.kind_to_enclose(real) is None or project.kinds.kind_of(real) is not None:
        return None
    from pytest_regen.cli.starts import functions_in

    try:
        every = functions_in(path)[1]
    except RegenError:
        return None  # Said where the file is opened.
    return every if len(every) == 1 else None


def rebuild(
    path: Folder, types: TypeNames = None, units: UnitNames = None, as_json: AsJson = False
) -> None:
    """Write the source from its stored pages; edits made by hand go to the history.

    Of a store that git could not merge our version is taken; theirs goes to the history.
    """
    place = place_at(Project.here(), path, units, type=types)
    _finish(place.here, place.rebuild(units or types), as_json=as_json)


def forget(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File that a kind claims.")],
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Drop what nothing asks for any more: entries of the ledger, and texts where it can be."""
    project = Project.here()
    is_lost = project.is_lost(path)
    file = project.recorded_files([path])[0] if is_lost else project.unit_file(path)
    if file is None:
        raise UsageError(
            f"no kind claims {path}, and the ledger has nothing of it",
            hint='name a file that one of the "kinds" in [tool.pytest-regen] claims',
        )
    _finish(file.here, FileHere(file).forget(units, is_lost=is_lost), as_json=as_json)


def _finish(here: str, kept: Kept, *, as_json: bool) -> NoReturn:
    """Tell what was kept, dropped or put back, and end the command."""
    if as_json:
        emit_json(kept.report)
        raise typer.Exit(kept.code)
    output.show_diff(kept.diff)
    for words in kept.facts:
        fact(*words)
    tell_issues(kept.issues, kept.source or here)
    for line in kept.lines:
        say(*line)
    advise(kept.following)
    raise typer.Exit(kept.code)
