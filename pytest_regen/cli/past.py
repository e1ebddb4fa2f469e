"""``history``, ``restore``, ``adopt``, ``rebuild``: what was replaced, what was edited by hand."""

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pytest_regen.cli.options import AsJson
from pytest_regen.cli.output import emit_json, fact, next_step, say, show_diff, show_issues
from pytest_regen.cli.project import Project
from pytest_regen.plurals import counted
from pytest_regen.regeneration.restore import adopt_edits, rebuild_source, restore_outputs
from pytest_regen.stores import HistoryEntry, RegenStore
from pytest_regen.stores import history as history_of
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import ValidationResult

__all__ = ["adopt", "history", "rebuild", "restore"]

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a store.")]


def history(
    path: Folder,
    type_name: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    as_json: AsJson = False,
) -> None:
    """List outputs that were replaced or rejected; newest last."""
    store = RegenStore.open(path)
    entries = history_of(path, store.resolve_type(type_name) if type_name else None)
    if as_json:
        emit_json({"entries": [{"id": entry.id, **entry.to_json()} for entry in entries]})
        return
    rows = [_row(entry) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())
    if entries:
        newest = entries[-1]
        where = shlex.quote(str(path))
        next_step(f"pytest-regen restore {where} --type {newest.type_name} --to {newest.id}")
    else:
        say(f"{path}: nothing was replaced or rejected yet")


def _row(entry: HistoryEntry) -> Sequence[str]:
    errors = sum(issue.severity == "error" for issue in entry.issues)
    return (
        entry.id,
        entry.reason,
        entry.type_name,
        f"page {entry.page} of {entry.total_pages}",
        f"attempt {entry.attempt}",
        entry.model,
        counted(errors, "error") if errors else "",
    )


def restore(
    path: Folder,
    type_name: Annotated[str, typer.Option("--type", help="Type to restore.")],
    page: Annotated[int | None, typer.Option("--page", min=1, help="Only this page.")] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="ID", help="History entry; by default the last.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an output from the history the stored one."""
    taken = restore_outputs(path, type_name, page=page, to=to)
    if as_json:
        pages = [{"type_name": p.type_name, "page": p.page, "model": p.model} for p in taken.pages]
        emit_json({"restored": pages, "diff": taken.diff})
        return
    show_diff(taken.diff)
    for entry in taken.pages:
        fact("restored", f"{entry.type_name} page {entry.page}, written by {entry.model}")
    next_step(f"pytest-regen validate {shlex.quote(str(path))}")


def adopt(
    path: Folder,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make blocks edited by hand the stored outputs."""
    taken = adopt_edits(path, types)
    left = _left(path, {page.type_name for page in taken.pages})
    if as_json:
        adopted = [{"type_name": p.type_name, "page": p.page} for p in taken.pages]
        errors = [issue.to_json() for result in left.values() for issue in result.errors]
        emit_json({"adopted": adopted, "errors": errors, "diff": taken.diff})
    else:
        show_diff(taken.diff)
        for entry in taken.pages:
            fact("adopted", f"{entry.type_name} page {entry.page}")
        show_issues(left, RegenStore.open(path).source_path.as_posix())
        where = shlex.quote(str(path))
        if any(result.has_errors for result in left.values()):
            # It is stored now; nobody is to take it for clean.
            next_step(f"pytest-regen regenerate {where} --from-errors")
        elif taken.pages:
            next_step(f"pytest-regen validate {where}")
        else:
            say(f"{path}: no type was edited by hand")
    raise typer.Exit(int(any(result.has_errors for result in left.values())))


def _left(path: Path, types: Collection[str]) -> dict[str, ValidationResult]:
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
    as_json: AsJson = False,
) -> None:
    """Write the source from its stored pages; edits made by hand go to the history."""
    done = rebuild_source(path, types)
    if as_json:
        emit_json({"rebuilt": done.type_names, "history": done.history, "diff": done.diff})
        return
    show_diff(done.diff)
    for name in done.type_names:
        fact("rebuilt", name)
    for name in done.history:
        fact("kept", f"{Path(path, 'history', name).as_posix()}, what was there before")
    if done.type_names:
        next_step(f"pytest-regen validate {shlex.quote(str(path))}")
    else:
        say(f"{path}: the source is what its pages make")
