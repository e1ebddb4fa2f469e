"""``status``: where everything that a model wrote comes from, how it stands, what is to be asked.

Stores and files are read one by one and not kept, so that thousands of them take no more memory
than one.
"""

from collections import Counter
from collections.abc import Sequence
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
from pytest_regen.regeneration.places import View
from pytest_regen.units.loading import prepare_kinds

_FIRST: Final = ("KIND_ERROR", "CONFLICT", "LEDGER", "DRIFT", "MISSING_UNIT")
"""Codes that say more of a unit than any other that it has."""

_HANDFUL: Final = 8
"""Of more than these that are as they should be only the number is shown."""

_STYLES: Final = {"ok": "green", "STALE": "yellow", "UNRECORDED": "yellow", "ORPHAN": "yellow"}


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
    """Show units and types, one line each: state, who wrote it, and when; and what is left to ask.

    Of many that are in order, only the number is shown.
    """
    output.answer_on_stdout(is_wanted=not as_json)
    project = Project.here()
    members = project.places(paths)
    if not (members or as_json):
        tell_unmarked(project)
        return
    are_named = [place.path for place in members] == list(paths or ())
    left = WorkLeft(TurnOptions(project), is_whole=not are_named)
    report: dict[str, list[dict[str, Any]]] = {"stores": [], "files": []}
    code, models = 0, Counter[str]()
    prepare_kinds(project.kinds, [place.path for place in members])
    for place in members:
        listed = report.setdefault(place.group, [])
        row_of_place: dict[str, Any] = {"path": place.here, f"{place.noun}s": []}
        listed.append(row_of_place)
        try:
            view = place.open()
            rows = _rows(view, units, refuses=len(members) == 1)
            left.add(place, view, units)
        except errors.StoreError as error:
            if len(members) == 1:
                raise
            code = max(code, error.exit_code)
            left.add_unreadable(place)
            row_of_place["failure"] = output.describe_failure(error)
            if not as_json:
                output.fail(error.what, why=error.why, hint=error.hint)
            continue
        row_of_place[f"{place.noun}s"] = rows
        if not as_json:
            _tell(place.here, rows)
        # Not of stores, because the line that these make is about units.
        if not place.has_pages:
            models.update(row["model"] for row in rows if row["model"])
    following = left.next_command()
    if as_json:
        absent = [group.to_json() for group in left.documents.absent.values()]
        total = {**left.to_json(), "without_store": absent, "next": following or None}
        output.emit_json({**report, "sum": {**total, "written_by": models}})
    else:
        _tell_sum(left, models)
        if following:
            output.next_step(following)
    raise typer.Exit(code)


def _tell_sum(left: WorkLeft, models: Counter[str]) -> None:
    for group in left.documents.absent.values():
        say(str(group), "yellow")
    if models:
        written = (f"{number:,} by {model}" for model, number in models.most_common())
        say(f"units written: {', '.join(written)}")
    say(left.words(), "green" if left.is_nothing else "")


def _tell(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """Show the rows of a place."""
    say(path)
    fine = sum(row["state"] == "ok" for row in rows)
    # Counted, because a catalogue of 2,000 texts would push what is wrong off the screen.
    if fine > _HANDFUL:
        rows = [row for row in rows if row["state"] != "ok"]
        say(f"  {fine:,} ok", "green")
    cells = [
        [row["name"], row["state"], row["model"] or "-", row["generated_at"] or "-"]
        + ([f"text {row['attempt']}"] if row["attempt"] else [])
        for row in rows
    ]
    for row, line in zip(rows, output.aligned(cells), strict=True):
        say(f"  {line}", _STYLES.get(row["state"], "red"))


def _rows(view: View, wanted: Sequence[str] | None, *, refuses: bool) -> list[dict[str, Any]]:
    """Return one row per unit or type as JSON: the code that says the most, all codes, its author.

    Args:
        view: of a place.
        wanted: the names of its units, by default all.
        refuses: whether a name that it lacks is refused.
    """
    rows = []
    units = [(name, view.issues(name)) for name in view.names]
    for name, issues in [*units, *((i.type_name or "", (i,)) for i in view.orphans)]:
        # Errors before warnings, because the first code is the state.
        by_severity = sorted(issues, key=lambda issue: issue.severity)
        codes = list(dict.fromkeys(issue.code for issue in by_severity))
        state = next((code for code in _FIRST if code in codes), codes[0] if codes else "ok")
        author = view.author(name)._asdict()
        rows.append({"name": name, "state": state, "codes": codes, **author})
    if wanted is None:
        return rows
    present = {row["name"] for row in rows}
    for name in wanted if refuses else ():
        if name not in present:
            view.resolve(name)  # Names near ones.
    return [row for row in rows if row["name"] in wanted]
