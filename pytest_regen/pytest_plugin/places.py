"""Which places, and which of their units, this run is about; what is left for pytest to collect.

pytest takes ``folder::name`` for a mistake, and a folder with a bracket in its name too. So every
argument that names a place is taken out of pytest's hands before it looks.
"""

import fnmatch
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.options import has_kinds, plain_usage_error, usage_error
from pytest_regen.pytest_plugin.selection import (
    from_here,
    from_rootdir,
    id_from_here,
    is_store,
    stores_in_config,
    type_names_of,
)

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.looks import Look
    from pytest_regen.units.loading import ProjectKinds

_SHOWN = 30
"""Names that a message lists before it counts the rest."""


Opener = Callable[[pytest.Config, Path], "Look"]
"""Returns the look at a place, see ``looks``; what it needs is imported when it is called."""


def look_at_store(config: pytest.Config, path: Path) -> "Look":
    """Return the look at a store."""
    from pytest_regen.pytest_plugin.stores import StoreLook

    return StoreLook.of(config, path)


def look_at_units(config: pytest.Config, path: Path) -> "Look":
    """Return the look at a file with units."""
    from pytest_regen.pytest_plugin.units import UnitLook

    return UnitLook.of(config, path)


@dataclass(slots=True)
class Selection:
    """The places of this run, in a stable order, each with the units asked for."""

    names: dict[Path, set[str] | None] = field(default_factory=dict)
    """``None`` where the whole place was asked for."""
    openers: dict[Path, Opener] = field(default_factory=dict)

    def add(self, path: Path, opener: Opener, name: str | None = None) -> None:
        """Ask for one unit, or for all; whoever asks for more wins."""
        names = self.names.get(path, set())
        self.names[path] = None if name is None or names is None else {*names, name}
        self.openers[path] = opener

    @property
    def stores(self) -> list[Path]:
        """The stores."""
        return [path for path, opener in self.openers.items() if opener is look_at_store]


def select(config: pytest.Config) -> tuple[Selection, list[str]]:
    """Return the places of this run and the arguments that remain for pytest.

    Without a path on the command line all of the project are in, whatever ``testpaths`` says; with
    paths, those that they name or contain.

    Raises:
        pytest.UsageError: a glob matches nothing, a kind cannot be loaded, a place has no unit of
            the name asked for, or stores cannot be read, since an extra is not installed.
    """
    selection, args = Selection(), list(config.args)
    stores = stores_in_config(config)
    is_typed = config.args_source is pytest.Config.ArgsSource.ARGS
    if is_typed:
        args = [arg for arg in args if not _take_store(arg, config, stores, selection)]
    else:
        for store in stores:
            selection.add(store, look_at_store)
    if selection.names and not _leaves_reading(config):
        _require_readers(selection.names)
    if has_kinds(config):
        from pytest_regen.pytest_plugin.units import kinds_of
        from pytest_regen.units.inventory import lost_files

        try:
            kinds = kinds_of(config)
            if is_typed:
                args = [arg for arg in args if not _take_units(arg, config, kinds, selection)]
            else:
                for path in (*kinds.files, *lost_files(kinds)):
                    selection.add(path, look_at_units)
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
    return selection, args


def _leaves_reading(config: pytest.Config) -> bool:
    """Return whether workers read the stores, and can: then nobody else need load what reads."""
    is_spread = getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput")
    return is_spread and find_spec("tree_sitter") is not None


def _require_readers(stores: Iterable[Path]) -> None:
    """Refuse to gate stores that cannot be read, once and not for each of their types."""
    from pytest_regen.errors import MissingExtraError
    from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
    from pytest_regen.stores import RegenStore

    try:
        find_language(DEFAULT_LANGUAGE).read("")
    except MissingExtraError as error:
        for store in stores:
            with suppress(RegenError):  # Its items say why it cannot be opened.
                if RegenStore.open(store).envelope.language == DEFAULT_LANGUAGE:
                    raise plain_usage_error(str(error)) from None


def _take_store(
    arg: str, config: pytest.Config, configured: Sequence[Path], selection: Selection
) -> bool:
    """Add the types that an argument asks for; return whether pytest must not see it."""
    path, separator, type_name = arg.partition("::")
    folder = Path(os.path.normpath(config.invocation_params.dir / path))
    if not folder.is_dir():
        return False
    store = next((path for path in configured if path == folder or path.samefile(folder)), None)
    if store is None and is_store(folder):
        store = folder
    if store is not None:
        names = type_names_of(store) if separator else ()
        # A damaged store has no names to offer; its one item says what is wrong with it.
        if names and type_name not in names:
            place = from_here(store, config)
            raise usage_error(
                f"not found: {place}::{type_name}",
                why=f"the store has no type {type_name!r}; it has {', '.join(names)}",
                hint=f"pytest --collect-only {shlex.quote(place)}",
            )
        selection.add(store, look_at_store, type_name if separator else None)
        return True
    real = folder.resolve()
    for below in configured:
        if not separator and below.resolve().is_relative_to(real):
            selection.add(below, look_at_store)
    return False


def _take_units(
    arg: str, config: pytest.Config, kinds: "ProjectKinds", selection: Selection
) -> bool:
    """Add the units that an argument asks for; return whether pytest must not see it."""
    from pytest_regen.units.inventory import is_lost

    typed, separator, text = arg.partition("::")
    path = Path(os.path.normpath(config.invocation_params.dir / typed))
    if path.is_dir():
        for below in () if separator else kinds.below(path):
            selection.add(below, look_at_units)
        return False
    if kinds.kind_of(path) is None and not is_lost(kinds, path):
        return False
    name = look_at_units(config, path).known_name(text) if separator else None
    selection.add(path, look_at_units, name)
    return True


def refuse_unmatched(only: Sequence[str], selection: Selection, config: pytest.Config) -> None:
    """Refuse a ``--regen-only`` that names nothing in any place of the run or the project.

    Raises:
        pytest.UsageError: the message lists what there is.
    """
    if not only:
        return
    stores = dict.fromkeys([*selection.stores, *stores_in_config(config)])
    units = [
        f"{from_rootdir(store, config.rootpath)}::{name}"
        for store in stores
        for name in type_names_of(store)
    ]
    for path, opener in selection.openers.items():
        if path not in stores:
            look = opener(config, path)
            units += map(look.id_of, look.names)
    # A unit is named as in a report, or as the terminal prints it below the rootdir.
    known = [*units, *(id_from_here(unit, config) for unit in units)]
    for pattern in only:
        if pattern not in known and not fnmatch.filter(known, pattern):
            raise usage_error(
                f"--regen-only {pattern!r} matches nothing",
                why=f"there is {', '.join(units[:_SHOWN]) or 'no store'}"
                + (f" and {len(units) - _SHOWN:,} more" if len(units) > _SHOWN else ""),
                hint="name one of these, as STORE::Type; * and ? stand for anything",
            )
