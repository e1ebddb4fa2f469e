"""``generate``: stores from an API description, or the missing units of a file."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pytest_regen.cli.asking import ask, plan
from pytest_regen.cli.config_files import Edit
from pytest_regen.cli.operations import StoreResults, StoreWork, show_sum
from pytest_regen.cli.output import (
    AsJson,
    Attempts,
    BudgetTokens,
    CassetteOption,
    DryRun,
    EngineChoice,
    EngineOption,
    Jobs,
    KeepPending,
    ModelOption,
    ProviderName,
    RecordChoice,
    RecordOption,
    UnitNames,
    confirm,
    emit_json,
    fact,
    is_terminal,
    money_json,
    next_step,
    say,
    show_edit,
)
from pytest_regen.cli.places import FileHere, Request, outdated_units, refuse_types
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.selection import select_parts
from pytest_regen.cli.store_report import (
    check_json,
    plan_json,
    result_json,
    show_check,
    show_plan,
    show_result,
)
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import UsageError
from pytest_regen.github import Finding, tell_outdated
from pytest_regen.languages import DEFAULT_LANGUAGE
from pytest_regen.text import plural
from pytest_regen.turns.values import Usage
from pytest_regen.units.naming import command

if TYPE_CHECKING:
    from pytest_regen.regeneration import GenerateResult
    from pytest_regen.units.place import UnitFile


def generate(
    spec: Annotated[
        Path, typer.Argument(metavar="PATH", help="API description, file with units, or folder.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="OPERATION", help='As "GET /v1/projects"; or schemas, or files.'),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of stores.")] = Path("generated"),
    every: Annotated[
        bool, typer.Option("--all", help="Every operation with a JSON response.")
    ] = False,
    tag: Annotated[str | None, typer.Option(help="Every operation with this tag.")] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help='Without these, as "GET /internal/*"; repeatable.'),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help=f"By default that of the project, else {DEFAULT_LANGUAGE}.")
    ] = None,
    schemas: Annotated[
        bool, typer.Option("--schemas", help="Schemas with names, all or some, as one store.")
    ] = False,
    request: Annotated[
        bool, typer.Option("--request", help="What operations take, not what they answer.")
    ] = False,
    status: Annotated[
        str | None, typer.Option(help="Response to read; by default 200, else lowest 2xx.")
    ] = None,
    fields_per_page: Annotated[
        int | None, typer.Option(min=1, help="Fields on a page; by default by tokens.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Namespace of the source; by default as stored.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the language; by default as stored.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Ask every page again.")] = False,
    discard_edits: Annotated[
        bool, typer.Option("--discard-edits", help="Rebuild changed types edited by hand.")
    ] = False,
    allow_defects: Annotated[
        bool, typer.Option("--allow-defects", help="Take what can be read of a broken document.")
    ] = False,
    model: ModelOption = None,
    attempts: Attempts = None,
    jobs: Jobs = 1,
    budget: BudgetTokens = None,
    cassette: CassetteOption = None,
    record: RecordOption = RecordChoice.NONE,
    provider: ProviderName = None,
    engine: EngineOption = EngineChoice.LIVE,
    pending: KeepPending = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only look; exit 1 if anything would be asked.")
    ] = False,
    register: Annotated[
        bool, typer.Option("--register", help="Add new stores to the settings, for pytest.")
    ] = False,
    units: UnitNames = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Generate or update types of an API; or the missing and stale units of files."""
    project = Project.here()
    turns = TurnOptions(
        project,
        model,
        attempts,
        budget,
        jobs,
        cassette,
        record,
        provider,
        engine,
        pending=f"pytest-regen generate {shlex.quote(str(spec))}" if pending else "",
    )
    if files := _unit_files(project, spec, names or (), units):
        refuse_types(
            files[0],
            operation=names if len(files) == 1 else None,
            all=every,
            tag=tag,
            exclude=exclude,
            schemas=schemas,
            request=request,
        )
        of_several = len(files) > 1
        wanted = Request(
            turns,
            "generate",
            units,
            force=force,
            check=check,
            of_several=of_several,
            as_json=as_json,
        )
        places = [FileHere(file) for file in files]
        if check:
            tell_outdated(project, lambda: outdated_units(places, wanted))
        raise typer.Exit((plan if check or dry_run else ask)(places, wanted))
    _refuse_pending(spec, pending=pending)
    _refuse_unclaimed(project, spec, names_operations=bool(names or tag or every or schemas))
    from pytest_regen.cli.starts import read_description

    document = read_description(spec)
    many = every or tag is not None
    selection = select_parts(
        document,
        names or (),
        every=every,
        tag=tag,
        exclude=exclude or (),
        status=status,
        schemas=schemas,
        request=request,
    )
    work = StoreWork(
        project,
        document,
        selection,
        out,
        {
            "language": language,
            "default_language": project.settings.language or DEFAULT_LANGUAGE,
            "status": status,
            "fields_per_page": fields_per_page,
            "namespace": namespace,
            "profile": profile,
            "force": force,
            "allow_defects": allow_defects,
        },
    )
    again = _command(
        spec,
        *(["--all"] if every else ["--tag", tag] if tag else names or ()),
        *(["--schemas"] if schemas else ()),
        *(["--request"] if request else ()),
        *(word for pattern in exclude or () for word in ("--exclude", pattern)),
        *(["--allow-defects"] if allow_defects else ()),
        # Stores made a moment ago are not asked for once more, to be registered.
        *(["--force"] if force and (check or dry_run) else ()),
        *(["--discard-edits"] if discard_edits and (check or dry_run) else ()),
        **{"--out": str(out), "--status": status, "--language": language, "--profile": profile},
        **{"--namespace": namespace, "--provider": turns.provider, "--model": model},
        **{"--fields-per-page": str(fields_per_page) if fields_per_page else None},
        **{"--engine": engine.value if turns.is_batch else None},
    )
    if check:
        results = work.generate(
            {"dry_run": True, "settings": turns.planning()},
            goes_on=many,
            show=None if as_json else lambda result: show_check(result, turns),
            describe=(lambda result: check_json(result, turns)) if as_json else None,
        )
        _check(results, turns, spec, many=many, again=again, as_json=as_json)
    if dry_run:
        results = work.generate(
            {"dry_run": True, "settings": turns.planning()},
            goes_on=many,
            show=None if as_json else lambda result: show_plan(result, turns),
            describe=(lambda result: plan_json(result, turns)) if as_json else None,
        )
        spent = Usage()
    else:
        last: list[GenerateResult] = []
        with turns.run("generating", as_json=as_json) as (progress, settings):
            results = work.generate(
                {
                    "settings": settings,
                    "attempts": turns.replies(),
                    "discard_edits": discard_edits,
                },
                goes_on=many,
                # The only one is told of below, after the progress.
                show=None
                if as_json
                else (lambda result: show_result(result, namespace, turns))
                if many
                else last.append,
                describe=result_json if as_json else None,
            )
        spent = progress.state.usage
        for result in last:
            show_result(result, namespace, turns)
    globs = () if dry_run else project.lacking(results.stored)
    edit = project.edit_table({"stores": globs}) if globs else None
    if edit and register:
        edit.write()
    if as_json:
        of_all = results.estimate(turns).to_json()
        report = {"stores": results.reports, **results.others} if many else results.report
        emit_json({**report, **({"estimate": of_all} if dry_run else money_json(spent))})
    if many:
        show_sum(results, turns, dry_run=dry_run)
    if not as_json:
        _say_following(results, edit, again, is_plan=dry_run, is_registered=register)
    raise typer.Exit(results.exit_code)


def _command(spec: Path, *words: str, **options: str | None) -> str:
    """Return the command that does the same again; options without a value are left out."""
    given = (word for option, value in options.items() if value for word in (option, value))
    return shlex.join(["pytest-regen", "generate", str(spec), *words, *given])


def _say_following(
    results: StoreResults, edit: Edit | None, again: str, *, is_plan: bool, is_registered: bool
) -> None:
    """Say what comes next, once pytest collects the stores made.

    Args:
        results: of the command.
        edit: what the settings lacked; ``None`` where they cover the stores.
        again: the command as it would be given again.
        is_plan: whether nothing was asked yet.
        is_registered: whether the edit was made.
    """
    is_collected = edit is None or _register(edit, asks=not is_registered)
    if results.exit_code == 0:
        next_step(again if is_plan else "pytest" if is_collected else f"{again} --register")


def _register(edit: Edit, *, asks: bool) -> bool:
    """Say how pytest comes to collect the stores made, and ask a person; return whether it does.

    Args:
        edit: of the settings.
        asks: whether it is not written yet.
    """
    file = short_path(edit.path)
    if not asks:
        fact("registered", f"in {file}, so that pytest collects it")
        return True
    say(f"pytest does not collect it yet; {file} lacks")
    show_edit(edit.lines)
    if is_terminal() and confirm(f"Write this to {file}?", default=True):
        edit.write()
        return True
    return False


def _unit_files(
    project: Project, path: Path, others: Sequence[str], units: Sequence[str] | None
) -> "list[UnitFile]":
    """Return the files with units that are named, or lie in a folder; none for a document.

    Raises:
        UsageError: a unit is named, and not of which file.
    """
    named = [path, *map(Path, others)]
    if not path.is_dir() and (file := project.unit_file(path, units)) is not None:
        found = project.unit_files(named) if others else [file]
    else:
        found = project.unit_files(named) if path.is_dir() else []
    if units and len(found) > 1:
        raise UsageError(
            f"--unit {units[0]} does not say of which file",
            hint="name one file, or leave the option out",
        )
    return found


def _check(
    results: "StoreResults",
    turns: TurnOptions,
    document: Path,
    *,
    many: bool,
    again: str,
    as_json: bool,
) -> NoReturn:
    """Say which stores are older than the document, and end the command."""
    outdated = []
    for done in results.done:
        if not done.plan.is_current:
            why = (
                "there is no store yet"
                if done.plan.previous is None
                else "the store is older than the document"
            )
            unit = done.plan.path.as_posix()
            outdated.append(Finding("error", unit, "out of date", why, document))
    for name, error in results.failed:
        why = f"{error.what}\n{error.why}".strip()
        outdated.append(Finding("error", name, "impossible", why, document))
    current = sum(done.plan.is_current for done in results.done)
    tell_outdated(Project.here(), lambda: (outdated, current, again))
    codes = [int(not result.plan.is_current) for result in results.done]
    code = max([*codes, *(error.exit_code for _, error in results.failed)], default=0)
    if as_json:
        sums = {"estimate": results.estimate(turns).to_json()}
        emit_json({"stores": results.reports, **results.others, **sums} if many else results.report)
        raise typer.Exit(code)
    if many:
        old = sum(
            not result.plan.is_current and result.plan.previous is not None
            for result in results.done
        )
        new = sum(result.plan.previous is None for result in results.done)
        parts = [f"{plural(len(results.done) - old - new, 'store')} up to date"]
        parts += [f"{old} older than the document"] if old else []
        parts += [f"{plural(new, 'operation')} without a store"] if new else []
        parts += [f"{len(results.failed)} impossible"] if results.failed else []
        say(", ".join(parts))
        turns.show_cost(results.estimate(turns))
    if any(codes):
        next_step(again)
    elif not code and not as_json:
        next_step("pytest")
    raise typer.Exit(code)


def _refuse_pending(path: Path, *, pending: bool) -> None:
    if pending:
        raise UsageError(
            f"--pending says nothing of a store: {path} is read as an API description",
            why="a store follows its description as a whole: its prompts, its pages and its source",
            hint="generate, and read git diff; or pytest-regen regenerate STORE --pending",
        )


def _is_catalogue(path: Path) -> bool:
    from pytest_regen.cli.starts import is_catalogue

    return is_catalogue(path)


def _refuse_unclaimed(project: Project, path: Path, *, names_operations: bool) -> None:
    """Refuse a path without an operation where it may be meant for a kind.

    Raises:
        UsageError: the project has kinds, and none claims the path.
    """
    from pytest_regen.cli.init import is_description

    is_module = path.suffix == ".py" and path.is_file()
    if is_module or (not names_operations and path.is_file() and _is_catalogue(path)):
        raise UsageError(
            f"no kind claims {short_path(path)}",
            why="neither functions nor translations in [tool.pytest-regen] name it",
            hint=command("init", short_path(path).as_posix()),
        )
    if project.kinds and not names_operations and not (path.is_file() and is_description(path)):
        raise UsageError(
            f"no kind claims {short_path(path)}",
            why="the kinds of the project claim " + ", ".join(project.kinds.globs),
            hint="name one file of these; of an API description, name an operation as well, "
            "--tag or --all",
        )
