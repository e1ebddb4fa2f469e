"""Which modules with units this process imported, and which of them were written since."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from pytest_regen.canonical import file_hash
from pytest_regen.pytest_plugin.summary import note_old_module

_LOADED: "pytest.StashKey[LoadedModules]" = pytest.StashKey()


class LoadedModules:
    """The files of units that tests import, as they stood when the run began.

    Args:
        root: the rootdir.
        paths: the files.
    """

    def __init__(self, root: Path, paths: Iterable[Path]) -> None:
        self._root = root
        self._before = {path: (_stamp(path), _hash(path)) for path in paths}
        self._used: dict[str, tuple[Path, ...]] = {}
        """By test module, the files that its names come from."""

    def changed(self) -> list[Path]:
        """Return the files that are not as they were, and were imported."""
        names = _real(getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return [
            path
            for path in self._before
            if os.path.realpath(path) in names and self._is_changed(path)
        ]

    def _is_changed(self, path: Path) -> bool:
        stamp, content = self._before[path]
        now = _stamp(path)
        if now == stamp:
            return False
        is_same = _hash(path) == content  # A candidate was tried and taken back.
        if is_same:
            self._before[path] = now, content
        return not is_same

    def note_passed(self, item: pytest.Item) -> None:
        """Note that a test failed on an old module, and passed in a process of its own."""
        changed = self.changed()
        for path in [path for path in self._uses(item) if path in changed] or changed:
            note_old_module(item, self._place(path), passed_apart=True)

    def note(self, item: pytest.Item) -> bool:
        """Note it if a test ran on an old module; return whether it did."""
        old = [path for path in self._uses(item) if self._is_changed(path)]
        for path in old:
            note_old_module(item, self._place(path))
        return bool(old)

    def _place(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _uses(self, item: pytest.Item) -> tuple[Path, ...]:
        """Return the files whose module, or something out of it, is a name in the test's module."""
        module = getattr(item, "module", None)
        if module is None:
            return ()
        if module.__name__ not in self._used:
            values = list(vars(module).values())
            homes = {getattr(value, "__module__", None) for value in values}
            homes |= {getattr(value, "__name__", None) for value in values}
            files = _real(
                getattr(sys.modules.get(name), "__file__", None)
                for name in homes
                if isinstance(name, str)
            )
            self._used[module.__name__] = tuple(
                path for path in self._before if os.path.realpath(path) in files
            )
        return self._used[module.__name__]


def _real(names: Iterable[object]) -> set[str]:
    return {os.path.realpath(name) for name in names if isinstance(name, str)}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _hash(path: Path) -> str:
    try:
        return file_hash(path.read_bytes())
    except OSError:
        return ""


def watch_modules(config: pytest.Config, files: Mapping[Path, object]) -> None:
    """Remember how files stand now, before a test imports one.

    Args:
        config: of the run.
        files: those that kinds claim, with their kinds.
    """
    paths = [path for path, kind in files.items() if getattr(kind, "is_imported", False)]
    if paths:
        config.stash[_LOADED] = LoadedModules(config.rootpath, paths)


def loaded_modules(config: pytest.Config) -> LoadedModules:
    """Return what is known of the modules of this process."""
    return config.stash.setdefault(_LOADED, LoadedModules(config.rootpath, ()))


def note_old(item: pytest.Item) -> bool:
    """Note it if a test ran on a module that was written since; return whether it did."""
    modules = item.config.stash.get(_LOADED, None)
    return modules is not None and modules.note(item)
