"""Several files below one root, read and written under one lock."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pytest_regen.files import make_lock_folder, replace_file

__all__ = ["AtomicFiles", "View", "ignore_file", "new_id"]

Contents = Mapping[str, bytes | None]


@dataclass(frozen=True)
class View:
    """The files as they are."""

    root: Path
    over: Contents = field(default_factory=dict)

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; ``None`` where there is none."""
        if name in self.over:
            return self.over[name]
        try:
            return (self.root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str, suffix: str = "") -> set[str]:
        """Return the files below a folder."""
        found: set[str] = set()
        stack = [folder.rstrip("/")]
        while stack:
            here = stack.pop()
            try:
                entries = list(os.scandir(self.root / here))
            except (FileNotFoundError, NotADirectoryError):
                continue
            for entry in entries:
                name = f"{here}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    stack.append(name)
                elif entry.name.endswith(suffix):
                    found.add(name)
        return found

    def without(self, contents: Contents) -> "View":
        """Return the view with these contents on top."""
        return View(self.root, {**self.over, **contents})


@dataclass(frozen=True)
class AtomicFiles:
    """One root."""

    root: Path
    what: str
    lock: Path
    journal: str = ".journal"
    aside: str = "history"
    is_users: Callable[[str], bool] = lambda _: False

    def view(self) -> View:
        """Return the files as they are."""
        return View(self.root)

    @contextmanager
    def locked(self, timeout: float = 60.0) -> Iterator[View]:
        """Keep other writers out."""
        from filelock import FileLock  # only writers

        make_lock_folder(self.lock)
        with FileLock(self.lock, thread_local=False).acquire(timeout=timeout):
            yield View(self.root)

    def commit(self, contents: Contents) -> None:
        """Write the files."""
        for name, data in contents.items():
            path = self.root / name
            if data is None:
                path.unlink(missing_ok=True)
            elif self.view().read(name) != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, data)


def new_id() -> str:
    """Return an id that sorts by time."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%f')}-{secrets.token_hex(4)}"


def ignore_file(root: Path, folder: str) -> dict[str, bytes | None]:
    """Return the file by which git ignores a folder."""
    name = f"{folder}/.gitignore"
    return {} if (root / name).exists() else {name: b"*\n"}
