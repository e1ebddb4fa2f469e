"""Recordings put at the end of a cassette, so that a reader sees all of them or none.

While bytes are being appended a small file beside the cassette says how long it was before. A
reader meanwhile, or after a kill, reads only that much; the next writer cuts the rest off.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

__all__ = ["Stamp", "append_whole", "read_whole", "recover", "stamp_of"]

Stamp = tuple[int, int, int]
"""Inode, size and time of change: whether a file is still the one that was read."""

_TRIES = 100


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; ``None`` where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def append_whole(path: Path, data: bytes) -> None:
    """Append to a file, in one step for whoever reads it with ``read_whole``.

    Raises:
        OSError: the disk is full or the file cannot be written; it is as it was.
    """
    found = path.stat()
    journal = _journal(path)
    try:
        _write(journal, "wb", f"{found.st_ino} {found.st_size}".encode("ascii"))
        _write(path, "ab", data)
    except BaseException:
        with contextlib.suppress(OSError):
            os.truncate(path, found.st_size)
        journal.unlink(missing_ok=True)
        raise
    journal.unlink()


def _write(path: Path, mode: str, data: bytes) -> None:
    with path.open(mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def recover(path: Path) -> None:
    """Cut off what a killed writer left behind; to be called under the lock of the file."""
    journal = _journal(path)
    size = _size_before(path, journal)
    if size is not None:
        os.truncate(path, size)
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
        before, size = stamp_of(path), _size_before(path, journal)
        data = path.read_bytes()
        stamp = stamp_of(path)
        size = _size_before(path, journal) if size is None else size
        if size is not None:
            # Its stamp would be that of more than was read.
            return data[:size], None
        if before == stamp:
            return data, stamp
    return data, None


def _size_before(path: Path, journal: Path) -> int | None:
    """Return how long the file was before an append that has not ended."""
    try:
        inode, size = journal.read_text("ascii").split()
        # A file put there since, say by version control, is another one.
        return int(size) if path.stat().st_ino == int(inode) else None
    except (OSError, ValueError):
        return None


def _journal(path: Path) -> Path:
    return path.with_name(f".{path.name}.append")
