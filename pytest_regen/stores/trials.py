"""What a candidate on trial stands in for, and how it is taken out of a store again.

Others may write to the store while a test looks at the candidate: what they wrote stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pytest_regen.commit import Contents, View
from pytest_regen.errors import SourceError
from pytest_regen.prompts.values import PageKey
from pytest_regen.store_folders import PAGES_FILE
from pytest_regen.stores.formats import PagesEnvelope, StoredPage, read_pages
from pytest_regen.stores.history import HISTORY, HistoryEntry, history_files
from pytest_regen.strict_json import Node, as_json
from pytest_regen.validation.issues import Issue


@dataclass(frozen=True, slots=True)
class Content:
    """What ``pages.json`` and the source file hold."""

    pages: bytes
    source: bytes | None
    """``None`` where there is no source file."""

    def envelope(self, file: Path) -> PagesEnvelope:
        """Return ``pages.json`` as a value; ``file`` is named in errors."""
        return read_pages(self.pages, file)

    def by_key(self, file: Path) -> dict[PageKey, StoredPage]:
        """Return the pages by identity; ``file`` is named in errors."""
        return {page.key: page for page in self.envelope(file).pages}

    @property
    def text(self) -> str:
        """The source, empty without a file."""
        return (self.source or b"").decode()


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
            "before": _content_to_json(self.before),
            "after": _content_to_json(self.after),
            "candidates": [key._asdict() for key in self.candidates],
        }

    @classmethod
    def from_json(cls, data: object, file: Path) -> Self:
        """Return the record that ``to_json`` made.

        Raises:
            StoreCorruptError: it is not one; the message names ``file``.
        """
        node = Node(data, file)
        return cls(
            _content_from_json(node.node("before")),
            _content_from_json(node.node("after")),
            tuple(
                _read_key(Node(entry, file, f"$.candidates[{number}]"))
                for number, entry in enumerate(node.list("candidates"))
            ),
        )

    def without_candidate(self, now: Content, file: Path) -> Content:
        """Return what the store holds without the candidate.

        Where nothing else was written meanwhile, that is what was there before, byte for byte.
        Else the types that still are the candidate's are put back, and no others: who wrote to a
        type since has seen the candidate in it and built on it.

        Args:
            now: what the store holds.
            file: ``pages.json``, named in errors.
        """
        if now == self.after:
            return self.before
        envelope, source = now.envelope(file), now.text
        own = self._own_types(now, file)
        before = {page.key: page for page in self.before.envelope(file).pages}
        pages = [
            before.get(page.key) if page.key in self.candidates and page.type_name in own else page
            for page in envelope.pages
        ]
        put_back = splice(source, self.before.text, sorted(own))
        envelope = replace(envelope, pages=tuple(page for page in pages if page is not None))
        return Content(
            as_json(envelope.to_json()), None if now.source is None else put_back.encode()
        )

    def _own_types(self, now: Content, file: Path) -> set[str]:
        """Return the types whose pages and block are as the candidate left them."""
        if now == self.after:
            return {key.type_name for key in self.candidates}
        stored, tried = now.by_key(file), self.after.by_key(file)
        blocks, tried_blocks = _blocks(now.text), _blocks(self.after.text)
        changed = {
            key.type_name for key in self.candidates if not _same(stored.get(key), tried.get(key))
        }
        names = {key.type_name for key in self.candidates} - changed
        return {name for name in names if _text_of(blocks, name) == _text_of(tried_blocks, name)}

    def history_entries(
        self, now: Content, file: Path, *, accepted: bool
    ) -> Iterator[HistoryEntry]:
        """Yield what goes to the history when the trial ends.

        Args:
            now: what the store holds.
            file: ``pages.json``, named in errors.
            accepted: whether the candidate stays.
        """
        before, tried = self.before.by_key(file), self.after.by_key(file)
        own = self._own_types(now, file)
        for key in self.candidates:
            old, candidate = before.get(key), tried.get(key)
            if not accepted and key.type_name in own:
                if candidate is not None:
                    yield HistoryEntry.of(candidate, "rejected")
            # What another writer has put over the candidate moved that to the history already.
            elif old is not None and not _same_output(old, candidate):
                yield HistoryEntry.of(old, "replaced")


def _read_key(node: Node) -> PageKey:
    return PageKey(node.text("type_name"), node.count("page"), node.count("total_pages"))


def _same(page: StoredPage | None, other: StoredPage | None) -> bool:
    if page is None or other is None:
        return page is other
    return replace(page, index=0) == replace(other, index=0)


def _same_output(page: StoredPage, other: StoredPage | None) -> bool:
    return other is not None and page.output == other.output


def _text_of(blocks: dict[str, tuple[str, int, int]], name: str) -> str | None:
    return blocks[name][0] if name in blocks else None


def _blocks(source: str) -> dict[str, tuple[str, int, int]]:
    """Return each block's text with its boundary lines, and where it stands.

    None where the boundaries do not hold together: then no part of the file can be put back.
    """
    from pytest_regen.sources import blocks

    try:
        found = blocks(source)
    except SourceError:
        return {}
    return {
        block.name: (source[block.start : block.end], block.start, block.end) for block in found
    }


def splice(source: str, donor: str, type_names: Iterable[str]) -> str:
    """Return ``source`` with the blocks of ``type_names`` as ``donor`` has them, byte for byte."""
    given = _blocks(donor)
    for name in type_names:
        now = _blocks(source)
        if name in now and name in given:
            _, start, end = now[name]
            source = source[:start] + given[name][0] + source[end:]
    return source


def _content_to_json(content: Content) -> dict[str, Any]:
    source = None if content.source is None else content.source.decode()
    return {"pages": content.pages.decode(), "source": source}


def _content_from_json(node: Node) -> Content:
    source = node.optional_text("source")
    return Content(node.text("pages").encode(), None if source is None else source.encode())


def take_out(record: object, view: View) -> Contents:
    """Return a store's files without the candidate of a trial that was killed."""
    trial = TrialRecord.from_json(record, view.root / HISTORY)
    contents, _ = contents_at_end(trial, view, is_accepted=False)
    return contents


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
    pages = view.read(PAGES_FILE) or b""
    source_file = read_pages(pages, file).source_file
    now = Content(pages, view.read(source_file))
    entries = [
        replace(entry, issues=tuple((issues or {}).get(entry.type_name, ()))).with_id()
        for entry in record.history_entries(now, file, accepted=is_accepted)
        if keeps
    ]
    contents: dict[str, bytes | None] = {**history_files(view.root, entries)}
    if not is_accepted:
        restored = record.without_candidate(now, file)
        contents |= {PAGES_FILE: restored.pages, source_file: restored.source}
    return contents, tuple(entry.id for entry in entries)
