"""Batches on disk: what was submitted and is not stored yet, so that nothing is submitted twice.

One file of JSON lines per batch, ``.regen/batches/<prefix>.jsonl``. Its first line, the *intent*,
is on the disk before the API hears of the batch: digests of the requests, and the random prefix
that their custom ids begin with. The id that the API answers with is added to it. So a run that
finds the file knows which of its requests wait at the API already; where the id is missing, as the
run before was killed in between, the list of batches at the API tells. Requests whose replies are
stored are noted, too, and the file goes with the last of them, or when the API keeps no results
any more.

A lock per file is held from the intent to the id, one for the folder while requests are looked up
and an intent is written: of any number of processes, one submits a request, and all others wait for
its batch. No prompt, reply or key stands in a file.
"""

import asyncio
import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pytest_regen import files
from pytest_regen.strict_json import json_or_none

if TYPE_CHECKING:
    from filelock import BaseFileLock

KEPT: Final = 29 * 86_400.0
"""Seconds for which the API keeps results, from the creation of a batch."""

_MOST: Final = 100_000
"""Requests the API takes in one batch."""

_LARGEST: Final = 32 << 20
"""Bytes of a file; far more than the digests of a full batch take."""

_PATIENCE: Final = 60.0
"""Seconds to wait for another process, which needs the folder for milliseconds."""

_POLL: Final = 0.01
"""Seconds between two looks at the lock that it holds."""

_PREFIX = re.compile(r"[0-9a-f]{16}")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a batch is: other addresses and workspaces have other batches."""

    address: str
    """The base URL, without a password."""
    key: str
    """Digest of the key."""

    @classmethod
    def of(cls, address: str, key: str) -> Self:
        """Return the origin of batches submitted with a key, which is kept as a digest only."""
        digest = hashlib.sha256(f"pytest-regen batches {key}".encode("utf-8", "surrogatepass"))
        return cls(address, digest.hexdigest()[:16])


@dataclass(slots=True, eq=False)
class BatchFile:
    """What is known of one batch."""

    path: Path
    origin: Origin
    created: float
    """When it was to be created, in seconds since the epoch by this machine's clock."""
    before: str
    """Id of the newest batch that the API knew then; empty if there was none."""
    digests: tuple[str, ...]
    """Of the requests, in the order of their custom ids."""
    id: str = ""
    """As the API calls it; empty until that is known."""
    settled: set[int] = field(default_factory=set)
    """Numbers of requests that no run need wait for: stored, or to be asked again elsewhere."""
    _lock: "BaseFileLock | None" = field(default=None, repr=False)

    @property
    def prefix(self) -> str:
        """What the custom ids begin with."""
        return self.path.stem

    def custom_id(self, number: int) -> str:
        """Return the custom id of a request."""
        return f"{self.prefix}-{number}"

    def number_of(self, custom_id: object) -> int | None:
        """Return the number of the request of that custom id; ``None`` for another batch's."""
        match = re.fullmatch(rf"{self.prefix}-(\d{{1,6}})", str(custom_id), re.ASCII)
        return int(match[1]) if match else None

    def note_id(self, id_: str) -> None:
        """Note what the API calls the batch, and wait until the disk has it."""
        # Where that fails, the list of batches at the API tells the next run.
        self.id = id_
        with suppress(OSError):
            if id_:
                files.append_line(self.path, {"id": id_}, durably=True)

    def settle(self, numbers: Iterable[int]) -> None:
        """Note that no run need wait for these requests; without any left the file is removed."""
        self.refresh()  # Because others, in this process as well, note theirs in the file.
        new = set(numbers) - self.settled
        self.settled |= new
        if len(self.settled) >= len(self.digests):
            self.remove()
        elif new:
            # Lost with the machine, a note would cost one more look at the results.
            with suppress(OSError):
                files.append_line(self.path, {"settled": sorted(new)})

    def remove(self) -> None:
        """Remove the file; one that is gone already is fine."""
        _remove(self.path)

    def refresh(self) -> bool:
        """Read what others have added; return whether the file is still there."""
        batch = _read(self.path)
        if batch is not None:
            self.id, self.settled = batch.id or self.id, self.settled | batch.settled
        return batch is not None

    def claim(self) -> bool:
        """Return whether this process alone may submit the batch, or find out whether it was.

        Until ``release``, or the end of the process.
        """
        from filelock import Timeout

        lock = files.lock_beside(self.path)
        try:
            lock.acquire(blocking=False)
        except (Timeout, OSError):
            return False
        self._lock = lock
        return True

    def release(self) -> None:
        """Let other processes claim the batch."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def tried(self) -> float:
        """When it was last to be created, in seconds since the epoch."""
        with suppress(OSError):
            return max(self.created, self.path.stat().st_mtime)
        return self.created

    def note_try(self) -> None:
        """Note that it is to be created now."""
        with suppress(OSError):
            os.utime(self.path)


class BatchFolder:
    """The files of a project's batches.

    Args:
        path: where they lie; made with the first one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keep other processes from looking up and noting batches meanwhile.

        Raises:
            OSError: the folder cannot be written, leads elsewhere, or another process has had it
                for a minute.
        """
        # Who waits for another process does not block the event loop.
        from filelock import Timeout

        if files.is_linked(self.path):
            raise OSError("it is a link that leads elsewhere")
        files.make_ignored_folder(self.path)
        lock = files.lock_beside(self.path / "folder")
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                lock.acquire(blocking=False)
                break
            except Timeout:
                if time.monotonic() > deadline:
                    raise OSError(f"another process holds {lock.lock_file}") from None
            await asyncio.sleep(_POLL)
        try:
            yield
        finally:
            lock.release()

    def read(self, address: str) -> list[BatchFile]:
        """Return the batches at an address that some run may wait for, the newest first."""
        # Files that are no such thing, or hold half an intent, are passed over. Batches whose
        # results the API keeps no more are forgotten, and so is what is left of files as old as
        # that.
        batches = []
        paths = [] if files.is_linked(self.path) else [*self.path.glob("*.jsonl")]
        for path in paths:
            batch = _read(path)
            if batch is None:
                with suppress(OSError):
                    if _PREFIX.fullmatch(path.stem) and time.time() - path.lstat().st_mtime > KEPT:
                        _remove(path)
            elif abs(time.time() - batch.created) > KEPT:
                batch.remove()
            elif batch.origin.address == address:
                batches.append(batch)
        return sorted(batches, key=lambda batch: (batch.created, batch.prefix), reverse=True)

    def note(self, origin: Origin, before: str, digests: Iterable[str]) -> BatchFile:
        """Write an intent and return its batch, claimed.

        Args:
            origin: where it is to be created.
            before: id of the newest batch that is there.
            digests: of its requests.

        Raises:
            OSError: it cannot be written; nothing may be submitted then.
        """
        path = self.path / f"{secrets.token_hex(8)}.jsonl"
        batch = BatchFile(path, origin, time.time(), before, tuple(digests))
        intent = {
            "version": 1,
            "address": origin.address,
            "key": origin.key,
            "created": batch.created,
            "before": before,
            "requests": batch.digests,
        }
        batch.claim()
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            files.write_durably(path, f"{json.dumps(intent)}\n".encode())
            files.fsync_folder(self.path)
        except BaseException:
            batch.remove()
            batch.release()
            raise
        return batch


def _remove(path: Path) -> None:
    for name in (path, path.with_suffix(".lock")):
        with suppress(OSError):
            files.unlink(name)


def _read(path: Path) -> BatchFile | None:
    """Return what a file says; ``None`` where it is no file of a batch, or its intent is torn."""
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LARGEST:
            return None
        intent, *lines = map(json_or_none, path.read_bytes().split(b"\n"))
    except OSError:
        return None
    if not _PREFIX.fullmatch(path.stem) or not isinstance(intent, dict):
        return None
    texts = [intent.get(name) for name in ("address", "key", "before")]
    created, digests = intent.get("created"), intent.get("requests")
    if (
        intent.get("version") != 1
        or not all(isinstance(text, str) for text in texts)
        or not isinstance(created, float)
        or not isinstance(digests, list)
        or not 1 <= len(digests) <= _MOST
        or not all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in digests)
    ):
        return None
    address, key, before = map(str, texts)
    batch = BatchFile(path, Origin(address, key), created, before, tuple(digests))
    for line in lines:
        entry = line if isinstance(line, dict) else {}
        id_, settled = entry.get("id"), entry.get("settled")
        if isinstance(id_, str) and _ID.fullmatch(id_):
            batch.id = id_
        if isinstance(settled, list):
            numbers = range(len(digests))
            batch.settled.update(n for n in settled if type(n) is int and n in numbers)
    return batch
