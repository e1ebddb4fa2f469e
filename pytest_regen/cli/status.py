"""``status``: where everything that a model wrote comes from, how it stands, what is to be asked.

Stores and files are read one by one and not kept, so that thousands of them take no more memory
than one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen import errors
from pytest_regen.cli import output
from pytest_regen.cli.keep import tell_unmarked
from pytest_regen.cli.output import say
from pytest_regen.cli.project import Project
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.cli.work_left import WorkLeft
from pytest_regen.regeneration.document_stores import DocumentStores
from pytest_regen.regeneration.places import Place, View
from pytest_regen.units.loading import prepare_kinds

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
    members = project.places(paths)
    if not (members or as_json):
        tell_unmarked(project)
        return
    left = WorkLeft(TurnOptions(project))
    are_named = [place.path for place in members] == list(paths or ())
    documents = DocumentStores(is_whole=not are_named)
    report: dict[str, list[dict[str, Any]]] = {"stores": [], "files": []}
    code, models = 0, Counter[str]()
    prepare_kinds(project.kinds, [place.path for place in members])
    for place in members:
        listed = report.setdefault(place.group, [])
        row_of_place: dict[str, Any] = {"path": place.here, f"{place.noun}s": []}
        listed.append(row_of_place)
        try:
            rows = _look(place, units, left, documents, refuses=len(members) == 1)
        except errors.StoreError as error:
            if len(members) == 1:
                raise
            code = max(code, error.exit_code)
            left.add_unreadable(place, documents)
            row_of_place["failure"] = output.describe_failure(error)
            if not as_json:
                output.fail(error.what, why=error.why, hint=error.hint)
            continue
        row_of_place[f"{place.noun}s"] = [asdict(row) for row in rows]
        if not as_json:
            _tell(place.here, rows)
        if not place.has_pages:
            models.update(row.model for row in rows if row.model)
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


def _tell(path: str, rows: Sequence[_Row]) -> None:
    """Show the rows of a place."""
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


def _look(
    place: Place[Any],
    names: Sequence[str] | None,
    left: WorkLeft,
    documents: DocumentStores,
    *,
    refuses: bool,
) -> list[_Row]:
    """Return the rows of a place, and add it up.

    Args:
        place: the place.
        names: its units, by default all.
        left: what there is to do.
        documents: the stores by document.
        refuses: whether a name that it lacks is refused.
    """
    view = place.open()
    rows = _rows(view)
    if names is not None:
        names_here = {row.name for row in rows}
        for name in names if refuses else ():
            if name not in names_here:
                view.resolve(name)  # Names near ones.
        rows = [row for row in rows if row.name in names]
    left.add(place, view, names)
    if view.origin:
        documents.add(view.origin)
    return rows


def _rows(view: View) -> list[_Row]:
    """Return the rows of a place; of a unit errors come before warnings."""
    rows = []
    units = [(name, view.issues(name)) for name in view.names]
    for name, issues in [*units, *((i.type_name or "", (i,)) for i in view.orphans)]:
        by_severity = sorted(issues, key=lambda issue: issue.severity)
        codes = tuple(dict.fromkeys(issue.code for issue in by_severity))
        state = next((code for code in _FIRST if code in codes), codes[0] if codes else "ok")
        rows.append(_Row(name, state, codes, *view.author(name)))
    return rows
