"""Candidates put in place while a test runs, and how they are taken out again.

A candidate's pages and source are committed together with a record of what they stand in for. As
long as the record is there and its owner is alive, the candidate is what the folder holds. Once the
owner is gone, readers see the store without it and the next writer takes it out. A lock, held for
the whole of a trial, tells the one from the other; a store has one trial at a time, so that each
test judges its own candidate.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pytest_regen.errors import SourceError
from pytest_regen.files import lock_file
from pytest_regen.prompts.values import PageKey
from pytest_regen.stores.formats import PagesEnvelope, StoredPage, read_pages
from pytest_regen.stores.history import HISTORY, HistoryEntry
from pytest_regen.stores.journal import Journal
from pytest_regen.stores.strict_json import Node, as_json, parse_json

__all__ = [
    "Content",
    "TrialRecord",
    "dead_trials",
    "is_under_way",
    "own_trials",
    "splice",
    "trial_lock",
    "undo_all",
]

own_trials: set[str] = set()
"""Ids of the trials that this process is in the middle of."""

_PREFIX = f"{HISTORY}/."
_SUFFIX = ".trial"
_PROBE = 0.1
"""Seconds a lock must be held to count as held: another reader's look at it takes far less."""


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
        """The source, empty where there is none."""
        return (self.source or b"").decode()


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A candidate and what it stands in for."""

    id: str
    """Sorts by time."""
    before: Content
    after: Content
    candidates: tuple[PageKey, ...]
    """Pages that the candidate replaces."""

    @property
    def file(self) -> str:
        """Name of the record in the store's folder: beside the history, which git ignores."""
        return f"{_PREFIX}{self.id}{_SUFFIX}"

    def to_json(self) -> bytes:
        """Return the content of the record's file."""
        return as_json(
            {
                "id": self.id,
                "before": _content_to_json(self.before),
                "after": _content_to_json(self.after),
                "candidates": [key._asdict() for key in self.candidates],
            }
        )

    @classmethod
    def from_json(cls, data: bytes, file: Path) -> Self:
        """Return the record that ``to_json`` wrote.

        Raises:
            StoreCorruptError: it is none.
        """
        node = Node(parse_json(data, file), file)
        return cls(
            node.text("id"),
            _content_from_json(node.node("before")),
            _content_from_json(node.node("after")),
            tuple(
                _read_key(Node(entry, file, f"$.candidates[{number}]"))
                for number, entry in enumerate(node.list("candidates"))
            ),
        )

    def undone(self, now: Content, file: Path) -> Content:
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
        envelope = envelope.with_pages(page for page in pages if page is not None)
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

    def kept(self, now: Content, file: Path, *, accepted: bool) -> Iterator[HistoryEntry]:
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


def trial_lock(store: Path) -> Path:
    """Return the lock that is held while a trial of the store is under way."""
    return lock_file(store, ".trial.lock")


def is_under_way(store: Path) -> bool:
    """Return whether some process holds the lock of the store's trials."""
    file = trial_lock(store)
    if not file.exists():
        return False
    from filelock import FileLock, Timeout

    try:
        with FileLock(file, thread_local=False).acquire(timeout=_PROBE, poll_interval=_PROBE / 10):
            return False
    except Timeout:
        return True
    except OSError:
        # A folder that cannot be written: what was accepted before is the safe answer.
        return False


def dead_trials(journal: Journal) -> tuple[TrialRecord, ...]:
    """Return the records of trials whose owner is gone, the latest first."""
    found = []
    for name in sorted(journal.names(_PREFIX, _SUFFIX), reverse=True):
        data = journal.read(name)
        trial_id = name[len(_PREFIX) : -len(_SUFFIX)]
        is_alive = trial_id in own_trials or is_under_way(journal.folder)
        if data is not None and not is_alive:
            found.append(TrialRecord.from_json(data, journal.folder / name))
    return tuple(found)


def undo_all(records: Iterable[TrialRecord], content: Content, file: Path) -> Content:
    """Return ``content`` without the candidates of ``records``, given latest first."""
    for record in records:
        content = record.undone(content, file)
    return content
