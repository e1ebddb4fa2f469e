"""What was edited in a store by hand: adopted or dropped; outputs brought back from the history."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pytest_regen import stores
from pytest_regen.errors import RegenError, StoreMissingError, UnknownPageError
from pytest_regen.languages import find_language
from pytest_regen.modes import HAND
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.store_view import edit_error, with_pages
from pytest_regen.regeneration.values import Changes, Written
from pytest_regen.text import source_diff
from pytest_regen.validation import edits
from pytest_regen.validation.pieces import split

# Stands for the hash of an IR that was not recorded; equal to no hash.
_UNKNOWN: Final = "unknown"


def restore(tx: stores.StoreUpdate, word: str, page: int | None, to: str | None) -> Changes:
    """Make outputs from the history the stored ones; what they replace goes to the history."""
    store = tx.store
    name = store.resolve_type(word)
    if name in edits.edited_types(store):
        raise edit_error(store, name, "restoring an output would discard the edit")
    prompts = {entry.key: entry for entry in store.prompts_of(name)}
    past = [entry for entry in stores.history(store.path, name) if page in (None, entry.page)]
    if to is not None:
        past = [entry for entry in past if entry.id == to.removesuffix(".json")]
    else:
        # What was rejected, nobody wants back.
        past = [entry for entry in past if entry.reason != "rejected" and entry.key in prompts]
    if not past:
        which = f"page {page} of {name}" if page else name
        called = f" called {to}" if to else ""
        raise UnknownPageError(
            f"the history of {store.path} has no output of {which}{called}",
            hint=f"pytest-regen history {store.path} --type {name}",
        )
    if past[-1].key not in prompts:
        raise UnknownPageError(
            f"{name} has no page {past[-1].page} of {past[-1].total_pages} any more",
            why="the type was planned anew since that output was replaced",
            hint=f"read it in {store.path / 'history'}, and edit the source by hand",
        )
    pages = []
    # By time, so that of each page the last one stays.
    for entry in {entry.key: entry for entry in past}.values():
        restored = stores.StoredPage.of(
            prompts[entry.key],
            entry.output,
            model=entry.model,
            # What does not say what it was made from must not look fresh.
            type_hash=entry.type_hash or _UNKNOWN,
            stop_reason=entry.stop_reason,
            attempt=store.next_attempt(entry.key),
            generated_at=entry.generated_at,
            provider=entry.provider,
            shared_from=entry.shared_from,
        )
        pages.append(replace(restored, prompt_hash=entry.prompt_hash))
    replaced = [
        stores.HistoryEntry.of(store.pages[new.key], "restored")
        for new in pages
        if new.key in store.pages
    ]
    return _write(tx, pages, with_pages(store, pages).source, replaced)


def rebuild(tx: stores.StoreUpdate, words: Sequence[str] | None) -> Changes:
    """Write the source from the stored pages; edits made by hand are dropped.

    What is dropped goes to the history in the same write. Text outside of the blocks stays, unless
    the boundary lines are gone: then the source is written anew, header and all. An output that was
    edited in ``pages.json`` is the stored one from now on, written by ``hand``.
    """
    store = tx.store
    names = {store.resolve_type(word) for word in (store.type_names if words is None else words)}
    pieces = split(store.source, store.envelope.language)
    if edits.broken_file(store, pieces):
        source = store.assembly()
        ids = tx.write(source=source, keeps_source=store.has_source)
        return Changes(store.type_names, ids, _diff(store, source))
    edited = [edit.type_name for edit in edits.edits(store, pieces) if edit.type_name in names]
    blocks = {piece.name: piece.text for piece in pieces.pieces}
    dropped: list[stores.StoredPage] = []
    for name in edited:
        if name in blocks:
            try:
                dropped += _edited_pages(store, name, blocks[name])
            except RegenError:  # What cannot be split into pages stays whole.
                dropped.append(_by_hand(store, store.prompts_of(name)[0], blocks[name]))
    written = [page for name in edited for page in store.pages_of(name)]
    source = with_pages(store, written).source
    # Else the page would stay an edit for ever, because its hash is that of another output.
    tampered = [key for key in store.tampered_pages if key.type_name in edited]
    prompts = {entry.key: entry for entry in store.prompts}
    pages = [_by_hand(store, prompts[key], store.pages[key].output) for key in tampered]
    if not (pages or source != store.source):
        return Changes(())
    history_entries = [stores.HistoryEntry.of(page, "dropped") for page in dropped]
    ids = tx.write(pages=pages, source=source, replaced=history_entries)
    return Changes(tuple(edited), ids, _diff(store, source))


def adopt(tx: stores.StoreUpdate, words: Sequence[str] | None) -> Changes:
    """Make what was edited by hand the stored outputs, written by ``hand``.

    An edited block becomes the outputs of its pages, whatever ``pages.json`` says now. An adopted
    type is no longer stale.
    """
    store = tx.store
    names = None if words is None else {store.resolve_type(word) for word in words}
    pieces = split(store.source, store.envelope.language)
    broken = edits.broken_file(store, pieces)
    if broken and store.type_names and (names is None or names):
        raise StoreMissingError(
            f"nothing can be adopted from {store.source_path}: {broken}",
            why="a block is found by its boundary lines",
            hint=f"write it from its pages: pytest-regen rebuild {store.path}",
        )
    edited = [edit.type_name for edit in edits.edits(store, pieces)]
    edited = [name for name in edited if names is None or name in names]
    blocks = {piece.name: piece.text for piece in pieces.pieces}
    pages: list[stores.StoredPage] = []
    for name in edited:
        if name not in blocks:
            raise StoreMissingError(
                f"{store.source_path} has no block of {name}",
                why="its boundary lines are gone, so there is nothing to adopt",
                hint=f"pytest-regen rebuild {store.path} --type {name}",
            )
        pages += _edited_pages(store, name, blocks[name])
    if not pages:
        return Changes(())
    replaced = [store.pages[page.key] for page in pages if page.key in store.pages]
    entries = [stores.HistoryEntry.of(page, "adopted") for page in replaced]
    # Somebody looked at these types as a whole: their other pages answer the IR of now as well.
    keys = {page.key for page in pages}
    fresh = [
        replace(page, type_hash=store.plan.hashes.get(page.type_name))
        for name in edited
        for page in store.pages_of(name)
        if page.key not in keys
    ]
    return _write(tx, pages, store.source, entries, fresh)


def _write(
    tx: stores.StoreUpdate,
    pages: Sequence[stores.StoredPage],
    source: str,
    replaced: Sequence[stores.HistoryEntry],
    fresh: Sequence[stores.StoredPage] = (),
) -> Changes:
    before = tx.store  # Before the write, because the transaction holds what is read after it.
    ids = tx.write(pages=[*pages, *fresh], source=source, replaced=replaced)
    names = tuple(dict.fromkeys(page.type_name for page in pages))
    changed = tuple(Written(page.type_name, page.page, page.model) for page in pages)
    return Changes(names, ids, _diff(before, source), changed)


def _diff(store: stores.RegenStore, source: str) -> str:
    return source_diff(store.source, source, store.source_path.name)


def _edited_pages(store: stores.RegenStore, name: str, block: str) -> list[stores.StoredPage]:
    """Return the pages of a type as its block has them, without those that are as stored."""
    prompts = store.prompts_of(name)
    kind = store.plan.types[name].kind if name in store.plan.types else ""
    language = find_language(store.ir.language)

    def is_stored(entry: PromptEntry, output: str) -> bool:
        """Return whether the stored output is the same but for white space and wrapping."""
        page = store.pages.get(entry.key)
        if page is None or page.is_tampered:
            return False
        mode = output_mode(kind, is_root=entry.is_root, page=entry.page)
        old, new = (
            language.leaves(language.unwrap_page(text, mode)) for text in (page.output, output)
        )
        return old == new

    outputs = language.split(block, name=name, units=[entry.fields for entry in prompts])
    texts = zip(prompts, outputs, strict=True)
    return [_by_hand(store, entry, text) for entry, text in texts if not is_stored(entry, text)]


def _by_hand(store: stores.RegenStore, entry: PromptEntry, output: str) -> stores.StoredPage:
    hash_, attempt = store.plan.hashes.get(entry.type_name), store.next_attempt(entry.key)
    return stores.StoredPage.of(entry, output, model=HAND, type_hash=hash_, attempt=attempt)
