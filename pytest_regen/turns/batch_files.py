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
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pytest_regen import files
from pytest_regen.errors import TransportError
from pytest_regen.strict_json import json_or_none

if TYPE_CHECKING:
    from filelock import BaseFileLock

KEPT: Final = 29 * 86_400.0
"""Seconds for which the API keeps results, from the creation of a batch."""

_PATIENCE: Final = 60.0
"""Seconds to wait for another process, which needs the folder for milliseconds."""

_POLL: Final = 0.01
"""Seconds between two looks at the lock that it holds."""

_PREFIX = re.compile(r"[0-9a-f]{16}")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def digest_of_key(key: str) -> str:
    """Return what tells a key from others: other workspaces have other batches."""
    digest = hashlib.sha256(f"pytest-regen batches {key}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Intent:
    """What is on the disk before the API hears of a batch."""

    address: str
    """The base URL, without a password."""
    key: str
    """Digest of the key."""
    created: float
    """When it was to be created, in seconds since the epoch by this machine's clock."""
    before: str
    """Id of the newest batch that the API knew then; empty if there was none."""
    requests: list[str]
    """Digests of the requests, in the order of their custom ids."""
    version: Literal[1] = 1


@dataclass(slots=True, eq=False)
class BatchFile:
    """What is known of one batch."""

    path: Path
    intent: Intent
    id: str = ""
    """As the API calls it; empty until that is known."""
    settled: set[int] = field(default_factory=set)
    """Numbers of requests that no run need wait for: stored, or to be asked again elsewhere."""
    _lock: "BaseFileLock" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._lock = files.lock_beside(self.path)

    @property
    def prefix(self) -> str:
        """What the custom ids begin with."""
        return self.path.stem

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
        if len(self.settled) >= len(self.intent.requests):
            self.remove()
        elif new:
            # Lost with the machine, a note would cost one more look at the results.
            with suppress(OSError):
                files.append_line(self.path, {"settled": sorted(new)})

    def remove(self) -> None:
        """Forget the batch."""
        for name in (self.path, self.path.with_suffix(".lock")):
            with suppress(OSError):
                files.unlink(name)

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
        try:
            self._lock.acquire(blocking=False)
        except OSError:  # Another one has it.
            return False
        return True

    def release(self) -> None:
        """Let other processes claim the batch."""
        self._lock.release()

    @property
    def tried(self) -> float:
        """When it was last to be created, in seconds since the epoch."""
        with suppress(OSError):
            return max(self.intent.created, self.path.stat().st_mtime)
        return self.intent.created

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
            TransportError: the folder cannot be written, leads elsewhere, or another process has
                had it for a minute.
        """
        from filelock import Timeout

        if files.is_linked(self.path):
            raise _unwritable(self.path, "it is a link that leads elsewhere")
        lock = files.lock_beside(self.path / "folder")
        deadline = time.monotonic() + _PATIENCE
        try:
            files.make_ignored_folder(self.path)
            while not lock.is_locked:
                try:
                    lock.acquire(blocking=False)
                except Timeout:
                    if time.monotonic() > deadline:
                        raise
                    # Not within acquire, because that would block the event loop.
                    await asyncio.sleep(_POLL)
            yield
        except OSError as error:
            raise _unwritable(self.path, error.strerror or str(error)) from error
        finally:
            lock.release()

    def read(self, address: str) -> list[BatchFile]:
        """Return the batches at an address that some run may wait for, the newest first."""
        batches = []
        paths = [] if files.is_linked(self.path) else [*self.path.glob("*.jsonl")]
        for path in paths:
            batch = _read(path)
            if batch is None:
                continue  # No such thing, or half an intent, which was never submitted.
            if abs(time.time() - batch.intent.created) > KEPT:
                batch.remove()
            elif batch.intent.address == address:
                batches.append(batch)
        return sorted(batches, key=lambda batch: (batch.intent.created, batch.prefix), reverse=True)

    def note(self, address: str, key: str, before: str, digests: Sequence[str]) -> BatchFile:
        """Write an intent and return its batch, claimed.

        Args:
            address: where it is to be created.
            key: with which; a digest of it is kept.
            before: id of the newest batch that is there.
            digests: of its requests.

        Raises:
            OSError: it cannot be written; nothing may be submitted then.
        """
        intent = Intent(address, digest_of_key(key), time.time(), before, [*digests])
        batch = BatchFile(self.path / f"{secrets.token_hex(8)}.jsonl", intent)
        batch.claim()
        try:
            files.write_durably(batch.path, f"{json.dumps(asdict(intent))}\n".encode(), 0o600)
            files.fsync_folder(self.path)
        except BaseException:
            batch.remove()
            batch.release()
            raise
        return batch


def _unwritable(path: Path, why: str) -> TransportError:
    return TransportError(
        f"no batch was submitted: {path} cannot be written",
        why=f"{why}; what is submitted is noted there first, so that it is never paid twice",
        hint="make the folder writable, then run again; or ask without a batch",
    )


def _read(path: Path) -> BatchFile | None:
    """Return what a file says; ``None`` where it is no file of a batch, or its intent is torn."""
    from pydantic import TypeAdapter, ValidationError

    try:
        intent, *lines = path.read_bytes().split(b"\n") if path.is_file() else [b""]
        batch = BatchFile(path, TypeAdapter(Intent).validate_json(intent, strict=True))
    except (OSError, ValidationError):
        return None
    requests = batch.intent.requests
    if (
        not _PREFIX.fullmatch(path.stem)
        or not requests
        or not all(map(_DIGEST.fullmatch, requests))
    ):
        return None
    for line in lines:
        match json_or_none(line):
            case {"id": str(id_)} if _ID.fullmatch(id_):
                batch.id = id_
            case {"settled": list(settled)}:
                numbers = range(len(requests))
                batch.settled.update(n for n in settled if type(n) is int and n in numbers)
    return batch
