"""A store as it would be with new outputs: built in memory, judged, then written or not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from pytest_regen.languages import find_language
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration.policies import (
    fixable,
    is_better,
    is_edited,
    is_no_worse,
    judged,
    scores,
    signature,
)
from pytest_regen.regeneration.values import Feedback, PageAnswer
from pytest_regen.sources import (
    extract_type_block,
    insert_type_block,
    remove_type_block,
    replace_type_block,
    stitch,
)
from pytest_regen.stores import HistoryEntry, RegenStore, StoredPage, StoreUpdate
from pytest_regen.validation.issues import Ignore, Issue, ValidationResult
from pytest_regen.validation.stores import validate_pages

__all__ = [
    "Check",
    "Policy",
    "Settled",
    "findings_of",
    "model_for",
    "page_of",
    "read_ahead",
    "revised",
    "settle",
    "settle_by_test",
    "source_diff",
    "stitched_type",
    "without_types",
]


def page_of(store: RegenStore, answer: PageAnswer) -> StoredPage:
    """Return the answer as the page of ``store`` that it would become."""
    old = store.pages.get(answer.entry.key)
    return StoredPage.of(
        answer.entry,
        answer.output,
        model=answer.model,
        type_hash=store.prompt_type_hash(answer.entry),
        usage=answer.usage,
        stop_reason=answer.stop_reason or None,
        provider=answer.provider,
        attempt=(old.attempt if old else 0) + 1,
    )


def stitched_type(store: RegenStore, type_name: str) -> str | None:
    """Return the type as its stored pages make it; ``None`` while a page is missing."""
    prompts = store.prompts_of(type_name)
    outputs = [page.output for page in store.pages_of(type_name)]
    if not prompts or len(outputs) < len(prompts):
        return None
    type_ = store.ir.type_named(type_name)
    is_enum = type_ is not None and type_.kind == "enum"
    language = find_language(store.ir.language)
    return stitch(outputs, name=type_name, is_enum=is_enum, language=language).text


def revised(store: RegenStore, pages: Sequence[StoredPage]) -> RegenStore:
    """Return ``store`` with ``pages`` in place and the blocks of their types rebuilt.

    Every other byte of the source stays as it is, edits made by hand included.
    """
    merged = {**store.pages, **{page.key: page for page in pages}}
    source = store.source
    candidate = store.revised(merged.values(), source)
    for type_name in dict.fromkeys(page.type_name for page in pages):
        source = _with_block(candidate, source, type_name)
    return store.revised(merged.values(), source)


def read_ahead(store: RegenStore, answers: Sequence[PageAnswer]) -> None:
    """Judge the types that ``answers`` belong to, before the store is locked.

    Nothing is stored that cannot be judged, and no other writer waits while it is found out what is
    wrong with illegal code: what was read once is known afterwards.
    """
    pages = [page_of(store, answer) for answer in answers]
    merged = {**store.pages, **{page.key: page for page in pages}}
    candidate = store.revised(merged.values(), store.source)
    for type_name in dict.fromkeys(page.type_name for page in pages):
        validate_pages(candidate, type_name)


def _with_block(store: RegenStore, source: str, type_name: str) -> str:
    code = stitched_type(store, type_name)
    if code is None:
        return source
    if not source:
        return store.assembly()
    if extract_type_block(source, type_name) is not None:
        return replace_type_block(source, type_name, code)
    comment = find_language(store.ir.language).comment
    return insert_type_block(source, type_name, code, order=store.type_names, comment=comment)


def without_types(source: str, type_names: Sequence[str]) -> str:
    """Return ``source`` without the blocks of types that are gone."""
    for name in type_names:
        if extract_type_block(source, name) is not None:
            source = remove_type_block(source, name)
    return source


def model_for(
    store: RegenStore | None, entry: PromptEntry, override: str | None, default: str
) -> str:
    """Return the model to ask for a page: the one named, else the one that wrote it, else ours.

    Where no model of the API wrote it, but a person or a provider of the user's, the one that wrote
    another page last is asked.
    """
    if override:
        return override
    if store is None:
        return default
    page = store.pages.get(entry.key)
    if page is not None and _is_of_the_api(page):
        return page.model
    others = [one for one in store.pages.values() if _is_of_the_api(one)]
    if others:
        return max(others, key=lambda one: one.generated_at).model
    # A store that was just made names the model that is going to be asked.
    return default if store.pages else store.envelope.model or default


def _is_of_the_api(page: StoredPage) -> bool:
    return page.provider is None and page.model not in {"", "hand", "dry-run"}


def source_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two states of a source file; empty where they agree."""
    return "".join(
        unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
    )


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
