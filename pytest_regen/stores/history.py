"""``history/``: outputs that were replaced or rejected, one file each; nothing is ever removed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pytest_regen.canonical import source_hash
from pytest_regen.commit import AtomicFiles, View, new_id
from pytest_regen.files import lock_file, safe_file_name
from pytest_regen.prompts.values import PageKey
from pytest_regen.stores.formats import StoredPage
from pytest_regen.strict_json import Node, as_json, parse_json
from pytest_regen.validation.issues import Issue, read_reason

HistoryReason = Literal["replaced", "rejected", "vanished", "restored", "adopted", "dropped"]
"""Why an output is not, or no longer, the stored one. ``restored`` and ``adopted``: it was replaced
by one from the history, or by an edit made by hand. ``dropped``: it is such an edit, dropped."""

HISTORY = "history"
"""Folder of a store in which it is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One output that was replaced or rejected; the fields stand in its file in this order."""

    type_name: str
    page: int
    total_pages: int
    model: str
    attempt: int
    generated_at: str
    reason: HistoryReason
    stop_reason: str | None = None
    prompt_hash: str | None = None
    type_hash: str | None = None
    provider: str | None = None
    shared_from: str | None = None
    issues: tuple[Issue, ...]
    """What was found in it, where that is why."""
    output: str
    id: str = ""
    """Name of its file without the suffix; no other process can give the same. Sorts by time."""

    @classmethod
    def of(cls, page: StoredPage, reason: HistoryReason, issues: Iterable[Issue] = ()) -> Self:
        """Return the entry that keeps ``page``."""
        names = {f.name for f in fields(cls)} & {f.name for f in fields(page)}
        values = {name: getattr(page, name) for name in names}
        # The moment comes first, because entries are listed by the names of their files.
        moment, _, chance = new_id().partition("-")
        number = f"p{page.page}of{page.total_pages}"
        id_ = f"{moment}-{safe_file_name(page.type_name)}-{number}-{chance}"
        return cls(reason=reason, issues=tuple(issues), id=id_, **values)

    @property
    def key(self) -> PageKey:
        """The identity of the page."""
        return PageKey(self.type_name, self.page, self.total_pages)

    @property
    def name(self) -> str:
        """The type, as histories of all places call it."""
        return self.type_name

    @property
    def page_count(self) -> int:
        """How many pages the type had."""
        return self.total_pages

    def to_json(self) -> dict[str, Any]:
        """Return the content of the entry's file; why it is there comes before its output."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["issues"] = [issue.to_json() for issue in self.issues]
        del data["id"]
        if self.shared_from is None:
            del data["shared_from"]
        return data


def store_files(path: Path) -> AtomicFiles:
    """Return the files of the store in the folder ``path``, which are written together."""
    return AtomicFiles(path, what=f"the store {path}", lock=lock_file(path), aside=HISTORY)


def source_name(source: str, file: str) -> str:
    """Return a name for a whole source in the history that no other state of it has."""
    moment = new_id().partition("-")[0]
    return f"{moment}-{source_hash(source)[-8:]}-{file}"


def history_files(
    store: Path, entries: Iterable[HistoryEntry], sources: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """Return the files that keep ``entries`` and whole sources, by names relative to the store."""
    contents = {f"{HISTORY}/{entry.id}.json": as_json(entry.to_json()) for entry in entries}
    contents |= {f"{HISTORY}/{name}": data for name, data in (sources or {}).items()}
    return {**contents, **store_files(store).ignore_file(HISTORY)} if contents else {}


def history(path: Path | str, type_name: str | None = None) -> tuple[HistoryEntry, ...]:
    """Return what the history of the store at ``path`` holds, oldest first.

    Args:
        path: folder of the store.
        type_name: only entries of this type.

    Raises:
        StoreCorruptError: an entry is unreadable.
    """
    view = store_files(Path(path)).view()
    entries = (
        _read_entry(view, name)
        for name in sorted(view.names(f"{HISTORY}/", ".json"))
        if name.count("/") == 1
    )
    return tuple(entry for entry in entries if type_name in (None, entry.type_name))


def _read_entry(view: View, name: str) -> HistoryEntry:
    file = view.root / name
    node = Node(parse_json(view.read(name) or b"", file), file)
    reason, issues = read_reason(node, get_args(HistoryReason))
    defaults = {"id": file.name.removesuffix(".json"), "reason": reason, "issues": issues}
    return HistoryEntry(**node.values(HistoryEntry, defaults))
