"""``validate``: the issues of stores, without a model."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_regen.cli.options import AsJson
from pytest_regen.cli.output import (
    emit_json,
    next_step,
    say,
    show_issues,
    show_issues_by_type,
)
from pytest_regen.cli.project import Project
from pytest_regen.errors import StoreWriteError
from pytest_regen.plurals import counted
from pytest_regen.regeneration.summary import write_summary
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import ValidationResult

__all__ = ["validate"]


def validate(
    dirs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            help="Stores, or folders of stores; without one, those that regen_stores matches.",
        ),
    ] = None,
    by_type: Annotated[bool, typer.Option("--by-type", help="Group issues by type.")] = False,
    no_write: Annotated[
        bool, typer.Option("--no-write", help="Leave the summary in ir.json as it is.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Validate stores and update the summary in ir.json. Calls no model."""
    project = Project.here()
    reports = []
    for path in _stores_in(dirs) if dirs else project.stores():
        store = RegenStore.open(path)
        results = validate_store(store, ignore=project.ignored_in(path))
        if not no_write:
            _write(store, results)
        reports.append(_report(store, results))
        if not as_json:
            _show(store, results, by_type=by_type)
    if as_json:
        emit_json({"stores": reports})
    raise typer.Exit(0 if all(report["ok"] for report in reports) else 1)


def _stores_in(dirs: Iterable[Path]) -> Iterator[Path]:
    """Yield the stores named, and those in folders named."""
    for path in dirs:
        # What holds no store at all is told by whoever opens it.
        inner = [] if is_store(path) else sorted(one.parent for one in path.glob("*/pages.json"))
        yield from inner or [path]


def _write(store: RegenStore, results: dict[str, ValidationResult]) -> None:
    try:
        write_summary(store, results)
    except StoreWriteError as error:
        # What was found does not depend on it.
        say(f"note: the summary in {store.path / 'ir.json'} was not updated: {error.why}")


def _report(store: RegenStore, results: dict[str, ValidationResult]) -> dict[str, Any]:
    roots = {type_.name for type_ in store.ir.types if type_.is_root}
    return {
        "path": store.path.as_posix(),
        "ok": not any(result.has_errors for result in results.values()),
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


def _show(store: RegenStore, results: dict[str, ValidationResult], *, by_type: bool) -> None:
    if by_type:
        say(store.source_path.as_posix())
        show_issues_by_type(results)
    else:
        show_issues(results, store.source_path.as_posix())
    types = counted(len(results), "type")
    failing = sum(result.has_errors for result in results.values())
    if failing:
        say(f"{store.path}: {failing} of {types} {'has' if failing == 1 else 'have'} errors")
        next_step(_advice(shlex.quote(str(store.path)), results))
    else:
        say(f"{store.path}: {types}, no errors", "green")


def _advice(store: str, results: dict[str, ValidationResult]) -> str:
    """Return what mends the errors; edits by hand are kept or dropped, not regenerated."""
    codes = {issue.code for result in results.values() for issue in result.errors}
    if codes != {"DRIFT"}:
        return f"pytest-regen regenerate {store} --from-errors"
    edited = [name for name, result in results.items() if result.has_errors]
    types = " ".join(f"--type {shlex.quote(name)}" for name in edited)
    return f"pytest-regen adopt {store} {types}, which keeps what was edited by hand"
