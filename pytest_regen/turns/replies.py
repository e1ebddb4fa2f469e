"""Replies that were paid for and whose pages are not stored yet: a kill does not lose them.

A run appends each reply to a file of its own, ``.regen/replies/<run>.jsonl``, before anything else
is done with it, and notes there when its page is stored. So pages may wait for each other and be
written together. A run that is killed leaves its file; the next one that would send the same
request takes the reply out of it.

Each run holds a lock beside its file as long as it lives. What is taken from the file of a run that
is gone is taken under that lock and written to the taker's own file first: however many runs begin
at once, and whichever of them is killed, a reply is taken by one and never lost. The reply is on
its way to the disk when the process dies, and on the disk half a second later, when power may fail.

A reply stands there as it came. Its request does not: only a digest of it, made with a key of the
user's that no repository can know, so that a file which came with a repository answers nothing.
Whatever is wrong with the folder or with a line of a file, the request is sent as if there were no
journal.
"""

import hashlib
import hmac
import json
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from pytest_regen import files
from pytest_regen.cache import user_secret
from pytest_regen.commit import new_id
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.values import (
    TOKENS,
    Provider,
    Reply,
    TurnRequest,
    Usage,
    provider_reference,
)

_TEXTS: Final = ("text", "stop_reason", "model", "id", "refusal")

_LIFE: Final = 7 * 86_400.0
"""Seconds that a reply is kept for another run."""

_PAUSE: Final = 0.5
"""Seconds that replies wait for the disk, so that one fsync takes them all."""

_PROBE: Final = 0.01
"""Seconds a lock must be held to count as held by a run: another one's look takes far less."""

_PATIENCE: Final = 1.0
"""Seconds to wait while another run takes a reply from the same file."""

_LARGEST_LINE: Final = 16 << 20
"""Bytes; several times the longest reply that a model can write."""

_LARGEST_FILE: Final = 256 << 20
_MOST_REPLIES: Final = 100_000
"""In one file; more are somebody's joke."""

_MOST_FILES: Final = 1_000


def name_answerer(provider: Provider) -> str:
    """Return who answers: another provider, model or address would answer something else."""
    named = (provider_reference(provider), *_settings_of(provider))
    return " ".join(str(part) for part in named if part)


def _settings_of(provider: Provider) -> Iterator[object]:
    """Yield what a provider of the Messages API was made with."""
    for name in ("base_url", "model"):
        value = getattr(provider, name, None)
        if isinstance(value, str):
            yield value


class ReplyJournal:
    """The replies of this run, and those that others left.

    Safe to be used from several threads. Nothing in it raises for a folder that cannot be written,
    a disk that is full, or a file that somebody made up; there is no journal then.
    """

    def __init__(self, folder: Path, secret: bytes | None) -> None:
        """Take the folder; ``ReplyJournal.open`` also reads what is in it.

        Args:
            folder: it is made with the first reply.
            secret: key of the digests; without one nothing is kept or found.
        """
        self._folder = folder
        self._secret = secret
        self._guard = threading.Lock()
        self._own: _OwnFile | None = None
        self._is_closed = secret is None or files.is_linked(folder)
        self._left: dict[str, deque[tuple[_LeftFile, str]]] = {}
        """Replies of runs that are gone, by the digest of what was asked of whom."""
        self._taken: dict[str, deque[str]] = {}
        """Ids of replies that this run has and has not stored, by the digest of the request."""

    @classmethod
    def open(cls, root: Path) -> Self:
        """Return the journal of a project, with the replies of runs that were killed.

        Args:
            root: folder of the project, as ``files.project_root`` returns it.
        """
        journal = cls(root / ".regen" / "replies", user_secret(root))
        if not journal._is_closed:
            journal._read_left()
        return journal

    def __enter__(self) -> Self:
        """Return the journal, closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the journal."""
        self.close()

    def find(self, request: TurnRequest, reference: str | None) -> Reply | None:
        """Return a reply that a killed run had to this request, and let nobody else have it.

        It is this run's from now on, as if it had been sent and added. Its usage was paid by the
        run that asked.

        Args:
            request: equal in everything that is sent.
            reference: who would answer, as ``name_answerer`` says.
        """
        if not self._left or self._secret is None:
            return None
        asked, key = self._digests(request, reference)
        with self._guard:
            waiting = self._left.get(key)
            while waiting:
                file, id_ = waiting.popleft()
                if (reply := self._take(file, id_, key)) is not None:
                    self._taken.setdefault(asked, deque()).append(id_)
                    return reply
        return None

    def add(self, request: TurnRequest, reference: str | None, reply: Reply) -> None:
        """Keep a reply until ``stored`` is told that it is not needed any more.

        Args:
            request: what was sent.
            reference: who answered, as ``name_answerer`` says.
            reply: as it came.
        """
        if self._is_closed:
            return
        asked, key = self._digests(request, reference)
        with self._guard:
            texts = {name: getattr(reply, name) for name in _TEXTS}
            kept = {**texts, "usage": reply.usage.counts}
            id_ = self._keep(key, None, kept, time.time())
            if id_ is not None:
                self._taken.setdefault(asked, deque()).append(id_)

    def stored(self, requests: Iterable[TurnRequest]) -> None:
        """Drop the replies to these requests: what became of them is stored.

        Args:
            requests: each as often as it was answered.
        """
        with self._guard:
            done = []
            for request in requests:
                ids = self._taken.get(self._digests(request, None)[0]) if self._taken else None
                if ids:
                    done.append(ids.popleft())
            if done and self._own is not None:
                with suppress(OSError):
                    self._own.drop(done)

    def close(self) -> None:
        """Remove this run's file if nothing is left in it; else leave it to the next run."""
        with self._guard:
            self._is_closed = True
            own, self._own = self._own, None
            self._left.clear()
        if own is not None:
            own.close()

    def _digests(self, request: TurnRequest, reference: str | None) -> tuple[str, str]:
        """Return the digest of a request, and that of what was asked of whom."""
        sent = json.dumps(
            [
                request.model,
                request.max_tokens,
                [request.system, request.cache],
                [[message.role, message.content, message.cache] for message in request.messages],
                request.response_schema,
            ],
            sort_keys=True,
            default=dict,
        )
        asked = hashlib.sha256(sent.encode()).hexdigest()
        named = json.dumps([asked, reference]).encode()
        return asked, hmac.new(self._secret or b"", named, "sha256").hexdigest()

    def _keep(self, key: str, id_: str | None, reply: dict[str, Any], at: float) -> str | None:
        """Write a reply to this run's file; return its id there, ``None`` where that fails."""
        try:
            if self._own is None:
                if self._is_closed:
                    return None
                self._own = _OwnFile(self._folder)
            return self._own.add(key, id_, reply, at)
        except OSError:
            self._is_closed = self._own is None  # Not tried again for each reply of this run.
            return None

    def _take(self, file: "_LeftFile", id_: str, key: str) -> Reply | None:
        with suppress(OSError), file.held(_PATIENCE) as is_held:
            line = file.line_of(id_) if is_held else None
            reply = None if line is None else _from_json(line.get("reply"))
            if line is not None and reply is not None:
                # First here, then gone there: a kill between the two leaves it twice under one id.
                if self._keep(key, id_, line["reply"], line["at"]) is not None:
                    file.drop(id_)
                return reply
        return None

    def _read_left(self) -> None:
        known: set[str] = set()
        for path in _journals(self._folder):
            file = _LeftFile(path)
            with suppress(OSError):
                with file.held(_PROBE) as is_left:
                    pass
                if not is_left:
                    continue  # Its run is alive.
                # Not under the lock: a run that begins now would take this one for the file's own.
                file.read_on()
                self._tidy(file, known)
                known |= file.places.keys()
                for id_, place in file.places.items():
                    self._left.setdefault(place.key, deque()).append((file, id_))

    @staticmethod
    def _tidy(file: "_LeftFile", known: set[str]) -> None:
        """Drop what another file holds too, and a file in which nothing is left."""
        if file.places and known.isdisjoint(file.places):
            return
        with file.held(_PATIENCE) as is_held:
            if is_held:
                file.read_on()
                for id_ in known & file.places.keys():
                    file.drop(id_)
                file.remove_if_empty()


def _journals(folder: Path) -> list[Path]:
    """Return the files of runs, oldest first; those nobody will ask for any more are removed."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    except OSError:
        return []
    paths = []
    oldest = time.time() - _LIFE
    for name in sorted(found):
        path, facts = folder / name, found[name]
        if path.suffix == ".lock" and path.with_suffix(".jsonl").name not in found:
            # Made by a run that was killed before its first reply; not one that is about to begin.
            if facts.st_mtime < oldest:
                _remove(path)
        elif path.suffix == ".jsonl" and stat.S_ISREG(facts.st_mode):
            if facts.st_mtime < oldest:
                _remove(path)
            else:
                paths.append(path)
    return paths[-_MOST_FILES:]


def _remove(path: Path) -> None:
    with suppress(OSError):
        files.unlink(path)


class _OwnFile:
    """The file that this run appends to, made and locked at its first reply."""

    def __init__(self, folder: Path) -> None:
        files.make_ignored_folder(folder)
        self._path = folder / f"{new_id()}.jsonl"
        self._lock = files.lock_beside(self._path)
        # Locked before it is there, so that no other run ever takes it for left behind.
        self._lock.acquire(timeout=_PATIENCE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        try:
            self._descriptor = os.open(self._path, flags | getattr(os, "O_BINARY", 0), 0o600)
        except BaseException:
            self._lock.release()
            raise
        self._count = 0
        self._open: set[str] = set()
        self._is_torn = False
        self._is_on_disk = False
        """Whether the folder's list of names is on the disk with this file in it."""
        self._timer: threading.Timer | None = None
        self._guard = threading.Lock()

    def add(self, key: str, id_: str | None, reply: dict[str, Any], at: float) -> str:
        self._count += 1
        id_ = id_ or f"{self._path.stem}-{self._count}"
        self._append({"id": id_, "key": key, "at": at, "reply": reply})
        self._open.add(id_)
        with self._guard:
            if self._timer is None:
                self._timer = threading.Timer(_PAUSE, self._sync)
                self._timer.daemon = True
                self._timer.start()
        return id_

    def drop(self, ids: Iterable[str]) -> None:
        done = [id_ for id_ in ids if id_ in self._open]
        self._open.difference_update(done)
        if self._open:
            self._append({"done": done})
        else:
            # All is stored: the file does not grow with the run.
            os.ftruncate(self._descriptor, 0)
            self._is_torn = False

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        start = b"\n" if self._is_torn else b""
        self._is_torn = True
        files.append(self._descriptor, self._path, start + data)
        self._is_torn = False

    def _sync(self) -> None:
        """Wait for the disk, in a thread of its own: no turn and no write waits with it."""
        with self._guard:
            self._timer = None
            if not self._open or self._descriptor < 0:
                return
            descriptor = os.dup(self._descriptor)
        try:
            with suppress(OSError):
                self._fsync(descriptor)
        finally:
            os.close(descriptor)

    def _fsync(self, descriptor: int) -> None:
        files.fsync(descriptor, self._path)
        if not self._is_on_disk:
            files.fsync_folder(self._path.parent)
            self._is_on_disk = True

    def close(self) -> None:
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
            descriptor, self._descriptor = self._descriptor, -1
        try:
            if self._open:
                with suppress(OSError):
                    self._fsync(descriptor)
        finally:
            os.close(descriptor)
            if not self._open:
                _remove(self._path)
            self._lock.release()
        if not self._open:
            _remove(self._path.with_suffix(".lock"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a reply stands in a file."""

    key: str
    start: int
    size: int


@dataclass
class _LeftFile:
    """The file of a run that is gone; several runs may look for replies in it."""

    path: Path
    places: dict[str, _Place] = field(default_factory=dict)
    """What is in it, by id."""
    _end: int = 0
    """How far it was read."""

    @contextmanager
    def held(self, timeout: float) -> Iterator[bool]:
        """Keep other runs from taking what is in it; false where its own run is alive."""
        from filelock import Timeout

        lock = files.lock_beside(self.path)
        try:
            lock.acquire(timeout=timeout, poll_interval=0.002)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def line_of(self, id_: str) -> dict[str, Any] | None:
        """Return the line of a reply that nobody has taken."""
        self.read_on()
        place = self.places.get(id_)
        if place is None:
            return None
        with self._opened() as file:
            file.seek(place.start)
            line = json_or_none(file.read(place.size))
        return line if _is_entry(line) and line["id"] == id_ else None

    def read_on(self) -> None:
        """Note what was added, and what was taken, since it was read last.

        Raises:
            OSError: it is gone or no file that this user wrote; nothing is in it then.
        """
        try:
            with self._opened() as file:
                file.seek(self._end)
                while line := file.readline(_LARGEST_LINE):
                    start, self._end = self._end, self._end + len(line)
                    self._note(json_or_none(line), start, len(line))
        except OSError:
            self.places.clear()
            raise

    def _note(self, line: Any, start: int, size: int) -> None:
        if _is_entry(line) and len(self.places) < _MOST_REPLIES:
            self.places[line["id"]] = _Place(line["key"], start, size)
        elif isinstance(line, dict) and isinstance(done := line.get("done"), list):
            for id_ in done:
                self.places.pop(id_ if isinstance(id_, str) else "", None)

    def drop(self, id_: str) -> None:
        """Note that a reply is taken."""
        self.places.pop(id_, None)
        if not self.remove_if_empty():
            files.append_line(self.path, {"done": [id_]})

    def remove_if_empty(self) -> bool:
        """Remove it if nothing is left in it."""
        if not self.places:
            _remove(self.path)
            _remove(self.path.with_suffix(".lock"))
        return not self.places

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.path, flags | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            is_own = os.name == "nt" or facts.st_uid == os.geteuid()
            if not stat.S_ISREG(facts.st_mode) or not is_own or facts.st_size > _LARGEST_FILE:
                raise OSError(f"{self.path} was not written by this user's runs")
            yield file


def _is_entry(line: Any) -> bool:
    """Return whether a line holds a reply that is not too old."""
    if not isinstance(line, dict):
        return False
    at = line.get("at")
    is_text = all(isinstance(line.get(name), str) for name in ("id", "key"))
    return is_text and type(at) is float and -86_400 < time.time() - at < _LIFE


def _from_json(value: Any) -> Reply | None:
    """Return the reply that stands in a line; ``None`` for anything else."""
    try:
        value = {"refusal": "", **value}  # Earlier releases wrote none.
        texts = {name: value[name] for name in _TEXTS}
        counts = {name: value["usage"].get(name) for name in TOKENS}
    except (AttributeError, TypeError, KeyError):
        return None
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    if not all(n is None or (type(n) is int and n >= 0) for n in counts.values()):
        return None
    return Reply(**texts, usage=Usage(**counts))
