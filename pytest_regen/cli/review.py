"""``review``: candidates that wait are looked at, accepted or rejected, by keys or by their ids."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from pytest_regen.cli.output import (
    AsJson,
    console,
    describe_failure,
    emit_json,
    fact,
    fail,
    hold_back,
    is_terminal,
    next_step,
    say,
    show_diff,
)
from pytest_regen.cli.project import Project, short_path
from pytest_regen.errors import OutdatedCandidateError, RegenError, UsageError
from pytest_regen.regeneration.flow import source_diff
from pytest_regen.regeneration.pending import Candidate, PendingFolder, Waiting
from pytest_regen.regeneration.review import Look, accept_candidate, look_at, reject_candidate
from pytest_regen.text import plural, visible
from pytest_regen.units.naming import node_id, unit_id
from pytest_regen.validation.issues import Issue

_NAMED: Final = 3
"""Units that the next command names; of more, it runs all tests."""
_AROUND: Final = 12
"""Lines of a screen that are not the diff's."""
_LEAST: Final = 10
"""Lines of a diff that are shown on the smallest screen."""
_ISSUES: Final = 4
"""Issues that a screen shows before the other ones are counted."""
_POLL: Final = 0.2
"""Seconds between two looks at the size of the terminal."""
_KEYS: Final = {
    "a": "accept",
    "r": "reject",
    "s": "skip",
    "d": "whole diff",
    "A": "accept all",
    "R": "reject all",
    "q": "quit",
}


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
All = Annotated[bool, typer.Option("--all", help="All that wait.")]
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

    def to_json(self, candidate: Candidate) -> dict[str, Any]:
        """Return the content of its file, and the place as it is seen from here."""
        return {"path": self.path_of(candidate).as_posix(), **candidate.to_json()}

    def do(self, verb: str, candidate: Candidate, *, accept_any: bool = False) -> Look[Any] | None:
        """Show, accept or reject a candidate; raises RegenError."""
        # A candidate of CI may name any path: only a place of the project is believed.
        place, look = self.project.find_place(self.path_of(candidate)), None
        try:
            if verb == "reject":
                reject_candidate(place, candidate, self.folder)
            elif place is None:
                what = "store" if candidate.has_pages else "file with units"
                raise OutdatedCandidateError(
                    f"candidate {candidate.id} is for {unit_id(candidate.place, candidate.name)}",
                    why=f"the project has no such {what}: it was made in another one, or "
                    "what it is for is gone",
                    hint=f"pytest-regen review reject {candidate.id}",
                )
            elif verb == "show":
                look = look_at(place, candidate)
            else:
                accept_candidate(place, candidate, self.folder, accept_any=accept_any)
        except RegenError as error:
            # The next command is about the folder that was named, which nobody below knows.
            words = shlex.split(error.hint) if self._other else []
            if words[:2] == ["pytest-regen", "review"]:
                error.hint = self.command(*words[2:])
            raise
        return look

    def named(self, words: Sequence[str]) -> list[Candidate]:
        """Return the candidates with these ids, beginnings of ids, or names.

        Raises:
            UsageError: a word names none, or several.
        """
        waiting, chosen = self.waiting.candidates, dict[str, Candidate]()
        names = {
            item.id: [
                spell(place, item.name)
                for place in (item.place, self.path_of(item).as_posix())
                for spell in (unit_id, "{}::{}".format)
            ]
            for item in waiting
        }
        for word in words:
            fitting = [item for item in waiting if word in {item.id, *names[item.id]}]
            if not fitting and word:
                fitting = [item for item in waiting if item.id.startswith(word.lower())]
            if len(fitting) != 1:
                ids = ", ".join(item.id for item in fitting or waiting)
                count = plural(len(fitting), "candidate") if fitting else "no candidate"
                which = "it begins the ids" if fitting else "those that wait are"
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
            real = path.absolute().resolve()
            at = [c for c in waiting if self.path_of(c).resolve().is_relative_to(real)]
            if not at and not path.exists():
                at = self.named([str(path)])
            ids |= {item.id for item in at}
        return [item for item in waiting if item.id in ids or not paths]

    def following(self, accepted: Sequence[Candidate]) -> str:
        """Return what to run after candidates were accepted or rejected."""
        if self.folder.read().candidates:
            return self.command()
        if not accepted or len(accepted) > _NAMED:
            return "pytest"
        ids = [node_id(self.path_of(item).as_posix(), item.name) for item in accepted]
        return shlex.join(["pytest", *ids])


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
    desk = Desk(folder)
    candidates = desk.below(paths or ())
    if is_terminal() and candidates and not (check or as_json):
        raise typer.Exit(_review_each(desk, candidates))
    _list(desk, candidates, as_json=as_json)
    raise typer.Exit(int(bool(candidates or desk.waiting.faults)))


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
    width = max((len(desk.name_of(item)) for item in candidates), default=0)
    for item in candidates:
        before, after = (
            sum(issue.severity == "error" for issue in issues)
            for issues in (item.issues_before, item.issues_after)
        )
        name = f"{item.id}  {desk.name_of(item):<{width}}"
        say(f"{name}  errors: {before} now, {after} with it  {_answerers(item)}")
    for path, error in faults.items():
        say(f"{path} is no candidate: {error.what.partition(': ')[2] or error.what}", "yellow")
    if candidates:
        verb = "waits" if len(candidates) == 1 else "wait"
        say(f"{plural(len(candidates), 'candidate')} {verb} for review", "yellow")
        words = () if is_terminal() else ("show", candidates[0].id)
        next_step(desk.command(*words))
    elif faults:
        next_step(shlex.join(["rm", *faults]))
    else:
        say("nothing waits for review", "green")


def _answerers(candidate: Candidate) -> str:
    return ", ".join(dict.fromkeys(output.model for output in candidate.outputs))


@review.command()
def show(ids: Ids = None, every: All = False, folder: From = None, as_json: AsJson = False) -> None:
    """Show candidates: what was wrong, what each changes, and what would be left."""
    desk, reports = Desk(folder), []
    for candidate in _chosen(desk, ids, every=every, verb="show"):
        state = _State(desk, candidate)
        obstacle = state.obstacle
        if not as_json:
            say(f"{candidate.id}  {desk.name_of(candidate)}")
            state.tell()
            if obstacle:
                fail(obstacle.what, why=obstacle.why)
        reports.append(
            {
                **desk.to_json(candidate),
                "diff": state.diff,
                "issues_left": [issue.to_json() for issue in state.left],
                "obstacle": obstacle and describe_failure(obstacle),
            }
        )
    if as_json:
        emit_json({"candidates": reports})
    elif len(reports) == 1:
        id_ = reports[0]["id"]
        next_step(desk.command("accept", id_), f"or {desk.command('reject', id_)}")


def _chosen(desk: Desk, ids: list[str] | None, *, every: bool, verb: str) -> list[Candidate]:
    if bool(ids) == every:
        raise UsageError(f"review {verb} takes ids, or --all", hint=desk.command("list"))
    return list(desk.waiting.candidates) if every else desk.named(ids or ())


class _State:
    """A candidate beside what stands in its place now."""

    def __init__(self, desk: Desk, candidate: Candidate) -> None:
        self.candidate = candidate
        self.left: Sequence[Issue] = candidate.issues_after
        self.obstacle: RegenError | None = None
        # Until the place was looked at: it may hold other texts by now.
        self.diff = "".join(
            source_diff(_ended(output.old or ""), _ended(output.new), candidate.name)
            for output in candidate.outputs
        )
        try:
            look = desk.do("show", candidate)
        except RegenError as error:
            self.obstacle = error
        else:
            if look:
                self.diff, self.left = look.diff, look.issues

    def tell(self, lines: int | None = None, most: int | None = None) -> None:
        """Tell who made it, what was wrong, what it changes, and what would be wrong with it.

        Args:
            lines: of the diff; by default all.
            most: issues that are told before the other ones are counted; by default all.
        """
        candidate, usage = self.candidate, self.candidate.usage
        tokens = f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out"
        fact("asked by", candidate.asked_by)
        fact("answered", f"{_answerers(candidate)}, {candidate.made_at}, {tokens}")
        if candidate.has_pages:
            pages = [str(output.page) for output in candidate.outputs]
            fact("page" if len(pages) == 1 else "pages", ", ".join(pages))
        _tell_issues("was wrong", candidate.issues_before, most)
        for note in candidate.feedback:
            fact("test said", note.partition("\n")[0])
        show_diff(self.diff, lines)
        _tell_issues("with it", self.left, most)
        if not self.left:
            fact("with it", "nothing is wrong", "green")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _tell_issues(label: str, issues: Sequence[Issue], most: int | None) -> None:
    for issue in issues[:most]:
        mark = "" if issue.severity == "error" else "warning: "
        style = "red" if issue.severity == "error" else "yellow"
        fact(label, f"{mark}[{issue.code}] {issue.message}", style)
    if most and len(issues) > most:
        fact(label, f"{len(issues) - most:,} more")


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
    code = _settle_all("accept", folder, ids, every=every, accept_any=accept_any, as_json=as_json)
    raise typer.Exit(code)


@review.command()
def reject(
    ids: Ids = None, every: All = False, folder: From = None, as_json: AsJson = False
) -> None:
    """Put candidates into the history."""
    raise typer.Exit(_settle_all("reject", folder, ids, every=every, as_json=as_json))


def _settle(
    desk: Desk, verb: str, candidate: Candidate, *, accept_any: bool = False
) -> RegenError | None:
    """Accept or reject a candidate and tell it; return why that could not be."""
    try:
        desk.do(verb, candidate, accept_any=accept_any)
    except RegenError as error:
        fail(error.what, why=error.why, hint=error.hint)
        return error
    fact(f"{verb}ed", desk.name_of(candidate), "green")
    return None


def _settle_all(
    verb: str,
    folder: Path | None,
    ids: list[str] | None,
    *,
    every: bool,
    accept_any: bool = False,
    as_json: bool,
) -> int:
    """Accept or reject candidates; one that cannot be leaves the others. Return the exit code."""
    desk = Desk(folder)
    chosen = _chosen(desk, ids, every=every, verb=verb)
    with hold_back() as lines:
        errors = [_settle(desk, verb, item, accept_any=accept_any) for item in chosen]
    results = list(zip(chosen, errors, strict=True))
    settled = [item for item, error in results if error is None]
    failed = [(item, error) for item, error in results if error]
    if as_json:
        failures = [{"id": item.id, **describe_failure(error)} for item, error in failed]
        emit_json({f"{verb}ed": list(map(desk.to_json, settled)), "failures": failures})
    else:
        for line in lines:
            say(*line)
        if not chosen:
            say("nothing waits for review", "green")
        elif not failed:
            next_step(desk.following(settled if verb == "accept" else ()))
    return max((error.exit_code for _, error in failed), default=0)


def _review_each(desk: Desk, candidates: Sequence[Candidate]) -> int:
    """Show each candidate and do what the user says; return the exit code: 1 while any waits."""
    settled: dict[str, list[Candidate]] = {"accept": [], "reject": []}
    decision = ""
    with _keys() as keys:
        for number, candidate in enumerate(candidates, 1):
            if decision not in {"A", "R"}:
                title = f"{number} of {len(candidates)}  {desk.name_of(candidate)}  {candidate.id}"
                decision = _decide(_State(desk, candidate), title, keys)
            if decision == "q":
                break
            verb = {"a": "accept", "r": "reject"}.get(decision.lower())
            if verb and _settle(desk, verb, candidate) is None:
                settled[verb].append(candidate)
    left = desk.folder.read()
    counts = (f"{len(items):,} {verb}ed" for verb, items in settled.items())
    say(", ".join([*counts, f"{len(left.candidates):,} left"]))
    next_step(desk.following(settled["accept"]))
    return int(bool(left.candidates or left.faults))


def _decide(state: _State, title: str, keys: Iterator[str]) -> str:
    """Show a candidate until a key says what becomes of it."""
    is_whole = False
    while True:
        offered = _show_screen(state, title, is_whole=is_whole)
        key = next(key for key in keys if not key or key in offered)
        if key and key != "d":
            return key
        # Another size of the terminal, or the whole diff, is a reason to show it again.
        is_whole = is_whole or key == "d"


def _show_screen(state: _State, title: str, *, is_whole: bool) -> Sequence[str]:
    """Print a candidate as wide as the terminal is now; return the keys that do something."""
    from rich.columns import Columns
    from rich.rule import Rule
    from rich.text import Text

    out = console()
    room = None if is_whole else max(_LEAST, out.size.height - _AROUND)
    with hold_back() as lines:
        state.tell(room, _ISSUES)
        if state.obstacle:
            fact("not now", f"{state.obstacle.what}: {state.obstacle.why}", "yellow")
    out.print()
    out.print(Rule(Text(visible(title))))
    for text, style in lines:
        out.print(Text(visible(text), style))
    idle = {"a", "A"} if state.obstacle else set[str]()
    idle |= {"d"} if room is None or len(state.diff.splitlines()) <= room else set()
    offered = [key for key in _KEYS if key not in idle]
    bars = [Text(" ").append(f" {key} ", "reverse").append(f" {_KEYS[key]} ") for key in offered]
    out.print(Columns(bars, padding=0))
    return offered


@contextmanager
def _keys() -> Iterator[Iterator[str]]:
    """Yield keys as they are pressed, an empty one where the terminal has another size.

    The terminal is as it was afterwards.
    """
    if os.name == "nt":
        yield iter(typer.getchar, None)
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSADRAIN)
    try:
        # Measured before the first screen: a change while that is drawn is seen.
        yield _pressed(console().size)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _pressed(size: tuple[int, int]) -> Iterator[str]:
    import select

    while True:
        if select.select([sys.stdin], [], [], _POLL)[0]:
            text = os.read(sys.stdin.fileno(), 64).decode("utf-8", "replace")
            # An arrow key is sent as several characters, and the last of them is a letter.
            yield from re.sub(r"\x1b\[?.?", "", text) if text else "q"
        elif console().size != size:
            size = console().size
            yield ""
