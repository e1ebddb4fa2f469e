"""Where the files lie that processes lock against each other: below the project, unseen by git."""

import hashlib
import os
import unicodedata
from pathlib import Path

from pytest_regen.file_names import safe_file_name

__all__ = ["lock_file", "make_lock_folder"]

_MARKS = (".git", "pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
"""What stands at the root of a project."""


def lock_file(path: Path, suffix: str = ".lock") -> Path:
    """Return the file that is locked for ``path``: ``.regen/locks/…`` below its project.

    The project is the nearest folder above ``path`` with one of ``_MARKS``; where there is none, or
    that folder is on a read-only file system, the folder that holds ``path``. It depends on nothing
    else, so that all processes lock the same file wherever they were started, and in containers
    that mount the project elsewhere.

    Args:
        path: what is protected; it need not exist.
        suffix: tells several locks of one path apart.
    """
    real = path.resolve()
    root = next((folder for folder in real.parents if _is_project(folder)), real.parent)
    if _is_read_only(root):
        root = real.parent
    # Two names for one folder, where case or the form of letters does not count, are one lock.
    place = unicodedata.normalize("NFC", real.relative_to(root).as_posix()).casefold()
    digest = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = f"{safe_file_name(unicodedata.normalize('NFC', real.name).casefold())}-{digest}{suffix}"
    return root / ".regen" / "locks" / name


def make_lock_folder(lock: Path) -> None:
    """Make the folder of a file that ``lock_file`` returned; what lies in it git ignores.

    Raises:
        OSError: it cannot be made.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    ignore = lock.parent.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")


def _is_project(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _MARKS)


def _is_read_only(folder: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False  # Windows does not tell.
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False
