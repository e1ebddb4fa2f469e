"""``history``, ``restore`` and ``adopt``: what was replaced, and what was edited by hand."""

from pathlib import Path
from typing import Annotated

import typer

from pytest_regen.cli.options import AsJson
from pytest_regen.cli.output import emit_json, say, show_diff
from pytest_regen.regeneration import adopt_edits, restore_outputs
from pytest_regen.stores import RegenStore
from pytest_regen.stores import history as history_of

__all__ = ["adopt", "history", "restore"]

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
    for entry in entries:
        errors = sum(issue.severity == "error" for issue in entry.issues)
        found = f", {errors} errors" if errors else ""
        say(
            f"{entry.id}  {entry.type_name} page {entry.page} of {entry.total_pages}  "
            f"attempt {entry.attempt} by {entry.model}: {entry.reason}{found}"
        )
    if entries:
        say(f"  next: pytest-regen restore {path} --type NAME --to ID")
    else:
        say(f"{path}: nothing was replaced or rejected yet")


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
    pages = [{"type_name": p.type_name, "page": p.page, "model": p.model} for p in taken.pages]
    if as_json:
        emit_json({"restored": pages, "diff": taken.diff})
        return
    show_diff(taken.diff)
    for entry in taken.pages:
        say(f"  restored {entry.type_name} page {entry.page}, written by {entry.model}")
    say(f"  next: pytest-regen validate {path}")


def adopt(
    path: Folder,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make blocks edited by hand the stored outputs."""
    taken = adopt_edits(path, types)
    if as_json:
        emit_json({"adopted": [{"type_name": p.type_name, "page": p.page} for p in taken.pages]})
        return
    for entry in taken.pages:
        say(f"  adopted {entry.type_name} page {entry.page}")
    if taken.pages:
        say(f"  next: pytest-regen validate {path}")
    else:
        say(f"{path}: no type was edited by hand")
