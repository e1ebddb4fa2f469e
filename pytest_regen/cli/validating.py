"""``validate``: the issues of stores, without a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_regen.cli.options import AsJson
from pytest_regen.cli.output import emit_json, say, show_issues
from pytest_regen.errors import StoreWriteError
from pytest_regen.regeneration import write_summary
from pytest_regen.settings import Settings, find_settings
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import ValidationResult

__all__ = ["validate"]


def validate(
    dirs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of stores.")],
    by_type: Annotated[bool, typer.Option("--by-type", help="Group issues by type.")] = False,
    no_write: Annotated[
        bool, typer.Option("--no-write", help="Leave the summary in ir.json as it is.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Validate stores and update the summary in ir.json. Calls no model."""
    settings = find_settings(Path.cwd())
    reports = []
    for path in dirs:
        store = RegenStore.open(path)
        results = _results(store, settings)
        if not no_write:
            _write(store, results)
        reports.append(_report(store, results))
        if not as_json:
            _show(store, results, by_type=by_type)
    if as_json:
        emit_json({"stores": reports})
    raise typer.Exit(0 if all(report["ok"] for report in reports) else 1)


def _results(store: RegenStore, settings: Settings) -> dict[str, ValidationResult]:
    """Return the issues that the project has not chosen to ignore."""
    return {
        name: ValidationResult.of(
            issue
            for issue in result.issues
            if issue.code not in settings.ignored(f"{store.path.as_posix()}::{name}")
        )
        for name, result in validate_store(store).items()
    }


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
    place = store.source_path.as_posix()
    if by_type:
        for name, result in results.items():
            say(f"{name}: {_count(result)}")
            show_issues({name: result}, place)
    else:
        show_issues(results, place)
    failing = [name for name, result in results.items() if result.has_errors]
    if failing:
        say(f"{store.path}: {len(failing)} of {len(results)} types have errors")
        say(f"  next: pytest-regen regenerate {store.path} --from-errors")
    else:
        say(f"{store.path}: {len(results)} types, no errors")


def _count(result: ValidationResult) -> str:
    if result.is_clean:
        return "clean"
    return f"{len(result.errors)} errors, {len(result.warnings)} warnings"
