"""``review``: candidates that wait are shown, accepted or rejected, one by one or by their ids."""

import shlex
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from pytest_regen.cli import output
from pytest_regen.cli.output import AsJson, emit_json, fact, next_step, say
from pytest_regen.cli.project import Project, short_path
from pytest_regen.errors import OutdatedCandidateError, RegenError, UsageError
from pytest_regen.regeneration import review as reviewing
from pytest_regen.regeneration.pending import Candidate, PendingFolder, Waiting
from pytest_regen.text import plural
from pytest_regen.units.naming import node_id, unit_id
from pytest_regen.validation.issues import Issue

_NAMED: Final = 3
"""Units that the next command names; of more, it runs all tests."""


class _Review(TyperGroup):
    """Takes what is no command for the arguments of the review itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["candidates", *args]
        return super().parse_args(ctx, args)


review = typer.Typer(
    name="review",
    cls=_Review,
    help="Look at candidates that wait, and accept or reject each; options go behind the command.\n"
    "\nWithout a command: review [PATH…], at a terminal one after the other.",
    rich_markup_mode=None,
)

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Its id, the beginning of one, or path::name."),
]
All = Annotated[bool, typer.Option("--all", help="All that are waiting.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="Candidates of another folder: an artifact of CI."),
]


class Desk:
    """The candidates of a project, and what can be done with them.

    Args:
        other: a folder that is named on the command line in place of the project's own.

    Raises:
        UsageError: it is not there.
    """

    def __init__(self, other: Path | None) -> None:
        self.project = Project.here()
        if other and not other.is_dir():
            raise UsageError(
                f"--from {other}: there is no such folder",
                hint="name the folder of candidates that CI kept, unpacked",
            )
        self._other = other
        self.folder = PendingFolder(other) if other else PendingFolder.of_project(self.project.root)

    def command(self, *words: str) -> str:
        """Return a command of the review about the same folder."""
        # Repeated, because the ids stand for nothing in the project's own folder.
        folder = ("--from", str(self._other)) if self._other else ()
        return shlex.join(["pytest-regen", "review", *words, *folder])

    @cached_property
    def waiting(self) -> Waiting:
        """What waits, as it was read first."""
        return self.folder.read()

    def path_of(self, candidate: Candidate) -> Path:
        """Return its place as it is seen from the working directory."""
        return short_path(self.project.root / candidate.place)

    def name_of(self, candidate: Candidate) -> str:
        """Return the unit as people read it, with the path from the working directory."""
        return f"{self.path_of(candidate).as_posix()}::{candidate.name}"

    def names_of(self, candidate: Candidate) -> set[str]:
        """Return how the unit may be called: from the working directory, or from the root."""
        from_root = unit_id(candidate.place, candidate.name)
        return {self.name_of(candidate), from_root, f"{candidate.place}::{candidate.name}"}

    def to_json(self, candidate: Candidate) -> dict[str, Any]:
        """Return the content of its file, and the place as it is seen from here."""
        return {"path": self.path_of(candidate).as_posix(), **candidate.to_json()}

    def do(
        self, verb: str, candidate: Candidate, *, accept_any: bool = False
    ) -> tuple[str, Sequence[Issue], RegenError | None]:
        """Show, accept or reject a candidate.

        Returns:
            What a candidate that is shown changes; what would be left; why it cannot be done.
        """
        # A candidate of CI may name any path: only a place of the project is believed.
        place = self.project.find_place(self.path_of(candidate))
        diff, left = "", candidate.issues_after
        try:
            # Also without a place, because what a candidate was made for may be gone.
            if verb == "reject":
                reviewing.reject_candidate(place, candidate, self.folder)
            elif place is None:
                raise OutdatedCandidateError(
                    f"candidate {candidate.id} is for {unit_id(candidate.place, candidate.name)}",
                    why="the project has no such place: it was made in another one, or "
                    "what it is for is gone",
                    hint=f"pytest-regen review reject {candidate.id}",
                )
            elif verb == "show":
                diff, left = reviewing.look_at(place, candidate)
            else:
                reviewing.accept_candidate(place, candidate, self.folder, accept_any=accept_any)
        except RegenError as error:
            # The next command is about the folder that was named, which nobody below knows.
            words = shlex.split(error.hint) if self._other else []
            if words[:2] == ["pytest-regen", "review"]:
                error.hint = self.command(*words[2:])
            return diff, left, error
        return diff, left, None

    def named(self, words: Sequence[str]) -> list[Candidate]:
        """Return the candidates with these ids, beginnings of ids, or names.

        Raises:
            UsageError: a word names none, or several.
        """
        waiting, chosen = self.waiting.candidates, dict[str, Candidate]()
        for word in words:
            fitting = [item for item in waiting if word in {item.id, *self.names_of(item)}]
            # Names first, because one may begin as an id does.
            if not fitting and word:
                fitting = [item for item in waiting if item.id.startswith(word.lower())]
            if len(fitting) != 1:
                # Those that fit, because whoever typed too little sees what to add.
                ids = ", ".join(item.id for item in fitting or waiting)
                count = plural(len(fitting), "candidate") if fitting else "no candidate"
                which = "it fits" if fitting else "the candidates are"
                raise UsageError(
                    f"{word!r:.80} names {count}",
                    why=f"{which} {ids}" if ids else "none waits",
                    hint=self.command("list") if ids else "pytest --regen --regen-pending",
                )
            chosen[fitting[0].id] = fitting[0]
        return list(chosen.values())

    def below(self, paths: Sequence[Path]) -> list[Candidate]:
        """Return the candidates at or below paths, or that are named; all without any.

        Raises:
            UsageError: one of these is no path, and names no candidate.
        """
        waiting, ids = self.waiting.candidates, set[str]()
        for path in paths:
            # Behind links, because a place is known by one path only.
            real = path.absolute().resolve()
            at = [c for c in waiting if self.path_of(c).resolve().is_relative_to(real)]
            if not at and not path.exists():
                at = self.named([str(path)])
            ids |= {item.id for item in at}
        return [item for item in waiting if item.id in ids or not paths]

    def chosen(self, verb: str, ids: Sequence[str] | None, *, every: bool) -> list[Candidate]:
        """Return the candidates that are named, or all; raises UsageError for both or none."""
        if bool(ids) == every:
            raise UsageError(f"review {verb} takes ids, or --all", hint=self.command("list"))
        return list(self.waiting.candidates) if every else self.named(ids or ())

    def following(self, accepted: Sequence[Candidate]) -> str:
        """Return what to run after candidates were accepted or rejected."""
        if self.folder.read().candidates:
            return self.command()
        # Of many the whole run is shorter to read, and of none nothing has changed.
        if not accepted or len(accepted) > _NAMED:
            return "pytest"
        ids = [node_id(self.path_of(item).as_posix(), item.name) for item in accepted]
        return shlex.join(["pytest", *ids])

    def settle(
        self, verb: str, candidate: Candidate, *, accept_any: bool = False
    ) -> RegenError | None:
        """Accept or reject a candidate and tell it; return why that could not be."""
        _, _, error = self.do(verb, candidate, accept_any=accept_any)
        if error:
            output.fail(error.what, why=error.why, hint=error.hint)
        else:
            fact(f"{verb}ed", self.name_of(candidate), "green")
        return error


@review.command("candidates", hidden=True)
def walk(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Stores, files with units, folders, path::name."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether any are waiting; exit 1 if so.")
    ] = False,
    folder: From = None,
    as_json: AsJson = False,
) -> None:
    """Look at candidates one after the other; without a terminal, list them."""
    desk = Desk(folder)
    candidates = desk.below(paths or ())
    if not (output.is_terminal() and candidates) or check or as_json:
        _list(desk, candidates, as_json=as_json)
        raise typer.Exit(int(bool(candidates or desk.waiting.faults)))
    settled: dict[str, list[Candidate]] = {"accept": [], "reject": []}
    for number, candidate in enumerate(candidates, 1):
        say()
        say(f"{number} of {len(candidates)}  {candidate.id}  {desk.name_of(candidate)}")
        _show(desk, candidate)
        answer = output.ask("accept, reject, skip or quit? [a/r/S/q]")
        if answer in {None, "q", "quit"}:
            break
        verb = {"a": "accept", "r": "reject"}.get(answer or "", answer or "")
        # One that could not be settled waits on, and the next one is shown.
        if verb in settled and desk.settle(verb, candidate) is None:
            settled[verb].append(candidate)
    # Read afresh, because what was settled is gone, and another run may have added some.
    left = desk.folder.read()
    counts = (f"{len(items):,} {verb}ed" for verb, items in settled.items())
    say(", ".join([*counts, f"{len(left.candidates):,} left"]))
    next_step(desk.following(settled["accept"]))
    raise typer.Exit(int(bool(left.candidates or left.faults)))


@review.command("list")
def list_(folder: From = None, as_json: AsJson = False) -> None:
    """List what waits; the exit code is 0."""
    desk = Desk(folder)
    _list(desk, desk.waiting.candidates, as_json=as_json)


def _list(desk: Desk, candidates: Sequence[Candidate], *, as_json: bool) -> None:
    faults = {str(short_path(path)): error for path, error in desk.waiting.faults.items()}
    if as_json:
        unreadable = [{"path": path, "what": error.what} for path, error in faults.items()]
        emit_json({"candidates": list(map(desk.to_json, candidates)), "unreadable": unreadable})
        return
    rows = []
    for item in candidates:
        before, after = (
            sum(issue.severity == "error" for issue in issues)
            for issues in (item.issues_before, item.issues_after)
        )
        errors = f"errors: {before} now, {after} with it"
        rows.append([item.id, desk.name_of(item), errors, _answerers(item)])
    for line in output.aligned(rows):
        say(line)
    for path, error in faults.items():
        say(f"{path} is not a candidate: {error.what.partition(': ')[2] or error.what}", "yellow")
    if candidates:
        verb = "waits" if len(candidates) == 1 else "wait"
        say(f"{plural(len(candidates), 'candidate')} {verb} for review", "yellow")
        words = () if output.is_terminal() else ("show", candidates[0].id)
        next_step(desk.command(*words))
    elif faults:
        # No command drops them, because they may be anything.
        next_step(shlex.join(["rm", *faults]))
    else:
        say("nothing waits for review", "green")


def _answerers(candidate: Candidate) -> str:
    return ", ".join(dict.fromkeys(item.model for item in candidate.outputs))


@review.command()
def show(ids: Ids = None, every: All = False, folder: From = None, as_json: AsJson = False) -> None:
    """Show candidates: what was wrong, what each changes, and what would be left."""
    desk = Desk(folder)
    chosen = desk.chosen("show", ids, every=every)
    if as_json:
        reports = []
        for candidate in chosen:
            diff, left, obstacle = desk.do("show", candidate)
            report = {
                "diff": diff,
                "issues_left": [issue.to_json() for issue in left],
                "obstacle": obstacle and output.describe_failure(obstacle),
            }
            reports.append({**desk.to_json(candidate), **report})
        emit_json({"candidates": reports})
        return
    for candidate in chosen:
        say(f"{candidate.id}  {desk.name_of(candidate)}")
        _show(desk, candidate)
    # Of several there is no one thing to do next.
    if len(chosen) == 1:
        id_ = chosen[0].id
        next_step(desk.command("accept", id_), f"or {desk.command('reject', id_)}")


def _show(desk: Desk, candidate: Candidate) -> None:
    """Tell who made a candidate, what was wrong, what it changes, and what would be wrong then."""
    diff, left, obstacle = desk.do("show", candidate)
    usage = candidate.usage
    tokens = f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out"
    fact("asked by", candidate.asked_by)
    fact("answered", f"{_answerers(candidate)}, {candidate.made_at}, {tokens}")
    if candidate.has_pages:
        pages = [str(item.page) for item in candidate.outputs]
        fact("page" if len(pages) == 1 else "pages", ", ".join(pages))
    _tell_issues("was wrong", candidate.issues_before)
    for note in candidate.feedback:
        fact("test said", note.partition("\n")[0])
    # All of it, because nobody should accept what was not seen.
    output.show_diff(diff, None)
    _tell_issues("with it", left)
    if not left:
        fact("with it", "nothing is wrong", "green")
    if obstacle:
        fact("not now", f"{obstacle.what}: {obstacle.why}", "yellow")


def _tell_issues(label: str, issues: Sequence[Issue]) -> None:
    for issue in issues:
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
    desk = Desk(folder)
    chosen = desk.chosen("accept", ids, every=every)
    _settle_all(desk, "accept", chosen, accept_any=accept_any, as_json=as_json)


@review.command()
def reject(
    ids: Ids = None, every: All = False, folder: From = None, as_json: AsJson = False
) -> None:
    """Put candidates into the history."""
    desk = Desk(folder)
    _settle_all(desk, "reject", desk.chosen("reject", ids, every=every), as_json=as_json)


def _settle_all(
    desk: Desk,
    verb: str,
    chosen: Sequence[Candidate],
    *,
    accept_any: bool = False,
    as_json: bool,
) -> None:
    """Accept or reject candidates and end the command; one that cannot be leaves the others."""
    # Held back, because a program that reads JSON gets the same as rows.
    with output.hold_back() as lines:
        results = [(item, desk.settle(verb, item, accept_any=accept_any)) for item in chosen]
    settled = [item for item, error in results if error is None]
    failed = [(item, error) for item, error in results if error]
    if as_json:
        failures = [{"id": item.id, **output.describe_failure(error)} for item, error in failed]
        emit_json({f"{verb}ed": list(map(desk.to_json, settled)), "failures": failures})
    else:
        output.tell_again(lines)
        if not chosen:
            say("nothing waits for review", "green")
        elif not failed:
            next_step(desk.following(settled if verb == "accept" else ()))
    raise typer.Exit(max((error.exit_code for _, error in failed), default=0))
