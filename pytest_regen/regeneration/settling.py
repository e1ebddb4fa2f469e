"""New outputs settled: judged against what is stored, then kept, or put aside in the history.

What is judged is what is written: both happen under the store's lock, on a fresh snapshot, so that
two processes healing one store never overwrite each other's pages. No model is asked meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_regen.regeneration.candidate import page_of, read_ahead, revised
from pytest_regen.regeneration.judge import (
    fixable,
    is_better,
    is_edited,
    is_no_worse,
    judged,
    scores,
    signature,
)
from pytest_regen.regeneration.values import Feedback, PageAnswer
from pytest_regen.stores import HistoryEntry, RegenStore, StoredPage, StoreUpdate
from pytest_regen.validation.ignoring import Ignore
from pytest_regen.validation.issues import Issue, ValidationResult

__all__ = ["Check", "Policy", "Settled", "findings_of", "settle", "settle_by_test"]

Check = Callable[[], Sequence[Feedback]]
"""Calls the asking test again and returns what it has to say; nothing when it passes."""

Policy = Literal["heal", "named", "any"]
"""What may replace a stored output: a better one, one that is no worse, or any."""

Results = Mapping[str, ValidationResult]


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the outputs of one round."""

    store: RegenStore
    """The store afterwards."""
    results: Results
    """What is wrong with it."""
    kept: tuple[StoredPage, ...]
    rejected: tuple[str, ...]
    """History ids."""
    said: tuple[Feedback, ...]
    """What is wrong with the outputs as the model gave them; tells whether it makes progress."""
    findings: tuple[Feedback, ...]
    """What the next correction has to tell: the above, and what the stored outputs still lack."""
    feedback: tuple[Feedback, ...] = ()
    """What the asking test has to say of the store as it is now."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    pages: tuple[StoredPage, ...]
    store: RegenStore
    results: Results


def findings_of(
    results: Results, type_name: str, feedback: Sequence[Feedback] = ()
) -> tuple[Feedback, ...]:
    """Return what a correction of the type has to tell."""
    return (*fixable(results.get(type_name)), *feedback)


def settle(
    path: Path,
    type_name: str,
    answers: Sequence[PageAnswer],
    policy: Policy,
    *,
    ignore: Ignore = (),
) -> Settled:
    """Keep the new outputs that may stay: all together, else those that may on their own.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    read_ahead(RegenStore.open(path), answers)
    with RegenStore.update(path) as tx:
        before = _Candidate((), tx.store, judged(tx.store, ignore))
        pages = [page_of(tx.store, answer) for answer in answers]
        tried = _with_pages(tx.store, pages, ignore)
        kept = tried if _may_stay(type_name, before, tried, policy) else before
        if kept is before and len(pages) > 1:
            for page in pages:
                alone = _with_pages(tx.store, [*kept.pages, page], ignore)
                if _may_stay(type_name, kept, alone, policy):
                    kept = alone
        ids = _write(tx, kept, tried, type_name)
        said = findings_of(tried.results, type_name)
        still = () if kept is tried else findings_of(kept.results, type_name)
        return Settled(tx.store, kept.results, kept.pages, ids, said, _union(said, still))


def settle_by_test(
    path: Path,
    type_name: str,
    answers: Sequence[PageAnswer],
    feedback: Sequence[Feedback],
    check: Check,
    *,
    ignore: Ignore = (),
) -> Settled:
    """Put the new outputs in place, let the test judge them, and put them back if it is no better.

    The test may take its time and may read or write the store, so no lock is held while it runs; a
    kill meanwhile is undone by whoever opens the store next.
    """
    store = RegenStore.open(path)
    before = judged(store, ignore)
    tried = _with_pages(store, [page_of(store, answer) for answer in answers], ignore)
    with store.trial(pages=tried.pages, source=tried.store.source) as trial:
        fails = tuple(check())
        better = is_better(
            type_name,
            scores(store, before),
            scores(tried.store, tried.results),
            failed=bool(feedback),
            fails=bool(fails),
        )
        if better:
            trial.accept()
    said = findings_of(tried.results, type_name, fails)
    after = RegenStore.open(path)
    if better:
        return Settled(after, judged(after, ignore), tried.pages, (), said, said, fails)
    still = findings_of(before, type_name, feedback)
    return Settled(after, before, (), trial.history, said, _union(said, still), tuple(feedback))


def _with_pages(store: RegenStore, pages: Sequence[StoredPage], ignore: Ignore) -> _Candidate:
    candidate = revised(store, pages)
    return _Candidate(tuple(pages), candidate, judged(candidate, ignore))


def _may_stay(type_name: str, before: _Candidate, after: _Candidate, policy: Policy) -> bool:
    if policy == "any":
        return True
    was, now = scores(before.store, before.results), scores(after.store, after.results)
    if policy == "named":
        return is_no_worse(was, now)
    return is_better(type_name, was, now, failed=False, fails=False)


def _write(
    tx: StoreUpdate[RegenStore], kept: _Candidate, tried: _Candidate, type_name: str
) -> tuple[str, ...]:
    """Write what is kept and put the rest aside; return the history ids of the rest."""
    result = tried.results.get(type_name)
    rejected = [
        HistoryEntry.of(page, "rejected", _issues_on(result, page))
        for page in tried.pages
        if page not in kept.pages
    ]
    if not kept.pages:
        return tx.write(replaced=rejected)[: len(rejected)]
    edited = any(map(is_edited, kept.results.values()))
    ids = tx.write(
        pages=kept.pages, source=kept.store.source, replaced=rejected, is_unedited=not edited
    )
    return ids[: len(rejected)]


def _issues_on(result: ValidationResult | None, page: StoredPage) -> tuple[Issue, ...]:
    found = result.issues if result else ()
    return tuple(issue for issue in found if issue.page in (page.page, None))


def _union(said: Sequence[Feedback], still: Sequence[Feedback]) -> tuple[Feedback, ...]:
    """Return both, without repeating what only stands on another line."""
    known = {mark for item in said for mark in signature([item])}
    return (*said, *(item for item in still if not signature([item]) <= known))
