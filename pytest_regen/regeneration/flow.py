"""The main flow: what to ask of a model, which replies to keep, and when to stop.

``work_steps`` is all of it. What differs between generating, healing and named work is a policy
(``policies.py``); what differs between a type of a store and a unit of a file is a place
(``places.py``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Generic

from pytest_regen.errors import RegenError
from pytest_regen.regeneration import policies, values
from pytest_regen.regeneration.asking import meets_all, note_stored, stop_reason_of
from pytest_regen.regeneration.held import HeldPlace
from pytest_regen.regeneration.places import Place, V, View
from pytest_regen.regeneration.policies import Change, Policy
from pytest_regen.regeneration.queue import Flow, jobs_of
from pytest_regen.turns.values import Provider
from pytest_regen.validation.issues import Feedback, Issue

Check = Callable[[], Sequence[Feedback]]
"""Calls the asking test again and returns what it reports; nothing when it passes."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done in one place."""

    policy: Policy
    """What the first round asks and keeps."""
    names: Iterable[str]
    """The units to work on."""
    rounds: int = 1
    """Replies per page at most."""
    feedback: Sequence[Feedback] = ()
    """What the asking test reports, beyond the issues; for one unit."""
    check: Check | None = None
    """Calls that test again while the candidate is in place; for one unit."""
    provider: Provider | None = None
    """Who is asked in place of the run's provider: one with a recording of its own."""


def work_steps(
    place: Place[V], job: Job, settings: values.TurnSettings, view: V | None = None
) -> "Flow[Work[V]]":
    """Ask for units of a place until nothing is wrong with them, or there is a reason to stop.

    Every round goes over all units that are still open, several at the same time where
    ``settings.jobs`` allows it. With one job each unit is asked in view of what the one before it
    changed; drafts, which depend on nothing, are asked for all at once and sent one by one. Units
    that use others have their rounds after those, for they may be right by then.

    Args:
        place: a store, or a file of units.
        job: what is to be done.
        settings: with what, and within which limits, pages are asked; with ``settings.pending``
            nothing is stored, and what would be kept waits for review.
        view: what the place holds, where that is known already.

    Raises:
        StoreError: the place cannot be read or written.
    """
    work = Work(place, place.open() if view is None else view, job, settings)
    names, policy, rounds = list(dict.fromkeys(job.names)), job.policy, job.rounds
    if policy.is_draft:
        yield from work.ask(policy, names)
        policy, rounds = policy.then, rounds - 1
    for stage in stages(work.view, names):
        later = policy
        for _ in range(rounds):
            yield from work.ask(later, stage)
            later = later.then
    note_stored(work.rejected, settings)
    return work


def stages(view: View, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield units in groups, each before those that use it; a circle stays in one group."""
    users = {name: {*view.users(name)} for name in names}
    while names:
        waits = {
            # In a circle nobody waits, because each would wait for ever.
            name: any(name in users[used] and used not in users[name] for used in names)
            for name in names
        }
        yield [name for name in names if not waits[name]]
        names = [name for name in names if waits[name]]


@dataclass(slots=True)
class _Piece:
    """What is known of one unit while it is worked on."""

    result: values.HealResult
    """Counts and reasons; what the place holds is put in at the end."""
    feedback: tuple[Feedback, ...] = ()
    """What the asking test reports of it as it is stored."""
    rejected: tuple[Feedback, ...] = ()
    """What is wrong with the last outputs that were not kept: said first by the next correction."""
    seen: list[frozenset[policies.Mark]] = field(default_factory=list)
    """What was wrong after each round: the same twice is no progress."""
    refused: Sequence[values.Answer] = ()
    """The last outputs that were not kept."""
    rounds: set[int] = field(default_factory=set)
    """Those that brought a reply."""
    is_open: bool = True
    is_begun: bool = False
    """Whether it was looked at before it was asked for; a draft has nothing to look at."""
    is_reached: bool = False
    """Whether there is something to say of it: it was answered, or needs or allows no answer."""

    def close(self, reason: values.StopReason, failure: RegenError | None = None) -> None:
        """Ask no more for the unit; the first failure of its pages is the one that is told."""
        self.is_open = False
        if self.result.failure is None:
            self.result.stop_reason, self.result.failure = reason, failure


class Work(Generic[V]):
    """The units that are worked on, and what their place holds by now."""

    def __init__(self, place: Place[V], view: V, job: Job, settings: values.TurnSettings) -> None:
        self._place = place
        self._waiting: dict[str, str] = {}
        """What waits for review: unit to the id of its candidate."""
        if settings.pending is not None:
            self._place = held = HeldPlace(place, settings.pending, job.feedback)
            self._waiting, view = held.ids, held.with_waiting(view)
        self.before = self.view = view
        """What the place held, and what it holds now."""
        self.kept: list[values.Answer] = []
        """The answers that were kept, in their order."""
        self.rejected: list[values.Answer] = []
        """Those that were not, until the work has ended."""
        self._job = job
        self._settings = settings
        self._pieces = {
            name: _Piece(values.HealResult(name, None, allowed=job.rounds), tuple(job.feedback))
            for name in dict.fromkeys(job.names)
        }
        self._round = 0
        self._ended_by: values.StopReason | None = None

    @property
    def results(self) -> list[values.HealResult]:
        """How the work on each unit ended; units that were not reached are left out."""
        return [
            self._result(name, piece)
            for name, piece in self._pieces.items()
            if self._ended_by is None or piece.is_reached
        ]

    def ask(self, policy: Policy, names: Iterable[str]) -> Flow[None]:
        """Ask once for each unit that is still open."""
        self._round += 1
        batches = self._batches(policy, names)
        is_together = policy.is_draft or jobs_of(self._settings) > 1
        # One at a time: what the next batch asks depends on what came of the one before it.
        groups = iter([list(batches)]) if is_together else ([batch] for batch in batches)
        for group in groups:
            waiting: Sequence[Sequence[values.Ask]] = group
            owed = len(group)
            while owed:
                arrived = yield waiting
                owed -= len(arrived)
                waiting = ()
                self._take(policy, [answers for answers in arrived if answers])
        while self._job.check is None and self.look_again():
            pass

    @property
    def is_refused(self) -> bool:
        """Whether an output was refused that uses other units, which may be at fault."""
        return self._place.has_users and any(piece.refused for piece in self._pieces.values())

    def look_again(self) -> bool:
        """Keep outputs that were refused, and are right now that other units are as they should.

        Returns:
            Whether there was one: then others may be right as well.
        """
        if not self.is_refused:
            return False
        # Afresh, because a test of the user's may have run and written since.
        self.view, kept = self._place.open(), len(self.kept)
        for name, piece in self._pieces.items():
            if not piece.refused:
                continue
            tried = self.view.with_answers(piece.refused)
            if not policies.fixable_issues(tried.issues(name)):
                piece.result.stop_reason = None
                self._keep_better(Policy(), [piece.refused])
        return len(self.kept) > kept

    def _batches(self, policy: Policy, names: Iterable[str]) -> Iterator[list[values.Ask]]:
        """Yield what is to be asked in one round, in batches that are kept or rejected together."""
        drafts: list[values.Ask] = []
        for name in names:
            piece = self._pieces[name]
            if not policy.is_draft and piece.is_open and not piece.is_begun:
                # Now and not earlier, because those before it may have changed what is wrong.
                piece.is_begun = True
                piece.result.issues_before = self.view.issues(name)
                piece.result.skipped = self.view.obstacle(name)
                piece.is_reached = bool(piece.result.skipped)
                piece.is_open = not piece.is_reached
            if not piece.is_open:
                continue
            findings = () if policy.is_draft else self._findings(name, piece)
            # Healing alone, because named pages are asked whatever is wrong with them.
            if policy == policy.then and not piece.seen:
                piece.seen.append(policies.signature(findings))
            pages = policy.pages_to_ask(self.view, name, findings)
            asks = self._place.asks(self.view, name, pages, self._settings) if pages else []
            if self._job.provider is not None:
                asks = [replace(ask, provider=self._job.provider) for ask in asks]
            if policy.is_draft:
                drafts += asks
            elif asks:
                yield asks
            else:
                piece.is_reached = True
        yield from ([ask] for ask in drafts)

    def _findings(self, name: str, piece: _Piece) -> tuple[Feedback, ...]:
        """Return what the next correction of a unit reports, each finding once."""
        stored = (*policies.fixable_issues(self.view.issues(name)), *piece.feedback)
        return policies.merge_findings(piece.rejected, stored)

    def _take(self, policy: Policy, arrived: Sequence[Sequence[values.Answer]]) -> None:
        """Keep or reject what has arrived, and stop units that got no reply."""
        kept_before = len(self.kept)
        every = [answer for answers in arrived for answer in answers]
        self._count(every)
        groups = [[answer for answer in answers if not answer.failure] for answers in arrived]
        groups = [group for group in groups if group]
        if self._job.check is not None:
            for group in groups:
                self._keep_by_test(policy, group, self._job.check)
        elif groups:
            self._keep_better(policy, groups)
        # A run that was killed begins anew and is given what it had rejected; the next round goes
        # on from there, and nothing is paid for twice.
        failed = [answer for answer in every if answer.failure]
        settled = dict.fromkeys([*self.kept[kept_before:], *failed])
        note_stored(settled, self._settings)
        self.rejected += [answer for answer in every if answer not in settled]
        for answer in every:
            if answer.failure is not None:
                reason = stop_reason_of(answer.failure)
                self._write_down([answer], self.view)
                self._pieces[answer.ask.name].close(reason, answer.failure)
                # All of them, because whatever is asked next would meet the same.
                if meets_all(answer.failure):
                    self._ended_by = reason
                    for piece in self._pieces.values():
                        piece.is_open = False

    def _count(self, answers: Iterable[values.Answer]) -> None:
        """Add up what answers cost."""
        for answer in answers:
            piece = self._pieces[answer.ask.name]
            piece.is_reached = True
            piece.result.by_template = answer.by_template
            piece.result.usage += answer.usage
            piece.result.calls += answer.calls
            if answer.failure is None:
                piece.rounds.add(self._round)

    def _keep_better(self, policy: Policy, groups: Sequence[Sequence[values.Answer]]) -> None:
        """Keep the new outputs that may stay, those of a unit together or else some on their own.

        Unit after unit is decided on top of what was kept of those before it; all is written as one
        change.
        """
        if policy.is_draft:
            groups = [[answer for group in groups for answer in group]]
        else:
            # Before the lock, because code may be run to validate them, and others would wait.
            self._place.prepare([answer for group in groups for answer in group])
        decisions = []
        # What is compared is what is written: both happen under the place's lock, so that two
        # processes never overwrite each other's outputs. No model is asked meanwhile.
        with self._place.update() as update:
            best = update.view
            for replies in groups:
                decisions.append(_decide(policy, best, replies))
                best = decisions[-1].view
            chosen = [answer for decision in decisions for answer in decision.answers]
            rejected = dict(chain.from_iterable(d.rejected.items() for d in decisions))
            ids = iter(update.write(best, chosen, rejected))
            self.view = update.view
        for decision in decisions:
            self._note(decision, ids, is_draft=policy.is_draft)

    def _keep_by_test(self, policy: Policy, replies: Sequence[values.Answer], check: Check) -> None:
        """Put the new outputs in place, call the test again, and put them back unless better.

        The test may take its time and may read or write the place, so it is not locked while
        it runs.
        """
        name = replies[0].ask.name
        piece = self._pieces[name]
        before = self._place.open()
        tried = before.with_answers(replies)
        with self._place.trial(tried, replies) as trial:
            fails = tuple(check())
            change = Change(name, before, tried, bool(piece.feedback), bool(fails))
            is_better = policy.may_replace(change)
            if is_better:
                trial.accept()
        # Read anew, because the test may have written to the place.
        self.view = self._place.open()
        if is_better:
            piece.feedback = fails
        rejected = {} if is_better else dict.fromkeys(replies, ())
        decision = _Decision(tried, tried, replies if is_better else (), rejected, fails)
        self._note(decision, iter(trial.history))

    def _note(
        self, decision: "_Decision[V]", ids: Iterator[str], *, is_draft: bool = False
    ) -> None:
        """Write down what came of replies, and stop a unit that gets no further.

        A model that makes the same mistakes again makes no progress. The template always does: it
        reads no corrections. Drafts are of many units, and of those that are kept nothing is said.
        """
        self.kept += decision.answers
        for answer in decision.answers:
            result = self._pieces[answer.ask.name].result
            result.regenerated = (*result.regenerated, (answer.ask.name, answer.ask.page))
        for answer, issues in decision.rejected.items():
            result = self._pieces[answer.ask.name].result
            result.rejected += tuple(islice(ids, 1))
            if is_draft:
                self._note_findings(answer.ask.name, issues, is_stored=False)
        if is_draft:
            return
        refused, tried = [*decision.rejected], decision.tried
        name = (*decision.answers, *refused)[0].ask.name
        self._write_down(decision.answers, decision.view, decision.fails, is_kept=True)
        self._write_down(refused, tried, decision.fails)
        self._pieces[name].refused = refused
        findings = (*policies.fixable_issues(tried.issues(name)), *decision.fails)
        self._note_findings(name, findings, is_stored=not refused)

    def _note_findings(self, name: str, findings: Sequence[Feedback], *, is_stored: bool) -> None:
        piece, mark = self._pieces[name], policies.signature(findings)
        piece.rejected = () if is_stored else tuple(findings)
        if mark and piece.result.by_template:
            piece.close("unfixable")
        elif mark and mark in piece.seen:
            piece.close("no_progress")
        piece.seen.append(mark)

    def _write_down(
        self,
        answers: Iterable[values.Answer],
        tried: V,
        fails: Sequence[Feedback] = (),
        *,
        is_kept: bool = False,
    ) -> None:
        """Add what was asked, what came back and what is wrong with it to the transcript."""
        for answer in answers:
            if not answer.by_template and answer.ask.known is None:
                findings = () if answer.failure else (*_issues_on(tried, answer), *fails)
                result = self._pieces[answer.ask.name].result
                result.transcript = (*result.transcript, values.Attempt(answer, is_kept, findings))

    def _result(self, name: str, piece: _Piece) -> values.HealResult:
        is_changed = bool(piece.result.regenerated) and name not in self._waiting
        issues = self.view.issues(name)
        result = replace(
            piece.result,
            attempts=len(piece.rounds),
            # Once each, because a later round may have replaced what an earlier one kept.
            regenerated=tuple(dict.fromkeys(piece.result.regenerated)),
            issues_after=issues,
            changed_paths=self._place.changed_paths() if is_changed else (),
        )
        if name in self._waiting:
            result.regenerated, result.pending = (), (self._waiting[name],)
        if not (result.skipped or result.stop_reason):
            result.stop_reason = "clean"
            if self._findings(name, piece):
                result.stop_reason = self._ended_by or "attempts"
            elif any(issue.code == "UNFIXABLE" for issue in issues):
                result.stop_reason = "unfixable"
        return result


@dataclass(frozen=True, slots=True)
class _Decision(Generic[V]):
    """Which replies are kept: of one unit, or drafts of several."""

    tried: V
    """With all of them."""
    view: V
    """With those that are kept."""
    answers: Sequence[values.Answer]
    rejected: values.Rejected
    fails: Sequence[Feedback] = ()
    """What the asking test says with all of them in place."""


def _decide(policy: Policy, before: V, replies: Sequence[values.Answer]) -> _Decision[V]:
    """Return what is kept of replies for one unit: all together, else some on their own."""
    name = replies[0].ask.name
    tried = best = before.with_answers(replies)
    # Whatever the policy: what cannot stand in its place cannot be kept.
    answers = [answer for answer in replies if tried.is_placed(answer.ask.name)]
    if not policy.may_replace(Change(name, before, tried)):
        best, answers = before, []
        for answer in replies if len(replies) > 1 else ():
            candidate = before.with_answers([*answers, answer])
            if policy.may_replace(Change(name, best, candidate)):
                best, answers = candidate, [*answers, answer]
    rejected = {a: _issues_on(tried, a) for a in replies if a not in answers}
    return _Decision(tried, best, answers, rejected)


def _issues_on(view: View, answer: values.Answer) -> tuple[Issue, ...]:
    """Return what is wrong with one output, for the history."""
    issues = view.issues(answer.ask.name)
    return tuple(issue for issue in issues if issue.page in (answer.ask.page, None))
