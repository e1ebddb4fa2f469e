"""Replies that were paid for and whose pages are not stored yet: a kill does not lose them.

A run writes each reply to a file of its own, ``.regen/replies/<run>.<what was asked>.<id>.json``,
before anything else is done with it, and removes that when its page is stored. So pages may wait
for each other and be written together. A run that is killed leaves its files; the next one that
would send the same request takes the reply by giving the file a name of its own, in one step:
however many runs begin at once, and whichever of them is killed, a reply is taken by one and never
lost. Each run holds a lock as long as it lives, which tells its files from those that are left.

A reply stands there as it came. Its request does not: only a digest of it, and one of the file,
both made with a key of the user's that no repository can know, so that a file which came with a
repository, or was edited, answers nothing. Whatever is wrong with the folder or with a file, the
request is sent as if there were no journal.
"""

import hashlib
import hmac
import json
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

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

if TYPE_CHECKING:
    from filelock import BaseFileLock

_PARTS: Final = {part.name for part in fields(Reply)}
"""Of a reply in a file; another release may have others."""

_LIFE: Final = 7 * 86_400.0
"""Seconds that a reply is kept for another run."""

_PROBE: Final = 0.01
"""Seconds a lock must be held to count as held by a run: another one's look takes far less."""


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
        """Take the folder; ``ReplyJournal.open`` also looks for what is in it.

        Args:
            folder: it is made with the first reply.
            secret: key of the digests; without one nothing is kept or found.
        """
        self._folder = folder
        self._secret = secret or b""
        self._guard = threading.Lock()
        self._run = new_id()
        self._lock: BaseFileLock | None = None
        """Held from the first reply of this run on."""
        self._is_closed = secret is None or files.is_linked(folder)
        self._left: dict[str, deque[Path]] = {}
        """Replies of runs that are gone, by the digest of what was asked of whom."""
        self._taken: dict[str, deque[Path]] = {}
        """Replies that this run has and has not stored, by the digest of the request."""

    @classmethod
    def open(cls, root: Path) -> Self:
        """Return the journal of a project, with the replies of runs that were killed.

        Those that nobody will ask for any more are removed.

        Args:
            root: folder of the project, as ``files.project_root`` returns it.
        """
        from filelock import Timeout

        journal = cls(root / ".regen" / "replies", user_secret(root))

        @cache
        def is_left(run: str) -> bool:
            lock = files.lock_beside(journal._folder / f"{run}.json")
            try:
                with lock.acquire(timeout=_PROBE, poll_interval=0.002):
                    # Nobody locks it again, because a run has its lock before it has a reply.
                    _remove(Path(lock.lock_file))
            except Timeout:
                return False
            return True

        for path in () if journal._is_closed else sorted(journal._folder.glob("*.*")):
            with suppress(OSError):  # Another run took it meanwhile.
                facts = path.lstat()
                is_file = stat.S_ISREG(facts.st_mode) and path.name != ".gitignore"
                if is_file and facts.st_mtime < time.time() - _LIFE:
                    _remove(path)
                elif is_file and path.name.count(".") == 3:
                    run, key, _, _ = path.name.split(".")
                    if is_left(run):
                        journal._left.setdefault(key, deque()).append(path)
        return journal

    def __enter__(self) -> Self:
        """Return the journal, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
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
            left = self._left.get(key)
            while left and not self._is_closed:
                with suppress(OSError):  # Another run took it.
                    path = self._new_path(key)
                    files.rename(left.popleft(), path)
                    content = json_or_none(path.read_bytes())
                    if self._is_ours(content, key):
                        self._taken.setdefault(request_digest, deque()).append(path)
                        reply = content["reply"]
                        blocks, usage = tuple(reply["blocks"]), Usage(**reply["usage"])
                        return Reply(**{**reply, "blocks": blocks, "usage": usage})
                    files.unlink(path)
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
        content = {"key": key, "at": time.time(), "reply": {**parts, "usage": reply.usage.counts}}
        text = json.dumps({**content, "digest": self._digest_of(content)}, default=str)
        with self._guard, suppress(OSError):
            path = self._new_path(key)
            # Not synced, because a kill loses nothing of it, and the event loop would wait. Half a
            # file, as a power failure leaves it, is none.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            descriptor = os.open(path, flags, 0o600)
            self._taken.setdefault(request_digest, deque()).append(path)
            try:
                files.append(descriptor, path, text.encode())
            finally:
                os.close(descriptor)

    def stored(self, requests: Iterable[TurnRequest]) -> None:
        """Drop the replies to these requests: what became of them is stored.

        Args:
            requests: each as often as it was answered.
        """
        with self._guard:
            for request in requests if self._taken else ():
                paths = self._taken.get(self._digests(request, None)[0])
                if paths:
                    _remove(paths.popleft())

    def close(self) -> None:
        """End the run; what it has not stored is left to the next one."""
        with self._guard:
            self._is_closed = True
            lock, self._lock = self._lock, None
            self._left.clear()
            if lock is not None:
                lock.release()
                if not any(self._taken.values()):
                    _remove(Path(lock.lock_file))

    def _digests(self, request: TurnRequest, reference: str | None) -> tuple[str, str]:
        """Return the digest of a request, and that of what was asked of whom."""
        parts = [getattr(request, part.name) for part in fields(request)]
        sent = json.dumps(
            parts,
            sort_keys=True,
            default=lambda part: asdict(part) if isinstance(part, Message) else dict(part),
        )
        digest = hashlib.sha256(sent.encode()).hexdigest()
        return digest, self._digest_of([digest, reference])

    def _digest_of(self, value: object) -> str:
        data = json.dumps(value, sort_keys=True, default=str).encode()
        return hmac.new(self._secret, data, "sha256").hexdigest()

    def _new_path(self, key: str) -> Path:
        """Return a new name for a reply, once this run holds its lock.

        Raises:
            OSError: the folder cannot be written; this is not tried again for each reply.
        """
        if self._lock is None:
            lock = files.lock_beside(self._folder / f"{self._run}.json")
            try:
                files.make_ignored_folder(self._folder)
                lock.acquire(blocking=False)
            except OSError:
                self._is_closed = True
                raise
            self._lock = lock
        return self._folder / f"{self._run}.{key}.{new_id()}.json"

    def _is_ours(self, content: Any, key: str) -> bool:
        """Return whether a file was written with the user's key, and holds no old reply."""
        if not isinstance(content, dict) or content.get("key") != key:
            return False
        signed = {name: content.get(name) for name in ("key", "at", "reply")}
        if content.get("digest") != self._digest_of(signed) or content["reply"].keys() != _PARTS:
            return False
        age: float = time.time() - content["at"]
        return -86_400 < age < _LIFE


def _remove(path: Path) -> None:
    with suppress(OSError):
        files.unlink(path)
