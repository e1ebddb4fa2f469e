"""What was edited in a store by hand: adopted or dropped; outputs brought back from the history."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pytest_regen import stores
from pytest_regen.errors import HandEditError, RegenError, StoreMissingError, UnknownPageError
from pytest_regen.languages import find_language
from pytest_regen.modes import HAND
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.store_view import edit_error, with_pages
from pytest_regen.regeneration.values import Changes, Written
from pytest_regen.text import source_diff
from pytest_regen.validation import edits
from pytest_regen.validation.issues import ValidationResult
from pytest_regen.validation.pieces import split

# Stands for the hash of an IR that was not recorded; equal to no hash.
_UNKNOWN: Final = "unknown"


def restore(tx: stores.StoreUpdate, word: str, page: int | None, to: str | None) -> Changes:
    """Make outputs from the history the stored ones; what they replace goes to the history."""
    store = tx.store
    name = store.resolve_type(word)
    if name in edits.edited_types(store):
        raise edit_error(store, name, "restoring an output would discard the edit", "keep the edit")
    prompts = {entry.key: entry for entry in store.prompts_of(name)}
    look = f"pytest-regen history {store.path} --type {name}"
    if to is not None:
        chosen = stores.history_entry(store.path, to)
        if chosen.type_name != name or page not in (None, chosen.page):
            raise UnknownPageError(
                f"history entry {to} is {chosen.type_name}, page {chosen.page}, not {name}"
                + (f", page {page}" if page else ""),
                hint=look,
            )
        if chosen.key not in prompts:
            raise UnknownPageError(
                f"{name} has no page {chosen.page} of {chosen.total_pages} any more",
                why="the type was planned anew since that output was replaced",
                hint=f"read it in {store.path / 'history'}, and edit the source by hand",
            )
        entries = [chosen]
    else:
        # By time: of each page the last one stays. What was rejected, nobody wants back.
        past = [entry for entry in stores.history(store.path, name) if entry.reason != "rejected"]
        keys = {key for key in prompts if page in (None, key.page)}
        entries = [*{entry.key: entry for entry in past if entry.key in keys}.values()]
    if not entries:
        which = f"page {page} of {name}" if page else name
        raise UnknownPageError(
            f"no output of {which} was ever replaced", hint=f"{look}, then --to ID"
        )
    pages = []
    for entry in entries:
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


def rebuild(
    tx: stores.StoreUpdate, words: Sequence[str] | None, *, keep_lost: bool = False
) -> Changes:
    """Write the source from the stored pages; edits made by hand are dropped.

    What is dropped goes to the history in the same write. Text outside of the blocks stays, unless
    the boundary lines are gone: then the source is written anew, header and all. An output that was
    edited in ``pages.json`` alone is put back as the source has it.
    """
    store = tx.store
    names = {store.resolve_type(word) for word in (store.type_names if words is None else words)}
    pieces = split(store.source, store.envelope.language)
    if edits.broken_file(store, pieces):
        source = store.assembly()
        ids = tx.write(source=source, keeps_source=store.has_source)
        return Changes(store.type_names, ids, _diff(store, source))
    edited = [edit for edit in edits.edits(store, pieces) if edit.type_name in names]
    lost = [edit for edit in edited if edit.where == "both"]
    if lost and not keep_lost:
        raise HandEditError(
            f"{lost[0].type_name} cannot be rebuilt: {lost[0].message}",
            why="neither file holds the output that was stored",
            hint=f"keep it: pytest-regen adopt {store.path} --type {lost[0].type_name}; "
            f"or take it back: git checkout -- {store.path / 'pages.json'}",
        )
    blocks = {piece.name: piece.text for piece in pieces.pieces}
    changed = [edit for edit in edited if edit not in lost]
    dropped: list[stores.StoredPage] = []
    put_back: list[stores.StoredPage] = []
    in_source: list[stores.StoredPage] = []
    for edit in changed:
        name, block = edit.type_name, blocks.get(edit.type_name)
        if edit.where == "source":
            in_source += store.pages_of(name)
        if block is not None:
            try:
                new, old = _sides(store, edit, block)
            except RegenError:  # What cannot be split into pages stays whole.
                new, old = [_by_hand(store, store.prompts_of(name)[0], block)], []
            dropped += new
            put_back += old if edit.where == "pages" else []
    source = with_pages(store, in_source).source
    if not (put_back or source != store.source):
        return Changes(())
    history_entries = [stores.HistoryEntry.of(page, "dropped") for page in dropped]
    ids = tx.write(pages=put_back, source=source, replaced=history_entries)
    return Changes(tuple(edit.type_name for edit in changed), ids, _diff(store, source))


def adopt(tx: stores.StoreUpdate, words: Sequence[str] | None) -> Changes:
    """Make what was edited by hand the stored outputs, written by ``hand``.

    An edited block becomes the outputs of its pages. An output edited in ``pages.json`` stays, and
    the source follows it; where both were edited, the source wins. An adopted type is no longer
    stale.
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
    edited = [
        edit for edit in edits.edits(store, pieces) if names is None or edit.type_name in names
    ]
    blocks = {piece.name: piece.text for piece in pieces.pieces}
    pages: list[stores.StoredPage] = []
    replaced: list[stores.HistoryEntry] = []
    for edit in edited:
        name = edit.type_name
        if name not in blocks:
            raise StoreMissingError(
                f"{store.source_path} has no block of {name}",
                why="its boundary lines are gone, so there is nothing to adopt",
                hint=f"pytest-regen rebuild {store.path} --type {name}",
            )
        new, old = _sides(store, edit, blocks[name])
        pages += new
        replaced += (stores.HistoryEntry.of(page, "adopted") for page in old)
    if not pages:
        return Changes(())
    in_pages = {edit.type_name for edit in edited if edit.where == "pages"}
    source = with_pages(store, [page for page in pages if page.type_name in in_pages]).source
    # Somebody looked at these types as a whole: their other pages answer the IR of now as well.
    keys = {page.key for page in pages}
    others = [page for edit in edited for page in store.pages_of(edit.type_name)]
    fresh = [
        replace(page, type_hash=store.plan.hashes.get(page.type_name))
        for page in others
        if page.key not in keys
    ]
    return _write(tx, pages, source, replaced, fresh)


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


def _sides(
    store: stores.RegenStore, edit: edits.Edit, block: str
) -> tuple[list[stores.StoredPage], list[stores.StoredPage]]:
    """Return the pages of a type that were edited, and those that they stand in for."""
    name, prompts = edit.type_name, store.prompts_of(edit.type_name)
    stored = {page.page: page for page in store.pages_of(name)}
    if edit.where == "pages":
        new = [_by_hand(store, p, stored[p.page].output) for p in prompts if p.page in edit.pages]
        proven = edits.split_block(store, name, block, edit.pages) or {}
        return new, [replace(stored[at], output=text) for at, text in proven.items()]
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
    new = [_by_hand(store, entry, text) for entry, text in texts if not is_stored(entry, text)]
    return new, [stored[page.page] for page in new if page.page in stored]


def _by_hand(store: stores.RegenStore, entry: PromptEntry, output: str) -> stores.StoredPage:
    hash_, attempt = store.plan.hashes.get(entry.type_name), store.next_attempt(entry.key)
    return stores.StoredPage.of(entry, output, model=HAND, type_hash=hash_, attempt=attempt)


def summary_of(results: Mapping[str, ValidationResult]) -> dict[str, Any]:
    """Return the ``validation`` of ``ir.json``: what was found, by type.

    No totals, no time and no line of the file: what is found in one type changes nothing in what is
    said of another.
    """
    # Without what is null, because that would be half of the lines of a review.
    keys = ("code", "severity", "message", "page", "field")
    return {
        name: [
            {key: getattr(issue, key) for key in keys if getattr(issue, key) is not None}
            for issue in result.issues
        ]
        for name, result in results.items()
    }


def write_summary(store: stores.RegenStore, results: Mapping[str, ValidationResult]) -> bool:
    """Update the summary in ``ir.json`` if it changed; return whether it did.

    Raises:
        StoreWriteError: the folder cannot be written.
    """
    summary = summary_of(results)
    if store.ir.validation == summary:
        return False
    # Into what is read under the lock, because the store may have changed since it was validated.
    with stores.RegenStore.update(store.path) as tx:
        tx.write(ir=tx.store.ir.model_copy(update={"validation": summary}))
    return True
