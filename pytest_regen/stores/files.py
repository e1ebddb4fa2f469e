"""Every effect a store has on the file system, one function each, so that tests can enumerate them.

Nothing else in ``stores/`` creates, writes, renames or removes a file.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "Observer",
    "fsync_folder",
    "make_folder",
    "observed_by",
    "remove_folder",
    "rename",
    "unlink",
    "write",
    "write_synced",
]

Observer = Callable[[str, Path], None]
"""Called before and after each effect with words like ``before rename`` and the path touched."""

_observers: list[Observer] = []


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
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


def write_synced(path: Path, data: bytes) -> None:
    """Create ``path`` with ``data`` and wait until the disk has it."""
    with _effect("create", path):
        file = path.open("wb", buffering=0)
    with file:
        with _effect("write", path):
            rest = memoryview(data)
            while rest:
                # An unbuffered write may take less than all of it; what is left is written next.
                rest = rest[file.write(rest) :]
        with _effect("fsync", path):
            os.fsync(file.fileno())


def write(path: Path, data: bytes) -> None:
    """Create ``path`` with ``data``, which may be lost with the machine."""
    with _effect("create", path):
        path.write_bytes(data)


def rename(source: Path, target: Path) -> None:
    """Put ``source`` in the place of ``target``, in one step."""
    with _effect("rename", target):
        source.replace(target)


def unlink(path: Path) -> None:
    """Remove a file; one that is gone already is fine."""
    with _effect("unlink", path):
        path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Create a folder and those above it; one that is there already is fine."""
    with _effect("mkdir", path):
        path.mkdir(parents=True, exist_ok=True)


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
