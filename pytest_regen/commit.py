"""Several files below one folder that change together or not at all, one writer at a time.

A commit writes all new contents into one file, the journal, and gives it its name: that rename is
the moment of the change. Putting the contents in their places comes after it and can be finished by
anyone, any number of times; a reader sees through it without writing. Whatever moment the writer is
killed at, the folder therefore reads as before the change or as after it.

Nor does it when the power fails, for the disk has each step before the next one begins:

1. The journal's content, before it has its name: a journal that is there is whole.
2. Its name, and the names of the folders above it that were made for it, before any file changes:
   a file that changed has a journal beside it that says what the others are to hold.
3. Each file's content before it takes its place, and all names, of folders made for them too,
   before the journal goes: where no journal is left, every file holds all of what it should.

Where the folder itself is new there is nothing to keep together with: it is filled beside its
place, and its rename is the moment.

What is not waited for is that the journal is gone. Should it come back with the power, its files
hold what it says and it is dropped again. A file that somebody edited between a kill and the next
write stays as it was edited.

A trial puts a candidate in place while a test looks at it, together with a record of what each file
held before. As long as the record is there and its owner is alive, the candidate is what the folder
holds. Once the owner is gone, readers see the folder without it and the next writer takes it out.
A lock, held for the whole of a trial, tells the one from the other. What others write meanwhile
stays; where they wrote over a part of the candidate, all of it stays, because they built on it.
"""

import copy
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from pytest_regen import files
from pytest_regen.errors import StoreCorruptError, StoreWriteError
from pytest_regen.text import take_back

Contents = Mapping[str, bytes | None]
"""What files are to hold, by names relative to the root with ``/``; ``None`` removes a file."""

LOCK_TIMEOUT: Final = 60.0
"""Seconds that a writer waits for another; a write takes milliseconds."""

# Seconds to wait for another test that has a candidate of the same files on trial.
_TRIAL_TIMEOUT: Final = 600.0

# Seconds that a reader waits for a moment at which no process writes the files.
_PATIENCE: Final = 10.0

# Seconds a lock must be held to count as held: another reader's look at it takes far less.
_PROBE: Final = 0.1

# Seconds between two looks at a lock that another writer holds; it holds it for milliseconds.
_POLL: Final = 0.005

# Of the journal's format; the first was never released.
_VERSION: Final = 2

_IGNORE: Final = ".gitignore"

_GONE: Final = (FileNotFoundError, NotADirectoryError)

# By the lock of each trial of this process: whether its candidate is in place.
_own_trials: dict[Path, bool] = {}

T = TypeVar("T")


def new_id() -> str:
    """Return an id that sorts by time and that no other process gives at the same moment."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"


def now() -> str:
    """Return the present moment as artifacts hold it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a committed change."""

    name: str
    before: str | None
    """SHA-256 of the content that is replaced; ``None`` where there was no file."""
    data: bytes | None
    """The new content; ``None`` where the file is removed."""

    def is_due(self, content: bytes | None) -> bool:
        """Return whether a file of this content is still to change.

        It is not where that was done, nor where somebody edited it since: no edit is overwritten.
        """
        return _digest(content) == self.before


def _as_text(data: bytes | None) -> str | None:
    """Return what JSON holds of a content: bytes that are no text are half characters in it."""
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _as_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _content(path: Path) -> bytes | None:
    with suppress(*_GONE):
        return path.read_bytes()
    return None


def _names_in(path: Path) -> frozenset[tuple[str, bool]] | None:
    """Return the names in a folder, each with whether it is a folder."""
    with suppress(*_GONE), os.scandir(path) as entries:
        return frozenset((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    return None


class _Look:
    """A file, or the names in a folder, as they were when they were read."""

    __slots__ = ("_is_new", "_path", "_read", "_stamp", "value")

    def __init__(self, path: Path, read: Callable[[Path], Any]) -> None:
        self._path = path
        self._read = read
        # Taken first, because a change while it is read then shows.
        self._stamp = files.stamp(path)
        self.value = read(path)
        # A clock ticks every few milliseconds and numbers of files are used again: what was
        # written just now may change once more without another stamp.
        self._is_new = self._stamp is not None and time.time_ns() - self._stamp[1] < files.SETTLED

    def is_current(self) -> bool:
        """Return whether reading would find the same."""
        is_stamp = files.stamp(self._path) == self._stamp
        return is_stamp and not (self._is_new and self._read(self._path) != self.value)


class View:
    """The files below a root as they are, a committed change counted as done."""

    def __init__(self, owner: "AtomicFiles") -> None:
        self.root = owner.root
        self._looks: list[_Look] = []
        self._over: dict[str, bytes | None] = {}
        manifest = self._look(owner.manifest, _content)
        self._changes = {change.name: change for change in owner.changes_in(manifest)}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; ``None`` without a file."""
        if name in self._over:
            return self._over[name]
        content: bytes | None = self._look(self.root / name, _content)
        change = self._changes.get(name)
        return change.data if change is not None and change.is_due(content) else content

    def names(self, folder: str, suffix: str = "") -> set[str]:
        """Return the files below a folder, at any depth, whose names end in ``suffix``.

        Args:
            folder: relative to the root, with a ``/`` at its end.
            suffix: end of the names.
        """
        names: set[str] = set()
        folders = [folder.rstrip("/")]
        while folders:
            parent = folders.pop()
            for name, is_folder in self._look(self.root / parent, _names_in) or ():
                (folders.append if is_folder else names.add)(f"{parent}/{name}")
        # A change that is committed and not yet in its place counts as done.
        for name in (*self._changes, *self._over):
            if name.startswith(folder):
                (names.discard if self.read(name) is None else names.add)(name)
        return {name for name in names if name.endswith(suffix)}

    def with_changes(self, contents: Contents) -> "View":
        """Return the view as it would be with these contents; nothing is written."""
        changed = copy.copy(self)
        changed._over = {**self._over, **contents}  # noqa: SLF001 - a copy of its own
        return changed

    def is_current(self) -> bool:
        """Return whether everything that was read is still as it was."""
        return all(look.is_current() for look in self._looks)

    def _look(self, path: Path, read: Callable[[Path], Any]) -> Any:
        look = _Look(path, read)
        self._looks.append(look)
        return look.value


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a trial puts in place, and what is written when it ends."""

    contents: Contents
    """In place during the trial."""
    rejected: Contents = field(default_factory=dict)
    """Written where it is taken out, by whoever does that: it goes to a history, say."""
    history: tuple[str, ...] = ()
    """The ids of the history entries in ``rejected``."""

    def record(self, view: View) -> dict[str, Any]:
        """Return what takes it out of the files that a view shows."""
        before_and_after = {
            name: [_as_text(view.read(name)), _as_text(data)]
            for name, data in self.contents.items()
        }
        rejected = {name: _as_text(data) for name, data in self.rejected.items()}
        return {"files": before_and_after, "rejected": rejected}


@dataclass(frozen=True)
class AtomicFiles:
    """Files below one folder that are written together."""

    root: Path
    what: str
    """How messages call them, such as ``the store generated/GET_x``."""
    lock: Path
    """File that a writer locks."""
    journal: str = files.JOURNAL
    """Folder below the root that holds an unfinished change."""
    aside: str = "history"
    """Folder below the root for the record of a trial."""
    mode: int = 0o666
    """Who may read and write files that are made, less what the umask takes away."""

    @property
    def manifest(self) -> Path:
        """The file that says what a committed change holds, until it is done."""
        return self.root / self.journal / files.MANIFEST

    @property
    def record(self) -> str:
        """The file that says how the candidate on trial is taken out."""
        return f"{self.aside}/.trial"

    # Reading

    def view(self) -> View:
        """Return the files as they are now, without the candidate of a trial that was killed.

        Raises:
            StoreCorruptError: the journal, or the record of a trial, is not as it was written.
        """
        view = View(self)
        return view.with_changes(self._undone(view))

    def read(self, function: Callable[[View], T]) -> T:
        """Return what ``function`` makes of a view in which nothing changed while it looked.

        Raises:
            StoreCorruptError: the files change faster than they can be read.
        """
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            view = View(self)
            try:
                result = function(view.with_changes(self._undone(view)))
            except (OSError, StoreCorruptError):
                # A file that went away or an odd pair may only be a change in progress.
                if view.is_current():
                    raise
            else:
                if view.is_current():
                    return result
            time.sleep(0.002)
        raise StoreCorruptError(
            f"{self.what} changes faster than it can be read",
            hint="wait for whoever writes it, then run the same command again",
        )

    # Writing

    @contextmanager
    def locked(self, timeout: float = LOCK_TIMEOUT) -> Iterator[View]:
        """Keep every other writer out, and finish what a killed one left.

        Args:
            timeout: seconds to wait for another writer.

        Raises:
            StoreWriteError: another writer does not finish, or the files cannot be written.
        """
        # Held while a journal is finished, too: two writers would move each other's files.
        with self._acquire(self.lock, timeout):
            with self.explain_errors():
                self._finish()
                self.commit(self._undone(View(self)))
            yield View(self)

    def _acquire(self, file: Path, timeout: float) -> AbstractContextManager[object]:
        from filelock import FileLock, Timeout

        with self.explain_errors():
            files.make_ignored_folder(file.parent)
            try:
                return FileLock(file, thread_local=False).acquire(timeout, poll_interval=_POLL)
            except Timeout:
                raise StoreWriteError(
                    f"{self.what} is being written by another process",
                    why=f"{file} was held for more than {timeout:g} s; a pytest run with --regen, "
                    "or pytest-regen generate or regenerate, holds it while it writes",
                    hint="wait for that process or end it, then run the same command again; the "
                    "lock goes with the process, the file may stay",
                ) from None

    @contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Turn what the system says about a failed write into what the user must know."""
        try:
            yield
        except OSError as error:
            place = error.filename2 or error.filename or self.root
            raise StoreWriteError(
                f"{self.what} cannot be written: {place}",
                why=error.strerror or str(error),
                hint="make the folder writable or free some space, then run the same command "
                "again; nothing was lost",
            ) from error
        except UnicodeEncodeError as error:
            raise StoreWriteError(
                f"{self.what} cannot be written: {error.object[error.start]!r} is half a "
                "surrogate pair",
                why="no file can hold it as text",
                hint="correct the text, in the API description where it stands there",
            ) from None

    def commit(self, contents: Contents) -> None:
        """Change the files to ``contents``, all or none. The caller holds the lock.

        Raises:
            StoreWriteError: a file cannot be written, is a symbolic link (a rename would put a file
                in its place), or lies outside of the root. Before the manifest is in place nothing
                has changed; after it, the change holds and the next writer completes it.
        """
        changes = []
        for name, data in contents.items():
            path = self.root / name
            if why := self._name_fault(name):
                raise StoreWriteError(
                    f"{path} cannot be written: {why}",
                    hint=f"name a file below {self.root}, or replace the link by what it points at",
                )
            refuse_link(path)
            with self.explain_errors():
                before = _content(path)
            if data != before:
                changes.append(Change(name, _digest(before), data))
        with self.explain_errors():
            if changes and os.path.lexists(self.root):
                self._write_manifest(changes)
                self._put_in_place(changes)
            elif changes:
                self._make_root(changes)

    def _write_manifest(self, changes: Sequence[Change]) -> None:
        """Write down what is to change; from that moment on it holds."""
        space = self.manifest.parent
        entries = [
            {"name": change.name, "before": change.before, "text": _as_text(change.data)}
            for change in changes
        ]
        data = json.dumps({"version": _VERSION, "changes": entries}, indent=1).encode()
        # Should this process be killed or the disk be full, git ignores what is left here.
        named_in = files.make_ignored_folder(space)
        files.write_durably(space / "manifest", data, self.mode)
        # The moment of the change: from this rename on a kill leaves the state after. Before
        # it readers see the state before, and the next writer drops what lies there.
        files.rename(space / "manifest", self.manifest)
        # Its name, and those of folders made for it, reach the disk before any file changes.
        for folder in sorted({space, *self._above(self.journal), *named_in}, reverse=True):
            files.fsync_folder(folder)

    def _make_root(self, changes: Sequence[Change]) -> None:
        """Fill a folder that is not there yet, and move it to its place."""
        filled = self._space / self.root.name
        try:
            named_in = files.make_ignored_folder(self._space)
            folders = {filled}
            for change in changes:
                path = filled / change.name
                folders.update({path.parent, *files.make_folder(path.parent)})
                files.write_durably(path, change.data or b"", self.mode)
            for folder in sorted(folders - {self._space}):
                files.fsync_folder(folder)
            # The moment: before it there is no root, after it there is one with all its files.
            files.rename(filled, self.root)
            for folder in named_in:
                files.fsync_folder(folder)
        finally:
            # Should a kill come before, the next writer does it.
            shutil.rmtree(self._space, ignore_errors=True)

    @property
    def _space(self) -> Path:
        """Where a root that is not there yet is filled: on its file system, as a rename must be."""
        return self.root.with_name(f".{self.root.name}.regen-new")

    def _above(self, name: str) -> list[Path]:
        """Return the folders above a file, up to the root."""
        return [self.root / folder for folder in Path(name).parents]

    def _name_fault(self, name: str) -> str:
        """Return why a file of that name is not written; empty where it may be."""
        parts = name.split("/")
        unsafe = "\0\\:" if os.name == "nt" else "\0"
        if any(part in {"", ".", ".."} for part in parts) or set(name) & set(unsafe):
            return f"{name!r} is not a plain name below {self.root}"
        if any(part.casefold().rstrip(". ") in {".git", "git~1"} for part in parts):
            return "the files of git are not written"
        if not (self.root / name).parent.resolve().is_relative_to(self.root.resolve()):
            return f"a link leads out of {self.root}"
        return ""

    def _finish(self) -> None:
        """Complete a committed change of a writer that was killed, and drop an uncommitted one."""
        shutil.rmtree(self._space, ignore_errors=True)
        if self.manifest.parent.is_dir():
            refuse_link(self.manifest.parent)  # What is dropped would be somebody else's.
            changes = self.changes_in(_content(self.manifest))
            # Nobody knows which of the folders that writer made.
            above = (folder for change in changes for folder in self._above(change.name))
            self._put_in_place(changes, above)

    def _put_in_place(self, changes: Sequence[Change], folders: Iterable[Path] = ()) -> None:
        """Let the files hold what a committed change says, then drop it.

        Args:
            changes: all of it.
            folders: whose names the disk must have, beside those that change here.
        """
        named_in = {*folders, *((self.root / change.name).parent for change in changes)}
        for number, change in enumerate(changes):
            # A kill between two of them: whoever comes next starts with the first again.
            target, staged = self.root / change.name, self.manifest.with_name(str(number))
            if not change.is_due(_content(target)):
                continue
            if change.data is None:
                files.unlink(target)
                continue
            if staged.is_symlink():
                files.unlink(staged)  # Not ours: nothing is written, or read, behind it.
            files.write_durably(staged, change.data, self.mode)
            if not target.parent.is_dir():
                named_in.update(files.make_folder(target.parent))
            files.rename(staged, target)
        for folder in sorted(named_in):
            if folder.is_dir():
                files.fsync_folder(folder)
        # Last: without the journal nobody would know what the other files are to hold.
        self._drop_journal()

    def _drop_journal(self) -> None:
        """Drop the journal: the manifest first, the file by which git ignores the rest last."""
        paths = self.manifest.parent.iterdir()
        for path in sorted(paths, key=lambda path: (path != self.manifest, path.name == _IGNORE)):
            files.unlink(path)
        files.remove_folder(self.manifest.parent)

    def changes_in(self, manifest: bytes | None) -> list[Change]:
        """Return the changes that a manifest says were committed.

        Raises:
            StoreCorruptError: the manifest was not written by ``commit``.
        """
        if manifest is None:
            return []
        changes: list[Change] = []
        try:
            value = json.loads(manifest)
            changes = [
                Change(entry["name"], entry["before"], _as_bytes(entry["text"]))
                for entry in value["changes"]
            ]
            # Version control may have brought it: it must not reach outside of the folder.
            faults = [self._name_fault(change.name) for change in changes]
            faults += [] if value["version"] == _VERSION else ["its version is unknown"]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            faults = [f"{type(error).__name__}: {error}"]
        if why := next(filter(None, faults), ""):
            raise StoreCorruptError(
                f"{self.manifest}: this is not a change that pytest-regen wrote",
                why=why,
                hint=f"look into {self.manifest.parent}, move it away, then run the same command"
                " again",
            )
        return changes

    # Trials

    @contextmanager
    def trial(self, place: Callable[[View], Candidate]) -> Iterator["Trial"]:
        """Put a candidate in place for a test that looks at the files; taken out at the end.

        One trial at a time, so that each test sees its own candidate; other writers go ahead.

        Args:
            place: makes the candidate from what the files hold, under the lock.

        Raises:
            StoreWriteError: the files cannot be written; they are as they were.
        """
        # Held for the whole of the trial: the record of an owner that was killed has no lock.
        with self._acquire(self._trial_lock, _TRIAL_TIMEOUT):
            # Not in place yet: a record that is there was left by an owner that was killed.
            _own_trials[self._trial_lock] = False
            try:
                with self.locked() as view:
                    with self.explain_errors():
                        candidate = place(view)
                        data = json.dumps(candidate.record(view), indent=1).encode()
                    # In one change with its record: a kill leaves no candidate that nobody takes
                    # out.
                    ignored = self.ignore_file(self.aside)
                    self.commit({**candidate.contents, **ignored, self.record: data})
                    _own_trials[self._trial_lock] = True
                trial = Trial(self, candidate)
                try:
                    yield trial
                finally:
                    trial.reject()
            finally:
                del _own_trials[self._trial_lock]

    @property
    def _trial_lock(self) -> Path:
        """The lock that is held as long as the owner of a trial is alive."""
        return self.lock.with_suffix(".trial.lock")

    def ignore_file(self, folder: str) -> dict[str, bytes]:
        """Return the file by which git ignores a folder, where it is not there yet."""
        name = f"{folder}/{_IGNORE}"
        text = b"# Kept on this machine; version control has its own history.\n*\n"
        return {} if (self.root / name).exists() else {name: text}

    def _is_owner_alive(self) -> bool:
        """Return whether whoever wrote the record of a trial is still at it."""
        file = self._trial_lock
        if file in _own_trials or not file.exists():
            return _own_trials.get(file, False)
        from filelock import FileLock, Timeout

        try:
            lock = FileLock(file, thread_local=False)
            with lock.acquire(_PROBE, poll_interval=_PROBE / 10):
                return False
        except Timeout:
            return True
        except OSError:
            # A folder that cannot be written: what was accepted before is the safe answer.
            return False

    def is_on_trial(self, name: str = "") -> bool:
        """Return whether a trial is under way, in this process or another.

        None begins or ends while the caller holds the lock.

        Args:
            name: of a file that its candidate changes; by default any.
        """
        data = View(self).read(self.record)
        is_live = data is not None and self._is_owner_alive()
        return is_live and (not name or name in json.loads(data or b"{}")["files"])

    def _undone(self, view: View) -> Contents:
        """Return what the files hold without the candidate of a trial that was killed."""
        has_record = view.read(self.record) is not None
        return self.without_candidate(view) if has_record and not self._is_owner_alive() else {}

    def without_candidate(self, view: View) -> Contents:
        """Return what is to be written to end a trial whose candidate does not stay."""
        undone: dict[str, bytes | None] = {}
        try:
            record = json.loads(view.read(self.record) or b"")
            for name, (before, after) in record["files"].items():
                text = _as_text(view.read(name))
                # Not whole, where somebody wrote to the file since.
                is_whole = text in {before, after}
                others = before if is_whole else take_back(before or "", after or "", text or "")
                if others is None and not is_whole:
                    return {self.record: None}
                undone[name] = _as_bytes(others)
            rejected = {name: _as_bytes(text) for name, text in record["rejected"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreCorruptError(
                f"{self.root / self.record}: this is not a trial that pytest-regen wrote",
                why=str(error),
                hint=f"remove {self.root / self.record}, then look at the files with git diff",
            ) from None
        return {**undone, **rejected, self.record: None}


class Trial:
    """A candidate that is in place; taken out again unless ``accept`` is called."""

    def __init__(self, owner: AtomicFiles, candidate: Candidate) -> None:
        self.history = candidate.history
        """Ids of the history entries that are written where the candidate does not stay."""
        self._owner = owner
        self._candidate = candidate
        self._is_open = True

    def accept(self) -> None:
        """Keep the candidate.

        Raises:
            StoreWriteError: nothing can be written; the candidate is taken out at the end.
        """
        with self._owner.locked():
            self._owner.commit({self._owner.record: None})
        self._is_open = False

    def reject(self, *, keeps: bool = True) -> None:
        """Take the candidate out, unless the trial has ended.

        Args:
            keeps: whether it is written down as rejected.
        """
        if not self._is_open:
            return
        with self._owner.locked() as view:
            contents = dict(self._owner.without_candidate(view))
            for name in () if keeps else self._candidate.rejected:
                contents.pop(name, None)
            self._owner.commit(contents)
        self._is_open = False


def refuse_link(path: Path) -> None:
    """Raise a StoreWriteError where a file to be written is a symbolic link."""
    if path.is_symlink():
        raise StoreWriteError(
            f"{path} is a symbolic link",
            why="writing it would put a file in its place, or change a file outside of the store",
            hint=f"replace the link by the file itself, or link the whole folder {path.parent}",
        )
