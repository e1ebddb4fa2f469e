"""``generate``: stores from an API description, or the missing units of a file."""

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pytest_regen.cli import output, store_report
from pytest_regen.cli.asking import ask, plan
from pytest_regen.cli.operations import StoreResults, StoreWork, show_sum
from pytest_regen.cli.output import fact, next_step, say
from pytest_regen.cli.places import Request
from pytest_regen.cli.project import short_path
from pytest_regen.cli.selection import PartOptions, select_parts
from pytest_regen.cli.turns import TurnOptions, takes_turns
from pytest_regen.errors import UsageError
from pytest_regen.languages import DEFAULT_LANGUAGE
from pytest_regen.units.naming import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_regen.documents import Document


@takes_turns
def generate(
    *,
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
        typer.Option(metavar="PATTERN", help='Leave these out, as "GET /internal/*"; repeatable.'),
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
    turns: TurnOptions,
    check: Annotated[
        bool, typer.Option("--check", help="Only look; exit 1 if anything would be asked.")
    ] = False,
    register: Annotated[
        bool, typer.Option("--register", help="Add new stores to the settings, for pytest.")
    ] = False,
    units: output.UnitNames = None,
    dry_run: output.DryRun = False,
    as_json: output.AsJson = False,
) -> None:
    """Generate or update types of an API; or the missing and stale units of files."""
    project = turns.project
    turns = replace(turns, command=shlex.join(["pytest-regen", "generate", str(spec)]))
    options = PartOptions(names or (), every, tag, exclude or (), status, schemas, request)
    is_plan = check or dry_run
    # A place wins over a description, because a catalogue is a file of JSON as well.
    if spec.is_dir() or project.find_place(spec) is not None:
        for option, value in options.words.items():
            if value:
                raise UsageError(
                    f"--{option} is about an API description, and {spec} is not one",
                    hint="name units with --unit, or none for all",
                )
        targets = project.places([spec, *map(Path, options.names)])
        order = Request(
            turns,
            "generate",
            units,
            force=force,
            check=check,
            of_several=len(targets) > 1,
            as_json=as_json,
        )
        raise typer.Exit((plan if is_plan else ask)(targets, order))
    # Before it is read, because of a module one would hear only that it is no YAML.
    project.refuse_unready(spec)
    document = _read_document(spec, options, pending=turns.pending)
    many = every or tag is not None
    how = {
        "default_language": project.settings.language or DEFAULT_LANGUAGE,
        "status": status,
        "language": language,
        "profile": profile,
        "namespace": namespace,
        "fields_per_page": fields_per_page,
        "force": force,
        "allow_defects": allow_defects,
    }
    work = StoreWork(project, document, select_parts(document, options), out, how)
    if is_plan:
        report: Callable[..., Any] = store_report.show_plan
        if as_json:
            report = store_report.check_json if check else store_report.plan_json
        results = work.generate(
            {"dry_run": True, "settings": turns.planning()},
            goes_on=many,
            report=partial(report, turns=turns),
        )
        money = {"estimate": results.estimate(turns).to_json()}
    else:
        results, usage = work.ask(turns, discard_edits=discard_edits, many=many, as_json=as_json)
        money = output.money_json(usage)
    if as_json:
        stores = {"stores": results.in_order, **results.others} if many else results.in_order[0]
        output.emit_json({**stores, **money})
    # Of one all stands on the screen.
    if many:
        show_sum(results, turns, is_plan=is_plan)
    # Also where no page is asked, because a type that is gone changes the store as well.
    is_old = check and any(not result.plan.is_current for result in results.done)
    code = max(results.exit_code, int(is_old))
    if is_old and not as_json:
        next_step(output.command_again())
    is_collected = is_plan or _collect(results, writes=register, is_silent=as_json)
    if code == 0 and not (as_json or is_plan):
        # Stores made a moment ago are not asked for once more, to be registered.
        again = output.command_again("--register", without=["--force", "--discard-edits"])
        next_step("pytest" if is_collected else again)
    raise typer.Exit(code)


def _collect(results: StoreResults, *, writes: bool, is_silent: bool) -> bool:
    """Say how pytest comes to collect the stores made, or see to it; return whether it does."""
    project = results.work.project
    # By globs, because the next store in the folder is then collected without an edit.
    globs = project.lacking(made.plan.path for made in results.done if made.is_stored)
    if not globs:
        return True
    edit = project.edit_table({"stores": globs})
    file = short_path(edit.path)
    if writes:
        edit.write()
        if not is_silent:
            fact("registered", f"in {file}, so that pytest collects it")
        return True
    if not is_silent:
        say(f"pytest does not collect it yet; {file} lacks")
        output.show_edit(edit.lines)
    return False


def _read_document(path: Path, options: PartOptions, *, pending: bool) -> "Document":
    """Return the API description in a file.

    Raises:
        UsageError: something else is meant: a file for a kind, or units that wait for review.
        DocumentUnreadableError: it is none.
    """
    # Imported late, because who generates units of a file needs none of it.
    from pytest_regen.cli.starts import is_catalogue
    from pytest_regen.documents import read_document

    if pending:
        raise UsageError(
            f"--pending does not apply to a store: {path} is read as an API description",
            why="a store follows its description as a whole: its prompts, its pages and its source",
            hint="generate, and read git diff; or pytest-regen regenerate STORE --pending",
        )
    is_file, name = path.is_file(), short_path(path).as_posix()
    names_parts = bool(options.names or options.tag or options.every or options.schemas)
    if is_file and (path.suffix == ".py" or (not names_parts and is_catalogue(path))):
        raise UsageError(
            f"no kind claims {name}",
            why="neither functions nor translations in [tool.pytest-regen] name it",
            hint=command("init", name),
        )
    return read_document(path)
