"""The project of a run: its stores and its kinds of units, and how paths and ids are spelt."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.options import plain_usage_error, store_globs, usage_error
from pytest_regen.text import visible

if TYPE_CHECKING:
    from pytest_regen.units.loading import ProjectKinds

_ARTIFACTS = ("ir.json", "prompts.json", "pages.json")


def is_store(folder: Path) -> bool:
    """Return whether a folder named by the user is a store, whole or damaged."""
    # Two of three, because a store that has lost a file is to be told as a damaged one.
    return sum((folder / name).is_file() for name in _ARTIFACTS) > 1


def from_rootdir(path: Path, root: Path) -> str:
    """Return how node ids and messages spell a path: from the rootdir, with forward slashes."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        # Because relative_to takes no path that leads up first.
        return Path(os.path.relpath(path, root)).as_posix()


def from_here(path: Path, config: pytest.Config) -> str:
    """Return how commands and places to click spell a path: from where pytest was called."""
    return from_rootdir(path, config.invocation_params.dir)


def id_from_here(nodeid: str, config: pytest.Config) -> str:
    """Return a node id as the command line takes it where pytest was called."""
    if config.invocation_params.dir == config.rootpath:
        return nodeid
    path, separator, name = nodeid.partition("::")
    return f"{from_here(config.rootpath / path, config)}{separator}{name}"


def text_from_here(text: str, config: pytest.Config) -> str:
    """Return a message as a terminal may show it, with paths from where pytest was called."""
    root = from_here(config.rootpath, config)
    return visible(text).replace(f"{config.rootpath}{os.sep}", "" if root == "." else f"{root}/")


def stores_in_config(config: pytest.Config) -> tuple[Path, ...]:
    """Return the stores that the settings name, sorted.

    Raises:
        pytest.UsageError: a glob matches none.
    """
    origins = store_globs(config)
    if not origins:
        return ()
    from pytest_regen.store_folders import find_stores

    matches = find_stores(origins, config.rootpath)
    for pattern in matches.unmatched:
        raise usage_error(
            f"{origins[pattern]}: {pattern!r} matches no store below {config.rootpath}",
            why="a store is a folder that holds ir.json, prompts.json and pages.json; "
            "a gate that checks nothing must not pass",
            hint="correct the glob, or generate the store with pytest-regen generate",
        )
    return matches.stores


def store_path(item: pytest.Item, path: str | os.PathLike[str] | None = None) -> Path:
    """Return the store that a test is about.

    The first of these that is there: the one ``named``, the ``regen`` marker's, the only one that
    the settings name. Relative paths start at the rootdir.

    Raises:
        pytest.UsageError: none of them is there.
    """
    chosen = path or regen_mark(item).store
    if chosen is not None:
        return Path(os.path.normpath(item.config.rootpath / chosen))
    configured = stores_in_config(item.config)
    if len(configured) == 1:
        return configured[0]
    raise usage_error(
        f"{item.nodeid}: which store?",
        why=f"the settings name {len(configured)}, and the test names none",
        hint="regen_store('generated/GET_…'), or @pytest.mark.regen(store='generated/GET_…')",
    )


_KINDS: "pytest.StashKey[ProjectKinds]" = pytest.StashKey()


def kinds_of(config: pytest.Config) -> "ProjectKinds":
    """Return the kinds of the project, loaded once.

    Raises:
        pytest.UsageError: one cannot be loaded.
    """
    if _KINDS not in config.stash:
        from pytest_regen.units import loading

        lists = dict(loading.PYTEST_LISTS)
        for key in lists:
            with suppress(ValueError):  # -p no:doctest: nobody knows its settings then.
                lists[key] = [str(value) for value in config.getini(key)]
        settings = choices_of(config).settings
        try:
            config.stash[_KINDS] = loading.load_kinds(config.rootpath, settings, lists=lists)
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
    return config.stash[_KINDS]


class RunProject:
    """The project of a run, as what opens places wants it."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.ignored_codes = choices_of(config).settings.ignored_codes
        self._config = config

    @property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units."""
        return kinds_of(self._config)

    def stores(self) -> Sequence[Path]:
        """Return the stores that the settings name."""
        return stores_in_config(self._config)
