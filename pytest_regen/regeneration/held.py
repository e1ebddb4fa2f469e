"""A place whose kept outputs wait for review in ``.regen/pending`` in place of being stored.

The main flow works on it as on any other place and sees what it has kept; the files hold what they
held. Lock order: that of the place first, then that of the folder of candidates. Candidates are
added at any time and dropped under the lock of their place alone, so that whoever holds it knows
whether one still waits.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic

from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import KindError, UsageError
from pytest_regen.regeneration.pending import Candidate, Output, PendingFolder
from pytest_regen.regeneration.places import Place, PlaceUpdate, V
from pytest_regen.regeneration.values import Answer, Known, Pending, Rejected, TurnSettings
from pytest_regen.turns.providers import TemplateProvider
from pytest_regen.validation.issues import FailedTest, Feedback, Issue

# Nothing is asked: requests are made for what they know of their pages.
_NOBODY: Final = TurnSettings(TemplateProvider())


class HeldPlace(Generic[V]):
    """A place that holds back what is kept.

    Args:
        place: the store, or the file of units.
        pending: where candidates go, and what waits of the same item or command.
        feedback: what the asking test reports, beyond the issues.

    Raises:
        UsageError: the place lies outside of the project.
    """

    def __init__(self, place: Place[V], pending: Pending, feedback: Sequence[Feedback]) -> None:
        self.ids: dict[str, str] = {}
        """What waits of this work: piece to the id of its candidate."""
        self._place = place
        self._pending = pending
        self._feedback = feedback
        self._folder = PendingFolder.of_project(pending.root)
        relative = os.path.relpath(place.path.absolute(), pending.root.absolute())
        self._name = Path(relative).as_posix()
        if self._name.startswith("../") or Path(relative).is_absolute():
            raise UsageError(
                f"{place.path} lies outside of the project at {pending.root}",
                why="candidates wait in the project, and name places below it",
                hint="run the command in the project of that place",
            )
        self._answers = pending.answers.setdefault(place.path, {})
        self._update: PlaceUpdate[V]
        self.view: V
        """What a locked place would hold with all that waits."""

    def __getattr__(self, name: str) -> Any:
        """Return what is asked of the place itself."""
        return getattr(self._place, name)

    def open(self) -> V:
        """Return what the place would hold with all that waits of this item or command."""
        return self.with_waiting(self._place.open())

    def with_waiting(self, view: V) -> V:
        """Return a view with what waits in place."""
        return view.with_answers(list(self._answers.values())) if self._answers else view

    @contextmanager
    def update(self) -> Iterator["HeldPlace[V]"]:
        """Lock the place and read it afresh: until then what is written waits."""
        with self._place.update() as update:
            self._update, self.view = update, self.with_waiting(update.view)
            yield self

    @contextmanager
    def trial(self, candidate: V, answers: Sequence[Answer]) -> Iterator["_HeldTrial"]:
        """Put a candidate in place, with all that waits; it is taken out in any case."""
        # The files hold another view than the caller's: one without what waits.
        stored = self._place.open()
        both = {**self._answers, **{_key(answer): answer for answer in answers}}
        with self._place.trial(candidate, list(both.values())) as trial:
            waiting = _HeldTrial()
            try:
                yield waiting
                if waiting.is_accepted:
                    # It waits before it is taken out, because a kill in between loses nothing then.
                    self.add(stored, candidate, answers)
            finally:
                trial.reject(keeps=False)
        issues = {answer: candidate.issues(answer.ask.name) for answer in answers}
        with self.update():
            waiting.history = self.write(candidate, (), {} if waiting.is_accepted else issues)

    def add(self, stored: V, candidate: V, answers: Sequence[Answer]) -> None:
        """Let outputs wait.

        Args:
            stored: the view without any that waits.
            candidate: the view with these, and all that waits.
            answers: the outputs.
        """
        # Shared by all work of one item or command, because later work stands on these outputs.
        self._answers |= {_key(answer): answer for answer in answers}
        names = dict.fromkeys(answer.ask.name for answer in answers)
        candidates = [self._candidate(name, stored, candidate) for name in names]
        self._folder.change(add=candidates)
        self.ids |= {candidate.name: candidate.id for candidate in candidates}

    def write(self, candidate: V, answers: Sequence[Answer], rejected: Rejected) -> tuple[str, ...]:
        """Let what is kept wait and put the rest in the history; return the ids of the rest.

        Candidates that newer ones stand in for go there, too.
        """
        if answers:
            self.add(self._update.view, candidate, answers)
        older = self._folder.read((self._name, name) for name in self.ids).older
        entries = dict(rejected)
        for replaced in older:
            # In one change with what is rejected, because a kill must not lose one of both.
            entries |= rejected_of(self._place, candidate, replaced)
        ids = self._update.write(self._update.view, (), entries) if entries else ()
        if older:
            # Dropped last, because a kill before it leaves them to whoever writes next.
            self._folder.change(drop=older)
        self.view = candidate
        return ids[: len(rejected)]

    def _candidate(self, name: str, stored: V, candidate: V) -> Candidate:
        outputs = tuple(
            Output(
                page,
                stored.output(name, page),
                answer.output,
                answer.model,
                answer.provider,
                answer.stop_reason,
                answer.usage.counts,
            )
            # By page, because the id of a candidate is a digest of its outputs in their order.
            for (unit, page), answer in sorted(self._answers.items(), key=lambda item: item[0])
            if unit == name
        )
        notes = self._feedback
        tests = [note.source for note in notes if isinstance(note, FailedTest) and note.source]
        words = [
            note if isinstance(note, str) else f"{note.code}: {note.message}" for note in notes
        ]
        return Candidate(
            self._name,
            name,
            stored.basis(name),
            outputs,
            has_pages=self._place.path.is_dir(),
            issues_before=_scrubbed(stored.issues(name)),
            issues_after=_scrubbed(candidate.issues(name)),
            feedback=tuple(map(scrub_text, words)),
            tests=tuple(map(scrub_text, tests)),
            asked_by=scrub_text(self._pending.asked_by),
        )


def _key(answer: Answer) -> tuple[str, int]:
    return answer.ask.name, answer.ask.page


def _scrubbed(issues: Sequence[Issue]) -> tuple[Issue, ...]:
    """Return issues without credentials: a message may quote what a test has seen."""
    messages = [replace(issue, message=scrub_text(issue.message)) for issue in issues]
    return tuple(
        replace(issue, detail=issue.detail and scrub_text(issue.detail)) for issue in messages
    )


@dataclass(slots=True)
class _HeldTrial:
    """A candidate that is in place while a test looks at it, and never stays there."""

    is_accepted: bool = False
    history: tuple[str, ...] = ()

    def accept(self) -> None:
        """Let the candidate wait for review."""
        self.is_accepted = True

    def reject(self, **_: bool) -> None:
        """Do nothing: it is taken out in any case."""


def answers_of(place: Place[V], view: V, candidate: Candidate) -> list[Answer]:
    """Return the outputs of a candidate as answers to what a place asks for now.

    None where the unit or one of its pages is gone.

    Raises:
        KindError: a method of the kind raised.
    """
    # What the place asks for decides, because a candidate's file may name any page.
    outputs = {output.page: output for output in candidate.outputs}
    tests = [FailedTest("a test failed", source) for source in candidate.tests]
    pages: dict[int, Sequence[Feedback]] = dict.fromkeys(outputs, tests)
    answers = []
    for ask in place.asks(view, candidate.name, pages, _NOBODY):
        output = outputs[ask.page]
        who, model, reason = output.provider, output.model, output.stop_reason
        ready = Known(output.new, model, who, reason, generated_at=candidate.made_at)
        answer = Answer(replace(ask, known=ready), output.new, (), reason, model, who, output.usage)
        answers.append(answer)
    return answers if len(answers) == len(outputs) else []


def rejected_of(place: Place[V], view: V, candidate: Candidate) -> Rejected:
    """Return a candidate as entries for the history; none where nothing asks for it now."""
    try:
        answers = answers_of(place, view, candidate)
    except KindError:
        return {}
    return dict.fromkeys(answers, candidate.issues_after)
