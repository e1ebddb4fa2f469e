"""The main flow: what to ask of a model, which replies to keep, and when to stop.

``work`` is all of it. What differs between generating, healing and named work is a policy
(``policies.py``); what differs between a type of a store and a unit of a file is a place
(``places.py``).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from typing import Generic, Literal

from pytest_regen.errors import RegenError
from pytest_regen.prompts.values import PageKey
from pytest_regen.regeneration.asking import meets_all, note_stored, stop_reason_of
from pytest_regen.regeneration.held import HeldPlace
from pytest_regen.regeneration.places import Place, V, View
from pytest_regen.regeneration.policies import (
    Change,
    Heal,
    Policy,
    fixable_issues,
    merge_findings,
    signature,
    without_marks,
)
from pytest_regen.regeneration.queue import Batch, Flow, drive_flow, jobs_of
from pytest_regen.regeneration.values import (
    Answer,
    Ask,
    Attempt,
    HealResult,
    Mark,
    Progress,
    Rejected,
    StopReason,
    TurnSettings,
)
from pytest_regen.validation.issues import Feedback, Issue

Check = Callable[[], Sequence[Feedback]]
"""Calls the asking test again and returns what it reports; nothing when it passes."""


def work(
    place: Place[V],
    policy: Policy,
    settings: TurnSettings,
    *,
    names: Iterable[str],
    rounds: int = 1,
    feedback: Sequence[Feedback] = (),
    check: Check | None = None,
    view: V | None = None,
) -> "Work[V]":
    """Work on one place, as ``work_steps`` says, and return how that ended.

    Raises:
        StoreError: the place cannot be read or written.
    """
    steps = work_steps(
        place,
        policy,
        settings,
        names=names,
        rounds=rounds,
        feedback=feedback,
        check=check,
        view=view,
    )
    return drive_flow(steps, settings)


def work_steps(
    place: Place[V],
    policy: Policy,
    settings: TurnSettings,
    *,
    names: Iterable[str],
    rounds: int = 1,
    feedback: Sequence[Feedback] = (),
    check: Check | None = None,
    view: V | None = None,
) -> "Flow[Work[V]]":
    """Ask for pieces of a place until nothing is wrong with them, or there is a reason to stop.

    Every round goes over all pieces that are still open, several at the same time where
    ``settings.jobs`` allows it. With one job each piece is asked in view of what the one before
    it changed; drafts, which depend on nothing, are asked for all at once and sent one by one.
    Pieces that use others have their rounds after those, for they may be right by then.

    Args:
        place: a store, or a file of units.
        policy: what the first round asks and keeps.
        settings: with what, and within which limits, pages are asked; with ``settings.pending``
            nothing is stored, and what would be kept waits for review.
        names: the pieces to work on.
        rounds: replies per page at most.
        feedback: what the asking test reports, beyond the issues; for one piece.
        check: calls that test again while the candidate is in place; for one piece.
        view: what the place holds, where that is known already.

    Raises:
        StoreError: the place cannot be read or written.
    """
    held = HeldPlace(place, settings.pending, feedback) if settings.pending else None
    if held is not None:
        view = held.open() if view is None else held.with_waiting(view)
    view = place.open() if view is None else view
    names = tuple(dict.fromkeys(names))
    task = Work(held or place, view, names, feedback, held, rounds=rounds)
    if policy.is_draft:
        yield from _round(task, policy, names, settings, check)
        policy, rounds = policy.then, rounds - 1
    for stage in stages(task.view, names):
        later = policy
        for _ in range(rounds):
            yield from _round(task, later, stage, settings, check)
            later = later.then
    note_stored(task.rejected, settings)
    return task


def stages(view: View, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield pieces in groups, each before those that use it; a circle stays in one group."""
    users = {name: {*view.users(name)} for name in names}
    while names:
        waits = {
            name: any(name in users[used] and used not in users[name] for used in names)
            for name in names
        }
        yield [name for name in names if not waits[name]]
        names = [name for name in names if waits[name]]


def _round(
    task: "Work[V]",
    policy: Policy,
    names: Sequence[str],
    settings: TurnSettings,
    check: Check | None,
) -> "Flow[None]":
    """Ask once for each piece that is still open."""
    batches = task.batches(policy, settings, names)
    if policy.is_draft or jobs_of(settings) > 1:
        groups = iter([list(batches)])
    else:
        groups = ([batch] for batch in batches)
    for group in groups:
        waiting: Sequence[Batch] = group
        owed = len(group)
        while owed:
            arrived = yield waiting
            owed -= len(arrived)
            waiting = ()
            task.take(policy, arrived, settings, check)
    if check is None:
        task.look_again(policy, [answer.ask.name for answer in task.kept])


@dataclass(slots=True)
class _Piece:
    """What is known of one piece while it is worked on."""

    result: HealResult
    feedback: tuple[Feedback, ...] = ()
    """What the asking test reports of it as it is stored."""
    rejected: tuple[Feedback, ...] = ()
    """What is wrong with the last outputs that were not kept: said first by the next correction."""
    seen: list[frozenset[tuple[str, ...]]] = field(default_factory=list)
    """What was wrong after each round: the same twice is no progress."""
    refused: Sequence[Answer] = ()
    """The last outputs that were not kept."""
    ordered: frozenset[Mark] | None = None
    """Marks of errors that its prompts ask for themselves; ``None`` until that is looked at."""
    is_open: bool = True
    is_begun: bool = False
    """Whether it was looked at before it was asked for; a draft has nothing to look at."""
    is_reached: bool = False
    """Whether there is something to say of it: it was answered, or needs or allows no answer."""
    last_round: int = 0
    """The last one that brought a reply."""


class Work(Generic[V]):
    """The pieces that are worked on, and what their place holds by now."""

    def __init__(
        self,
        place: Place[V],
        view: V,
        names: Iterable[str],
        feedback: Sequence[Feedback],
        held: HeldPlace[V] | None = None,
        *,
        rounds: int = 1,
    ) -> None:
        self.before = self.view = view
        """What the place held, and what it holds now."""
        self.kept: list[Answer] = []
        """The answers that were kept, in their order."""
        self.rejected: list[Answer] = []
        """Those that were not, until the work has ended."""
        self._place = place
        self._held = held
        """The place once more, where it holds back what is kept."""
        self._drafted: V | None = None
        """What the place held when errors were found in it first."""
        self._pieces = {
            name: _Piece(HealResult(name, None, allowed=rounds), tuple(feedback))
            for name in dict.fromkeys(names)
        }
        self._round = 0
        self._drafts = self._drafts_done = 0
        self._ended_by: StopReason | None = None

    @property
    def results(self) -> list[HealResult]:
        """How the work on each piece ended; pieces that were not reached are left out."""
        return [
            self._result(name, piece)
            for name, piece in self._pieces.items()
            if self._ended_by is None or piece.is_reached
        ]

    @property
    def stored(self) -> V:
        """What the place holds now, without what waits for review."""
        return self.view if self._held is None else self._held.stored()

    @property
    def pending(self) -> Mapping[str, str]:
        """The pieces of which a candidate waits for review, and its id."""
        return {} if self._held is None else self._held.ids

    @property
    def diff(self) -> str:
        """The unified diff of the place's file, with what waits for review."""
        return source_diff(self.before.text, self.view.text, self._place.file_name)

    def batches(
        self, policy: Policy, settings: TurnSettings, names: Iterable[str]
    ) -> Iterator[list[Ask]]:
        """Yield what is to be asked in one round, in batches that are kept or rejected together."""
        self._round += 1
        drafts: list[Ask] = []
        for name in names:
            piece = self._pieces[name]
            if not piece.is_open or not (policy.is_draft or self._begin(name, piece)):
                continue
            findings = () if policy.is_draft else self._findings(name, piece)
            if isinstance(policy, Heal) and not piece.seen:
                piece.seen.append(signature(findings))
            wanted = policy.pages_to_ask(self.view, name, findings)
            asks = self._place.asks(self.view, name, wanted, settings) if wanted else []
            if policy.is_draft:
                drafts += asks
            elif asks:
                yield asks
            else:
                piece.is_reached = True
        self._drafts += len(drafts)
        yield from ([ask] for ask in drafts)

    def _begin(self, name: str, piece: _Piece) -> bool:
        """Return whether a piece may be asked for; note how it is before the first time."""
        if not piece.is_begun:
            piece.is_begun = True
            issues = self.view.issues(name)
            why = self.view.obstacle(name)
            piece.is_open = not why
            piece.is_reached = bool(why)
            piece.result = replace(piece.result, issues_before=issues, skipped=why)
        return piece.is_open

    def _findings(self, name: str, piece: _Piece) -> tuple[Feedback, ...]:
        """Return what the next correction of a piece reports, each finding once."""
        stored = (*self._correctable(name, self.view), *piece.feedback)
        return merge_findings(piece.rejected, stored)

    def _correctable(self, name: str, view: V) -> tuple[Issue, ...]:
        """Return the errors of a piece that another reply could correct.

        What the prompts ask for themselves is left out: a reply that follows them has it again.
        """
        found = fixable_issues(view.issues(name))
        if not found:
            return ()
        piece = self._pieces[name]
        if piece.ordered is None:
            # All pieces are looked at in one view: what is asked for does not change with answers.
            if self._drafted is None:
                self._drafted = self.view
            piece.ordered = self._drafted.ordered(name)
        return without_marks(found, piece.ordered)

    def take(
        self,
        policy: Policy,
        batches: Iterable[Sequence[Answer]],
        settings: TurnSettings,
        check: Check | None = None,
    ) -> None:
        """Keep or reject what has arrived, and stop pieces that got no reply."""
        arrived = [answers for answers in batches if answers]
        kept_before = len(self.kept)
        for answers in arrived:
            self._count(answers, settings)
        replies = [[answer for answer in answers if not answer.failure] for answers in arrived]
        replies = list(filter(None, replies))
        if check is not None:
            for group in replies:
                self.keep_by_test(policy, group, check)
        elif replies:
            self.keep_better(policy, replies)
        # A run that was killed begins anew and is given what it had rejected; the next round goes
        # on from there, and nothing is paid for twice.
        done = {id(answer) for answer in self.kept[kept_before:]}
        done |= {id(each) for answers in arrived for each in answers if each.failure}
        came = [each for answers in arrived for each in answers]
        note_stored([each for each in came if id(each) in done], settings)
        self.rejected += [each for each in came if id(each) not in done]
        for answers in arrived:
            self._stop_after_failure(answers)

    def _count(self, answers: Sequence[Answer], settings: TurnSettings) -> None:
        """Add up what a batch of one piece cost."""
        name = answers[0].ask.name
        piece = self._pieces[name]
        usage, calls, attempts = piece.result.usage, piece.result.calls, piece.result.attempts
        for answer in answers:
            usage += answer.usage
            calls += answer.calls
            if answer.failure is None and piece.last_round < self._round:
                piece.last_round = self._round
                attempts += 1
        piece.is_reached = True
        piece.result = replace(
            piece.result,
            usage=usage,
            calls=calls,
            attempts=attempts,
            by_template=answers[0].by_template,
        )
        if self._drafts_done < self._drafts:
            self._drafts_done += 1
            self._report(answers[0], settings)

    def _report(self, answer: Answer, settings: TurnSettings) -> None:
        if settings.progress:
            key = PageKey(answer.ask.name, answer.ask.page, self.view.page_count(answer.ask.name))
            done, total = self._drafts_done, self._drafts
            settings.progress(
                Progress(key, done, total, "failed")
                if answer.failure
                else Progress(key, done, total, _word(answer))
            )

    def keep_better(self, policy: Policy, groups: Sequence[Sequence[Answer]]) -> None:
        """Keep the new outputs that may stay, those of a piece together or else some on their own.

        Piece after piece is decided on top of what was kept of those before it; all is written as
        one change. What is compared is what is written: both happen under the place's lock, so that
        two processes never overwrite each other's outputs. No model is asked meanwhile.

        Args:
            policy: what may replace what.
            groups: replies that arrived, those of one piece in each group.
        """
        if policy.is_draft:
            groups = [[answer for group in groups for answer in group]]
        self._place.prepare([answer for group in groups for answer in group])
        decisions = []
        with self._place.update() as update:
            best = update.view
            for replies in groups:
                decision = _decide(policy, best, replies)
                decisions.append(decision)
                best = decision.view
            kept = [answer for decision in decisions for answer in decision.kept]
            rejected = [each for decision in decisions for each in decision.rejected]
            history = iter(update.write(best, kept, rejected))
            self.view = update.view
        for decision in decisions:
            self._note_decision(policy, decision, [next(history) for _ in decision.rejected])

    def _note_decision(
        self, policy: Policy, decision: "_Decision[V]", rejected: Sequence[str]
    ) -> None:
        by_name: dict[str, list[Answer]] = {}
        for answer in decision.kept:
            by_name.setdefault(answer.ask.name, []).append(answer)
        for name, kept in by_name.items():
            self._note_kept(name, kept, ())
        if policy.is_draft:
            for one, id_ in zip(decision.rejected, rejected, strict=True):
                self._note_kept(one.answer.ask.name, (), [id_])
                self._note_findings(one.answer.ask.name, one.issues, is_stored=False)
            return
        name, is_stored = decision.name, not rejected
        self._write_down(name, decision.kept, decision.view, is_kept=True)
        self._write_down(name, [each.answer for each in decision.rejected], decision.tried)
        self._note_kept(name, (), rejected)
        self._pieces[name].refused = [each.answer for each in decision.rejected]
        self._note_findings(name, self._correctable(name, decision.tried), is_stored=is_stored)
        self._stop_if_ordered(name, decision.tried, is_stored=is_stored)

    @property
    def may_be_right(self) -> bool:
        """Whether an output was refused that uses other pieces, which may be at fault."""
        refused = [answer for piece in self._pieces.values() for answer in piece.refused]
        tried = self.view.with_answers(refused)
        return bool(refused) and any(map(tried.users, tried.names))

    def look_again(self, policy: Policy, changed: Collection[str]) -> bool:
        """Keep outputs that were refused, and are right now that other pieces are as they should.

        Args:
            policy: what may replace what.
            changed: the pieces that have other outputs since.

        Returns:
            Whether there was one.
        """
        waiting = {name: piece for name, piece in self._pieces.items() if piece.refused}
        if waiting:
            self.view = self._place.open()
        for name, piece in waiting.items():
            tried = self.view.with_answers(piece.refused)
            if any(name in tried.users(other) for other in changed if other != name):
                decision = _decide(policy, self.view, piece.refused)
                if not decision.rejected and not self._correctable(name, decision.tried):
                    self.keep_better(policy, [piece.refused])
                    piece.result = replace(piece.result, stop_reason=None)
                    self.look_again(policy, [*changed, name])
                    return True
        return False

    def keep_by_test(self, policy: Policy, replies: Sequence[Answer], check: Check) -> None:
        """Put the new outputs in place, call the test again, and put them back unless better.

        The test may take its time and may read or write the place, so it is not locked while
        it runs.
        """
        name = replies[0].ask.name
        piece = self._pieces[name]
        before = self._place.open()
        tried = before.with_answers(replies)
        with self._place.trial(before, tried, replies) as trial:
            fails = tuple(check())
            change = Change(name, before, tried, bool(piece.feedback), bool(fails))
            is_better = policy.may_replace(change)
            if is_better:
                trial.accept()
        self.view = self._place.open()
        if is_better:
            self._note_kept(name, replies, ())
            piece.feedback = fails
        else:
            self._note_kept(name, (), trial.history)
        findings = (*self._correctable(name, tried), *fails)
        self._write_down(name, replies, tried, fails, is_kept=is_better)
        self._note_findings(name, findings, is_stored=is_better)
        if not fails:
            self._stop_if_ordered(name, tried, is_stored=is_better)

    def _note_kept(self, name: str, kept: Sequence[Answer], rejected: Sequence[str]) -> None:
        self.kept += kept
        piece = self._pieces[name]
        pairs = (*piece.result.regenerated, *((a.ask.name, a.ask.page) for a in kept))
        piece.result = replace(
            piece.result,
            regenerated=tuple(dict.fromkeys(pairs)),
            rejected=(*piece.result.rejected, *rejected),
        )

    def _write_down(
        self,
        name: str,
        answers: Iterable[Answer],
        tried: V,
        fails: Sequence[Feedback] = (),
        *,
        is_kept: bool = False,
    ) -> None:
        """Add what was asked, what came back and what is wrong with it to the transcript."""
        piece = self._pieces[name]
        attempts = (
            Attempt(
                answer.ask.page,
                answer.ask.request,
                answer.ask.correction,
                answer.reply,
                is_kept,
                () if answer.failure else (*_issues_on(tried, answer), *fails),
                str(answer.failure or ""),
            )
            for answer in answers
            if not answer.by_template and answer.ask.known is None
        )
        piece.result = replace(piece.result, transcript=(*piece.result.transcript, *attempts))

    def _note_findings(self, name: str, found: Sequence[Feedback], *, is_stored: bool) -> None:
        """Remember what is wrong with new outputs; stop a piece that gets no further.

        A model that makes the same mistakes again makes no progress. The template always does: it
        reads no corrections.
        """
        piece = self._pieces[name]
        piece.rejected = () if is_stored else tuple(found)
        mark = signature(found)
        if mark and piece.result.by_template:
            self._close(piece, "unfixable")
        elif mark and mark in piece.seen:
            self._close(piece, "no_progress")
        piece.seen.append(mark)

    def _stop_if_ordered(self, name: str, tried: V, *, is_stored: bool) -> None:
        """Stop a piece whose answer was not kept for nothing but what its prompt asks for."""
        has_errors = bool(fixable_issues(tried.issues(name)))
        if not is_stored and has_errors and not self._correctable(name, tried):
            self._close(self._pieces[name], "unfixable")

    def _stop_after_failure(self, answers: Sequence[Answer]) -> None:
        """Stop a piece that got no reply; stop all where the others would get none either."""
        for answer in answers:
            if answer.failure is not None:
                piece, reason = self._pieces[answer.ask.name], stop_reason_of(answer.failure)
                self._write_down(answer.ask.name, [answer], self.view)
                self._close(piece, reason, failure=answer.failure)
                if meets_all(answer.failure):
                    self._ended_by = reason
                    for other in self._pieces.values():
                        other.is_open = False

    def _close(
        self, piece: _Piece, reason: StopReason, *, failure: RegenError | None = None
    ) -> None:
        piece.is_open = False
        piece.result = replace(
            piece.result,
            stop_reason=piece.result.stop_reason if piece.result.failure else reason,
            failure=piece.result.failure or failure,
        )

    def _result(self, name: str, piece: _Piece) -> HealResult:
        changed = self._place.changed_paths() if piece.result.regenerated else ()
        issues = self.view.issues(name)
        # An answer that followed the prompt may have been no better than what stands there: then
        # the fault is the same, and its words are not.
        at = {mark[:2] for mark in piece.ordered or ()}
        result = replace(
            piece.result,
            issues_after=issues,
            ordered=tuple(issue for issue in issues if (issue.code, issue.field or "") in at)
            if piece.result.stop_reason in {None, "unfixable"}
            else (),
            feedback_after=piece.feedback,
            changed_paths=changed,
        )
        if name in self.pending:
            waits = (self.pending[name],)
            result = replace(result, regenerated=(), changed_paths=(), pending=waits)
        if result.skipped or result.stop_reason:
            return result
        return replace(result, stop_reason=self._stop_reason(name, piece))

    def _stop_reason(self, name: str, piece: _Piece) -> StopReason:
        if self._findings(name, piece):
            return self._ended_by or "attempts"
        issues = self.view.issues(name)
        is_unfixable = any(issue.code == "UNFIXABLE" for issue in issues)
        is_ordered = without_marks(issues, piece.ordered or frozenset()) != issues
        return "unfixable" if is_unfixable or is_ordered else "clean"


def _word(answer: Answer) -> Literal["asked", "written", "shared"]:
    """Return how there came to be an answer."""
    if answer.ask.known is not None and answer.ask.known.shared_from is not None:
        return "shared"
    return "written" if answer.by_template else "asked"


@dataclass(frozen=True, slots=True)
class _Decision(Generic[V]):
    """Which replies of one piece are kept."""

    name: str
    tried: V
    """With all of them."""
    view: V
    """With those that are kept."""
    kept: tuple[Answer, ...]
    rejected: tuple[Rejected, ...]


def _decide(policy: Policy, before: V, replies: Sequence[Answer]) -> _Decision[V]:
    """Return what is kept of replies for one piece: all together, else some on their own."""
    name = replies[0].ask.name
    tried = best = before.with_answers(replies)
    # Whatever the policy: what cannot stand in its place cannot be kept.
    kept = tuple(answer for answer in replies if tried.is_placed(answer.ask.name))
    if not policy.may_replace(Change(name, before, tried)):
        best, kept = _some_alone(policy, name, before, replies)
    rejected = tuple(Rejected(a, _issues_on(tried, a)) for a in replies if a not in kept)
    return _Decision(name, tried, best, kept, rejected)


def _some_alone(
    policy: Policy, name: str, before: V, replies: Sequence[Answer]
) -> tuple[V, tuple[Answer, ...]]:
    """Return the view with those of several outputs that may stay without the others."""
    best = before
    kept: tuple[Answer, ...] = ()
    if len(replies) > 1:
        for answer in replies:
            candidate = before.with_answers([*kept, answer])
            if policy.may_replace(Change(name, best, candidate)):
                best, kept = candidate, (*kept, answer)
    return best, kept


def _issues_on(view: V, answer: Answer) -> tuple[Issue, ...]:
    """Return what is wrong with one output, for the history."""
    issues = view.issues(answer.ask.name)
    return tuple(issue for issue in issues if issue.page in (answer.ask.page, None))


def source_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two states of a file; empty where they agree."""
    return "".join(
        unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
    )
