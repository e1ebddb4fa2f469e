"""Which folders are stores: told by the names in them, so that every run of pytest can ask."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from pytest_regen.files import JOURNAL, MANIFEST

IR_FILE: Final = "ir.json"
PROMPTS_FILE: Final = "prompts.json"
PAGES_FILE: Final = "pages.json"


def is_store(path: Path) -> bool:
    """Return whether a folder holds at least one artifact of a store."""
    names = (IR_FILE, PROMPTS_FILE, PAGES_FILE, f"{JOURNAL}/{MANIFEST}")
    return any((path / name).is_file() for name in names)


class FoundStores(NamedTuple):
    """What globs matched."""

    stores: tuple[Path, ...]
    """Absolute folders, sorted, each once."""
    unmatched: tuple[str, ...]
    """Globs that no store matches; a gate that checks nothing must not pass."""


def find_stores(globs: Iterable[str], root: Path) -> FoundStores:
    """Return the stores that ``globs`` match, seen from ``root``; ``**`` goes into folders."""
    matched: dict[str, set[Path]] = {}
    base = os.path.abspath(root)  # a link stays the name the user gave
    for pattern in globs:
        # Because as a glob, a folder whose name holds a bracket does not match itself.
        name = glob.escape(pattern) if Path(base, pattern).is_dir() else pattern
        matches = glob.glob(name, root_dir=base, recursive=True)  # also absolute
        folders = (Path(os.path.normpath(os.path.join(base, match))) for match in matches)
        matched[pattern] = set(filter(is_store, folders))
    stores = sorted(set().union(*matched.values()))
    return FoundStores(tuple(stores), tuple(name for name in matched if not matched[name]))
