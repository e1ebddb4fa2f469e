"""``regenerate``: types or pages of stores, or units of files, asked for again."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pytest_regen.cli import output
from pytest_regen.cli.asking import ask, confirm_everything, plan
from pytest_regen.cli.places import Request, refuse_old_prompts
from pytest_regen.cli.turns import TurnOptions, takes_turns
from pytest_regen.errors import UsageError


@takes_turns
def regenerate(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Stores, files with units, or folders of them: one or several."
        ),
    ],
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
    turns: TurnOptions,
    accept_any: Annotated[
        bool, typer.Option("--accept-any", help="Keep new outputs even if they are worse.")
    ] = False,
    discard_edits: Annotated[
        bool, typer.Option("--discard-edits", help="Replace blocks edited by hand.")
    ] = False,
    ignore_stale: Annotated[
        bool, typer.Option("--ignore-stale", help="Continue although the document has changed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    units: output.UnitNames = None,
    dry_run: output.DryRun = False,
    as_json: output.AsJson = False,
) -> None:
    """Regenerate types or pages of stores from their stored prompts, or units of files."""
    project = turns.project
    # Before any place is read, because no state of it could make sense of both.
    if turns.pending and discard_edits:
        raise UsageError(
            "--pending and --discard-edits contradict each other",
            why="an edit would be dropped at once, and what replaces it would wait",
            hint="pytest-regen rebuild drops the edit; then the same command without the option",
        )
    # Without options, because what waits for review is shown to people who need the place.
    typed = shlex.join(["pytest-regen", "regenerate", *map(str, paths)])
    turns = replace(turns, command=typed, corrects=bool(correction))
    targets = project.places(paths)
    # A folder stands for several, because tomorrow it may hold another one.
    of_several = len(targets) > 1 or project.find_place(paths[0]) is None
    request = Request(
        turns,
        "regenerate",
        units,
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
        raise typer.Exit(plan(targets, request))
    if not of_several:
        refuse_old_prompts(targets[0], request)
        # Whoever was asked about old prompts is not asked a second time.
        request = replace(request, ignore_stale=True)
    if request.names is None and not (from_errors or yes):
        confirm_everything(targets, request)
    raise typer.Exit(ask(targets, request))
