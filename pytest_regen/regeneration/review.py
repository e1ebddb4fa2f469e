"""What becomes of candidates that wait: they are stored as named work is, or put in the history."""

from pytest_regen.errors import OutdatedCandidateError, ReviewError, UsageError, WorseCandidateError
from pytest_regen.regeneration.held import answers_of, rejected_of
from pytest_regen.regeneration.pending import Candidate, PendingFolder
from pytest_regen.regeneration.places import Place, V
from pytest_regen.regeneration.policies import Change, Policy
from pytest_regen.regeneration.values import Answer
from pytest_regen.text import source_diff
from pytest_regen.validation.issues import Issue


def look_at(place: Place[V], candidate: Candidate) -> tuple[str, tuple[Issue, ...]]:
    """Return the diff that accepting a candidate makes, and what would be wrong with the piece.

    Raises:
        OutdatedCandidateError: it cannot be accepted any more; the reason is told.
        ReviewError: a test looks at another candidate there now.
        StoreError, KindError: the place cannot be looked at.
    """
    _refuse_trial(place, candidate)
    view = place.open()
    after = view.with_answers(_fitting_answers(place, view, candidate))
    return source_diff(view.text, after.text, place.file_name), after.issues(candidate.name)


def accept_candidate(
    place: Place[V], candidate: Candidate, folder: PendingFolder, *, accept_any: bool = False
) -> None:
    """Store a candidate, as named work does: under the lock, errors must not rise.

    What it replaces goes to the history. One that stands there already is no longer waiting.

    Args:
        place: of the candidate.
        candidate: as it was read.
        folder: where it waits.
        accept_any: store it even if errors rise.

    Raises:
        UsageError: it is no longer waiting.
        OutdatedCandidateError: what it was made for has changed since.
        WorseCandidateError: errors would rise.
        ReviewError: a test looks at another candidate there now.
        StoreError, KindError: the place cannot be read or written.
    """
    _refuse_trial(place, candidate)
    view = place.open()
    # Before the lock, because code may be run to validate it, and others would wait for it.
    place.prepare(_fitting_answers(place, view, candidate))
    with place.update() as update:
        _refuse_gone(folder, candidate)
        # What stands there is taken out when the trial ends, and so would be what replaced it.
        _refuse_trial(place, candidate)
        view = update.view
        answers = _fitting_answers(place, view, candidate)
        if view.obstacle(candidate.name) or not _stands(view, candidate):
            after = view.with_answers(answers)
            change = Change(candidate.name, view, after)
            may = Policy({}, accept_any=accept_any).may_replace(change)
            if not (may and after.is_placed(candidate.name)):
                raise _worse(candidate, change)
            update.write(after, answers, {})
        # Dropped last, because after a kill in between it is seen to stand there already.
        folder.change(drop=[candidate])


def reject_candidate(
    place: "Place[V] | None", candidate: Candidate, folder: PendingFolder
) -> tuple[str, ...]:
    """Put a candidate into the history; return its ids there.

    None where nothing of the project asks for its piece any more.

    Args:
        place: of the candidate; ``None`` where there is none.
        candidate: as it was read.
        folder: where it waits.

    Raises:
        UsageError: it is no longer waiting.
        StoreError: the place cannot be read or written.
    """
    # Without a lock, because there is no place that others could write meanwhile.
    if place is None:
        _refuse_gone(folder, candidate)
        folder.change(drop=[candidate])
        return ()
    with place.update() as update:
        _refuse_gone(folder, candidate)
        rejected = rejected_of(place, update.view, candidate)
        ids = update.write(update.view, (), rejected) if rejected else ()
        folder.change(drop=[candidate])
    return ids


def _refuse_gone(folder: PendingFolder, candidate: Candidate) -> None:
    if not folder.waits(candidate):
        raise UsageError(
            f"candidate {candidate.id} is no longer waiting",
            why="it was accepted or rejected meanwhile, or a newer one took its place",
            hint="pytest-regen review list",
        )


def _refuse_trial(place: Place[V], candidate: Candidate) -> None:
    if place.is_on_trial():
        raise ReviewError(
            f"candidate {candidate.id} cannot be accepted now: {candidate.place} is on trial",
            why="a pytest run with --regen has put a candidate there while a test looks at it",
            hint="wait for that run, then run the same command again",
        )


def _fitting_answers(place: Place[V], view: V, candidate: Candidate) -> list[Answer]:
    """Return the outputs of a candidate as answers.

    Raises:
        OutdatedCandidateError: what it was made for has changed since.
    """
    name = candidate.name
    # Accepted by a process that was killed before it could say so, it is no more out of date.
    stands = _stands(view, candidate)
    why = "" if stands else view.obstacle(name)
    answers = [] if why else answers_of(place, view, candidate)
    if answers and (stands or view.basis(name) == candidate.basis):
        return answers
    if not why:
        why = "nothing asks for it any more"
        if answers:
            why = "what it was made from has changed since: its prompt, its inputs, or the text "
            why += "in or around its place"
        why += "; reject the candidate, then ask again"
    raise OutdatedCandidateError(
        f"candidate {candidate.id} for {candidate.place}::{name} is out of date",
        why=why,
        hint=f"pytest-regen review reject {candidate.id}",
    )


def _stands(view: V, candidate: Candidate) -> bool:
    return all(view.output(candidate.name, each.page) == each.new for each in candidate.outputs)


def _worse(candidate: Candidate, change: Change) -> WorseCandidateError:
    name, after = candidate.name, change.after
    before, errors = change.before.score(name).errors, after.score(name).errors
    why = f"{before:,} errors there now, {errors:,} with it"
    issues = [issue for issue in after.issues(name) if issue.severity == "error"]
    why += f"; the first is {issues[0].code}: {issues[0].message}" if issues else ""
    what = "cannot be put in its place"
    hint = f"pytest-regen review reject {candidate.id}"
    if after.is_placed(name):
        what = "would be worse than what stands there"
        why += "; --accept-any takes it all the same"
        hint = f"pytest-regen review accept {candidate.id} --accept-any"
    where = f"{candidate.place}::{name}"
    return WorseCandidateError(f"candidate {candidate.id} for {where} {what}", why=why, hint=hint)
