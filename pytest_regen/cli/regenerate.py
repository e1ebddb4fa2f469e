"""``regenerate``: types or pages of stores, or units of files, asked for again."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pytest_regen.cli import output
from pytest_regen.cli.asking import ask, confirm_everything, plan
from pytest_regen.cli.places import FileHere, Request, places_at, refuse_types
from pytest_regen.cli.project import Project
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.errors import UsageError


def regenerate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Stores, files with units, or folders of them: one or several."
        ),
    ],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Type to regenerate, all by default; may be repeated."),
    ] = None,
    pages: Annotated[
        list[int] | None,
        typer.Option("--page", help="Page of the one type named; may be repeated."),
    ] = None,
    from_errors: Annotated[
        bool, typer.Option("--from-errors", help="Only what has errors, validated afresh.")
    ] = False,
    correction: Annotated[
        str | None, typer.Option("--correction", help="What was wrong, in your words.")
    ] = None,
    model: output.ModelOption = None,
    attempts: output.Attempts = None,
    jobs: output.Jobs = 1,
    budget: output.BudgetTokens = None,
    cassette: output.CassetteOption = None,
    record: output.RecordOption = output.RecordChoice.NONE,
    provider: output.ProviderName = None,
    engine: output.EngineOption = output.EngineChoice.LIVE,
    accept_any: Annotated[
        bool, typer.Option("--accept-any", help="Keep new outputs even if they are worse.")
    ] = False,
    discard_edits: Annotated[
        bool, typer.Option("--discard-edits", help="Replace blocks edited by hand.")
    ] = False,
    pending: output.KeepPending = False,
    ignore_stale: Annotated[
        bool, typer.Option("--ignore-stale", help="Go on where the document has moved on.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    units: output.UnitNames = None,
    dry_run: output.DryRun = False,
    as_json: output.AsJson = False,
) -> None:
    """Regenerate types or pages of stores from their stored prompts, or units of files."""
    project = Project.here()
    if pending and discard_edits:
        raise UsageError(
            "--pending and --discard-edits contradict each other",
            why="an edit would be dropped at once, and what replaces it would wait",
            hint="pytest-regen rebuild drops the edit; then the same command without the option",
        )
    again = f"pytest-regen regenerate {shlex.join(map(str, paths))}" if pending else ""
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
        pending=again,
        corrects=bool(correction),
    )
    places, of_several = places_at(project, paths, units)
    for name, value in (("page", pages), ("unit", units)) if of_several else ():
        if value:
            raise UsageError(
                f"--{name} does not say of which place",
                why="several stores or files are named",
                hint="name one of them, or leave the option out",
            )
    files = [place for place in places if isinstance(place, FileHere)]
    for place in files[:1]:
        refuse_types(place.file, type=types, page=pages)
    request = Request(
        turns,
        "regenerate",
        units if files and not of_several else types,
        pages,
        correction,
        from_errors=from_errors,
        accept_any=accept_any,
        discard_edits=discard_edits,
        ignore_stale=ignore_stale,
        of_several=of_several,
        as_json=as_json,
    )
    if dry_run:
        raise typer.Exit(plan(places, request))
    if not of_several:
        places[0].refuse(request)
        # Whoever was asked about old prompts is not asked a second time.
        request = replace(request, ignore_stale=True)
    if request.names is None and not (from_errors or yes):
        confirm_everything(places, request)
    raise typer.Exit(ask(places, request))
