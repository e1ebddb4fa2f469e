"""Bringing back an output from the history, and taking over an edit made by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_regen.documents.ir import type_hash
from pytest_regen.errors import HandEditError, StoreMissingError, UnknownPageError
from pytest_regen.languages import language_named
from pytest_regen.languages.base import Language
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.candidate import revised, source_diff
from pytest_regen.regeneration.judge import is_edited
from pytest_regen.sources import extract_type_block
from pytest_regen.stores import HistoryEntry, RegenStore, StoredPage, history, history_entry
from pytest_regen.validation import validate_store

__all__ = ["HAND", "Taken", "adopt_edits", "edited_types", "put_back", "restore_outputs"]

HAND = "hand"
"""The model of a page whose output a person wrote."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Outputs that became the stored ones without a turn."""

    pages: tuple[StoredPage, ...]
    diff: str = ""
    """Unified diff of the source file."""


def edited_types(store: RegenStore) -> tuple[str, ...]:
    """Return the types whose block is not what their pages make."""
    return tuple(name for name, result in validate_store(store).items() if is_edited(result))


def restore_outputs(
    path: Path | str, type_name: str, *, page: int | None = None, to: str | None = None
) -> Taken:
    """Make outputs from the history the stored ones; what they replace goes to the history.

    Args:
        path: the store's folder.
        type_name: declared name, or the schema's where that is unambiguous.
        page: the page to restore; by default every page that has a replaced output.
        to: id of a history entry; by default the last one that was replaced.

    Raises:
        UsageError: no such type, page or entry.
        HandEditError: the type was edited by hand, and restoring would discard the edit.
        StoreError: the folder cannot be read or written.
    """
    with RegenStore.update(path) as tx:
        store = tx.store
        name = store.resolve_type(type_name)
        if name in edited_types(store):
            raise HandEditError(
                f"{name} in {store.source_path} was edited by hand",
                why="restoring an output would discard the edit",
                hint=f"take the edit over first: pytest-regen adopt {store.path} --type {name}",
            )
        pages = [_page(store, entry) for entry in _chosen(store, name, page, to)]
        candidate = revised(store, pages)
        replaced = [
            HistoryEntry.of(store.pages[new.key], "restored")
            for new in pages
            if new.key in store.pages
        ]
        tx.write(pages=pages, source=candidate.source, replaced=replaced)
        diff = source_diff(store.source, candidate.source, store.source_path.name)
        return Taken(tuple(pages), diff)


def put_back(path: Path | str, type_names: Sequence[str]) -> RegenStore:
    """Discard edits made by hand: rebuild the edited ones of some types from their stored pages.

    Args:
        path: the store's folder.
        type_names: declared names; types that were not edited stay as they are.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    with RegenStore.update(path) as tx:
        store = tx.store
        edited = edited_types(store)
        pages = [page for name in edited if name in type_names for page in store.pages_of(name)]
        if pages:
            whole = set(edited) <= set(type_names)
            tx.write(source=revised(store, pages).source, is_unedited=whole)
        return tx.store


def _chosen(store: RegenStore, name: str, page: int | None, to: str | None) -> list[HistoryEntry]:
    """Return one entry per page to restore."""
    if to is not None:
        entry = history_entry(store.path, to)
        if entry.type_name != name or page not in (None, entry.page):
            raise UnknownPageError(
                f"history entry {to} is {entry.type_name}, page {entry.page}, not {name}"
                + (f", page {page}" if page else ""),
                hint=f"pytest-regen history {store.path} --type {name}",
            )
        return [entry]
    wanted = {entry.key for entry in store.prompts_of(name) if page in (None, entry.page)}
    latest: dict[object, HistoryEntry] = {}
    for entry in history(store.path, name):
        if entry.key in wanted and entry.reason != "rejected":
            latest[entry.key] = max(latest.get(entry.key, entry), entry, key=lambda e: e.id)
    if not latest:
        which = f"page {page} of {name}" if page else name
        raise UnknownPageError(
            f"no output of {which} was ever replaced",
            hint=f"pytest-regen history {store.path} --type {name}, then --to ID",
        )
    return list(latest.values())


def _page(store: RegenStore, entry: HistoryEntry) -> StoredPage:
    prompt = next((p for p in store.prompts_of(entry.type_name) if p.key == entry.key), None)
    if prompt is None:
        raise UnknownPageError(
            f"{entry.type_name} has no page {entry.page} of {entry.total_pages} any more",
            why="the type was planned anew since that output was replaced",
            hint=f"read it in {store.path / 'history'}, and edit the source by hand",
        )
    current = store.pages.get(entry.key)
    page = StoredPage.of(
        prompt,
        entry.output,
        model=entry.model,
        type_hash=entry.type_hash,
        stop_reason=entry.stop_reason,
        attempt=(current.attempt if current else 0) + 1,
        generated_at=entry.generated_at,
    )
    return replace(page, prompt_hash=entry.prompt_hash)


def adopt_edits(path: Path | str, type_names: Sequence[str] | None = None) -> Taken:
    """Make the edited blocks of the source the stored outputs, written by ``hand``.

    Args:
        path: the store's folder.
        type_names: the types to take over; by default all that were edited.

    Raises:
        UnknownTypeError: the store has no such type.
        StoreMissingError: the source has no block of that type.
        SourceError: an edit cannot be told apart into the pages of its type.
        StoreError: the folder cannot be read or written.
    """
    with RegenStore.update(path) as tx:
        store = tx.store
        edited = edited_types(store)
        named = None if type_names is None else [store.resolve_type(name) for name in type_names]
        pages = [
            page
            for name in edited
            if named is None or name in named
            for page in _adopted(store, name)
        ]
        replaced = [
            HistoryEntry.of(store.pages[page.key], "adopted")
            for page in pages
            if page.key in store.pages
        ]
        if pages:
            whole = {page.type_name for page in pages} >= set(edited)
            tx.write(pages=pages, source=store.source, replaced=replaced, is_unedited=whole)
        return Taken(tuple(pages))


def _adopted(store: RegenStore, name: str) -> list[StoredPage]:
    """Return the pages of one type as the edited block has them; unchanged ones are left out."""
    block = extract_type_block(store.source, name)
    if block is None:
        raise StoreMissingError(
            f"{store.source_path} has no block of {name}",
            why="its boundary lines are gone, so there is nothing to adopt",
            hint=f"pytest-regen regenerate {store.path} --type {name} --discard-edits",
        )
    prompts = store.prompts_of(name)
    type_ = store.ir.type_named(name)
    language = language_named(store.ir.language)
    outputs = language.split(block, name=name, units=[entry.fields for entry in prompts])
    hash_ = type_hash(type_) if type_ else None
    is_enum = type_ is not None and type_.kind == "enum"
    return [
        _by_hand(store, entry, output, hash_)
        for entry, output in zip(prompts, outputs, strict=True)
        if not _is_stored(store, entry, output, language, is_enum=is_enum)
    ]


def _is_stored(
    store: RegenStore, entry: PromptEntry, output: str, language: Language, *, is_enum: bool
) -> bool:
    """Return whether the stored output of a page is the same but for white space and wrapping."""
    page = store.pages.get(entry.key)
    if page is None:
        return False
    mode = output_mode(is_enum=is_enum, is_root=entry.is_root, page=entry.page)
    stored, taken = (
        language.leaves(language.unwrap_page(text, mode)) for text in (page.output, output)
    )
    return stored == taken


def _by_hand(store: RegenStore, entry: PromptEntry, output: str, hash_: str | None) -> StoredPage:
    current = store.pages.get(entry.key)
    return StoredPage.of(
        entry,
        output,
        model=HAND,
        type_hash=hash_,
        stop_reason=None,
        attempt=(current.attempt if current else 0) + 1,
    )
