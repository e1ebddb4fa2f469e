"""Replies that were paid for and whose pages are not stored yet: a kill does not lose them.

A run appends each reply to a file of its own, ``.regen/replies/<run>.jsonl``, before anything else
is done with it, and notes there when its page is stored. So pages may wait for each other and be
written together. A run that is killed leaves its file; the next one that would send the same
request takes the reply out of it.

Each run holds a lock beside its file as long as it lives. What is taken from the file of a run that
is gone is taken under that lock and written to the taker's own file first: however many runs begin
at once, and whichever of them is killed, a reply is taken by one and never lost. The reply is on
its way to the disk when the process dies, and on the disk half a second later, when power may fail.

A reply stands there as it came. Its request does not: only a digest of it, and one of the line,
both made with a key of the user's that no repository can know, so that a file which came with a
repository, or was edited, answers nothing.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pytest_regen import files
from pytest_regen.cache import user_secret
from pytest_regen.commit import new_id
from pytest_regen.strict_json import json_or_none
from pytest_regen.turns.values import (
    Message,
    Provider,
    Reply,
    TurnRequest,
    Usage,
    provider_reference,
)

_PARTS: Final = {part.name for part in fields(Reply)}
"""Of a reply in a file; another release may have others."""

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


def name_answerer(provider: Provider) -> str:
    """Return who answers: another provider, model or address would answer something else."""
    settings = (getattr(provider, name, None) for name in ("base_url", "model"))
    names = (provider_reference(provider), *settings)
    return " ".join(name for name in names if name and isinstance(name, str))


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
        self._secret = secret or b""
        self._guard = threading.Lock()
        self._file: _RunFile | None = None
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
        if not self._left:
            return None
        request_digest, key = self._digests(request, reference)
        with self._guard:
            waiting = self._left.get(key)
            while waiting:
                file, id_ = waiting.popleft()
                if (line := self._take(file, id_)) is not None:
                    self._taken.setdefault(request_digest, deque()).append(id_)
                    reply = line["reply"]
                    blocks, usage = tuple(reply["blocks"]), Usage(**reply["usage"])
                    return Reply(**{**reply, "blocks": blocks, "usage": usage})
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
        request_digest, key = self._digests(request, reference)
        parts = {name: getattr(reply, name) for name in _PARTS}
        line = {"key": key, "at": time.time(), "reply": {**parts, "usage": reply.usage.counts}}
        with self._guard:
            id_ = self._keep({"id": new_id(), **line, "digest": self._digest_of(line)})
            if id_ is not None:
                self._taken.setdefault(request_digest, deque()).append(id_)

    def stored(self, requests: Iterable[TurnRequest]) -> None:
        """Drop the replies to these requests: what became of them is stored.

        Args:
            requests: each as often as it was answered.
        """
        with self._guard:
            needless = []
            for request in requests:
                ids = self._taken.get(self._digests(request, None)[0]) if self._taken else None
                if ids:
                    needless.append(ids.popleft())
            if needless and self._file is not None:
                with suppress(OSError):
                    self._file.drop(needless)

    def close(self) -> None:
        """Remove this run's file if nothing is left in it; else leave it to the next run."""
        with self._guard:
            self._is_closed = True
            file, self._file = self._file, None
            self._left.clear()
        if file is not None:
            file.close()

    def _digests(self, request: TurnRequest, reference: str | None) -> tuple[str, str]:
        """Return the digest of a request, and that of what was asked of whom."""
        parts = [getattr(request, part.name) for part in fields(request)]
        sent = json.dumps(parts, sort_keys=True, default=_plain)
        digest = hashlib.sha256(sent.encode()).hexdigest()
        return digest, self._digest_of([digest, reference])

    def _digest_of(self, value: object) -> str:
        data = json.dumps(value, sort_keys=True, default=str).encode()
        return hmac.new(self._secret, data, "sha256").hexdigest()

    def _keep(self, line: dict[str, Any]) -> str | None:
        """Write a reply to this run's file; return its id, ``None`` where that fails."""
        try:
            if self._file is None:
                if self._is_closed:
                    return None
                self._file = _RunFile(self._folder)
            self._file.add(line)
        except OSError:
            self._is_closed = self._file is None  # Not tried again for each reply of this run.
            return None
        return str(line["id"])

    def _take(self, file: "_LeftFile", id_: str) -> dict[str, Any] | None:
        line = None
        with suppress(OSError), file.held(_PATIENCE) as is_held:
            if is_held:
                file.read_on()
                line = file.lines.get(id_)
            # First here, then gone there: a kill between the two leaves it twice under one id.
            if line is not None and self._keep(line) is not None:
                file.drop(id_)
        return line

    def _read_left(self) -> None:
        """Note the replies of runs that are gone."""
        ids: set[str] = set()
        for path in _journals(self._folder):
            file = _LeftFile(path, self._is_ours)
            with suppress(OSError):
                with file.held(_PROBE) as is_left:
                    pass
                if not is_left:
                    continue  # Its run is alive.
                # Not under the lock: a run that begins now would take this one for the file's own.
                file.read_on()
                if not file.lines or ids & file.lines.keys():
                    # Nothing is in it, or what a killed run was about to take from it.
                    with file.held(_PATIENCE) as is_held:
                        if is_held:
                            file.read_on()
                            file.drop(*(ids & file.lines.keys()))
                ids |= file.lines.keys()
                for id_, line in file.lines.items():
                    self._left.setdefault(line["key"], deque()).append((file, id_))

    def _is_ours(self, line: dict[str, Any]) -> bool:
        """Return whether a line was written with the user's key, and holds no old reply."""
        content = {name: line.get(name) for name in ("key", "at", "reply")}
        if line.get("digest") != self._digest_of(content) or line["reply"].keys() != _PARTS:
            return False
        age: float = time.time() - line["at"]
        return -86_400 < age < _LIFE


def _plain(value: Message | Mapping[str, Any]) -> dict[str, Any]:
    return asdict(value) if isinstance(value, Message) else dict(value)


def _journals(folder: Path) -> list[Path]:
    """Return the files of runs, oldest first; those nobody will ask for any more are removed."""
    paths = []
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            facts = path.lstat()
            # A lock alone is of a run that was killed, or that is about to begin.
            is_alone = path.suffix == ".lock" and not path.with_suffix(".jsonl").exists()
            is_file = path.suffix == ".jsonl" and stat.S_ISREG(facts.st_mode)
            if (is_alone or is_file) and facts.st_mtime < time.time() - _LIFE:
                _remove(path)
            elif is_file:
                paths.append(path)
    return paths


def _remove(path: Path) -> None:
    with suppress(OSError):
        files.unlink(path)


class _RunFile:
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
        self._ids: set[str] = set()
        self._is_torn = False
        self._is_on_disk = False
        """Whether the folder's list of names is on the disk with this file in it."""
        self._timer: threading.Timer | None = None
        self._guard = threading.Lock()

    def add(self, line: dict[str, Any]) -> None:
        self._append(line)
        self._ids.add(line["id"])
        with self._guard:
            if self._timer is None:
                self._timer = threading.Timer(_PAUSE, self._sync)
                self._timer.daemon = True
                self._timer.start()

    def drop(self, ids: Iterable[str]) -> None:
        dropped = [id_ for id_ in ids if id_ in self._ids]
        self._ids.difference_update(dropped)
        if self._ids:
            self._append({"done": dropped})
        else:
            # All is stored: the file does not grow with the run.
            os.ftruncate(self._descriptor, 0)
            self._is_torn = False

    def _append(self, line: dict[str, Any]) -> None:
        start = b"\n" if self._is_torn else b""
        self._is_torn = True
        text = json.dumps(line, default=str).encode()
        files.append(self._descriptor, self._path, start + text + b"\n")
        self._is_torn = False

    def _sync(self) -> None:
        """Wait for the disk, in a thread of its own: no turn and no write waits with it."""
        with self._guard:
            self._timer = None
            if not self._ids or self._descriptor < 0:
                return
            descriptor = os.dup(self._descriptor)
        self._fsync(descriptor)
        os.close(descriptor)

    def _fsync(self, descriptor: int) -> None:
        with suppress(OSError):
            files.fsync(descriptor, self._path)
            if not self._is_on_disk:
                files.fsync_folder(self._path.parent)
                self._is_on_disk = True

    def close(self) -> None:
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
            descriptor, self._descriptor = self._descriptor, -1
        if self._ids:
            self._fsync(descriptor)
        os.close(descriptor)
        if not self._ids:
            _remove(self._path)
        self._lock.release()
        if not self._ids:
            _remove(self._path.with_suffix(".lock"))


class _LeftFile:
    """The file of a run that is gone; several runs may look for replies in it."""

    def __init__(self, path: Path, is_ours: Callable[[dict[str, Any]], bool]) -> None:
        self._path = path
        self._is_ours = is_ours
        self.lines: dict[str, dict[str, Any]] = {}
        """What is in it, by id."""
        self._end = 0
        """How far it was read."""

    @contextmanager
    def held(self, timeout: float) -> Iterator[bool]:
        """Keep other runs from taking what is in it; false where its own run is alive."""
        from filelock import Timeout

        lock = files.lock_beside(self._path)
        try:
            lock.acquire(timeout=timeout, poll_interval=0.002)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def read_on(self) -> None:
        """Note what was added, and what was taken, since it was read last.

        Raises:
            OSError: it is gone or no file that this user wrote; nothing is in it then.
        """
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        lines, self.lines = self.lines, {}
        descriptor = os.open(self._path, flags | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            is_owner = os.name == "nt" or facts.st_uid == os.geteuid()
            if not stat.S_ISREG(facts.st_mode) or not is_owner or facts.st_size > _LARGEST_FILE:
                raise OSError(f"{self._path} was not written by this user's runs")
            file.seek(self._end)
            while text := file.readline(_LARGEST_LINE):
                self._end += len(text)
                line = json_or_none(text)
                if not isinstance(line, dict):
                    continue
                if self._is_ours(line):
                    lines[str(line.get("id"))] = line
                elif isinstance(line.get("done"), list):
                    for id_ in map(str, line["done"]):
                        lines.pop(id_, None)
        self.lines = lines

    def drop(self, *ids: str) -> None:
        """Note that replies are taken; remove the file if nothing is left in it."""
        for id_ in ids:
            del self.lines[id_]
        if not self.lines:
            _remove(self._path)
            _remove(self._path.with_suffix(".lock"))
        elif ids:
            files.append_line(self._path, {"done": ids})
