"""Which modules with units this process imported, and which of them were written since."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_regen.canonical import file_hash
from pytest_regen.pytest_plugin.summary import record_of

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

    def note(self, item: pytest.Item, *, passed_apart: bool = False) -> bool:
        """Note it if a test ran on an old module; return whether it did.

        Args:
            item: the test.
            passed_apart: whether it failed on that, and passed in a process of its own.
        """
        if not self._hashes:
            return False
        # Only what the module names, because one old module among many that were imported does
        # not concern a test that has nothing of it.
        values = list(vars(getattr(item, "module", None) or object).values())
        names = [getattr(value, "__module__", None) for value in values]
        names += [getattr(value, "__name__", None) for value in values]
        paths = self.changed(name for name in names if isinstance(name, str))
        old = paths or (self.changed() if passed_apart else [])
        record = record_of(item)
        is_told = record.passed_apart or any(heal.outcome == "regenerated" for heal in record.heals)
        if old and (passed_apart or not is_told):
            places = (path.relative_to(self._root).as_posix() for path in old)
            record.old_modules = list(dict.fromkeys((*record.old_modules, *places)))
            record.passed_apart = record.passed_apart or passed_apart
        return bool(paths)


def _hash(path: Path) -> str:
    try:
        return file_hash(path.read_bytes())
    except OSError:
        return ""


def loaded_modules(config: pytest.Config, paths: Iterable[Path] = ()) -> LoadedModules:
    """Return what is known of the modules of this process.

    Args:
        config: of the run.
        paths: the files that are watched, in the first call: before a test imports one.
    """
    return config.stash.setdefault(_LOADED, LoadedModules(config.rootpath, paths))
