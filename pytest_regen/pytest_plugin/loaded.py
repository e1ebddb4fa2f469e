"""Which modules with units this process imported, and which of them were written since."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from pytest_regen.canonical import file_hash
from pytest_regen.pytest_plugin.summary import note_old_module

_LOADED: "pytest.StashKey[LoadedModules]" = pytest.StashKey()
"""From before the first import, so that what a test has imported can be compared with it."""


class LoadedModules:
    """The files of units that tests import, as they stood when the run began.

    Args:
        root: the rootdir.
        paths: the files.
    """

    def __init__(self, root: Path, paths: Iterable[Path]) -> None:
        self._root = root
        self._hashes = {path: _hash(path) for path in paths}

    def changed(self, names: Iterable[str] | None = None) -> list[Path]:
        """Return the files of modules, by default of all, that are not as when the run began."""
        names = list(sys.modules) if names is None else names
        files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
        places = {os.path.realpath(file) for file in files if isinstance(file, str)}
        # By content: of a candidate that was tried and taken back only the time stamp is left.
        return [
            path
            for path, before in self._hashes.items()
            if os.path.realpath(path) in places and _hash(path) != before
        ]

    # Only what the module names, not all that was imported: one old module among many does not
    # concern a test that has nothing of it.
    def _used_by(self, item: pytest.Item) -> list[Path]:
        """Return the changed files whose module, or something of it, the test's module names."""
        values = list(vars(getattr(item, "module", None) or object).values())
        names = [getattr(value, "__module__", None) for value in values]
        names += [getattr(value, "__name__", None) for value in values]
        return self.changed(name for name in names if isinstance(name, str))

    def note(self, item: pytest.Item, *, passed_apart: bool = False) -> bool:
        """Note it if a test ran on an old module; return whether it did.

        Args:
            item: the test.
            passed_apart: whether it failed on that, and passed in a process of its own.
        """
        paths = self._used_by(item) if self._hashes else []
        for path in paths or (self.changed() if passed_apart else ()):
            place = path.relative_to(self._root).as_posix()
            note_old_module(item, place, passed_apart=passed_apart)
        return bool(paths)


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
    config.stash[_LOADED] = LoadedModules(config.rootpath, paths)


def loaded_modules(config: pytest.Config) -> LoadedModules:
    """Return what is known of the modules of this process."""
    return config.stash.setdefault(_LOADED, LoadedModules(config.rootpath, ()))
