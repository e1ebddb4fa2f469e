"""``validate``, ``history``, ``restore``, ``adopt``, ``rebuild``: what needs no model."""

import os
import shlex
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pytest_regen.cli.output import (
    DROPS_EDIT,
    KEEPS_EDIT,
    Advice,
    AsJson,
    UnitNames,
    answer_on_stdout,
    emit_json,
    fact,
    next_step,
    say,
    show_diff,
    show_errors,
    show_issues,
    show_issues_by_type,
)
from pytest_regen.cli.project import Project
from pytest_regen.errors import RegenError, StoreWriteError, UsageError
from pytest_regen.github import tell_validated
from pytest_regen.modes import StalePolicy, stale_outcome
from pytest_regen.regeneration import fixable
from pytest_regen.regeneration.regenerate import write_summary
from pytest_regen.regeneration.restore import adopt_edits, rebuild_source, restore_outputs
from pytest_regen.stores import HistoryEntry, RegenStore, is_store
from pytest_regen.stores import history as history_of
from pytest_regen.text import plural
from pytest_regen.validation import validate_store
from pytest_regen.validation.edits import broken_file
from pytest_regen.validation.issues import ValidationResult, without_ignored
from pytest_regen.validation.pieces import split
from pytest_regen.validation.stores import (
    behaviour_of_store,
    format_note,
    from_errors_command,
    update_command,
    wants_behaviour,
)

if TYPE_CHECKING:
    from pytest_regen.units.place import UnitFile

ResultsByStore = dict[str, ValidationResult]


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
    answer_on_stdout(is_wanted=not as_json)
    project = Project.here()
    validation = _Validation(project.root, project.stale, by_type, no_write, as_json)
    files = project.recorded_files(dirs)
    stores = list(stores_in(project, dirs, files))
    jobs = jobs or _cores()
    parts = _parts([file.path for file in files], stores, jobs)
    if not (files or stores or as_json):
        tell_unmarked(project)
    reports: list[dict[str, Any]] = []
    unit_reports: list[dict[str, Any]] = []
    code = 0
    with closing(_run(project, validation, parts, jobs)) as done:
        for part, (found, part_code) in zip(parts, done, strict=True):
            (unit_reports if part.is_of_files else reports).extend(found)
            code = max(code, part_code)
    if as_json:
        emit_json({"stores": reports, **({"files": unit_reports} if files else {})})
    tell_validated(project, reports, unit_reports)
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Part:
    """Files with units, or stores, that one process validates."""

    paths: Sequence[Path]
    is_of_files: bool = False


_STORES: Final = 4
"""Stores of a part: handing it to a process takes less than a hundredth of validating them."""
_FILES: Final = 16


def _parts(files: Sequence[Path], stores: Sequence[Path], jobs: int) -> list[_Part]:
    """Return the work in parts; of files as few as there are jobs, for kinds prepare them at once.

    Files that are not there any more belong to their kind all the same.
    """
    each = max(_FILES, -(-len(files) // jobs)) if jobs > 1 else max(1, len(files))
    count = min(_STORES, max(1, -(-len(stores) // jobs)))
    return [
        *(_Part(files[n : n + each], is_of_files=True) for n in range(0, len(files), each)),
        *(_Part(stores[n : n + count]) for n in range(0, len(stores), count)),
    ]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


Found = tuple[list[dict[str, Any]], int]
"""The reports of a part, and the exit code that they ask for."""


def _run(
    project: Project, validation: "_Validation", parts: Sequence[_Part], jobs: int
) -> Generator[Found, None, None]:
    """Yield what is found in each part, here or in other processes."""
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

    def __call__(self, part: _Part) -> Found:
        """Validate a part in a process of a pool."""
        return self.run(_project_at(self.root), part)

    def run(self, project: Project, part: _Part) -> Found:
        """Validate a part; tell what was found, and return the reports."""
        if part.is_of_files:
            from pytest_regen.cli.units import validate_files

            files = project.recorded_files(part.paths)
            return validate_files(project, files, as_json=self.as_json)
        reports = [self._report(project, path) for path in part.paths]
        return reports, 0 if all(report["ok"] for report in reports) else 1

    def _report(self, project: Project, path: Path) -> dict[str, Any]:
        store = RegenStore.open(path)
        ignore = project.ignored_in(path)
        results = validate_store(store, ignore=ignore)
        if not self.no_write:
            _write(store, results)
        behaviour = behaviour_of_store(store) if wants_behaviour(store, ignore) else None
        not_run = behaviour.why_not if behaviour else ""
        if not self.as_json:
            # What most machines lack is no news; JSON has it all the same.
            said = "" if behaviour and behaviour.is_expected else not_run
            _show(store, results, self.stale, said, by_type=self.by_type)
        return _report(store, results, self.stale, not_run)


@lru_cache(maxsize=1)
def _project_at(root: Path) -> Project:
    """Return the project, whose settings and kinds a process of a pool reads once."""
    return Project(root)


def stores_in(
    project: Project, dirs: Iterable[Path] | None, files: "Sequence[UnitFile]"
) -> Iterator[Path]:
    """Yield the stores named, and those in folders named; by default those of the project.

    Args:
        project: around the working directory.
        dirs: as they were named.
        files: the files with units among them, which are no stores.
    """
    if not dirs:
        has_kinds = any(not one.is_installed for one in project.kinds.kinds)
        yield from project.stores() if project.store_globs or not (files or has_kinds) else ()
        return
    units = {file.path for file in files}
    for path in dirs:
        real = Path(os.path.normpath(Path.cwd() / path))
        if real in units:
            continue
        # Opening a folder that holds no store says so.
        inner = [] if is_store(path) else sorted(file.parent for file in path.glob("*/pages.json"))
        has_units = any(file.is_relative_to(real) for file in units)
        yield from inner or ([] if has_units else [path])


def tell_unmarked(project: Project) -> None:
    """Say which kinds have no unit yet."""
    from pytest_regen.units.inventory import unmarked_kinds

    for what in unmarked_kinds(project.kinds):
        say(what, "yellow")
    next_step("pytest-regen init")


def _write(store: RegenStore, results: ResultsByStore) -> None:
    try:
        write_summary(store, results)
    except StoreWriteError as error:
        # What was found does not depend on it.
        say(f"note: the summary in {store.path / 'ir.json'} was not updated: {error.why}")


def _stale_names(results: ResultsByStore) -> list[str]:
    return [
        name for name, result in results.items() if any(i.code == "STALE" for i in result.issues)
    ]


def _report(
    store: RegenStore, results: ResultsByStore, stale: StalePolicy, not_run: str
) -> dict[str, Any]:
    roots = {type_.name for type_ in store.ir.types if type_.is_root}
    return {
        "path": store.path.as_posix(),
        "source": store.source_path.as_posix(),
        "ok": not any(result.has_errors for result in results.values())
        and not (stale_outcome(stale) == "fail" and _stale_names(results)),
        "next": following.command if (following := _following(store, results, stale)) else "",
        "not_run": not_run or None,
        "types": [
            {
                "name": name,
                "is_root": name in roots,
                "errors": [issue.to_json() for issue in result.errors],
                "warnings": [issue.to_json() for issue in result.warnings],
            }
            for name, result in results.items()
        ],
    }


def _show(
    store: RegenStore, results: ResultsByStore, stale: StalePolicy, not_run: str, *, by_type: bool
) -> None:
    shown = without_ignored(results, ["STALE"] if stale == "ignore" else ())
    if by_type:
        say(store.source_path.as_posix())
        show_issues_by_type(shown)
    else:
        show_issues(shown, store.source_path.as_posix())
    types = plural(len(results), "type")
    failing = sum(result.has_errors for result in results.values())
    old = len(_stale_names(shown))
    older = f"{old} {'is' if old == 1 else 'are'} older than the document" if old else ""
    if failing:
        say(f"{store.path}: {failing} of {types} {'has' if failing == 1 else 'have'} errors")
    elif old and stale_outcome(stale) == "fail":
        say(f"{store.path}: {types}, no errors, but {older}")
    else:
        note = f"; {older}{', which fails in CI' if stale == 'auto' else ''}" if old else ""
        say(f"{store.path}: {types}, no errors{note}", "green")
    if note := format_note(store):
        say(f"note: {note}")
    if not_run:
        say(f"behaviour: not run: {not_run}")
    if following := _following(store, results, stale):
        next_step(*following)


def _following(store: RegenStore, results: ResultsByStore, stale: StalePolicy) -> Advice | None:
    """Return the command to run next; ``None`` where there is nothing to do."""
    is_failing = any(result.has_errors for result in results.values())
    is_old = stale != "ignore" and bool(_stale_names(results))
    if is_old and (not is_failing or stale_outcome(stale) == "fail"):
        # The prompts of a stale type are the old ones: it is updated before it is regenerated.
        return Advice(update_command(store))
    return _advice(store, results) if is_failing else None


def _advice(store: RegenStore, results: ResultsByStore) -> Advice:
    """Return the command for the errors; an edit is kept or dropped, not regenerated."""
    place = shlex.quote(str(store.path))
    failing = {name: result for name, result in results.items() if result.has_errors}
    codes = {issue.code for result in failing.values() for issue in result.errors}
    edited = [
        name for name, result in failing.items() if any(i.code == "DRIFT" for i in result.errors)
    ]
    if any(fixable(result) for name, result in failing.items() if name not in edited):
        return Advice(from_errors_command(store))
    types = " ".join(f"--type {shlex.quote(name)}" for name in edited)
    if codes == {"DRIFT"} and not broken_file(store, split(store.source, store.envelope.language)):
        return Advice(f"pytest-regen adopt {place} {types}", KEEPS_EDIT)
    if edited:
        return Advice(f"pytest-regen rebuild {place} {types}", DROPS_EDIT)
    if codes & {"EDITED_PROMPT", "UNFIXABLE"}:
        return Advice(update_command(store))
    if "CONFLICT" in codes:
        return Advice(f"pytest-regen rebuild {place}", "it writes the source from its pages")
    return Advice("correct the file as the lines above say")


Folder = Annotated[
    Path, typer.Argument(metavar="PATH", help="Folder of a store, or a file with units.")
]


def history(
    path: Folder,
    type_name: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """List outputs that were replaced or rejected; newest last."""
    if file := Project.here().unit_file(path, units):
        from pytest_regen.cli.units import history_of_file, refuse_types

        refuse_types(file, type=type_name)
        history_of_file(file, units, as_json=as_json)
        return
    store = RegenStore.open(path)
    entries = history_of(path, store.resolve_type(type_name) if type_name else None)
    if as_json:
        emit_json({"entries": [{"id": entry.id, **entry.to_json()} for entry in entries]})
        return
    rows = [_row(entry) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for entry, row in zip(entries, rows, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())
        show_errors(entry.issues)
    if entries:
        newest = entries[-1]
        about = f"{shlex.quote(str(path))} --type {newest.type_name}"
        if newest.reason == "rejected":  # Whoever reads why it was does not want it back.
            next_step(f"pytest-regen regenerate {about} --correction 'what is wrong'")
        else:
            next_step(f"pytest-regen restore {about} --to {newest.id}")
    else:
        say(f"{path}: nothing was replaced or rejected yet")
        next_step(f"pytest {shlex.quote(str(path))}")


def _row(entry: HistoryEntry) -> Sequence[str]:
    errors = sum(issue.severity == "error" for issue in entry.issues)
    return (
        entry.id,
        entry.reason,
        entry.type_name,
        f"page {entry.page} of {entry.total_pages}",
        f"attempt {entry.attempt}",
        entry.model,
        plural(errors, "error") if errors else "",
    )


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
    if file := Project.here().unit_file(path, units):
        from pytest_regen.cli.units import refuse_types, restore_in_file

        refuse_types(file, type=type_name, page=page)
        restore_in_file(file, units, to, as_json=as_json)
        return
    if type_name is None:
        raise UsageError(
            f"restore does not say which type of {path}",
            why="an output belongs to one type",
            hint="name it with --type; pytest-regen history lists what there is",
        )
    taken = restore_outputs(path, type_name, page=page, to=to)
    if as_json:
        pages = [{"type_name": p.name, "page": p.page, "model": p.model} for p in taken.pages]
        emit_json({"restored": pages, "diff": taken.diff})
        return
    show_diff(taken.diff)
    for entry in taken.pages:
        fact("restored", f"{entry.name} page {entry.page}, written by {entry.model}")
    next_step(f"pytest {shlex.quote(str(path))}")


def adopt(
    path: Folder,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    units: UnitNames = None,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Also texts that are stale, each with its author."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make blocks edited by hand the stored outputs, and functions that exist units."""
    from pytest_regen.cli.units import adopt_file, enclose_in_file, refuse_types

    named, separator, unit = str(path).partition("::")
    if separator and not path.exists():
        path, units = Path(named), [*(units or ()), unit]
    units = units or _only_function(Project.here(), path)
    if units and path.is_file():
        enclose_in_file(Project.here(), path, units)
    if file := Project.here().unit_file(path, units):
        refuse_types(file, type=types)
        raise typer.Exit(adopt_file(file, units, with_stale=stale, as_json=as_json))
    if stale:
        raise UsageError(
            f"--stale is about files with units, and {path} is a store",
            why="a type that is stale has new prompts",
            hint=f"pytest-regen generate, as pytest-regen validate {shlex.quote(str(path))} says",
        )
    taken = adopt_edits(path, types)
    left = _remaining_issues(path, {page.name for page in taken.pages})
    if as_json:
        adopted = [{"type_name": p.name, "page": p.page} for p in taken.pages]
        errors = [issue.to_json() for result in left.values() for issue in result.errors]
        emit_json({"adopted": adopted, "errors": errors, "diff": taken.diff})
    else:
        show_diff(taken.diff)
        for entry in taken.pages:
            fact("adopted", f"{entry.name} page {entry.page}")
        show_issues(left, RegenStore.open(path).source_path.as_posix())
        where = shlex.quote(str(path))
        if any(result.has_errors for result in left.values()):
            # It is stored now, but must not be taken for clean.
            next_step(from_errors_command(RegenStore.open(path)))
        else:
            if not taken.pages:
                say(f"{path}: no type was edited by hand")
            next_step(f"pytest {where}")
    raise typer.Exit(int(any(result.has_errors for result in left.values())))


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


def _remaining_issues(path: Path, types: Collection[str]) -> dict[str, ValidationResult]:
    """Return what is wrong with types whose edits were adopted: the gate will say so as well."""
    if not types:
        return {}
    ignore = Project.here().ignored_in(path)
    return validate_store(RegenStore.open(path), types=sorted(types), ignore=ignore)


def rebuild(
    path: Folder,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Write the source from its stored pages; edits made by hand go to the history.

    Of a store that git could not merge our version is taken; theirs goes to the history.
    """
    if file := Project.here().unit_file(path, units):
        from pytest_regen.cli.units import rebuild_file, refuse_types

        refuse_types(file, type=types)
        raise typer.Exit(rebuild_file(file, units, as_json=as_json))
    done = rebuild_source(path, types)
    if as_json:
        emit_json(
            {
                "rebuilt": done.names,
                "joined": done.joined,
                "history": done.history,
                "diff": done.diff,
            }
        )
        return
    show_diff(done.diff)
    for name in done.joined:
        fact("taken", f"our version of {Path(path, name).as_posix()}")
    for name in done.names:
        fact("rebuilt", name)
    for name in done.history:
        fact("kept", f"{Path(path, 'history', name).as_posix()}, what was there before")
    if not (done.names or done.joined):
        say(f"{path}: the source is what its pages make")
    next_step(f"pytest {shlex.quote(str(path))}")
