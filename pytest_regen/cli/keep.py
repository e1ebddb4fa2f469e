"""Commands that ask no model: ``validate``, ``history``, and what keeps or drops texts."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Annotated, Any, Final, NoReturn

import typer

from pytest_regen.cli import output, places
from pytest_regen.cli.output import AsJson, UnitNames, emit_json, fact, next_step, say
from pytest_regen.cli.project import Project
from pytest_regen.errors import StoreWriteError, UsageError
from pytest_regen.github import annotate, validated
from pytest_regen.modes import StalePolicy, stale_outcome
from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.answers import issue_lines
from pytest_regen.regeneration.places import Advice, Changes, Place
from pytest_regen.text import plural, shorten
from pytest_regen.units.loading import prepare_kinds
from pytest_regen.validation.issues import Issue

Folder = Annotated[
    Path, typer.Argument(metavar="PATH", help="Folder of a store, or a file with units.")
]


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
    output.answer_on_stdout(is_wanted=not as_json)
    project = Project.here()
    members = project.places(dirs)
    if not (members or as_json):
        tell_unmarked(project)
    # All at once, because a kind may ask for what it needs in one go.
    prepare_kinds(project.kinds, [place.path for place in members])
    look_ahead(members, jobs or os.cpu_count() or 1)
    stale = project.settings.stale or "auto"
    reports: dict[str, list[dict[str, Any]]] = {"stores": []}
    every: list[tuple[str, dict[str, Any]]] = []
    code = 0
    for place in members:
        view = place.open()
        try:
            if not no_write:
                place.record_issues(view)
        except StoreWriteError as error:
            # What was found does not depend on it.
            say(f"note: the summary in {Path(place.here, 'ir.json')} was not updated: {error.why}")
        units = {
            name: [i for i in view.issues(name) if i.code != "STALE" or stale != "ignore"]
            for name in view.names
        }
        issues = [*view.file_issues, *view.orphans, *chain.from_iterable(units.values())]
        # What a person wrote and is stale is only told of: no model wrote it from something else.
        old = {i.type_name for i in issues if i.code == "STALE" and not i.is_by_hand}
        fails_old = bool(old) and stale_outcome(stale) == "fail"
        is_ok = not (errors_in(issues) or fails_old)
        advice = view.advice(
            # Then what is stale is updated first.
            [replace(i, severity="error") if i.code == "STALE" and fails_old else i for i in issues]
        )
        if not as_json:
            if by_type:
                places.tell_issues([*view.file_issues, *view.orphans], place.source)
                places.tell_by_unit(place, units)
            else:
                places.tell_issues(issues, place.source)
            _tell_sum(place, units, issues, len(old), stale)
            for note in view.notes:
                say(note)
            places.advise(advice)
        report = {
            "path": place.here,
            "source": place.source,
            "ok": is_ok,
            "not_run": view.not_run or None,
            "note": view.format_note or None,
            "errors": [issue.to_json() for issue in view.file_issues],
            f"{place.noun}s": [
                {
                    "name": name,
                    **view.unit_json(name),
                    "errors": [issue.to_json() for issue in errors_in(listed)],
                    "warnings": [i.to_json() for i in listed if i.severity != "error"],
                }
                for name, listed in units.items()
            ],
            "orphans": [issue.to_json() for issue in view.orphans],
            "next": advice.command if advice else "",
        }
        reports.setdefault(place.group, []).append(report)
        every.append((f"{place.noun}s", report))
        is_broken = any(issue.code == "KIND_ERROR" for issue in issues)
        code = max(code, 2 if is_broken else int(not is_ok))
    if as_json:
        emit_json(reports)
    else:
        # Once for all stores of a document, because a release makes all of them old at once.
        for note in dict.fromkeys(report["note"] for _, report in every if report["note"]):
            say(f"note: {note}")
    # Last, because GitHub finds these lines anywhere, and people read what stands above.
    annotate(project.settings.annotations or "auto", validated(stale, every))
    raise typer.Exit(code)


def look_ahead(members: Sequence[Place[Any]], jobs: int) -> None:
    """Run the types of stores in several processes, which keep in the cache what came of it."""
    stores = [str(place.path) for place in members if place.has_pages]
    jobs = min(jobs, len(stores))
    command = [sys.executable, "-P", "-m", "pytest_regen", "validate", "--no-write", "--json"]
    # What they say is not read, because the caller meets it again and tells it in order.
    children = [
        Popen([*command, *stores[number::jobs]], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        for number in range(jobs if jobs > 1 else 0)
    ]
    try:
        for child in children:
            child.wait()
    finally:
        # Waited for, because whoever stops the command wants none of them to write after it.
        for child in children:
            child.kill()
            child.wait()


def _tell_sum(
    place: Place[Any],
    units: Mapping[str, Sequence[Issue]],
    issues: Sequence[Issue],
    old: int,
    stale: StalePolicy,
) -> None:
    """Tell how many units of a place have errors, and how many are stale."""
    failing = sum(bool(errors_in(listed)) for listed in units.values())
    total = plural(len(units), place.noun)
    if failing:
        say(f"{place.here}: {failing} of {total} {'has' if failing == 1 else 'have'} errors")
    elif not errors_in(issues):
        in_ci = ", which fails in CI" if stale == "auto" else ""
        older = f"; {old} {'is' if old == 1 else 'are'} stale{in_ci}" if old else ""
        style = "" if old and stale_outcome(stale) == "fail" else "green"
        say(f"{place.here}: {total}, no errors{older}", style)


def tell_unmarked(project: Project) -> None:
    """Say which kinds have no unit yet."""
    from pytest_regen.units.opening import unmarked_kinds

    for what in unmarked_kinds(project.kinds):
        say(what, "yellow")
    next_step("pytest-regen init")


def errors_in(issues: Iterable[Issue]) -> list[Issue]:
    """Return the errors among issues."""
    return [issue for issue in issues if issue.severity == "error"]


def history(
    path: Folder,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """List outputs that were replaced or rejected; newest last."""
    project = Project.here()
    place = project.place(path)
    view = place.open()  # What holds no place has no history, and says so.
    past = verbs.history(place, units)
    if as_json:
        emit_json({"entries": [{"id": text.id, **text.to_json()} for text in past]})
        return
    rows = []
    errors_by_text = [errors_in(text.issues) for text in past]
    for text, errors in zip(past, errors_by_text, strict=True):
        page = [f"page {text.page} of {text.page_count}"] if place.has_pages else []
        cells = [text.id, text.reason, text.name, *page, f"attempt {text.attempt}", text.model]
        rows.append([*cells, plural(len(errors), "error") if errors else ""])
    for errors, line in zip(errors_by_text, output.aligned(rows), strict=True):
        say(line)
        for error_line in issue_lines(errors):
            say(f"    {error_line}")
    if not past:
        say(f"{place.here}: nothing was replaced or rejected yet")
        places.advise(places.advice_to_test(project, place, view))
        return
    newest = past[-1]
    verb, options = "restore", ("--to", newest.id)
    if newest.reason == "rejected":  # Whoever reads why it was does not want it back.
        verb, options = "regenerate", ("--correction", "what is wrong")
    next_step(places.command(verb, place, newest.name, *options))


def restore(
    path: Folder,
    page: Annotated[int | None, typer.Option("--page", min=1, help="Only this page.")] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="ID", help="History entry; by default the last that differs."),
    ] = None,
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Put an output from the history back."""
    project = Project.here()
    place = project.place(path)
    if not units or len(units) != 1:
        raise UsageError(
            f"restore does not say which {place.noun} of {place.here}",
            why=f"what is restored belongs to one {place.noun}",
            hint=f"name it with {place.option}; {places.command('history', place)} lists what "
            "there is",
        )
    restored = verbs.restore(place, units[0], page=page, to=to)
    _finish("restored", project, place, restored, as_json=as_json)


def adopt(
    path: Folder,
    units: UnitNames = None,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Also texts that are stale, each with its author."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make blocks edited by hand the stored outputs, and functions that exist units."""
    project = Project.here()
    file_name, separator, unit = str(path).partition("::")
    if separator and not path.exists():
        path, units = Path(file_name), [*(units or ()), unit]
    if units and path.suffix == ".py" and path.is_file():
        from pytest_regen.cli.starts import enclose

        enclose(project, path, units)
        project = Project.here()  # What is marked now is claimed now.
    place = project.place(path)
    adopted = verbs.adopt(place, units, with_stale=stale)
    # What is wrong is recorded now, and must not be taken for clean: the gate will say so.
    issues = [issue for name in adopted.names for issue in place.open().issues(name)]
    _finish("adopted", project, place, adopted, errors_in(issues), as_json=as_json)


def rebuild(path: Folder, units: UnitNames = None, as_json: AsJson = False) -> None:
    """Write the source from its stored pages; edits made by hand go to the history.

    Of a store that git could not merge our version is taken; theirs goes to the history.
    """
    project = Project.here()
    place = project.place(path)
    rebuilt = verbs.rebuild(place, units)
    view = place.open()
    of_units = [issue for name in units or view.names for issue in view.issues(name)]
    # Only those, because whatever else is wrong with a text was so before.
    issues = [i for i in (*view.file_issues, *of_units) if i.code in {"CONFLICT", "LEDGER"}]
    _finish("rebuilt", project, place, rebuilt, issues, as_json=as_json)


def forget(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File that a kind claims.")],
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Drop what nothing asks for any more: entries of the ledger and, where possible, texts."""
    project = Project.here()
    place = project.place(path)
    _finish("forgotten", project, place, verbs.forget(place, units), as_json=as_json)


_IDLE: Final[Mapping[str, str]] = {
    "adopted": "every text is recorded as it stands",
    "rebuilt": "every recorded text stands as it is recorded",
    "forgotten": "everything in it is asked for",
}


def _finish(
    verb: str,
    project: Project,
    place: Place[Any],
    changes: Changes,
    issues: Sequence[Issue] = (),
    *,
    as_json: bool,
) -> NoReturn:
    """Tell what was kept, dropped or put back, and end the command.

    Args:
        verb: what was done.
        project: in which.
        place: to whose units.
        changes: what became of them.
        issues: what is wrong now; errors make the exit code 1.
        as_json: whether a program reads it.
    """
    pages = [(new.name, new.page) for new in changes.pages]
    pages = pages or [(name, 1) for name in changes.names]
    code = int(bool(errors_in(issues)))
    if as_json:
        listed: list[Any] = list(changes.names)
        if verb in {"restored", "adopted"}:
            listed = [places.keys(place, *page) for page in pages]
        for row, new in zip(listed, changes.pages if verb == "restored" else (), strict=False):
            row["model"] = new.model
        report = {**asdict(changes), "errors": [issue.to_json() for issue in issues]}
        del report["names"], report["pages"]
        emit_json({verb: listed, **report})
        raise typer.Exit(code)
    # Opened afresh, because a view does not change with its files.
    view = place.open()
    output.show_diff(changes.diff)
    _tell_changes(verb, place, changes, pages)
    places.tell_issues(issues, place.source)
    following = view.advice(issues) or places.advice_to_test(project, place, view, changes.names)
    if verb == "adopted" and changes.names:
        places.tell_only_read(project, place, view, changes.names)
    elif not (changes.names or changes.dropped or changes.joined or changes.diff or issues):
        say(f"{place.here}: {_IDLE[verb]}")
        codes = {name: {issue.code for issue in view.issues(name)} for name in view.names}
        # What a newer document gives is no question of what stands there: adopting mends nothing.
        stale = [n for n in codes if "STALE" in codes[n] and not view.has_old_prompt(n)]
        if stale and verb == "adopted":
            say(f"  {shorten(stale)}: STALE; to say that they are right as they are:", "yellow")
            following = Advice(places.command("adopt", place, None, "--stale"))
    places.advise(following)
    raise typer.Exit(code)


def _tell_changes(
    verb: str, place: Place[Any], changes: Changes, pages: Sequence[tuple[str, int]]
) -> None:
    for name in changes.joined:
        fact("taken", f"our version of {Path(place.here, name).as_posix()}")
    for name in changes.dropped:
        fact("dropped", f"{name}, which could not be read")
    if verb == "restored":
        for new in changes.pages:
            fact(verb, f"{places.label(place, new.name, new.page)}, written by {new.model}")
    elif verb == "rebuilt" and place.has_pages:
        for name in changes.names:
            fact(verb, name)
    else:
        places.tell_units(place, verb, pages)
    if changes.history:
        fact("kept", f"{plural(len(changes.history), 'text')} in {place.history_path}")
    if changes.by_hand:
        fact("left", f"{plural(changes.by_hand, 'text')} by hand, which only the file has")
    for note in changes.notes:
        fact("to do", note, "yellow")
