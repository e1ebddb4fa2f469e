"""A store under its lock: outputs kept or rejected, edits adopted or dropped, old ones put back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pytest_regen.errors import RegenError, StoreMissingError, UnknownPageError, UsageError
from pytest_regen.languages import find_language
from pytest_regen.modes import HAND
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.regeneration.places import Changes, Written
from pytest_regen.regeneration.store_view import StoreView, edit_error, page_of, with_pages
from pytest_regen.regeneration.values import Answer, Rejected
from pytest_regen.stores import HistoryEntry, StoredPage, StoreUpdate, history
from pytest_regen.stores.history import HistoryReason
from pytest_regen.text import source_diff
from pytest_regen.validation import edits
from pytest_regen.validation.pieces import split

# Stands for the hash of an IR that was not recorded; equal to no hash.
_UNKNOWN: Final = "unknown"


class LockedStore:
    """A store that is locked for writing.

    Args:
        place: the store.
        transaction: holds its lock.
    """

    # Not by its class, ``StorePlace``, because that one's module imports this one.
    def __init__(self, place: Any, transaction: StoreUpdate) -> None:
        self._place = place
        self._transaction = transaction
        self.view: StoreView = place.view_of(transaction.store)
        """What it holds, read under the lock and again after ``write``."""

    def write(
        self, candidate: StoreView, answers: Sequence[Answer], rejected: Rejected
    ) -> tuple[str, ...]:
        """Write what is kept and put the rest in the history; return the ids of the rest."""
        entries = [
            HistoryEntry.of(page_of(self.view.store, answer), "rejected", issues)
            for answer, issues in rejected.items()
        ]
        pages = [candidate.store.pages[answer.ask.entry.key] for answer in answers]
        source = (candidate.store.source or None) if answers else None
        ids = self._transaction.write(pages=pages, source=source, aside=entries)
        if answers:
            # What is stored now was validated as a candidate.
            self._transaction.store.memo.update(candidate.store.memo)
        self.view = self._place.view_of(self._transaction.store)
        return ids[: len(entries)]

    def restore(self, word: str, page: int | None, to: str | None) -> Changes:
        """Make outputs from the history the stored ones; what they replace goes to the history."""
        store = self.view.store
        name = store.resolve_type(word)
        if name in edits.edited_types(store):
            raise edit_error(store, name, "restoring an output would discard the edit")
        prompts = {entry.key: entry for entry in store.prompts_of(name)}
        past = [entry for entry in history(store.path, name) if page in (None, entry.page)]
        # A type that was planned anew has other pages, of which the old outputs are no part.
        past = [entry for entry in past if entry.key in prompts]
        if to is not None:
            past = [entry for entry in past if entry.id == to.removesuffix(".json")]
        else:
            # What was rejected nobody wants back, and the same output once more changes nothing.
            now = {stored.key: stored.output for stored in store.pages_of(name)}
            past = [e for e in past if e.reason != "rejected" and e.output != now.get(e.key)]
        if not past:
            which = f"page {page} of {name}" if page else name
            called = f"output of {which} called {to}" if to else f"other output of {which}"
            raise UnknownPageError(
                f"the history of {store.path} has no {called}",
                why="one of a page that the type no longer has does not count",
                hint=f"pytest-regen history {store.path} --type {name}",
            )
        pages = []
        # By time, so that of each page the last one stays.
        for entry in {entry.key: entry for entry in past}.values():
            who = ("model", "stop_reason", "generated_at", "provider", "shared_from")
            facts = {name: getattr(entry, name) for name in who}
            # What does not say what it was made from must not look fresh.
            facts["type_hash"] = entry.type_hash or _UNKNOWN
            facts["attempt"] = store.next_attempt(entry.key)
            restored = StoredPage.of(prompts[entry.key], entry.output, **facts)
            pages.append(replace(restored, prompt_hash=entry.prompt_hash))
        return self._write(pages, with_pages(store, pages).source, "restored")

    def rebuild(self, words: Sequence[str] | None) -> Changes:
        """Write the source from the stored pages; edits made by hand are dropped.

        What is dropped goes to the history in the same write. Text outside of the blocks stays,
        unless the boundary lines are gone: then the source is written anew, header and all. An
        output that was edited in ``pages.json`` is the stored one from now on, written by ``hand``.
        """
        store, (broken, blocks) = self.view.store, self._edited(words)
        if broken:
            source = store.assembly()
            ids = self._transaction.write(source=source, keeps_source=store.has_source)
            return Changes(store.type_names, ids, self._diff(source))
        dropped: list[StoredPage] = []
        for name, block in blocks.items():
            if block is not None:
                try:
                    dropped += self._edited_pages(name, block)
                except RegenError:  # What cannot be split into pages stays whole.
                    dropped.append(self._by_hand(store.prompts_of(name)[0], block))
        written = [page for name in blocks for page in store.pages_of(name)]
        source = with_pages(store, written).source
        # Else the page would stay an edit for ever, because its hash is that of another output.
        tampered = [key for key in store.tampered_pages if key.type_name in blocks]
        prompts = {entry.key: entry for entry in store.prompts}
        pages = [self._by_hand(prompts[key], store.pages[key].output) for key in tampered]
        if not (pages or source != store.source):
            return Changes(())
        entries = [HistoryEntry.of(page, "dropped") for page in dropped]
        ids = self._transaction.write(pages=pages, source=source, aside=entries)
        return Changes(tuple(blocks), ids, self._diff(source))

    def adopt(self, words: Sequence[str] | None, *, with_stale: bool = False) -> Changes:
        """Make what was edited by hand the stored outputs, written by ``hand``.

        An edited block becomes the outputs of its pages, whatever ``pages.json`` says now. An
        adopted type is no longer stale.
        """
        if with_stale:
            place = self._place.here
            raise UsageError(
                f"--stale is about files with units, and {place} is a store",
                why="a type that is stale has new prompts",
                hint=f"pytest-regen generate, as pytest-regen validate {place} says",
            )
        store, (broken, blocks) = self.view.store, self._edited(words)
        gone = [name for name, block in blocks.items() if block is None]
        if words != [] and (broken or gone):
            option = "" if broken else f" --type {gone[0]}"
            raise StoreMissingError(
                f"nothing can be adopted from {store.source_path}: "
                + (broken or f"it has no block of {gone[0]}"),
                why="a block is found by its boundary lines",
                hint=f"write it from its pages: pytest-regen rebuild {store.path}{option}",
            )
        pages: list[StoredPage] = []
        for name, block in blocks.items():
            pages += self._edited_pages(name, block or "")
        if not pages:
            return Changes(())
        # Somebody looked at these types as a whole: their other pages answer the IR of now as well.
        keys = {page.key for page in pages}
        fresh = [
            replace(page, type_hash=store.plan.hashes.get(page.type_name))
            for name in blocks
            for page in store.pages_of(name)
            if page.key not in keys
        ]
        return self._write(pages, store.source, "adopted", fresh)

    def forget(self, names: Sequence[str] | None) -> Changes:
        """Refuse: what a store holds follows its document."""
        raise UsageError(
            f"{self._place.here} is a store, and forget is for files with units",
            why="what its document no longer has goes to the history by itself",
            hint="pytest-regen generate on the document",
        )

    def _write(
        self,
        pages: Sequence[StoredPage],
        source: str,
        reason: HistoryReason,
        fresh: Sequence[StoredPage] = (),
    ) -> Changes:
        ids = self._transaction.write(pages=[*pages, *fresh], source=source, reason=reason)
        names = tuple(dict.fromkeys(page.type_name for page in pages))
        changed = tuple(Written(page.type_name, page.page, page.model) for page in pages)
        return Changes(names, ids, self._diff(source), changed)

    def _edited(self, words: Sequence[str] | None) -> tuple[str, Mapping[str, str | None]]:
        """Return why no block can be found, and the edited types with their blocks, if any."""
        store = self.view.store
        names = {store.resolve_type(word) for word in words or ()}
        pieces = split(store.source, store.envelope.language)
        blocks = {piece.name: piece.text for piece in pieces.pieces}
        edited = [edit.type_name for edit in edits.edits(store, pieces)]
        chosen = {name: blocks.get(name) for name in edited if words is None or name in names}
        return edits.broken_file(store, pieces), chosen

    def _edited_pages(self, name: str, block: str) -> list[StoredPage]:
        """Return the pages of a type as its block has them, without those that are as stored."""
        store = self.view.store
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
        return [self._by_hand(entry, text) for entry, text in texts if not is_stored(entry, text)]

    def _by_hand(self, entry: PromptEntry, output: str) -> StoredPage:
        store = self.view.store
        hash_, attempt = store.plan.hashes.get(entry.type_name), store.next_attempt(entry.key)
        return StoredPage.of(entry, output, model=HAND, type_hash=hash_, attempt=attempt)

    def _diff(self, source: str) -> str:
        return source_diff(self.view.store.source, source, self._place.file_name)
