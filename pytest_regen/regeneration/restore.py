"""Outputs brought back from the history, edits made by hand taken over, or dropped."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

from pytest_regen.canonical import text_hash
from pytest_regen.documents.ir import type_hash
from pytest_regen.errors import HandEditError, RegenError, StoreMissingError, UnknownPageError
from pytest_regen.languages import find_language
from pytest_regen.languages.base import Language
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.flow import source_diff
from pytest_regen.regeneration.store_place import is_edited, with_pages
from pytest_regen.stores import (
    HistoryEntry,
    RegenStore,
    StoredPage,
    StoreUpdate,
    history,
    history_entry,
)
from pytest_regen.stores.conflicts import take_ours
from pytest_regen.stores.formats import HAND
from pytest_regen.stores.snapshot import refuse_no_store
from pytest_regen.validation import validate_store
from pytest_regen.validation.edits import Edit, broken_file, edits, split_block
from pytest_regen.validation.pieces import split

_UNKNOWN: Final = "unknown"
"""Stands for the hash of an IR that was not recorded; equal to no hash."""


@dataclass(frozen=True, slots=True)
class RestoredOutputs:
    """Outputs that became the stored ones without a turn."""

    pages: tuple[StoredPage, ...]
    diff: str = ""
    """Unified diff of the source file."""


def edited_types(store: RegenStore) -> tuple[str, ...]:
    """Return the types whose block is not what their pages make."""
    return tuple(
        name for name, result in validate_store(store, behaviour=False).items() if is_edited(result)
    )


def restore_outputs(
    path: Path | str, type_name: str, *, page: int | None = None, to: str | None = None
) -> RestoredOutputs:
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
                hint=f"keep the edit: pytest-regen adopt {store.path} --type {name}; "
                f"or drop it: pytest-regen rebuild {store.path} --type {name}",
            )
        pages = [_restore_page(store, entry) for entry in _choose_entries(store, name, page, to)]
        candidate = with_pages(store, pages)
        replaced = [
            HistoryEntry.of(store.pages[new.key], "restored")
            for new in pages
            if new.key in store.pages
        ]
        tx.write(pages=pages, source=candidate.source, replaced=replaced)
        diff = source_diff(store.source, candidate.source, store.source_path.name)
        return RestoredOutputs(tuple(pages), diff)


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """A source, written from its pages again."""

    type_names: tuple[str, ...]
    """Types whose edit was dropped; all where the file as a whole was written anew."""
    history: tuple[str, ...]
    """Where the edits are kept: ids of history entries, and names of files in ``history/``."""
    diff: str
    """Unified diff of the source file; empty where two versions were joined."""
    joined: tuple[str, ...] = ()
    """Artifacts that were two versions of themselves, and are ours now."""


def rebuild_source(
    path: Path | str, type_names: Sequence[str] | None = None, *, keep_lost: bool = False
) -> RebuildResult:
    """Write the source from the stored pages; edits made by hand are dropped. No model is asked.

    What is dropped goes to the history in the same write. Text outside of the blocks stays, unless
    the boundary lines are gone: then the source is written anew, header and all. An output that was
    edited in ``pages.json`` alone is put back as the source has it.

    Where artifacts hold conflict markers of git, our version becomes the store, theirs goes to the
    history, and only types that the two had different outputs for are written again.

    Args:
        path: the store's folder.
        type_names: the types to rebuild; by default all.
        keep_lost: leave types alone whose stored output is lost, instead of refusing them.

    Raises:
        UnknownTypeError: the store has no such type.
        HandEditError: an output was edited in ``pages.json`` and in the source, so that nothing
            holds what was stored.
        StoreError: the folder cannot be read or written.
    """
    refuse_no_store(Path(path))
    if resolved := take_ours(Path(path)):
        differing = {key.type_name for key in resolved.pages}
        rebuilt = [name for name in RegenStore.open(path).type_names if name in differing]
        after = rebuild_source(path, rebuilt)
        history = (*resolved.history, *after.history)
        return RebuildResult(tuple(rebuilt), history, after.diff, resolved.files)
    with RegenStore.update(path) as tx:
        store = tx.store
        named = store.type_names if type_names is None else type_names
        names = {store.resolve_type(name) for name in named}
        found = split(store.source, store.envelope.language)
        if broken_file(store, found):
            return _write_anew(tx)
        edited = [edit for edit in edits(store, found) if edit.type_name in names]
        lost = [edit for edit in edited if edit.where in {"both", "apart"}]
        if lost and not keep_lost:
            _refuse_lost(store, lost[0])
        edited = [edit for edit in edited if edit not in lost]
        blocks = {piece.name: piece.text for piece in found.pieces}
        return _rebuild_blocks(tx, edited, blocks)


def _rebuild_blocks(
    tx: StoreUpdate, edited: Sequence[Edit], blocks: Mapping[str, str]
) -> RebuildResult:
    """Write the blocks of edited types as their pages make them."""
    store = tx.store
    in_source = [edit.type_name for edit in edited if edit.where == "source"]
    dropped = [
        HistoryEntry.of(page, "dropped")
        for name in in_source
        if name in blocks
        for page in _outputs_of_edit(store, name, blocks[name])
    ]
    restored = []
    for edit in edited:
        if edit.where == "pages":
            outputs = split_block(store, edit.type_name, blocks[edit.type_name], edit.pages) or {}
            for page in store.pages_of(edit.type_name):
                if page.page in outputs:
                    text = outputs[page.page]
                    restored.append(replace(page, output=text, output_hash=text_hash(text)))
                    dropped.append(HistoryEntry.of(replace(page, model=HAND), "dropped"))
    pages = [page for name in in_source for page in store.pages_of(name)]
    candidate = with_pages(store, pages)
    if not (edited and (restored or candidate.source != store.source)):
        return RebuildResult((), (), "")
    ids = tx.write(
        pages=restored,
        source=candidate.source,
        replaced=dropped,
    )
    return RebuildResult(
        tuple(edit.type_name for edit in edited), ids, _diff(store, candidate.source)
    )


def _write_anew(tx: StoreUpdate) -> RebuildResult:
    """Write the whole source; what the file held is kept as it is."""
    store = tx.store
    source = store.assembly()
    kept = tx.write(source=source, keeps_source=store.has_source)
    return RebuildResult(store.type_names, kept, _diff(store, source))


def _refuse_lost(store: RegenStore, edit: Edit) -> NoReturn:
    raise HandEditError(
        f"{edit.type_name} cannot be rebuilt: {edit.message}",
        why="neither file holds the output that was stored",
        hint=f"keep it: pytest-regen adopt {store.path} --type {edit.type_name}; "
        f"or take it back: git checkout -- {store.path / 'pages.json'}",
    )


def _outputs_of_edit(store: RegenStore, name: str, block: str) -> list[StoredPage]:
    """Return an edited block as outputs for the history; one that cannot be split stays whole."""
    try:
        return _outputs_of_block(store, name, block)
    except RegenError:
        return [_by_hand(store, store.prompts_of(name)[0], block, None)]


def _diff(store: RegenStore, source: str) -> str:
    return source_diff(store.source, source, store.source_path.name)


def _choose_entries(
    store: RegenStore, name: str, page: int | None, to: str | None
) -> list[HistoryEntry]:
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


def _restore_page(store: RegenStore, entry: HistoryEntry) -> StoredPage:
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
        type_hash=_type_hash_of(store, entry, prompt),
        stop_reason=entry.stop_reason,
        attempt=(current.attempt if current else 0) + 1,
        generated_at=entry.generated_at,
        provider=entry.provider,
        shared_from=entry.shared_from,
    )
    return replace(page, prompt_hash=entry.prompt_hash)


def _type_hash_of(store: RegenStore, entry: HistoryEntry, prompt: PromptEntry) -> str:
    """Return what IR an old output was made from; one that does not say must not look fresh."""
    if entry.type_hash is not None:
        return entry.type_hash
    is_the_same = entry.prompt_hash is not None and entry.prompt_hash == prompt.prompt_hash
    return (store.prompt_type_hash(prompt) if is_the_same else None) or _UNKNOWN


def adopt_edits(path: Path | str, type_names: Sequence[str] | None = None) -> RestoredOutputs:
    """Make what was edited by hand the stored outputs, written by ``hand``.

    An edited block becomes the outputs of its pages. An output edited in ``pages.json`` stays, and
    the source follows it; where both were edited in different ways, the source wins. An adopted
    type is no longer stale.

    Args:
        path: the store's folder.
        type_names: the types to take over; by default all that were edited.

    Raises:
        UnknownTypeError: the store has no such type.
        StoreMissingError: the source has no block of that type.
        SourceError: an edit cannot be split into the pages of its type.
        StoreError: the folder cannot be read or written.
    """
    with RegenStore.update(path) as tx:
        store = tx.store
        named = None if type_names is None else {store.resolve_type(name) for name in type_names}
        found = split(store.source, store.envelope.language)
        broken = broken_file(store, found)
        if broken and store.type_names and (named is None or named):
            raise StoreMissingError(
                f"nothing can be adopted from {store.source_path}: {broken}",
                why="a block is found by its boundary lines",
                hint=f"write it from its pages: pytest-regen rebuild {store.path}",
            )
        every = list(edits(store, found))
        edited = [edit for edit in every if named is None or edit.type_name in named]
        blocks = {piece.name: piece.text for piece in found.pieces}
        pages: list[StoredPage] = []
        replaced: list[HistoryEntry] = []
        for edit in edited:
            new, old = _adopt_edit(store, edit, blocks.get(edit.type_name))
            pages += new
            replaced += [HistoryEntry.of(page, "adopted") for page in old]
        if not pages:
            return RestoredOutputs(())
        in_pages = {edit.type_name for edit in edited if edit.where == "pages"}
        changed = with_pages(store, [page for page in pages if page.type_name in in_pages])
        names = {edit.type_name for edit in edited}
        fresh = [
            page
            for page in _with_fresh_hashes(store, names)
            if page.key not in {p.key for p in pages}
        ]
        tx.write(
            pages=[*pages, *fresh],
            source=changed.source,
            replaced=replaced,
        )
        return RestoredOutputs(tuple(pages), _diff(store, changed.source))


def _adopt_edit(
    store: RegenStore, edit: Edit, block: str | None
) -> tuple[list[StoredPage], list[StoredPage]]:
    """Return the new pages of an edited type, and the stored outputs that they replace."""
    name = edit.type_name
    stored = {page.page: page for page in store.pages_of(name)}
    if edit.where in {"source", "apart"}:
        if block is None:
            raise StoreMissingError(
                f"{store.source_path} has no block of {name}",
                why="its boundary lines are gone, so there is nothing to adopt",
                hint=f"pytest-regen rebuild {store.path} --type {name}",
            )
        new = _outputs_of_block(store, name, block)
        return new, [stored[page.page] for page in new if page.page in stored]
    before = split_block(store, name, block or "", edit.pages) if edit.where == "pages" else None
    new = [
        _by_hand(store, entry, stored[entry.page].output, _type_hash(store, name))
        for entry in store.prompts_of(name)
        if entry.page in edit.pages
    ]
    old = [replace(stored[page], output=text) for page, text in (before or {}).items()]
    return new, old


def _with_fresh_hashes(store: RegenStore, names: Collection[str]) -> list[StoredPage]:
    """Return the pages of types that somebody looked at as a whole, as answers to the IR of now."""
    return [
        replace(page, type_hash=_type_hash(store, name))
        for name in names
        for page in store.pages_of(name)
        if page.type_hash != _type_hash(store, name)
    ]


def _type_hash(store: RegenStore, name: str) -> str | None:
    type_ = store.ir.type_named(name)
    return type_hash(type_) if type_ else None


def _outputs_of_block(store: RegenStore, name: str, block: str) -> list[StoredPage]:
    """Return the pages of one type as the edited block has them; unchanged ones are left out."""
    prompts = store.prompts_of(name)
    type_ = store.ir.type_named(name)
    language = find_language(store.ir.language)
    outputs = language.split(block, name=name, units=[entry.fields for entry in prompts])
    is_enum = type_ is not None and type_.kind == "enum"
    return [
        _by_hand(store, entry, output, _type_hash(store, name))
        for entry, output in zip(prompts, outputs, strict=True)
        if not _is_stored(store, entry, output, language, is_enum=is_enum)
    ]


def _is_stored(
    store: RegenStore, entry: PromptEntry, output: str, language: Language, *, is_enum: bool
) -> bool:
    """Return whether the stored output of a page is the same but for white space and wrapping."""
    page = store.pages.get(entry.key)
    if page is None or page.is_tampered:
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
