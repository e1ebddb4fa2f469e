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

What is not waited for is that the journal is gone. Should it come back with the power, its files
hold what it says and it is dropped again; a file that was edited since is treated as one that was
edited between a kill and the next write.

Where the folder itself is new there is nothing to keep together with: it is filled beside its
place, and its rename is the moment.

A trial puts a candidate in place while a test looks at it, together with a record of what each file
held before. As long as the record is there and its owner is alive, the candidate is what the folder
holds. Once the owner is gone, readers see the folder without it and the next writer takes it out.
A lock, held for the whole of a trial, tells the one from the other. What others write meanwhile
stays; where they wrote over a part of the candidate, all of it stays, because they built on it.
"""

import copy
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_regen import files
from pytest_regen.errors import StoreCorruptError, StoreWriteError
from pytest_regen.journal import Change, digest, encode_changes, read_changes
from pytest_regen.text import take_back

if TYPE_CHECKING:
    from filelock import BaseFileLock

Contents = Mapping[str, bytes | None]
"""What files are to hold, by names relative to the root with ``/``; ``None`` removes a file."""

LOCK_TIMEOUT: Final = 60.0
"""Seconds that a writer waits for another; a write takes milliseconds."""

TRIAL_TIMEOUT: Final = 600.0
"""Seconds to wait for another test that has a candidate of the same files on trial."""

_PATIENCE: Final = 10.0
"""Seconds that a reader waits for a moment at which no process writes the files."""

_FAULT_PATIENCE: Final = 0.5
"""Seconds after which a journal or a record of a trial that cannot be read is taken for broken."""

_PROBE: Final = 0.1
"""Seconds a lock must be held to count as held: another reader's look at it takes far less."""

_POLL: Final = 0.005
"""Seconds between two looks at a lock that another writer holds; it holds it for milliseconds."""

_SETTLED: Final = 1_000_000_000
"""Nanoseconds after which another change of a file has another time."""

_MANIFEST: Final = "commit.json"
_IGNORE: Final = ".gitignore"
_TRIAL: Final = ".trial"

_own_trials: set[str] = set()
"""Names of the records of trials that this process is in the middle of."""

T = TypeVar("T")


def new_id() -> str:
    """Return an id that sorts by time and that no other process gives at the same moment."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


_Stamp = tuple[int, int, int]


def _stamp(facts: os.stat_result) -> _Stamp:
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _read_file(path: Path) -> tuple[_Stamp | None, bytes | None]:
    try:
        with path.open("rb", buffering=0) as file:
            # The stamp is taken first: a change while it is read shows.
            return _stamp(os.fstat(file.fileno())), file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None, None


def _read_folder(path: Path) -> tuple[_Stamp | None, frozenset[tuple[str, bool]] | None]:
    """Return the names in a folder, each with whether it is a folder."""
    try:
        stamp = _stamp(path.stat())
        with os.scandir(path) as entries:
            return stamp, frozenset(
                (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
            )
    except (FileNotFoundError, NotADirectoryError):
        return None, None


class _Look:
    """A file, or the names in a folder, as they were when they were read."""

    __slots__ = ("_is_new", "_path", "_read", "_stamp", "value")

    def __init__(self, path: Path, read: Callable[[Path], tuple[_Stamp | None, Any]]) -> None:
        self._path = path
        self._read = read
        self._stamp, self.value = read(path)
        # A clock ticks every few milliseconds and numbers of files are used again: what was
        # written just now may change once more without another stamp.
        self._is_new = self._stamp is not None and time.time_ns() - self._stamp[1] < _SETTLED

    def is_current(self) -> bool:
        """Return whether reading would find the same."""
        if self._is_new:
            return self._read(self._path) == (self._stamp, self.value)
        try:
            return _stamp(self._path.stat()) == self._stamp
        except (FileNotFoundError, NotADirectoryError):
            return self._stamp is None


class View:
    """The files below a root as they are, a committed change counted as done."""

    def __init__(self, files_: "AtomicFiles") -> None:
        self.root = files_.root
        self._files = files_
        self._looks: list[_Look] = []
        self._over: dict[str, bytes | None] = {}
        manifest = self._look(files_.staging / _MANIFEST)
        self._changes = {change.name: change for change in files_.changes_in(manifest)}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; ``None`` without a file."""
        if name in self._over:
            return self._over[name]
        change = self._changes.get(name)
        target = self._look(self.root / name)
        if change is None or (self._files.is_users(name) and change.is_edited(target)):
            return target
        return change.data

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
            look = _Look(self.root / parent, _read_folder)
            self._looks.append(look)
            for name, is_folder in look.value or ():
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

    def _look(self, path: Path) -> bytes | None:
        look = _Look(path, _read_file)
        self._looks.append(look)
        content: bytes | None = look.value
        return content


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a trial puts in place, and what is written when it ends."""

    contents: Contents
    """In place during the trial."""
    accepted: Contents = field(default_factory=dict)
    """Written beside it where it stays."""
    rejected: Contents = field(default_factory=dict)
    """Written where it is taken out, by whoever does that: it goes to a history, say."""
    history: tuple[str, ...] = ()
    """The ids of the history entries in ``rejected``."""


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
    """Folder below the root for records of trials, and for files that somebody changed between the
    end of a killed writer and now."""
    mode: int = 0o666
    """Who may read and write files that are made, less what the umask takes away."""
    is_users: Callable[[str], bool] = lambda _: False
    """Whether such a change of a file stays in its place; else the file is moved aside."""

    @property
    def staging(self) -> Path:
        """The journal's folder."""
        return self.root / self.journal

    # Reading

    def view(self) -> View:
        """Return the files as they are now, without candidates whose trial was killed.

        Raises:
            StoreCorruptError: the journal, or the record of a trial, is not as it was written.
        """
        view = View(self)
        for name, record in self._dead_trials(view):
            view = view.with_changes(self.without_candidate(name, record, view))
        return view

    def read(self, function: Callable[[View], T]) -> T:
        """Return what ``function`` makes of a view in which nothing changed while it looked.

        Raises:
            StoreCorruptError: the files change faster than they can be read.
        """
        start = time.monotonic()
        deadline = start + _PATIENCE
        while True:
            view: View | None = None
            try:
                view = self.view()
                result = function(view)
            except (OSError, StoreCorruptError):
                # A file that went away or an odd pair may only be a change in progress.
                limit = start + _FAULT_PATIENCE if view is None else deadline
                if (view is not None and view.is_current()) or time.monotonic() > limit:
                    raise
            else:
                if view.is_current():
                    return result
                if time.monotonic() > deadline:
                    raise StoreCorruptError(
                        f"{self.what} changes faster than it can be read",
                        hint="wait for whoever writes it, then run the same command again",
                    )
            time.sleep(0.002)

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
        lock = self._acquire(self.lock, timeout)
        try:
            with self.explain_errors():
                self._finish()
                # One after the other, because each was made on what those before it left.
                while dead := self._dead_trials(View(self)):
                    self.commit(self.without_candidate(*dead[0], View(self)))
            yield View(self)
        finally:
            lock.release()

    def _acquire(self, file: Path, timeout: float) -> "BaseFileLock":
        from filelock import FileLock, Timeout

        lock = FileLock(file, thread_local=False)
        with self.explain_errors():
            files.make_ignored_folder(file.parent)
            try:
                lock.acquire(timeout=timeout, poll_interval=_POLL)
            except Timeout:
                raise StoreWriteError(
                    f"{self.what} is being written by another process",
                    why=f"{file} was held for more than {timeout:g} s; a pytest run with --regen, "
                    "or pytest-regen generate or regenerate, holds it while it writes",
                    hint="wait for that process or end it, then run the same command again; the "
                    "lock goes with the process, the file may stay",
                ) from None
        return lock

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
                hint="correct the text in the API description and generate again",
            ) from None

    def commit(self, contents: Contents) -> None:
        """Change the files to ``contents``, all or none. The caller holds the lock.

        Raises:
            StoreWriteError: a file cannot be written, is a symbolic link (a rename would put a file
                in its place), or lies outside of the root. Before the manifest is in place nothing
                has changed; after it, the change holds and the next writer completes it.
        """
        for name in contents:
            self._refuse_name(name)
        with self.explain_errors():
            before = {name: _content(self.root / name) for name in contents}
            changes = [
                Change(name, digest(before[name]), data)
                for name, data in contents.items()
                if data != before[name]
            ]
            if changes and os.path.lexists(self.root):
                self._write_journal(changes)
            elif changes:
                self._make_root(changes)

    def _write_journal(self, changes: Sequence[Change]) -> None:
        # A kill in this block leaves no manifest: readers see the state before, and the next
        # writer drops what lies there.
        try:
            files.make_folder(self.staging)
            # Should this process be killed, git ignores what it leaves here.
            files.write(self.staging / _IGNORE, b"*\n")
            files.write_durably(self.staging / "manifest", encode_changes(changes), self.mode)
        except BaseException:
            if self.staging.is_dir() and not (self.staging / _MANIFEST).exists():
                with suppress(OSError):  # The next writer drops what remains.
                    self._drop()
            raise
        # The moment of the change: from this rename on a kill leaves the state after.
        files.rename(self.staging / "manifest", self.staging / _MANIFEST)
        # Its name, and those of folders made for it, reach the disk before any file changes.
        for folder in (self.staging, *self._above(self.journal)):
            files.fsync_folder(folder)
        self._put_in_place(changes)

    def _above(self, name: str) -> list[Path]:
        """Return the folders above a file, up to the root."""
        return [self.root / folder for folder in Path(name).parents]

    def _make_root(self, changes: Sequence[Change]) -> None:
        """Fill a folder that is not there yet, and move it to its place."""
        space = self._space
        made = space / self.root.name  # The root's own file system: a rename cannot leave it.
        try:
            named_in = files.make_folder(space)
            files.write(space / _IGNORE, b"*\n")
            folders = {made}
            for change in changes:
                path = made / change.name
                folders.update({path.parent, *files.make_folder(path.parent)})
                files.write_durably(path, change.data or b"", self.mode)
            for folder in sorted(folders - {space}):
                files.fsync_folder(folder)
            # The moment: before it there is no root, after it there is one with all its files.
            files.rename(made, self.root)
        except BaseException:
            with suppress(OSError):  # The next writer drops what remains.
                self._drop_space()
            raise
        for folder in named_in:
            files.fsync_folder(folder)
        self._drop_space()

    @property
    def _space(self) -> Path:
        """Where a root that is not there yet is filled."""
        return self.root.parent / f".{self.root.name}.regen-new"

    def _refuse_name(self, name: str) -> None:
        path = self.root / name
        if why := self._name_fault(name):
            raise StoreWriteError(
                f"{path} cannot be written: {why}",
                hint=f"name a file below {self.root}, or replace the link by what it points at",
            )
        refuse_link(path)

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
        if os.path.lexists(self._space):
            self._drop_space()
        if not self.staging.is_dir():
            return
        refuse_link(self.staging)  # What is dropped would be somebody else's.
        changes = self.changes_in(_content(self.staging / _MANIFEST))
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
            named_in.update(self._put(change, self.staging / str(number)))
        for folder in sorted(named_in):
            if folder.is_dir():
                files.fsync_folder(folder)
        # Last: without the journal nobody would know what the other files are to hold.
        self._drop()

    def _put(self, change: Change, staged: Path) -> list[Path]:
        """Put a file in its place; return in which folders one was made for it.

        Args:
            change: the file.
            staged: where its content is written first, so that its rename is one step.
        """
        target = self.root / change.name
        if staged.is_symlink():
            files.unlink(staged)  # Not ours: nothing is written, or read, behind it.
        if change.data is not None:
            files.write_durably(staged, change.data, self.mode)
        content = _content(target)
        is_done = digest(content) == change.after and not target.is_symlink()
        is_edited = change.is_edited(content)
        if is_done or (is_edited and self.is_users(change.name)):
            if change.data is not None:
                files.unlink(staged)
            return []
        named_in = []
        if target.is_symlink() or is_edited:
            named_in += self._move_aside(target)
        elif change.data is None:
            files.unlink(target)
        if change.data is not None:
            if not target.parent.is_dir():
                named_in += files.make_folder(target.parent)
            files.rename(staged, target)
        return named_in

    def _move_aside(self, target: Path) -> list[Path]:
        """Keep a file that somebody changed between the kill and now; no edit is overwritten."""
        aside = self.root / self.aside
        named_in = files.make_folder(aside)
        if not (aside / _IGNORE).exists():
            files.write(aside / _IGNORE, b"*\n")
        suffix = (digest(_content(target)) or "")[:12]
        files.rename(target, aside / f"edited-{suffix}-{target.name}")
        return [aside, *named_in]

    def _drop(self) -> None:
        """Drop the journal: itself first, the file by which git ignores it last."""
        _drop_folder(self.staging, first=_MANIFEST)

    def _drop_space(self) -> None:
        if self._space.is_dir() and not self._space.is_symlink():
            _drop_folder(self._space)
        else:
            files.unlink(self._space)

    def changes_in(self, manifest: bytes | None) -> tuple[Change, ...]:
        """Return the changes that a manifest says were committed.

        Raises:
            StoreCorruptError: the manifest was not written by ``commit``.
        """
        if manifest is None:
            return ()
        try:
            return read_changes(manifest, self._name_fault)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreCorruptError(
                f"{self.staging / _MANIFEST}: this is not a change that pytest-regen wrote",
                why=f"{type(error).__name__}: {error}",
                hint=f"look into {self.staging}, move it away, then run the same command again",
            ) from None

    # Trials

    @contextmanager
    def trial(
        self, place: Callable[[View], Candidate], *, timeout: float = TRIAL_TIMEOUT
    ) -> Iterator["Trial"]:
        """Put a candidate in place for a test that looks at the files; taken out at the end.

        One trial at a time, so that each test sees its own candidate; other writers go ahead.

        Args:
            place: makes the candidate from what the files hold, under the lock.
            timeout: seconds to wait for another trial.

        Raises:
            StoreWriteError: the files cannot be written; they are as they were.
        """
        name = f"{self.aside}/.{new_id()}{_TRIAL}"
        # Held for the whole of the trial: the record of an owner that was killed has no lock.
        lock = self._acquire(self._trial_lock, timeout)
        _own_trials.add(name)
        try:
            with self.locked() as view:
                with self.explain_errors():
                    candidate = place(view)
                    files_ = {
                        file: [_as_text(view.read(file)), _as_text(data)]
                        for file, data in candidate.contents.items()
                    }
                    rejected = {file: _as_text(data) for file, data in candidate.rejected.items()}
                    record = {"files": files_, "rejected": rejected}
                # In one change with its record: a kill leaves no candidate that nobody takes out.
                data = json.dumps(record, indent=1).encode()
                self.commit({**candidate.contents, **self.ignore_file(self.aside), name: data})
            trial = Trial(self, name, record, candidate)
            try:
                yield trial
            finally:
                trial.reject()
        finally:
            _own_trials.discard(name)
            lock.release()

    @property
    def _trial_lock(self) -> Path:
        """The lock that is held as long as the owner of a record is alive."""
        return self.lock.with_name(f"{self.lock.name.removesuffix('.lock')}{_TRIAL}.lock")

    def ignore_file(self, folder: str) -> dict[str, bytes]:
        """Return the file by which git ignores a folder, where it is not there yet."""
        name = f"{folder}/{_IGNORE}"
        text = b"# Kept on this machine; version control has its own history.\n*\n"
        return {} if (self.root / name).exists() else {name: text}

    def _is_alive(self, record: str) -> bool:
        """Return whether the trial of a record is under way, in this process or another."""
        if record in _own_trials:
            return True
        if not self._trial_lock.exists():
            return False
        from filelock import FileLock, Timeout

        try:
            lock = FileLock(self._trial_lock, thread_local=False)
            with lock.acquire(timeout=_PROBE, poll_interval=_PROBE / 10):
                return False
        except Timeout:
            return True
        except OSError:
            # A folder that cannot be written: what was accepted before is the safe answer.
            return False

    def live_trials(self) -> list[Any]:
        """Return the records of trials that are under way, in this process or another.

        None begins or ends while the caller holds the lock.
        """
        view = View(self)
        records = []
        for name in sorted(view.names(f"{self.aside}/", _TRIAL)):
            data = view.read(name)
            if data is not None and self._is_alive(name):
                with suppress(ValueError, RecursionError):  # A reader of the files tells of it.
                    records.append(json.loads(data))
        return records

    def _dead_trials(self, view: View) -> list[tuple[str, Any]]:
        """Return the records of trials whose owner is gone, by file name, the latest first."""
        records = []
        for name in sorted(view.names(f"{self.aside}/", _TRIAL), reverse=True):
            data = view.read(name)
            if data is None or self._is_alive(name):
                continue
            try:
                records.append((name, json.loads(data)))
            except (ValueError, RecursionError) as error:
                raise self._no_trial(name, error) from None
        return records

    def without_candidate(self, name: str, record: Any, view: View) -> Contents:
        """Return what is to be written to end a trial whose candidate does not stay."""
        try:
            undone = {}
            for file, (before, after) in record["files"].items():
                text = _as_text(view.read(file))
                if text in {before, after}:
                    undone[file] = _as_bytes(before)
                    continue
                # Not whole, because somebody wrote to the file since.
                others = take_back(before or "", after or "", text) if text and after else None
                if others is None:
                    return {name: None}
                undone[file] = _as_bytes(others)
            rejected = {file: _as_bytes(text) for file, text in record["rejected"].items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._no_trial(name, error) from None
        return {**undone, **rejected, name: None}

    def _no_trial(self, name: str, error: Exception) -> StoreCorruptError:
        return StoreCorruptError(
            f"{self.root / name}: this is not a trial that pytest-regen wrote",
            why=str(error),
            hint=f"remove {self.root / name}, then look at the files with git diff",
        )


def _drop_folder(folder: Path, first: str = "") -> None:
    """Remove a folder and what is in it; the file by which git ignores it goes last."""
    inside = sorted(
        folder.iterdir(), key=lambda path: (path.name != first, path.name == _IGNORE, path)
    )
    for path in inside:
        if path.is_dir() and not path.is_symlink():
            _drop_folder(path)
        else:
            files.unlink(path)
    files.remove_folder(folder)


class Trial:
    """A candidate that is in place; taken out again unless ``accept`` is called."""

    def __init__(self, owner: AtomicFiles, name: str, record: Any, candidate: Candidate) -> None:
        self.is_accepted = False
        self.history = candidate.history
        """Ids of the history entries that are written where the candidate does not stay."""
        self._owner = owner
        self._name = name
        self._record = record
        self._accepted = candidate.accepted
        self._is_open = True

    def accept(self) -> None:
        """Keep the candidate.

        Raises:
            StoreWriteError: nothing can be written; the candidate is taken out at the end.
        """
        with self._owner.locked():
            self._owner.commit({**self._accepted, self._name: None})
        self._is_open, self.is_accepted = False, True

    def reject(self, *, keeps: bool = True) -> None:
        """Take the candidate out, unless the trial has ended.

        Args:
            keeps: whether it is written down as rejected.
        """
        if not self._is_open:
            return
        record = self._record if keeps else {**self._record, "rejected": {}}
        with self._owner.locked() as view:
            self._owner.commit(self._owner.without_candidate(self._name, record, view))
        self._is_open = False


def _as_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _as_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def refuse_link(path: Path) -> None:
    """Raise a StoreWriteError where a file to be written is a symbolic link."""
    if path.is_symlink():
        raise StoreWriteError(
            f"{path} is a symbolic link",
            why="writing it would put a file in its place, or change a file outside of the store",
            hint=f"replace the link by the file itself, or link the whole folder {path.parent}",
        )
