"""``review``: candidates that wait are looked at, accepted or rejected, by keys or by their ids."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
from pytest_regen.cli.project import Project, short_path
from pytest_regen.errors import OutdatedCandidateError, RegenError, UsageError
from pytest_regen.regeneration.flow import source_diff
from pytest_regen.regeneration.pending import Candidate, PendingFolder, Waiting
from pytest_regen.regeneration.places import Place
from pytest_regen.regeneration.review import Look, accept_candidate, look_at, reject_candidate
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.stores import is_store
from pytest_regen.text import plural
from pytest_regen.units.naming import unit_id
from pytest_regen.validation.issues import Issue

__all__ = ["Desk", "candidate_facts", "following", "review", "stored_diff"]


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


@dataclass(frozen=True)
class Desk:
    """The candidates of a project, and what can be done with them."""

    project: Project
    folder: PendingFolder

    @classmethod
    def here(cls, folder: Path | None) -> "Desk":
        """Return the desk of the project around the working directory.

        Raises:
            UsageError: ``folder`` is named and not there.
        """
        project = Project.here()
        if folder is None:
            return cls(project, PendingFolder.of_project(project.root))
        if not folder.is_dir():
            raise UsageError(
                f"--from {folder}: there is no such folder",
                hint="name the folder of candidates that CI kept, unpacked",
            )
        return cls(project, PendingFolder(folder))

    @cached_property
    def waiting(self) -> Waiting:
        """What waits, as it was read first."""
        return self.folder.read()

    def id_of(self, candidate: Candidate) -> str:
        """Return the piece as pytest names it."""
        return unit_id(candidate.place, candidate.name)

    def path_of(self, candidate: Candidate) -> Path:
        """Return its place as it is seen from the working directory."""
        return short_path(self.project.root / candidate.place)

    def name_of(self, candidate: Candidate) -> str:
        """Return the piece as people read it, with the path from the working directory."""
        return f"{self.path_of(candidate).as_posix()}::{candidate.name}"

    def place_of(self, candidate: Candidate) -> Place[Any] | None:
        """Return the place of a candidate; ``None`` where nothing of the project asks for it.

        A candidate that names a file which is neither is not believed.
        """
        path = self.path_of(candidate)
        if candidate.has_pages:
            ignore = self.project.ignored_in(path)
            return StorePlace(path, ignore) if is_store(path) else None
        if is_store(path) or self.project.kinds.kind_of(Path.cwd() / path) is None:
            return None
        return self.project.unit_file(path)

    def look(self, candidate: Candidate) -> Look[Any]:
        """Return what accepting a candidate would change; raises RegenError."""
        return look_at(self._known_place(candidate), candidate)

    def accept(self, candidate: Candidate, *, accept_any: bool = False) -> Look[Any]:
        """Store a candidate; raises RegenError."""
        place = self._known_place(candidate)
        return accept_candidate(place, candidate, self.folder, accept_any=accept_any)

    def reject(self, candidate: Candidate) -> None:
        """Put a candidate into the history; raises RegenError."""
        reject_candidate(self.place_of(candidate), candidate, self.folder)

    def _known_place(self, candidate: Candidate) -> Place[Any]:
        place = self.place_of(candidate)
        if place is None:
            what = "store" if candidate.has_pages else "file with units"
            raise OutdatedCandidateError(
                f"candidate {candidate.id} is for {self.id_of(candidate)}",
                why=f"the project has no such {what}",
                hint=f"pytest-regen review reject {candidate.id}, or look at it in the project "
                "that it was made in",
            )
        return place

    def named(self, words: Sequence[str]) -> list[Candidate]:
        """Return the candidates with these ids, beginnings of ids, or names.

        Raises:
            UsageError: a word names none, or several.
        """
        found: dict[str, Candidate] = {}
        for word in words:
            candidates = [each for each in self.waiting.candidates if word in self._names(each)]
            if not candidates and word:
                candidates = [
                    each for each in self.waiting.candidates if each.id.startswith(word.lower())
                ]
            if len(candidates) != 1:
                raise self._unclear(word, candidates)
            found[candidates[0].id] = candidates[0]
        return list(found.values())

    def _names(self, candidate: Candidate) -> set[str]:
        here = self.path_of(candidate).as_posix()
        return {
            candidate.id,
            self.id_of(candidate),
            unit_id(here, candidate.name),
            f"{candidate.place}::{candidate.name}",
            f"{here}::{candidate.name}",
        }

    def _unclear(self, word: str, found: Sequence[Candidate]) -> UsageError:
        known = ", ".join(each.id for each in found or self.waiting.candidates)
        return UsageError(
            f"{word!r:.80} names {plural(len(found), 'candidate') if found else 'no candidate'}",
            why=f"{'it begins the ids' if found else 'those that wait are'} {known}"
            if known
            else "none waits",
            hint="pytest-regen review list" if known else "pytest --regen --regen-pending",
        )

    def below(self, paths: Sequence[Path]) -> list[Candidate]:
        """Return the candidates at or below paths, or that are named; all without any.

        Raises:
            UsageError: one of these is no path, and names no candidate.
        """
        if not paths:
            return list(self.waiting.candidates)
        found: dict[str, Candidate] = {}
        for path in paths:
            real = path.absolute().resolve()
            at = [
                each
                for each in self.waiting.candidates
                if self.path_of(each).resolve().is_relative_to(real)
            ]
            if not at and not path.exists():
                at = self.named([str(path)])
            found |= {each.id: each for each in at}
        return [each for each in self.waiting.candidates if each.id in found]


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
        say(f"{each.id}  {name:<{width}}  errors: {before} now, {after} with it  {_by(each)}")
    for path, error in faults.items():
        say(f"{path} is no candidate: {error.what.partition(': ')[2] or error.what}", "yellow")
    if candidates:
        verb = "waits" if len(candidates) == 1 else "wait"
        say(f"{plural(len(candidates), 'candidate')} {verb} for review", "yellow")
        first = candidates[0].id
        next_step("pytest-regen review" if is_terminal() else f"pytest-regen review show {first}")
    elif faults:
        next_step(f"rm {' '.join(map(shlex.quote, faults))}")
    else:
        say("nothing waits for review", "green")


def _errors(issues: Iterable[Issue]) -> int:
    return sum(issue.severity == "error" for issue in issues)


def _by(candidate: Candidate) -> str:
    return ", ".join(dict.fromkeys(output.model for output in candidate.outputs))


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
        next_step(f"pytest-regen review accept {id_}, or pytest-regen review reject {id_}")


def _chosen(desk: Desk, ids: list[str] | None, *, every: bool, verb: str) -> list[Candidate]:
    if bool(ids) == every:
        raise UsageError(
            f"review {verb} takes ids, or --all",
            hint="pytest-regen review list tells the ids",
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


def candidate_facts(candidate: Candidate) -> list[tuple[str, str]]:
    """Return who made a candidate and when, as labels and words."""
    usage = candidate.usage
    tokens = f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out"
    pages = ", ".join(str(output.page) for output in candidate.outputs)
    made = f"{_by(candidate)}, {candidate.made_at}, {tokens}"
    facts = [("asked by", candidate.asked_by), ("answered", made)]
    if candidate.has_pages:
        noun = "page" if len(candidate.outputs) == 1 else "pages"
        facts.append((noun, pages))
    return facts


def stored_diff(candidate: Candidate) -> str:
    """Return the diff of a candidate's own texts; its place may hold others by now."""
    return "".join(
        source_diff(_lines(output.old or ""), _lines(output.new), f"{candidate.name}")
        for output in candidate.outputs
    )


def _lines(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


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


_NAMED = 3
"""Pieces that the next command names; of more, it runs all tests."""


def following(desk: Desk, accepted: Sequence[Candidate]) -> str:
    """Return what to run after candidates were accepted or rejected."""
    left = len(desk.folder.read().candidates)
    if left:
        return "pytest-regen review"
    if not accepted or len(accepted) > _NAMED:
        return "pytest"
    ids = (unit_id(desk.path_of(each).as_posix(), each.name) for each in accepted)
    return f"pytest {' '.join(map(shlex.quote, ids))}"
