"""All-or-nothing changes of several files of one folder, for one writer at a time.

``commit`` stages the new contents in a hidden folder, then renames a manifest into place: that
rename is the moment of the change. Moving the staged files to their places comes after it and can
be finished by anyone, any number of times; a reader sees through it without writing. Whatever
moment the writer is killed at, the folder therefore reads as before the change or as after it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_regen import files
from pytest_regen.errors import StoreWriteError
from pytest_regen.stores.strict_json import Node, parse_json

__all__ = ["JOURNAL", "Journal", "commit", "finish", "read_journal", "refuse_link"]

JOURNAL = ".journal"
_MANIFEST = "commit.json"
_IGNORE = ".gitignore"
_NAME = re.compile(r"(?:history/)?[^/\\:\0]+")
"""A file of a store: in the folder itself, or in its history."""


def _digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class _Change:
    """One file of a committed change."""

    name: str
    """Relative to the folder, with forward slashes."""
    staged: str | None
    """Name in the journal; ``None`` where the file is removed."""
    before: str | None
    """SHA-256 of the content that was replaced; ``None`` where there was no file."""
    after: str | None


@dataclass(frozen=True, slots=True)
class Journal:
    """A committed change whose files may not all be in place yet."""

    folder: Path
    changes: tuple[_Change, ...] = ()

    def read(self, name: str) -> bytes | None:
        """Return the content that ``name`` has or will have; ``None`` where there is no file."""
        for change in self.changes:
            if change.name == name:
                if change.staged is None:
                    return None
                staged = _content(self.folder / JOURNAL / change.staged)
                # Not staged any more: it was moved to its place.
                return _content(self.folder / name) if staged is None else staged
        return _content(self.folder / name)

    def names(self, prefix: str, suffix: str) -> set[str]:
        """Return the files that are there or will be, by how their names begin and end.

        Args:
            prefix: start of the name, with the folder where that is the history.
            suffix: end of the name.
        """
        inside = self.folder / prefix.rpartition("/")[0]
        found = {
            path.relative_to(self.folder).as_posix()
            for path in (inside.iterdir() if inside.is_dir() else ())
        }
        for change in self.changes:
            if change.staged is None:
                found.discard(change.name)
            else:
                found.add(change.name)
        return {name for name in found if name.startswith(prefix) and name.endswith(suffix)}


def read_journal(folder: Path) -> Journal:
    """Return the change that was committed in ``folder`` and may be unfinished.

    Raises:
        StoreCorruptError: the manifest was not written by ``commit``.
    """
    file = folder / JOURNAL / _MANIFEST
    data = _content(file)
    if data is None:
        return Journal(folder)
    node = Node(parse_json(data, file), file)
    changes = (
        Node(entry, file, f"$.changes[{number}]")
        for number, entry in enumerate(node.list("changes"))
    )
    return Journal(folder, tuple(_read_change(change) for change in changes))


def _read_change(node: Node) -> _Change:
    name, staged = node.text("name"), node.optional_text("staged")
    # A folder comes from version control too: a manifest must not reach outside of it.
    if not _NAME.fullmatch(name) or ".." in name.split("/"):
        raise node.error("name", f"{name!r} is no file of a store")
    if staged is not None and not staged.isdigit():
        raise node.error("staged", f"{staged!r} is no staged file")
    return _Change(name, staged, node.optional_text("before"), node.optional_text("after"))


def commit(folder: Path, contents: Mapping[str, bytes | None]) -> None:
    """Change the files of ``folder`` to ``contents`` (name to bytes; ``None`` removes), or none.

    The caller holds the folder's lock and has called ``finish``.

    Raises:
        StoreWriteError: a file to change is a symbolic link: a rename would put a file in its
            place, and what it points at may lie anywhere.
        OSError: the folder cannot be written. Before the manifest is in place nothing has changed;
            after it, the change holds and the next ``finish`` completes it.
    """
    for name in contents:
        refuse_link(folder / name)
    staging = folder / JOURNAL
    try:
        files.make_folder(staging)
        # Should this process be killed, nobody commits what it leaves here.
        files.write(staging / _IGNORE, b"*\n")
        changes = [
            _stage(folder, str(number), name, data)
            for number, (name, data) in enumerate(contents.items())
        ]
        manifest = json.dumps({"version": 1, "changes": changes}, indent=2)
        files.write_synced(staging / "manifest", manifest.encode())
        files.fsync_folder(staging)
        files.fsync_folder(folder)
    except BaseException:
        _drop_unless_committed(folder)
        raise
    files.rename(staging / "manifest", staging / _MANIFEST)
    files.fsync_folder(staging)
    finish(folder)


def refuse_link(path: Path) -> None:
    """Raise a StoreWriteError where a file to be written is a symbolic link."""
    if path.is_symlink():
        raise StoreWriteError(
            f"{path} is a symbolic link",
            why="writing it would put a file in its place, or change a file outside of the store",
            hint=f"replace the link by the file itself, or link the whole folder {path.parent}",
        )


def _stage(folder: Path, number: str, name: str, data: bytes | None) -> dict[str, str | None]:
    if data is not None:
        files.write_synced(folder / JOURNAL / number, data)
    return {
        "name": name,
        "staged": None if data is None else number,
        "before": _digest(_content(folder / name)),
        "after": _digest(data),
    }


def finish(folder: Path) -> None:
    """Complete a committed change and drop an uncommitted one. The caller holds the lock.

    Raises:
        OSError: the folder cannot be written; nothing is lost by trying again.
    """
    staging = folder / JOURNAL
    if not staging.is_dir():
        return
    journal = read_journal(folder)
    for change in journal.changes:
        _move(folder, change)
    for parent in sorted({(folder / change.name).parent for change in journal.changes}):
        files.fsync_folder(parent)
    _drop(staging)


def _move(folder: Path, change: _Change) -> None:
    target = folder / change.name
    if change.staged is None:
        if target.exists():
            files.unlink(target)
        return
    staged = folder / JOURNAL / change.staged
    if not staged.exists():
        return
    if target.is_symlink() or _digest(_content(target)) not in (change.before, change.after):
        _keep_aside(folder, target)
    if not target.parent.is_dir():
        files.make_folder(target.parent)
    files.rename(staged, target)


def _keep_aside(folder: Path, target: Path) -> None:
    """Keep a file that somebody changed between the kill and now; an edit is never overwritten."""
    history = folder / "history"
    files.make_folder(history)
    if not (history / _IGNORE).exists():
        files.write(history / _IGNORE, b"*\n")
    digest = (_digest(_content(target)) or "")[:12]
    files.rename(target, history / f"edited-{digest}-{target.name}")


def _drop(staging: Path) -> None:
    for path in sorted(staging.iterdir(), key=lambda path: path.name == _IGNORE):
        files.unlink(path)
    files.remove_folder(staging)


def _drop_unless_committed(folder: Path) -> None:
    staging = folder / JOURNAL
    if staging.is_dir() and not (staging / _MANIFEST).exists():
        try:
            _drop(staging)
        except OSError:
            return  # What remains is ignored by readers and dropped by the next writer.
