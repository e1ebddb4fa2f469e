"""``review``: candidates that wait are looked at, accepted or rejected, by keys or by their ids."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pytest_regen.cli.desk import Desk, answerers, candidate_facts, following, stored_diff
from pytest_regen.cli.output import (
    AsJson,
    describe_failure,
    emit_json,
    fact,
    fail,
    is_terminal,
    next_step,
    say,
    show_diff,
)
from pytest_regen.cli.project import short_path
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.regeneration.pending import Candidate
from pytest_regen.text import plural
from pytest_regen.validation.issues import Issue


class _Desk(TyperGroup):
    """Takes what is no command for the arguments of the review itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["candidates", *args]
        return super().parse_args(ctx, args)


review = typer.Typer(
    name="review",
    cls=_Desk,
    help="Look at candidates that wait, and accept or reject each; options go behind the command.\n"
    "\nWithout a command: review [PATH…], at a terminal one after the other.",
    rich_markup_mode=None,
)

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Its id, the beginning of one, or path::name."),
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="Candidates of another folder: an artifact of CI."),
]


@review.command("candidates", hidden=True)
def walk(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Stores, files with units, folders, path::name."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether any waits; exit 1 if so.")
    ] = False,
    folder: From = None,
    as_json: AsJson = False,
) -> None:
    """Look at candidates one after the other; without a terminal, list them."""
    desk = Desk.here(folder)
    candidates = desk.below(paths or ())
    if is_terminal() and candidates and not (check or as_json):
        from pytest_regen.cli.review_view import review_each

        raise typer.Exit(review_each(desk, candidates))
    _list(desk, candidates, as_json=as_json)
    raise typer.Exit(int(bool(candidates or desk.waiting.faults)))


@review.command("list")
def list_(folder: From = None, as_json: AsJson = False) -> None:
    """List what waits; the exit code is 0."""
    desk = Desk.here(folder)
    _list(desk, desk.waiting.candidates, as_json=as_json)


def _list(desk: Desk, candidates: Sequence[Candidate], *, as_json: bool) -> None:
    faults = {str(short_path(path)): error for path, error in desk.waiting.faults.items()}
    if as_json:
        listed = [describe_candidate(desk, each) for each in candidates]
        unreadable = [{"path": path, "what": error.what} for path, error in faults.items()]
        emit_json({"candidates": listed, "unreadable": unreadable})
        return
    names = [desk.name_of(each) for each in candidates]
    width = max(map(len, names), default=0)
    for name, each in zip(names, candidates, strict=True):
        before, after = map(_errors, (each.issues_before, each.issues_after))
        say(f"{each.id}  {name:<{width}}  errors: {before} now, {after} with it  {answerers(each)}")
    for path, error in faults.items():
        say(f"{path} is no candidate: {error.what.partition(': ')[2] or error.what}", "yellow")
    if candidates:
        verb = "waits" if len(candidates) == 1 else "wait"
        say(f"{plural(len(candidates), 'candidate')} {verb} for review", "yellow")
        first = candidates[0].id
        next_step(desk.command() if is_terminal() else desk.command("show", first))
    elif faults:
        next_step(f"rm {' '.join(map(shlex.quote, faults))}")
    else:
        say("nothing waits for review", "green")


def _errors(issues: Iterable[Issue]) -> int:
    return sum(issue.severity == "error" for issue in issues)


def describe_candidate(desk: Desk, candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as JSON: its file's content, and the place as it is seen from here."""
    return {"path": desk.path_of(candidate).as_posix(), **candidate.to_json()}


@review.command()
def show(ids: Ids = None, every: All = False, folder: From = None, as_json: AsJson = False) -> None:
    """Show candidates: what was wrong, what each changes, and what would be left."""
    desk = Desk.here(folder)
    reports = [
        _show(desk, each, as_json=as_json) for each in _chosen(desk, ids, every=every, verb="show")
    ]
    if as_json:
        emit_json({"candidates": reports})
    elif len(reports) == 1:
        id_ = reports[0]["id"]
        next_step(desk.command("accept", id_), f"or {desk.command('reject', id_)}")


def _chosen(desk: Desk, ids: list[str] | None, *, every: bool, verb: str) -> list[Candidate]:
    if bool(ids) == every:
        raise UsageError(
            f"review {verb} takes ids, or --all",
            hint=desk.command("list"),
        )
    return list(desk.waiting.candidates) if every else desk.named(ids or ())


def _show(desk: Desk, candidate: Candidate, *, as_json: bool) -> dict[str, Any]:
    diff, left, why = stored_diff(candidate), candidate.issues_after, None
    try:
        look = desk.look(candidate)
    except RegenError as error:
        why = error
    else:
        diff, left = look.diff, look.issues
    if not as_json:
        say(f"{candidate.id}  {desk.name_of(candidate)}")
        for label, text in candidate_facts(candidate):
            fact(label, text)
        for issue in candidate.issues_before:
            show_issue("was wrong", issue)
        for note in candidate.feedback:
            fact("test said", note.partition("\n")[0])
        show_diff(diff, lines=None)
        for issue in left:
            show_issue("with it", issue)
        if not left:
            fact("with it", "nothing is wrong", "green")
        if why is not None:
            fail(why.what, why=why.why)
    return {
        **describe_candidate(desk, candidate),
        "diff": diff,
        "issues_left": [issue.to_json() for issue in left],
        "obstacle": None if why is None else describe_failure(why),
    }


def show_issue(label: str, issue: Issue) -> None:
    """Tell one issue of a candidate."""
    mark = "" if issue.severity == "error" else "warning: "
    style = "red" if issue.severity == "error" else "yellow"
    fact(label, f"{mark}[{issue.code}] {issue.message}", style)


@review.command()
def accept(
    ids: Ids = None,
    every: All = False,
    accept_any: Annotated[
        bool, typer.Option("--accept-any", help="Also where errors would rise.")
    ] = False,
    folder: From = None,
    as_json: AsJson = False,
) -> None:
    """Store candidates as regenerated outputs; what they replace goes to the history."""
    desk = Desk.here(folder)
    chosen = _chosen(desk, ids, every=every, verb="accept")
    code = _settle(
        desk,
        chosen,
        lambda candidate: desk.accept(candidate, accept_any=accept_any),
        "accepted",
        as_json=as_json,
    )
    raise typer.Exit(code)


@review.command()
def reject(
    ids: Ids = None, every: All = False, folder: From = None, as_json: AsJson = False
) -> None:
    """Put candidates into the history."""
    desk = Desk.here(folder)
    chosen = _chosen(desk, ids, every=every, verb="reject")
    raise typer.Exit(_settle(desk, chosen, desk.reject, "rejected", as_json=as_json))


def _settle(
    desk: Desk,
    chosen: Sequence[Candidate],
    do: Callable[[Candidate], object],
    verb: str,
    *,
    as_json: bool,
) -> int:
    """Accept or reject candidates; one that cannot be leaves the others. Return the exit code."""
    done: list[Candidate] = []
    failed: list[tuple[Candidate, RegenError]] = []
    for candidate in chosen:
        try:
            do(candidate)
        except RegenError as error:
            failed.append((candidate, error))
            if not as_json:
                fail(error.what, why=error.why, hint=error.hint)
        else:
            done.append(candidate)
            if not as_json:
                fact(verb, desk.name_of(candidate), "green")
    if as_json:
        failures = [{"id": each.id, **describe_failure(error)} for each, error in failed]
        listed = [describe_candidate(desk, each) for each in done]
        emit_json({verb: listed, "failures": failures})
    elif not chosen:
        say("nothing waits for review", "green")
    elif not failed:
        next_step(following(desk, done if verb == "accepted" else ()))
    return max((error.exit_code for _, error in failed), default=0)
