"""Files: the effects on them, names that every file system takes, and where locks lie.

Each effect of a write that must survive a kill is a function of its own here, so that tests can
enumerate them. ``commit`` builds on these.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from filelock import BaseFileLock


def refuse_obstacle(path: Path) -> None:
    """Raise the error that making a file there would end in.

    A pipe or a device could be replaced by a file, which is hardly meant: it is refused, too.

    Raises:
        OSError: none can be made.
    """
    folder = next(place for place in (*path.parents, Path()) if place.exists())
    obstacles = {
        errno.EISDIR: path.is_dir(),
        errno.ENODEV: path.exists() and not path.is_file(),
        errno.ENOTDIR: not folder.is_dir(),
        errno.EACCES: not os.access(folder, os.W_OK | os.X_OK),
    }
    for code, is_there in obstacles.items():
        if is_there:
            raise OSError(code, os.strerror(code))


def replace_file(path: Path, content: str | bytes) -> None:
    """Write text or bytes beside ``path`` and move it there, so that no reader sees half a file.

    Raises:
        OSError: nothing can be written there; an older file is as it was.
    """
    refuse_obstacle(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # A name may be as long as the file system allows; this one must not be longer.
    beside = path.with_name(f".{path.name[:32]}.{secrets.token_hex(4)}.tmp")
    try:
        data = content.encode() if isinstance(content, str) else content
        write_durably(beside, data, 0o666 if mode is None else mode)
        if mode is not None:
            beside.chmod(mode)  # The umask took bits away that the file has.
        rename(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


# Windows would write two bytes for each line end.
_BINARY = getattr(os, "O_BINARY", 0)

Observer = Callable[[str, Path], None]
"""Called before and after each effect with words like ``before rename`` and the path touched."""

_observers: list[Observer] = []


@contextmanager
def observe_effects(observer: Observer) -> Iterator[None]:
    """Show every effect of this process to ``observer``, which may end the process."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


@contextmanager
def _effect(name: str, path: Path) -> Iterator[None]:
    for observer in _observers:
        observer(f"before {name}", path)
    yield
    for observer in _observers:
        observer(f"after {name}", path)


def write_durably(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Create ``path`` with ``data`` and wait until the disk has it; ``mode`` is that of a new file.

    The umask of the process takes its bits away.
    """
    with _effect("create", path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, mode)
    try:
        with _effect("write", path):
            _write_all(descriptor, data)
        fsync(descriptor, path)
    finally:
        os.close(descriptor)


def append(descriptor: int, path: Path, data: bytes) -> None:
    """Write at the end of an open file; a kill of this process from then on does not lose it.

    Args:
        descriptor: opened for appending.
        path: of the file.
        data: what is added.
    """
    with _effect("append", path):
        _write_all(descriptor, data)


def _write_all(descriptor: int, data: bytes) -> None:
    tail = memoryview(data)
    while tail:
        # The system may take less than all of it; what is left is written next.
        tail = tail[os.write(descriptor, tail) :]


def append_line(path: Path, value: object, *, durably: bool = False) -> None:
    """Write JSON at the end of a file, on a line of its own whatever a kill left of the one before.

    Args:
        path: of the file, which is there, and no link.
        value: what is added.
        durably: whether to wait until the disk has it.

    Raises:
        OSError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | _BINARY
    descriptor = os.open(path, flags)
    try:
        append(descriptor, path, f"\n{json.dumps(value)}\n".encode())
        if durably:
            fsync(descriptor, path)
    finally:
        os.close(descriptor)


def fsync(descriptor: int, path: Path) -> None:
    """Wait until the disk has what was written to an open file."""
    with _effect("fsync", path):
        os.fsync(descriptor)


def rename(source: Path, target: Path) -> None:
    """Put ``source`` in the place of ``target``, in one step."""
    with _effect("rename", target):
        source.replace(target)


def unlink(path: Path) -> None:
    """Remove a file; one that is gone already is fine."""
    with _effect("unlink", path):
        path.unlink(missing_ok=True)


def make_folder(path: Path) -> list[Path]:
    """Create a folder and those above it; one that is there already is fine.

    Returns:
        The folders in which one was made: ``fsync_folder`` makes that last.
    """
    named_in = []
    for place in (path, *path.parents):
        if place.is_dir():
            break
        named_in.append(place.parent)
    with _effect("mkdir", path):
        path.mkdir(parents=True, exist_ok=True)
    return named_in


def remove_folder(path: Path) -> None:
    """Remove an empty folder."""
    with _effect("rmdir", path):
        path.rmdir()


def fsync_folder(path: Path) -> None:
    """Wait until the disk has the folder's list of names."""
    if os.name == "nt":
        return  # Windows has no such call and orders renames by itself.
    with _effect("fsync", path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# Characters of the readable part; with suffixes it stays far below every system's 255 bytes.
_LONGEST = 80

_PLAIN_PATH = re.compile(r"(?:/[a-z0-9.~-]*[a-z0-9~-])+")
_ENDS_LIKE_HASH = re.compile(r"-[0-9a-f]{8}\Z")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]+")
# Names that Windows keeps for devices, whatever the suffix or case.
_RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{device}{number}" for device in ("com", "lpt") for number in range(10)
}


JOURNAL: Final = ".journal"
"""Folder in which a change of several files waits until it is done; see ``commit``."""

MANIFEST: Final = "commit.json"
"""The file in it that says what they are to hold."""

SETTLED = 1_000_000_000
"""Nanoseconds after which another change of a file has another time."""

Stamp = tuple[int, int, int]
"""What a file had when it was looked at: inode, time of the last change, size."""


def stamp(path: Path) -> Stamp | None:
    """Return what is another once a file has changed; ``None`` where there is none."""
    with suppress(OSError):
        facts = path.stat()
        return facts.st_ino, facts.st_mtime_ns, facts.st_size
    return None


def content_hash(path: Path) -> str | None:
    """Return ``sha256:`` and the digest of a file; ``None`` where it cannot be read.

    Hundreds of stores share one large document: it is read again only where it has changed.
    """
    with suppress(OSError):
        # A pipe is no file that could be read twice.
        if path.is_file() and (mark := stamp(path)) is not None:
            # What was written just now may change once more without another time.
            is_new = time.time_ns() - mark[1] < SETTLED
            return _hash_of.__wrapped__(path) if is_new else _hash_of(path, *mark)
    return None


@lru_cache(maxsize=1000)
def _hash_of(path: Path, *_: int) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def store_slug(method: str, path: str) -> str:
    """Return the folder name of an operation's store, such as ``GET_v1_projects``.

    A path of lower-case segments is readable as it is. Any other (parameters, capitals, ``_``, what
    a shell or file system minds, great length) gets a hash behind it, so that no two operations
    share a folder, not even where case does not count.
    """
    method = method.upper()
    readable = method + path.replace("/", "_")
    is_plain = (
        method.isascii()
        and method.isalpha()
        and _PLAIN_PATH.fullmatch(path) is not None
        and len(readable) <= _LONGEST
        and not _ENDS_LIKE_HASH.search(readable)
    )
    if is_plain:
        return readable
    readable = _UNSAFE.sub("-", path.replace("{", "").replace("}", "").replace("/", "_"))
    start = re.sub(r"_{2,}", "_", f"{_UNSAFE.sub('-', method)}_{readable}")[:_LONGEST].strip("_.~-")
    return f"{start}-{_short_hash(f'{method} {path}')}"


def safe_file_name(type_name: str) -> str:
    """Return ``type_name`` where that is a safe file name, else a readable one with a hash."""
    is_plain = (
        _PLAIN_NAME.fullmatch(type_name) is not None
        and len(type_name) <= _LONGEST
        and type_name.lower() not in _RESERVED
    )
    if is_plain:
        return type_name
    start = _UNSAFE.sub("_", type_name)[:_LONGEST].strip("_.~-") or "type"
    return f"{start}_{_short_hash(type_name)}"


PYTEST_FILES: Final = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""What pytest reads settings from, in its order; the first that has any is read alone."""

# What stands at the root of a project.
_MARKS = (".git", ".pytest-regen.toml", *PYTEST_FILES)


def project_root(path: Path) -> Path:
    """Return the project that ``path`` belongs to: the nearest folder above with a ``_MARKS``.

    Where there is none, the folder that holds ``path``.

    Args:
        path: it need not exist.
    """
    parents = path.resolve().parents
    for folder in parents:
        # As text: this is asked several times for each write, and paths take longer than the
        # system.
        if any(os.path.exists(f"{folder}{os.sep}{mark}") for mark in _MARKS):
            return folder
    return parents[0]


def from_here(path: Path) -> str:
    """Return a path as commands name it: from the working directory, with forward slashes."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # On Windows, another drive.
        return path.as_posix()


def lock_file(path: Path, suffix: str = ".lock") -> Path:
    """Return the file that is locked for ``path``: ``.regen/locks/…`` below its project.

    It depends on nothing but ``project_root``, so that all processes lock the same file wherever
    they were started, and in containers that mount the project elsewhere.

    Args:
        path: what is protected; it need not exist.
        suffix: tells several locks of one path apart.
    """
    real = path.resolve()
    root = project_root(real)
    # Two names for one folder, where case or the form of letters does not count, are one lock.
    place = unicodedata.normalize("NFC", real.relative_to(root).as_posix()).casefold()
    digest = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = f"{safe_file_name(unicodedata.normalize('NFC', real.name).casefold())}-{digest}{suffix}"
    return root / ".regen" / "locks" / name


def lock_beside(path: Path) -> "BaseFileLock":
    """Return the lock of a file in a folder of this user's: ``<name>.lock`` beside it."""
    from filelock import FileLock

    return FileLock(path.with_suffix(".lock"), thread_local=False, mode=0o600)


def is_linked(folder: Path) -> bool:
    """Return whether a folder, or the one above it, is a link, which a repository may have set."""
    return folder.is_symlink() or folder.parent.is_symlink()


def make_ignored_folder(folder: Path) -> list[Path]:
    """Make a folder whose files git ignores, and so is the one that says so.

    Returns:
        See ``make_folder``.

    Raises:
        OSError: it cannot be made.
    """
    named_in = make_folder(folder)
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("*\n")
    return named_in
