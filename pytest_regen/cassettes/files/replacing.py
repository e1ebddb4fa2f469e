"""Where a cassette is written: behind links, moved as a whole, or refused with a reason."""

import errno
import gzip
import os
from pathlib import Path

from pytest_regen.atomic import replace_file
from pytest_regen.cassettes.files.places import is_packed, shown_path
from pytest_regen.errors import CassetteError

__all__ = ["behind_links", "move_file", "replace_cassette", "unwritable"]


def behind_links(path: Path) -> Path:
    """Return the link's target: replacing the link itself would cut others off."""
    try:
        return Path(os.path.realpath(path)) if path.is_symlink() else path
    except (OSError, ValueError):
        # Reported once something is to be written there.
        return path


def replace_cassette(path: Path, text: str) -> None:
    """Write a cassette in one step, compressed where its name says so.

    Raises:
        OSError: nothing can be written there; an older file is as it was.
    """
    # Without the time: a recording made again must not differ where nothing changed.
    replace_file(path, gzip.compress(text.encode(), mtime=0) if is_packed(path) else text)


def move_file(partial: Path, path: Path) -> None:
    """Move a file that is whole already to ``path``."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    if path.exists():
        partial.chmod(path.stat().st_mode)
    partial.replace(path)


def unwritable(path: Path, error: Exception) -> CassetteError:
    """Return the error for a cassette that the file system refuses."""
    code = error.errno if isinstance(error, OSError) else None
    return CassetteError(
        f"{shown_path(path)}: the cassette cannot be written",
        why=str((isinstance(error, OSError) and error.strerror) or error),
        hint=_HINTS.get(code or 0, "make the folder writable, or record into another one"),
    )


_HINTS = {
    errno.ENAMETOOLONG: "choose a shorter name: beside a cassette of 200 bytes there is room for "
    "what a recording puts there",
    errno.ENOSPC: "make room, then record again",
    errno.EISDIR: "name a file",
    errno.ENODEV: "name a file",
}
