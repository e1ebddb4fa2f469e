"""``status``: where everything that a model wrote comes from, and how it stands."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen.cli.output import AsJson, UnitNames, emit_json, say
from pytest_regen.cli.project import Project
from pytest_regen.cli.stores import stores_in
from pytest_regen.errors import UsageError
from pytest_regen.stores import RegenStore
from pytest_regen.units.ledger import Entry
from pytest_regen.units.place import UnitFile
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Issue

__all__ = ["status"]

_FIRST: Final = ("KIND_ERROR", "CONFLICT", "LEDGER", "DRIFT", "MISSING_UNIT")
"""Codes that say more of a unit than any other that it has."""

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

    @classmethod
    def of(
        cls, name: str, issues: Iterable[Issue], model: str = "", at: str = "", attempt: int = 0
    ) -> "_Row":
        """Return the row of something with these issues."""
        found = sorted(issues, key=lambda issue: issue.severity)  # Errors before warnings.
        codes = tuple(dict.fromkeys(issue.code for issue in found))
        first = next((code for code in _FIRST if code in codes), codes[0] if codes else "ok")
        return cls(name, first, codes, model, at, attempt)


def status(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Files with units, stores, or folders of them; without one, all of the project.",
        ),
    ] = None,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Show each unit or type in one line: its state, who wrote it, and when."""
    project = Project.here()
    files = project.unit_files(paths)
    stores = list(stores_in(project, paths, files))
    if units and not files:
        raise UsageError(
            f"--unit {units[0]} names nothing: no file with units is among the paths",
            hint='name a file that one of the "kinds" in [tool.pytest-regen] claims',
        )
    of_files = [(file.here, list(_unit_rows(file, units))) for file in files]
    of_stores = [(path.as_posix(), list(_type_rows(project, path))) for path in stores]
    if as_json:
        emit_json(
            {
                "stores": [{"path": path, "types": _json(rows)} for path, rows in of_stores],
                "files": [{"path": path, "units": _json(rows)} for path, rows in of_files],
            }
        )
        return
    for path, rows in (*of_stores, *of_files):
        _show(path, rows)


def _json(rows: Sequence[_Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def _unit_rows(file: UnitFile, names: Sequence[str] | None) -> Iterator[_Row]:
    view = file.open()
    for name in view.names:
        if names is None or name in names:
            yield _row(name, view.issues(name), view.entry(name))
    for issue in view.orphans:
        name = issue.type_name or ""
        if names is None or name in names:
            yield _row(name, [issue], view.entry(name))


def _row(name: str, issues: Iterable[Issue], entry: Entry | None) -> _Row:
    if entry is None:
        return _Row.of(name, issues)
    return _Row.of(name, issues, entry.model, entry.generated_at, entry.attempt)


def _type_rows(project: Project, path: Path) -> Iterator[_Row]:
    store = RegenStore.open(path)
    results = validate_store(store, ignore=project.ignored_in(path))
    for name in store.type_names:
        pages = store.pages_of(name)
        yield _Row.of(
            name,
            results[name].issues if name in results else (),
            ", ".join(dict.fromkeys(page.model for page in pages)),
            max((page.generated_at for page in pages), default=""),
            max((page.attempt for page in pages), default=0),
        )


def _show(path: str, rows: Sequence[_Row]) -> None:
    say(path)
    cells = [
        (row.name, row.state, row.model or "-", row.generated_at or "-", f"text {row.attempt}")
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, cell in zip(rows, cells, strict=True):
        text = "  ".join(part.ljust(width) for part, width in zip(cell, widths, strict=True))
        shown = text if row.attempt else text.removesuffix("text 0")
        say(f"  {shown}".rstrip(), _STYLES.get(row.state, "red"))
