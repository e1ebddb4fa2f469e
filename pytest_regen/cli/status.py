"""``status``: where everything that a model wrote comes from, how it stands, what is to be asked.

Stores and files are read one by one and not kept, so that thousands of them take no more memory
than one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen.cli import output, places
from pytest_regen.cli.output import say
from pytest_regen.cli.project import Project
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.cli.work_left import WorkLeft
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.regeneration.document_stores import DocumentStores
from pytest_regen.regeneration.store_view import StoreView
from pytest_regen.units.loading import prepare_kinds
from pytest_regen.units.view import FileUnits
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.stores import Origin

_FIRST: Final = ("KIND_ERROR", "CONFLICT", "LEDGER", "DRIFT", "MISSING_UNIT")
"""Codes that say more of a unit than any other that it has."""

_HANDFUL: Final = 8
"""Of more than these that are as they should be only the number is shown."""

_STYLES: Final = {"ok": "green", "STALE": "yellow", "UNRECORDED": "yellow", "ORPHAN": "yellow"}


@dataclass(frozen=True, slots=True)
class _Row:
    """One unit, or one type of a store."""

    name: str
    state: str
    """``ok``, or the code that says the most."""
    codes: tuple[str, ...]
    """Everything that is wrong with it."""
    model: str = ""
    """Who wrote the recorded text; ``hand`` for a person."""
    generated_at: str = ""
    attempt: int = 0
    """Running number of its texts; 0 where none is recorded."""


def _row(name: str, issues: Iterable[Issue], *written: Any) -> _Row:
    """Return the row of something with these issues; errors come before warnings."""
    by_severity = sorted(issues, key=lambda issue: issue.severity)
    codes = tuple(dict.fromkeys(issue.code for issue in by_severity))
    first = next((code for code in _FIRST if code in codes), codes[0] if codes else "ok")
    return _Row(name, first, codes, *written)


def status(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Files with units, stores, or folders of them; without one, all of the project.",
        ),
    ] = None,
    units: output.UnitNames = None,
    as_json: output.AsJson = False,
) -> None:
    """Show units and types, one line each: state, who wrote it, and when; and what is to ask.

    Of many that are as they should be, only the number is shown.
    """
    output.answer_on_stdout(is_wanted=not as_json)
    project = Project.here()
    files = project.recorded_files(paths)
    stores = list(places.stores_in(project, paths, files))
    if units and not files:
        raise UsageError(
            f"--unit {units[0]} names nothing: no file with units is among the paths",
            hint='name a file that one of the "kinds" in [tool.pytest-regen] claims',
        )
    turns = TurnOptions(project)
    if not (files or stores or as_json):
        places.tell_unmarked(project)
        return
    left = WorkLeft(turns)
    documents = DocumentStores(is_whole=stores != list(paths or ()))
    report: dict[str, list[dict[str, Any]]] = {"stores": [], "files": []}
    code, models = 0, Counter[str]()
    for path in stores:
        try:
            place = places.StoreHere(project, path)
            view = place.at.open()
            rows = list(_type_rows(view))
        except RegenError as error:
            if len(stores) == 1:
                raise
            code = max(code, error.exit_code)
            left.add_unreadable(path, documents)
            if as_json:
                failure = output.describe_failure(error)
                report["stores"].append({"path": path.as_posix(), "types": [], "failure": failure})
            else:
                output.fail(error.what, why=error.why, hint=error.hint)
            continue
        left.add(place, view)
        documents.add(Origin.of(view.store))
        _tell(path.as_posix(), "types", rows, report["stores"] if as_json else None)
    prepare_kinds(project.kinds, [file.path for file in files])
    for file in files:
        units_view = file.open()
        places.refuse_unknown_units(units_view, units if len(files) == 1 else None)
        rows = list(_unit_rows(units_view, units))
        _tell(file.here, "units", rows, report["files"] if as_json else None)
        models.update(row.model for row in rows if row.model)
        left.add(places.FileHere(file), units_view, units)
    following = left.next_command(documents)
    if as_json:
        absent = [group.to_json() for group in documents.absent]
        total = {**left.to_json(), "without_store": absent, "next": following or None}
        output.emit_json({**report, "sum": {**total, "written_by": models}})
    else:
        _tell_sum(left, documents, models)
        if following:
            output.next_step(following)
    raise typer.Exit(code)


def _tell_sum(left: WorkLeft, documents: DocumentStores, models: Counter[str]) -> None:
    for group in documents.absent:
        say(str(group), "yellow")
    if models:
        written = (f"{number:,} by {model}" for model, number in models.most_common())
        say(f"units written: {', '.join(written)}")
    say(left.words(), "green" if left.is_nothing else "")


def _tell(path: str, key: str, rows: Sequence[_Row], report: list[Any] | None) -> None:
    """Show the rows of a place, or put them into a report."""
    if report is not None:
        report.append({"path": path, key: [asdict(row) for row in rows]})
        return
    say(path)
    fine = sum(row.state == "ok" for row in rows)
    if fine > _HANDFUL:
        rows = [row for row in rows if row.state != "ok"]
        say(f"  {fine:,} ok", "green")
    cells = [
        [row.name, row.state, row.model or "-", row.generated_at or "-"]
        + ([f"text {row.attempt}"] if row.attempt else [])
        for row in rows
    ]
    for row, line in zip(rows, output.aligned(cells), strict=True):
        say(f"  {line}", _STYLES.get(row.state, "red"))


def _unit_rows(view: FileUnits, names: Collection[str] | None) -> Iterator[_Row]:
    units = [(name, view.issues(name)) for name in view.names]
    units += [(issue.type_name or "", (issue,)) for issue in view.orphans]
    for name, issues in units:
        if names is None or name in names:
            entry = view.entry(name)
            written = (entry.model, entry.generated_at, entry.attempt) if entry else ()
            yield _row(name, issues, *written)


def _type_rows(view: StoreView) -> Iterator[_Row]:
    for name in view.names:
        pages = view.store.pages_of(name)
        yield _row(
            name,
            view.issues(name),
            ", ".join(dict.fromkeys(page.model for page in pages)),
            max((page.generated_at for page in pages), default=""),
            max((page.attempt for page in pages), default=0),
        )
