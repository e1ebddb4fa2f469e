"""Which places, and which of their units, this run is about; what is left for pytest to collect.

pytest takes ``folder::name`` for a mistake, and a folder with a bracket in its name too. So every
argument that names a place is taken out of pytest's hands before it looks.
"""

import fnmatch
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin import options
from pytest_regen.pytest_plugin.project import RunProject
from pytest_regen.pytest_plugin.selection import id_from_here, is_store, stores_in_config

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.looks import Look

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


def look_at_place(config: pytest.Config, path: Path) -> "Look":
    """Return the look at a place of any other kind."""
    from pytest_regen.pytest_plugin.looks import Look

    return Look.of(config, path)


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
    is_spread = getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput")
    # Where workers read the stores, and can, nobody else need load what reads.
    if selection.names and not (is_spread and find_spec("tree_sitter")):
        _require_readers(selection.names)
    kinds = [("pytest_regen.units.opening", look_at_units)] if options.has_kinds(config) else []
    kinds += [(module, look_at_place) for module in options.other_places()]
    for module, opener in kinds:
        kind = import_module(module)
        try:
            if is_typed:
                args = [arg for arg in args if not _take(arg, config, kind, opener, selection)]
            else:
                for path in kind.below(RunProject(config), None):
                    selection.add(path, opener)
        except RegenError as error:
            raise options.plain_usage_error(str(error)) from None
    return selection, args


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
                    raise options.plain_usage_error(str(error)) from None


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
        name = look_at_store(config, store).known_name(type_name) if separator else None
        selection.add(store, look_at_store, name)
        return True
    real = folder.resolve()
    for below in configured:
        if not separator and below.resolve().is_relative_to(real):
            selection.add(below, look_at_store)
    return False


def _take(arg: str, config: pytest.Config, kind: Any, opener: Opener, selection: Selection) -> bool:
    """Add the units that an argument asks for; return whether pytest must not see it."""
    typed, separator, text = arg.partition("::")
    path, project = Path(os.path.normpath(config.invocation_params.dir / typed)), RunProject(config)
    if kind.at(project, path) is not None:
        selection.add(path, opener, opener(config, path).known_name(text) if separator else None)
        return True
    for below in kind.below(project, path) if path.is_dir() and not separator else ():
        selection.add(below, opener)
    return False


def refuse_unmatched(only: Sequence[str], selection: Selection, config: pytest.Config) -> None:
    """Refuse a ``--regen-only`` that names nothing in any place of the run or the project.

    Raises:
        pytest.UsageError: the message lists what there is.
    """
    if not only:
        return
    openers = {**selection.openers, **dict.fromkeys(stores_in_config(config), look_at_store)}
    looks = [opener(config, path) for path, opener in openers.items()]
    units = [look.id_of(name) for look in looks for name in look.names]
    # A unit is named as in a report, or as the terminal prints it below the rootdir.
    ids = [*units, *(id_from_here(unit, config) for unit in units)]
    for pattern in only:
        if pattern not in ids and not fnmatch.filter(ids, pattern):
            raise options.usage_error(
                f"--regen-only {pattern!r} matches nothing",
                why=f"there is {', '.join(units[:_SHOWN]) or 'no store'}"
                + (f" and {len(units) - _SHOWN:,} more" if len(units) > _SHOWN else ""),
                hint="name one of these, as STORE::Type; * and ? stand for anything",
            )
