"""Recordings put at the end of a cassette, so that a reader sees all of them or none.

While bytes are being put there a small file beside the cassette says where, and what stood there.
A reader meanwhile, or after a kill, reads the file as it was; the next writer makes it so.
"""

import contextlib
import errno
import os
import stat
from io import FileIO
from pathlib import Path

__all__ = [
    "Stamp",
    "append_or_nothing",
    "append_whole",
    "insert_whole",
    "read_whole",
    "recover",
    "stamp_of",
]

Stamp = tuple[int, int, int]
"""Inode, size and time of change: whether a file is still the one that was read."""

_TRIES = 100


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; ``None`` where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def append_or_nothing(path: Path, data: bytes) -> None:
    """Append to a file that nobody else reads or writes yet, which is made if it is not there.

    Raises:
        OSError: the disk is full or the file cannot be written; it ends where it did.
    """
    with path.open("ab", buffering=0) as file:
        at = file.tell()
        try:
            _put(file, at, data)
        except BaseException:
            with contextlib.suppress(OSError):
                file.truncate(at)
            raise


def append_whole(path: Path, data: bytes) -> None:
    """Append to a file, in one step for whoever reads it with ``read_whole``.

    Raises:
        OSError: the disk is full or the file cannot be written; it is as it was.
    """
    insert_whole(path, path.stat().st_size, data)


def insert_whole(path: Path, at: int, data: bytes) -> None:
    """Put bytes into a file, in front of its last few; in one step, and raises, as above."""
    journal = _journal(path)
    # Unbuffered: what could not be written must not be tried again when the file is closed.
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        tail = file.read()
        try:
            _write(journal, f"{path.stat().st_ino} {at} {tail.hex()}.".encode("ascii"))
            _put(file, at, data + tail)
            os.fsync(file.fileno())
        except BaseException:
            # Where not even that can be done, the journal says how the file is to be read.
            with contextlib.suppress(OSError):
                _put(file, at, tail)
                journal.unlink(missing_ok=True)
            raise
    journal.unlink()


def _put(file: FileIO, at: int, data: bytes) -> None:
    """Let a file end with this, from a place in it on."""
    left = memoryview(data)
    file.seek(at)
    while left:
        left = left[file.write(left) :]
    file.truncate(at + len(data))


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def recover(path: Path) -> None:
    """Take back what a killed writer left behind; to be called under the lock of the file."""
    journal = _journal(path)
    before = _end_before(path, journal)
    if before is not None:
        with path.open("r+b", buffering=0) as file:
            _put(file, *before)
    journal.unlink(missing_ok=True)


def read_whole(path: Path) -> tuple[bytes, Stamp | None]:
    """Return the bytes of a file without those still being appended, and its stamp.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: the path cannot be one.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        # A pipe or a device would be read without an end.
        raise OSError(errno.EINVAL, "it is a folder" if path.is_dir() else "it is no file")
    data, stamp = b"", None
    journal = _journal(path)
    for _ in range(_TRIES):
        stamp_before, before = stamp_of(path), _end_before(path, journal)
        data = path.read_bytes()
        stamp = stamp_of(path)
        before = before or _end_before(path, journal)
        if before is not None:
            at, tail = before
            # Its stamp would be that of more than was read.
            return data[:at] + tail, None
        if stamp_before == stamp:
            return data, stamp
    return data, None


def _end_before(path: Path, journal: Path) -> tuple[int, bytes] | None:
    """Return where and how the file ended before what is being put there; ``None``: nothing is."""
    try:
        inode, at, tail = journal.read_text("ascii").split(" ")
        # A file put there since, say by version control, is another one.
        is_it = path.stat().st_ino == int(inode) and tail.endswith(".")
        return (int(at), bytes.fromhex(tail[:-1])) if is_it else None
    except (OSError, ValueError):
        return None


def _journal(path: Path) -> Path:
    return path.with_name(f".{path.name}.append")
