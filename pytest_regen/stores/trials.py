"""What a candidate on trial stands in for, and how it is taken out of a store again.

Others may write to the store while a test looks at the candidate: what they wrote stays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from pytest_regen.commit import Contents, View
from pytest_regen.errors import SourceError
from pytest_regen.prompts.values import PageKey
from pytest_regen.store_folders import PAGES_FILE
from pytest_regen.stores.formats import StoredPage, read_pages
from pytest_regen.stores.history import HISTORY, HistoryEntry, history_files
from pytest_regen.strict_json import Node, as_json
from pytest_regen.validation.issues import Issue


class Content(NamedTuple):
    """What ``pages.json`` and the source file hold."""

    pages: str
    source: str | None
    """``None`` where there is no source file."""

    def by_key(self, file: Path) -> dict[PageKey, StoredPage]:
        """Return the pages by identity; ``file`` is named in errors."""
        return {page.key: page for page in read_pages(self.pages.encode(), file).pages}


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A candidate and what it stands in for."""

    before: Content
    after: Content
    candidates: tuple[PageKey, ...]
    """Pages that the candidate replaces."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON value."""
        return {
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "candidates": [key._asdict() for key in self.candidates],
        }

    @classmethod
    def from_json(cls, data: object, file: Path) -> Self:
        """Return the record that ``to_json`` made.

        Raises:
            StoreCorruptError: it is not one; the message names ``file``.
        """
        record = Node(data, file)
        before, after = (
            Content(part.text("pages"), part.optional_text("source"))
            for part in (record.node("before"), record.node("after"))
        )
        keys = (Node(entry, file, "$.candidates") for entry in record.list("candidates"))
        return cls(
            before,
            after,
            tuple(
                PageKey(key.text("type_name"), key.count("page"), key.count("total_pages"))
                for key in keys
            ),
        )

    def untouched_types(self, now: Content, file: Path) -> set[str]:
        """Return the types whose pages and block are as the candidate left them."""
        names = {key.type_name for key in self.candidates}
        if now == self.after:
            return names
        stored, tried = now.by_key(file), self.after.by_key(file)
        names -= {key.type_name for key in self.candidates if stored.get(key) != tried.get(key)}
        blocks, tried_blocks = blocks_of(now.source or ""), blocks_of(self.after.source or "")
        return {
            name for name in names if blocks.get(name, ("",))[0] == tried_blocks.get(name, ("",))[0]
        }

    def without_candidate(self, now: Content, file: Path) -> Content:
        """Return what the store holds without the candidate.

        Where nothing else was written meanwhile, that is what was there before, byte for byte.
        Else only types that still are the candidate's are put back, because who wrote to another
        since has seen the candidate in it and built on it.
        """
        if now == self.after:
            return self.before
        names = self.untouched_types(now, file)
        before = self.before.by_key(file)
        envelope = read_pages(now.pages.encode(), file)
        restored = {key: before.get(key) for key in self.candidates if key.type_name in names}
        pages = (restored.get(page.key, page) for page in envelope.pages)
        envelope = replace(envelope, pages=tuple(page for page in pages if page is not None))
        source = now.source and splice(now.source, self.before.source or "", sorted(names))
        return Content(as_json(envelope.to_json()).decode(), source)


def blocks_of(source: str) -> dict[str, tuple[str, int, int]]:
    """Return each block's text with its boundary lines, and where it stands.

    None where the boundaries do not hold together: then no part of the file can be put back.
    """
    from pytest_regen.sources import blocks

    try:
        return {
            block.name: (source[block.start : block.end], block.start, block.end)
            for block in blocks(source)
        }
    except SourceError:
        return {}


def splice(source: str, donor: str, type_names: Iterable[str]) -> str:
    """Return ``source`` with the blocks of ``type_names`` as ``donor`` has them, byte for byte."""
    donated = blocks_of(donor)
    for name in type_names:
        blocks = blocks_of(source)
        if name in blocks and name in donated:
            _, start, end = blocks[name]
            source = source[:start] + donated[name][0] + source[end:]
    return source


def take_out(record: object, view: View) -> Contents:
    """Return a store's files without the candidate of a trial that was killed."""
    trial = TrialRecord.from_json(record, view.root / HISTORY)
    return contents_at_end(trial, view, is_accepted=False)[0]


def contents_at_end(
    record: TrialRecord,
    view: View,
    *,
    is_accepted: bool,
    issues: Mapping[str, Sequence[Issue]] | None = None,
    keeps: bool = True,
) -> tuple[Contents, tuple[str, ...]]:
    """Return what is written when a trial ends, and the ids of the history entries in it.

    Args:
        record: the trial's.
        view: what the store holds.
        is_accepted: whether the candidate stays.
        issues: type name to what was found in the outputs that go to the history.
        keeps: whether anything goes there.
    """
    file = view.root / PAGES_FILE
    data = view.read(PAGES_FILE) or b""
    source_file = read_pages(data, file).source_file
    source = view.read(source_file)
    # A test may have written anything into the source: what is no text is put back as it is.
    text = None if source is None else source.decode("utf-8", "surrogateescape")
    now = Content(data.decode(), text)
    before, tried = record.before.by_key(file), record.after.by_key(file)
    untouched = record.untouched_types(now, file)
    entries = []
    for key in record.candidates if keeps else ():
        old, candidate = before.get(key), tried.get(key)
        found = (issues or {}).get(key.type_name, ())
        if not is_accepted and key.type_name in untouched:
            if candidate is not None:
                entries.append(HistoryEntry.of(candidate, "rejected", found).with_id())
        # What another writer has put over the candidate moved that to the history already.
        elif old is not None and (candidate is None or old.output != candidate.output):
            entries.append(HistoryEntry.of(old, "replaced", found).with_id())
    contents: dict[str, bytes | None] = {**history_files(view.root, entries)}
    if not is_accepted:
        restored = record.without_candidate(now, file)
        contents[PAGES_FILE] = restored.pages.encode()
        text = restored.source
        contents[source_file] = None if text is None else text.encode("utf-8", "surrogateescape")
    return contents, tuple(entry.id for entry in entries)
