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
from pytest_regen.modes import StalePolicy, stale_outcome
from pytest_regen.plurals import counted
from pytest_regen.regeneration import fixable
from pytest_regen.regeneration.summary import write_summary
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.validation import validate_store
from pytest_regen.validation.edits import broken_file
from pytest_regen.validation.freshness import format_note, update_command
from pytest_regen.validation.ignoring import ignoring
from pytest_regen.validation.issues import ValidationResult
from pytest_regen.validation.splitting import split

__all__ = ["validate"]

Results = dict[str, ValidationResult]


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
    stale = project.stale
    reports = []
    for path in _stores_in(dirs) if dirs else project.stores():
        store = RegenStore.open(path)
        results = validate_store(store, ignore=project.ignored_in(path))
        if not no_write:
            _write(store, results)
        reports.append(_report(store, results, stale))
        if not as_json:
            _show(store, results, stale, by_type=by_type)
    if as_json:
        emit_json({"stores": reports})
    raise typer.Exit(0 if all(report["ok"] for report in reports) else 1)


def _stores_in(dirs: Iterable[Path]) -> Iterator[Path]:
    """Yield the stores named, and those in folders named."""
    for path in dirs:
        # What holds no store at all is told by whoever opens it.
        inner = [] if is_store(path) else sorted(one.parent for one in path.glob("*/pages.json"))
        yield from inner or [path]


def _write(store: RegenStore, results: Results) -> None:
    try:
        write_summary(store, results)
    except StoreWriteError as error:
        # What was found does not depend on it.
        say(f"note: the summary in {store.path / 'ir.json'} was not updated: {error.why}")


def _stale_names(results: Results) -> list[str]:
    return [name for name, one in results.items() if any(i.code == "STALE" for i in one.issues)]


def _report(store: RegenStore, results: Results, stale: StalePolicy) -> dict[str, Any]:
    roots = {type_.name for type_ in store.ir.types if type_.is_root}
    return {
        "path": store.path.as_posix(),
        "ok": not any(result.has_errors for result in results.values())
        and not (stale_outcome(stale) == "fail" and _stale_names(results)),
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


def _show(store: RegenStore, results: Results, stale: StalePolicy, *, by_type: bool) -> None:
    shown = ignoring(results, ["STALE"] if stale == "ignore" else ())
    if by_type:
        say(store.source_path.as_posix())
        show_issues_by_type(shown)
    else:
        show_issues(shown, store.source_path.as_posix())
    types = counted(len(results), "type")
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
    if old and (not failing or stale_outcome(stale) == "fail"):
        # The prompts of a stale type are the old ones: it is updated before it is mended.
        next_step(update_command(store))
    elif failing:
        next_step(_advice(store, results))


def _advice(store: RegenStore, results: Results) -> str:
    """Return what mends the errors; what somebody edited is kept or dropped, not regenerated."""
    place = shlex.quote(str(store.path))
    failing = {name: result for name, result in results.items() if result.has_errors}
    codes = {issue.code for result in failing.values() for issue in result.errors}
    edited = [name for name, one in failing.items() if any(i.code == "DRIFT" for i in one.errors)]
    if any(fixable(result) for name, result in failing.items() if name not in edited):
        return f"pytest-regen regenerate {place} --from-errors"
    types = " ".join(f"--type {shlex.quote(name)}" for name in edited)
    if codes == {"DRIFT"} and not broken_file(store, split(store.source, store.envelope.language)):
        return f"pytest-regen adopt {place} {types}, which keeps what was edited by hand"
    if edited:
        return f"pytest-regen rebuild {place} {types}, which drops what was edited by hand"
    if codes & {"EDITED_PROMPT", "UNFIXABLE"}:
        return update_command(store)
    if "CONFLICT" in codes:
        return f"pytest-regen rebuild {place}, which writes the source from its pages"
    return "correct the file as the lines above say"
