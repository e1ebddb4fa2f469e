"""Commands on files with units.

What ``generate``, ``validate`` and the others do with a file that a kind claims; and ``forget``,
which only units have.
"""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_regen.cli.output import (
    KEEPS_EDIT,
    Advice,
    AsJson,
    UnitNames,
    confirm,
    describe_failure,
    emit_json,
    fact,
    is_terminal,
    money_json,
    next_step,
    say,
    show_diff,
    show_errors,
    show_failures,
    show_pending,
    show_stopped,
    usage_line,
)
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.several import Task, run_tasks
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import KindError, UsageError
from pytest_regen.github import Finding, Outdated, tell_outdated
from pytest_regen.modes import StalePolicy, stale_outcome
from pytest_regen.regeneration import TurnSettings, fixable
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.regeneration.queue import Flow, drive_flow
from pytest_regen.text import plural, shorten
from pytest_regen.turns.models import tokens_for
from pytest_regen.units.asking import (
    UnitsResult,
    generate_steps,
    heal_steps,
    needs_answer,
    regenerate_steps,
)
from pytest_regen.units.loading import prepare_kinds
from pytest_regen.units.naming import (
    adopt_command,
    command,
    forget_command,
    generate_command,
    rebuild_command,
    tests_command,
    unit_id,
)
from pytest_regen.units.place import UnitFile
from pytest_regen.units.view import FileUnits
from pytest_regen.units.work import (
    UnitChanges,
    adopt_units,
    enclose_units,
    forget_units,
    rebuild_units,
    refuse_unknown,
    restore_unit,
    unit_history,
)
from pytest_regen.validation.issues import Issue, ValidationResult


def refuse_types(file: UnitFile, **options: object) -> None:
    """Refuse options that are about types of a store."""
    for name, value in options.items():
        if value:
            raise UsageError(
                f"{file.here} has units, and no {name}",
                why=f"a kind claims the file ({file.kind.title}), so it is no API description",
                hint="name units with --unit, or none for all",
            )


# validate


def validate_files(
    project: Project, files: Iterable[UnitFile], *, as_json: bool
) -> tuple[list[dict[str, Any]], int]:
    """Show what is wrong with the units of files; return their reports and the exit code."""
    reports: list[dict[str, Any]] = []
    code = 0
    files = list(files)
    prepare_kinds(project.kinds, [file.path for file in files])
    for file in files:
        units = file.open()
        names = _names(units)
        failing = [name for name in names if _fails(units, name, project.stale)]
        is_broken = any(issue.code == "KIND_ERROR" for n in failing for issue in units.issues(n))
        is_ok = not failing and not _file_errors(units)
        code = max(code, 2 if is_broken else int(not is_ok))
        found = [*units.file_issues, *(i for name in names for i in units.issues(name))]
        following = None if is_ok else _advice(units, [*found, *units.orphans])
        todo = following.command if following else ""
        reports.append({**_report_file(units, names, is_ok=is_ok), "next": todo})
        if not as_json:
            _show_validated(units, names, failing, project.stale)
    return reports, code


def _file_errors(units: FileUnits) -> list[Issue]:
    """Return what is wrong with a file, and with what its ledger has and nobody asks for."""
    return [*units.file_issues, *(one for one in units.orphans if one.severity == "error")]


def _names(units: FileUnits) -> tuple[str, ...]:
    """Return the names of a file's units.

    Raises:
        KindError: the kind cannot say; the traceback is shown.
    """
    try:
        return units.names
    except KindError as error:
        _show_trace(error.trace)
        raise


def _show_trace(trace: str | None) -> None:
    for line in (trace or "").splitlines():
        say(f"  {line}")


def _fails(units: FileUnits, name: str, stale: StalePolicy) -> bool:
    issues = units.issues(name)
    is_stale = any(issue.code == "STALE" and not issue.is_by_hand for issue in issues)
    return any(issue.severity == "error" for issue in issues) or (
        is_stale and stale_outcome(stale) == "fail"
    )


def _report_file(units: FileUnits, names: Sequence[str], *, is_ok: bool) -> dict[str, Any]:
    results = {name: ValidationResult(units.issues(name)) for name in names}
    return {
        "path": units.here,
        "ok": is_ok,
        "errors": [issue.to_json() for issue in units.file_issues],
        "units": [
            {
                "name": name,
                "errors": [issue.to_json() for issue in result.errors],
                "warnings": [issue.to_json() for issue in result.warnings],
            }
            for name, result in results.items()
        ],
        "orphans": [issue.to_json() for issue in units.orphans],
    }


def _show_validated(
    units: FileUnits, names: Sequence[str], failing: Sequence[str], stale: StalePolicy
) -> None:
    found = [issue for name in names for issue in units.issues(name)]
    if stale == "ignore":
        found = [issue for issue in found if issue.code != "STALE"]
    found = [*units.file_issues, *found]
    show_unit_issues(units, [*found, *units.orphans])
    total = plural(len(names), "unit")
    if failing:
        say(f"{units.here}: {len(failing)} of {total} {'fails' if len(failing) == 1 else 'fail'}")
    elif not _file_errors(units):
        say(f"{units.here}: {total}, no errors", "green")
    if units.reworded:
        say(f"note: {shorten(units.reworded)}: regenerate would ask in other words than before")
    if todo := _advice(units, [*found, *units.orphans]):
        next_step(*todo)


def show_unit_issues(units: FileUnits, issues: Iterable[Issue]) -> None:
    """List issues, one line each; what many units have in common is counted after a few."""
    shown: dict[tuple[str, str], int] = {}
    for issue in sorted(issues, key=lambda one: (one.severity, one.line or 0)):
        key = issue.code, issue.message
        shown[key] = shown.get(key, 0) + 1
        if shown[key] > _ALIKE:
            continue
        where = f"{units.here}:{issue.line}" if issue.line else units.here
        mark = "" if issue.severity == "error" else "warning: "
        name = f"{issue.type_name} " if issue.type_name else ""
        style = "red" if issue.severity == "error" else "yellow"
        say(f"{where}: {mark}{name}[{issue.code}] {issue.message}", style)
        for line in (issue.detail or "").splitlines():
            say(f"    {line}")
    for (code, message), count in shown.items():
        if count > _ALIKE:
            say(f"{units.here}: {count - _ALIKE:,} more [{code}] {message}")


_ALIKE: Final = 8
"""Units that are listed with the same words before the rest is counted."""


def _advice(units: FileUnits, issues: Sequence[Issue]) -> Advice | None:
    """Return the command that does the most about what is wrong; ``None`` if an editor does."""
    codes, here = {"BY_HAND" if issue.is_by_hand else issue.code for issue in issues}, units.here
    if "CONFLICT" in codes:
        return Advice(rebuild_command(here), "or correct the file in an editor")
    if units.fault is not None or "KIND_ERROR" in codes or _file_errors(units):
        return None  # The lines above say what to do.
    unplaced = {issue.type_name or "" for issue in issues if issue.code == "MISSING_UNIT"}
    if unplaced and not any(map(units.has_place, unplaced)):
        codes.discard("MISSING_UNIT")  # Asking helps only after an editor did.
    records = "the next command records texts as they stand"
    commands = {
        "DRIFT": Advice(adopt_command(here), f"{KEEPS_EDIT}; to drop it: {rebuild_command(here)}"),
        "LEDGER": Advice(adopt_command(here), records),
        "MISSING_UNIT": Advice(generate_command(here)),
        "STALE": Advice(generate_command(here)),
        "BY_HAND": Advice(adopt_command(here, None, "--stale"), records),
        "": Advice(command("regenerate", here, None, "--from-errors")),
        "UNRECORDED": Advice(adopt_command(here), records),
        "ORPHAN": Advice(forget_command(here)),
    }
    if fixable(ValidationResult(tuple(issues))):
        codes.add("")
    return next((advice for code, advice in commands.items() if code in codes), None)


# generate, regenerate


def generate_file(
    file: UnitFile,
    names: Sequence[str] | None,
    turns: TurnOptions,
    *,
    force: bool,
    check: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Ask for the units that are missing or stale; return the exit code."""
    refuse_unknown_units(file, names)
    if check:
        tell_outdated(Project.here(), lambda: _outdated([file], names))
    if check or dry_run:
        return _plan(file, names, turns, force=force, check=check, as_json=as_json)
    with turns.run("generating", of_types=False, as_json=as_json) as (_, settings):
        done = drive_flow(_generate(file, names, turns, settings, force=force), settings)
    return _finish(done, names, as_json=as_json)


def refuse_unknown_units(file: UnitFile, names: Sequence[str] | None) -> None:
    """Refuse a name that no unit has, before anything else is wanted, such as a key.

    Raises:
        UsageError: it is not there; near ones are named.
    """
    units = file.open()
    for name in names or ():
        refuse_unknown(units, name, {*_names(units), *units.texts, *units.ledger.entries})


def _outdated(files: Sequence[UnitFile], names: Sequence[str] | None) -> Outdated:
    """Return the units of files that are missing or stale, and how many files have none."""
    found: list[Finding] = []
    current = 0
    for file in files:
        units = file.open()
        asked = _names_to_ask(units, names, force=False)
        current += not asked
        for name in asked:
            codes = {issue.code for issue in units.all_issues(name)}
            why = "it was never written" if "MISSING_UNIT" in codes else "its inputs have changed"
            unit, path = unit_id(units.here, name), Path(units.here)
            found.append(Finding("error", unit, "out of date", why, path))
    return found, current, generate_command(str(found[0].path)) if found else ""


def _generate(
    file: UnitFile,
    names: Sequence[str] | None,
    turns: TurnOptions,
    settings: TurnSettings,
    *,
    force: bool,
) -> Flow[UnitsResult]:
    """Ask for the units of a file, alone or beside others."""
    if settings.ready and _names_to_ask(file.open(), names, force=force):
        settings.ready()
    return (
        yield from generate_steps(
            file, names, settings=settings, attempts=turns.replies(), force=force
        )
    )


def _generate_task(file: UnitFile, turns: TurnOptions, *, force: bool, as_json: bool) -> Task:
    def steps(settings: TurnSettings) -> Flow[UnitsResult]:
        return _generate(file, None, turns, settings, force=force)

    def finish(done: UnitsResult, emit: Callable[[Any], None]) -> int:
        return _finish(done, None, as_json=as_json, emit=emit)

    return Task(file.here, steps, finish)


def generate_files(
    files: Sequence[UnitFile],
    turns: TurnOptions,
    *,
    force: bool,
    check: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Ask for the units of several files that are missing or stale; return the exit code."""
    if check:
        tell_outdated(Project.here(), lambda: _outdated(files, None))
    if check or dry_run:
        reports: list[Any] = []
        total = Estimate(turns.price_of)
        codes = [
            _plan(
                file,
                None,
                turns,
                force=force,
                check=check,
                as_json=as_json,
                emit=reports.append,
                total=total,
            )
            for file in files
        ]
        if as_json:
            emit_json({"files": reports, "estimate": total.to_json()})
        elif total.pages:
            say(total.sum_words(is_batch=turns.is_batch))
        return max(codes)
    tasks = [_generate_task(file, turns, force=force, as_json=as_json) for file in files]
    with turns.run("generating", of_types=False, as_json=as_json) as (progress, settings):
        outcome = run_tasks(tasks, settings, "file")
    if as_json:
        sums = {"failures": outcome.failures, **money_json(progress.state.usage)}
        emit_json({"files": outcome.in_order, **sums})
    else:
        outcome.show(progress.state)
    return outcome.exit_code


def _regenerate(
    file: UnitFile,
    names: Sequence[str],
    turns: TurnOptions,
    settings: TurnSettings,
    *,
    from_errors: bool,
    correction: str | None,
    accept_any: bool,
    discard_edits: bool,
) -> Flow[UnitsResult]:
    """Ask for units of a file again, alone or beside others."""
    if settings.ready and names:
        settings.ready()
    options: dict[str, Any] = {
        "settings": settings,
        "attempts": turns.replies(),
        "accept_any": accept_any,
        "discard_edits": discard_edits,
    }
    if from_errors:
        return (yield from heal_steps(file, names, **options))
    corrections = [correction] if correction else ()
    return (yield from regenerate_steps(file, names, corrections=corrections, **options))


def regenerate_task(
    file: UnitFile,
    turns: TurnOptions,
    *,
    from_errors: bool,
    correction: str | None,
    accept_any: bool,
    discard_edits: bool,
    as_json: bool,
) -> Task:
    """Return what ``regenerate_file`` does with all units of a file, to be done beside others."""
    chosen: list[str] = []

    def steps(settings: TurnSettings) -> Flow[UnitsResult]:
        units = file.open()
        chosen.extend(name for name in _names(units) if not from_errors or units.score(name).errors)
        return (
            yield from _regenerate(
                file,
                chosen,
                turns,
                settings,
                from_errors=from_errors,
                correction=correction,
                accept_any=accept_any,
                discard_edits=discard_edits,
            )
        )

    def finish(done: UnitsResult, emit: Callable[[Any], None]) -> int:
        return _finish(done, chosen, as_json=as_json, emit=emit)

    return Task(file.here, steps, finish)


def plan_regeneration(
    files: Iterable[UnitFile],
    turns: TurnOptions,
    total: Estimate,
    *,
    from_errors: bool,
    as_json: bool,
) -> list[Any]:
    """Say what would be asked of several files again, and add it up; return it as JSON."""
    reports: list[Any] = []
    for file in files:
        units = file.open()
        names = [name for name in _names(units) if not from_errors or units.score(name).errors]
        _plan(
            file,
            names,
            turns,
            force=True,
            check=False,
            as_json=as_json,
            emit=reports.append,
            total=total,
        )
    return reports


def _names_to_ask(units: FileUnits, names: Sequence[str] | None, *, force: bool) -> list[str]:
    chosen = _names(units) if names is None else names
    return [name for name in chosen if force or needs_answer(units, name)]


def _plan(
    file: UnitFile,
    names: Sequence[str] | None,
    turns: TurnOptions,
    *,
    force: bool,
    check: bool,
    as_json: bool,
    emit: Callable[[Any], None] = emit_json,
    total: Estimate | None = None,
) -> int:
    """Say what would be asked, or emit it as JSON; return the exit code."""
    units = file.open()
    asked = _names_to_ask(units, names, force=force)
    unreadable = units.file_issues or ((units.fault,) if units.fault else ())
    sizes = {name: turns.size(size) for name, _, size in file.sizes(units, asked, None)}
    tokens = {name: tokens_for(size.input_tokens, size.model) for name, size in sizes.items()}
    estimate = Estimate(turns.price_of, sizes.values(), of=total)
    if as_json:
        listed = [
            {"name": name, "estimated_input_tokens": count, "prompt": units.prompt(name)}
            for name, count in tokens.items()
        ]
        errors = [issue.to_json() for issue in unreadable]
        is_ok = not asked and not errors
        emit(
            {
                "path": units.here,
                "ok": is_ok,
                "system": units.system if asked else file.kind.system,
                "asked": listed,
                "errors": errors,
                "estimate": estimate.to_json(),
            }
        )
    elif unreadable:
        show_unit_issues(units, unreadable)
        if todo := _advice(units, unreadable):
            next_step(*todo)
    else:
        width = max(map(len, asked), default=0)
        for name, count in tokens.items():
            say(f"  {name:<{width}}  about {count:,} tokens")
        if asked:
            turns.show_cost(estimate)
            say(f"{units.here}: {plural(len(asked), 'unit')} to ask for; nothing written", "yellow")
        else:
            say(f"{units.here}: up to date", "green")
        if check or not asked:
            next_step(generate_command(units.here) if asked else tests_command(units.here))
    return int(bool(unreadable) or (check and bool(asked)))


def regenerate_file(
    file: UnitFile,
    names: Sequence[str] | None,
    turns: TurnOptions,
    *,
    from_errors: bool,
    correction: str | None,
    accept_any: bool,
    discard_edits: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Ask for units again; return the exit code."""
    refuse_unknown_units(file, names)
    units = file.open()
    chosen = _names(units) if names is None else tuple(names)
    if from_errors:
        chosen = tuple(name for name in chosen if units.score(name).errors)
    if dry_run:
        return _plan(file, chosen, turns, force=True, check=False, as_json=as_json)
    if names is None and not from_errors and not yes and not _confirm_all(units, chosen):
        return 0
    with turns.run("regenerating", of_types=False, as_json=as_json) as (_, settings):
        steps = _regenerate(
            file,
            chosen,
            turns,
            settings,
            from_errors=from_errors,
            correction=correction,
            accept_any=accept_any,
            discard_edits=discard_edits,
        )
        done = drive_flow(steps, settings)
    return _finish(done, names or chosen, as_json=as_json)


def _confirm_all(units: FileUnits, names: Sequence[str]) -> bool:
    what = f"all {plural(len(names), 'unit')} of {units.here}"
    if is_terminal():
        return confirm(f"Regenerate {what}?")
    raise UsageError(
        f"regenerating {what} was not confirmed",
        why="no --unit was named, which means every unit",
        hint="add --yes, or name units with --unit, or --from-errors",
    )


def _finish(
    done: UnitsResult,
    names: Sequence[str] | None,
    *,
    as_json: bool,
    emit: Callable[[Any], None] = emit_json,
) -> int:
    """Show what came of asking, or emit it as JSON; return the exit code."""
    units = done.view
    chosen = units.names if names is None else names
    left = [*units.file_issues, *(issue for name in chosen for issue in units.issues(name))]
    errors = [issue for issue in left if issue.severity == "error"]
    if done.failures:
        code = max(failure.exit_code for failure in done.failures)
    elif done.skipped or any(issue.code == "KIND_ERROR" for issue in errors):
        code = 2
    else:
        code = int(bool(errors))
    if as_json:
        emit(_report_answers(done, left, is_ok=code == 0))
        return code
    show_diff(done.diff)
    _show_results(done)
    show_unit_issues(units, left)
    if done.calls or done.results:
        say(f"{units.here}: {usage_line(done.calls, done.usage)}")
    elif not units.file_issues:
        say(f"{units.here}: nothing to ask", "green")
    show_failures(done.failures)
    show_pending(done.pending)
    if done.failures or done.pending:
        return code
    todo = _advice(units, left) if code else Advice(_tests(units, chosen))
    if todo:
        next_step(*todo)
    return code


def _report_answers(done: UnitsResult, left: Sequence[Issue], *, is_ok: bool) -> dict[str, Any]:
    result = ValidationResult(tuple(left))
    return {
        "path": done.view.here,
        "ok": is_ok,
        "regenerated": [name for name, _ in done.regenerated],
        "rejected": [entry for result in done.results for entry in result.rejected],
        "stop_reasons": {
            result.name: result.stop_reason for result in done.results if result.stop_reason
        },
        "skipped": dict(done.skipped),
        "calls": done.calls,
        "tokens": done.usage.total_tokens,
        **money_json(done.usage),
        "errors": [issue.to_json() for issue in result.errors],
        "warnings": [issue.to_json() for issue in result.warnings],
        "failures": [describe_failure(failure) for failure in done.failures],
        "diff": done.diff,
        **({"pending": dict(done.pending)} if done.pending else {}),
    }


def _show_results(done: UnitsResult) -> None:
    if done.regenerated:
        count = plural(len(done.regenerated), "unit")
        fact("written", f"{count}: {shorten([name for name, _ in done.regenerated])}", "green")
    rejected = [entry for result in done.results for entry in result.rejected]
    if rejected:
        fact("rejected", f"{plural(len(rejected), 'text')}, kept in .regen/history")
    for name, why in done.skipped.items():
        fact("skipped", f"{name}: {why}", "yellow")
    show_stopped(done.results)


# history, restore, adopt, rebuild, forget


def history_of_file(file: UnitFile, names: Sequence[str] | None, *, as_json: bool) -> None:
    """List the past texts of a file's units; newest last."""
    past_texts = unit_history(file)
    gone = {past.entry.name for past in past_texts}
    refuse_unknown_units(file, [name for name in names or () if name not in gone])
    found = [past for past in past_texts if not names or past.entry.name in names]
    if as_json:
        emit_json({"entries": [{"id": past.id, **past.to_json()} for past in found]})
        return
    for past in found:
        entry = past.entry
        errors = sum(issue.severity == "error" for issue in past.issues)
        cells = (past.id, past.reason, entry.name, f"attempt {entry.attempt}", entry.model)
        say("  ".join((*cells, plural(errors, "error") if errors else "")).rstrip())
        show_errors(past.issues)
    if found:
        newest = found[-1]
        again = ("--to", newest.id)
        if newest.reason == "rejected":  # Whoever reads why it was does not want it back.
            again = ("--correction", "what is wrong")
        verb = "regenerate" if newest.reason == "rejected" else "restore"
        next_step(command(verb, file.here, newest.entry.name, *again))
    else:
        say(f"{file.here}: nothing was replaced or rejected yet")
        next_step(tests_command(file.here))


def restore_in_file(
    file: UnitFile, names: Sequence[str] | None, to: str | None, *, as_json: bool
) -> None:
    """Make a past text of one unit the recorded one."""
    if not names or len(names) != 1:
        raise UsageError(
            f"restore does not say which unit of {file.place}",
            why="a text belongs to one unit",
            hint=f"name it with --unit; {command('history', file.here)} lists what there is",
        )
    past, done = restore_unit(file, names[0], to)
    if as_json:
        restored = [{"name": past.name, "model": past.model}]
        emit_json({"restored": restored, "history": done.history, "diff": done.diff})
        return
    show_diff(done.diff)
    fact("restored", f"{past.name}, written by {past.model}")
    next_step(_tests(file.open(), names))


def record_units(
    file: UnitFile, names: Sequence[str] | None, *, with_stale: bool = False
) -> tuple[UnitChanges, list[Issue]]:
    """Record texts as they stand; return what was recorded, and the errors of it."""
    done = adopt_units(file, names, with_stale=with_stale)
    units = file.open()
    return done, [
        issue for name in done.names for issue in units.issues(name) if issue.severity == "error"
    ]


def adopt_file(
    file: UnitFile, names: Sequence[str] | None, *, with_stale: bool, as_json: bool
) -> int:
    """Record texts as they stand; return the exit code."""
    done, left = record_units(file, names, with_stale=with_stale)
    units = file.open()
    if as_json:
        errors = [issue.to_json() for issue in left]
        emit_json({"adopted": [{"name": name} for name in done.names], "errors": errors})
        return int(bool(left))
    if done.names:
        fact("adopted", f"{plural(len(done.names), 'unit')}: {shorten(done.names)}")
        entries = (units.entry(name) for name in done.names)
        models = Counter(entry.model for entry in entries if entry and not entry.is_by_hand)
        for model, number in models.items():
            say(f"    {plural(number, 'text')} as {model} wrote {'it' if number == 1 else 'them'}")
        show_unit_issues(units, left)
        tell_only_read(units, done.names)
        next_step(*(_advice(units, left) or Advice(_tests(units, done.names))))
    else:
        say(f"{file.here}: every text is recorded as it stands")
        if stale := _stale_names(units) if names is None else ():
            say(f"  {shorten(stale)}: STALE; to say that they are right as they are:", "yellow")
            next_step(adopt_command(file.here, None, "--stale"))
        else:
            next_step(tests_command(file.here))
    return int(bool(left))


def _tests(units: FileUnits, names: Sequence[str]) -> str:
    """Return the command that tests units: all tests, if of one its own item runs nothing."""
    known = [name for name in names if name in units.texts]
    return "pytest" if any(map(units.is_only_read, known)) else tests_command(units.here)


def tell_only_read(units: FileUnits, names: Sequence[str]) -> None:
    """Say of which functions pytest runs nothing, and what changes that."""
    found = [name for name in names if units.is_only_read(name)]
    if not found:
        return
    verb, them = ("has", "it") if len(found) == 1 else ("have", "them")
    mark = f'@pytest.mark.regen(unit="{unit_id(units.place, found[0])}")'
    say(f"{shorten(found)} {verb} no example in the docstring: pytest only reads {them}", "yellow")
    say(f"    to have {them} run, add an example (>>>), or mark a test with {mark}")


def _stale_names(units: FileUnits) -> list[str]:
    return [
        name for name in _names(units) if any(issue.code == "STALE" for issue in units.issues(name))
    ]


def enclose_in_file(project: Project, path: Path, names: Sequence[str]) -> None:
    """Put markers around functions that have none yet, so that they become units.

    Raises:
        UsageError: the settings do not name the file.
        SourceError: the file has no such function.
    """
    path = Path.cwd() / path
    kinds = project.kinds
    kind, place = kinds.kind_to_enclose(path), kinds.place(kinds.absolute(path))
    if kind is None and path.suffix == ".py" and kinds.kind_of(path) is None:
        named = project.settings.shipped.get("functions")
        files = [*named, place] if isinstance(named, list) else [place]
        raise UsageError(
            f"{short_path(path)} is not among the files whose functions are gated",
            why=f"it takes `functions = {json.dumps(files)}` below [tool.pytest-regen] in "
            f"{short_path(project.root / 'pyproject.toml')}",
            hint=command("init", f"{short_path(path).as_posix()}::{names[0]}"),
        )
    if kind is not None and place is not None:
        new = enclose_units(UnitFile(kinds, place, kind), names)
        if new:
            fact("marked", f"{plural(len(new), 'function')}: {shorten(new)}")


def rebuild_file(file: UnitFile, names: Sequence[str] | None, *, as_json: bool) -> int:
    """Put recorded texts back; return the exit code: 1 where git or the ledger leaves a choice."""
    done = rebuild_units(file, names)
    units = file.open()
    left = [issue for name in names or units.names for issue in units.issues(name)]
    left = [one for one in (*units.file_issues, *left) if one.code in {"CONFLICT", "LEDGER"}]
    if as_json:
        emit_json(
            {
                "rebuilt": done.names,
                "history": done.history,
                "by_hand": done.by_hand,
                "diff": done.diff,
                "errors": [issue.to_json() for issue in left],
            }
        )
        return int(bool(left))
    show_diff(done.diff)
    _show_changes("rebuilt", done)
    if done.by_hand:
        fact("left", f"{plural(done.by_hand, 'text')} by hand, which only the file has")
    if left:
        show_unit_issues(units, left)
        if todo := _advice(units, left):
            next_step(*todo)
    else:
        if not done.diff:
            say(f"{file.here}: every recorded text stands as it is recorded")
        next_step(_tests(units, names or done.names))
    return int(bool(left))


def _show_changes(verb: str, done: UnitChanges) -> None:
    if done.names:
        fact(verb, f"{plural(len(done.names), 'unit')}: {shorten(done.names)}")
    if done.history:
        fact("kept", f"{plural(len(done.history), 'text')} in .regen/history")
    for note in done.notes:
        fact("to do", note, "yellow")


def forget(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File that a kind claims.")],
    units: UnitNames = None,
    as_json: AsJson = False,
) -> None:
    """Drop what nothing asks for any more: entries of the ledger, and texts where it can be."""
    project = Project.here()
    is_lost = project.is_lost(path)
    file = project.recorded_files([path])[0] if is_lost else project.unit_file(path)
    if file is None:
        raise UsageError(
            f"no kind claims {path}, and the ledger has nothing of it",
            hint='name a file that one of the "kinds" in [tool.pytest-regen] claims',
        )
    done = forget_units(file, units)
    if as_json:
        emit_json(
            {
                "forgotten": done.names,
                "dropped": done.dropped,
                "history": done.history,
                "notes": done.notes,
                "diff": done.diff,
            }
        )
        return
    show_diff(done.diff)
    for name in done.dropped:
        fact("dropped", f"{name}, which could not be read")
    _show_changes("forgotten", done)
    if not (done.names or done.dropped):
        say(f"{shlex.quote(file.here)}: everything in it is asked for")
    next_step("pytest" if is_lost else _tests(file.open(), done.names))
