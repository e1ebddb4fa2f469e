"""Which stores, and which of their types, this run is about; what is left for pytest to collect.

pytest takes ``folder::name`` for a mistake, and a folder with a bracket in its name too. So every
argument that names a store is taken out of pytest's hands before it looks.
"""

import fnmatch
import glob
import json
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_regen.pytest_plugin.choices import regen_mark
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.text import visible

_SHOWN = 30
"""Names that a message lists before it counts the rest."""

_ARTIFACTS = ("ir.json", "prompts.json", "pages.json")


@dataclass(slots=True)
class Selection:
    """The stores of this run, in a stable order, each with the types asked for."""

    types: dict[Path, set[str] | None] = field(default_factory=dict)
    """``None`` where the whole store was asked for."""

    def add(self, store: Path, type_name: str | None) -> None:
        """Ask for one type, or for all; whoever asks for more wins."""
        asked = self.types.get(store, set())
        if type_name is None or asked is None:
            self.types[store] = None
        else:
            self.types[store] = {*asked, type_name}


def is_store(folder: Path) -> bool:
    """Return whether a folder named by the user is a store, whole or damaged."""
    return sum((folder / name).is_file() for name in _ARTIFACTS) > 1


def from_rootdir(path: Path, root: Path) -> str:
    """Return how node ids and messages spell a path: from the rootdir, with forward slashes."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
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


def select(config: pytest.Config) -> tuple[Selection, list[str]]:
    """Return the stores of this run and the arguments that remain for pytest.

    Without a path on the command line all configured stores are in, whatever ``testpaths`` says;
    with paths, those that they name or contain.

    Raises:
        pytest.UsageError: a glob matches no store, a store has no type of the name asked for, or
            stores cannot be read, since an extra is not installed.
    """
    selection, args = _select(config)
    if selection.types and not _leaves_reading(config):
        _require_readers(selection.types)
    return selection, args


def _select(config: pytest.Config) -> tuple[Selection, list[str]]:
    configured = stores_in_config(config)
    selection = Selection()
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        for store in configured:
            selection.add(store, None)
        return selection, config.args
    return selection, [
        arg for arg in config.args if not _take_argument(arg, config, configured, selection)
    ]


def _leaves_reading(config: pytest.Config) -> bool:
    """Return whether workers read the stores, and can: then nobody else need load what reads."""
    is_spread = getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput")
    return is_spread and find_spec("tree_sitter") is not None


def _require_readers(stores: Iterable[Path]) -> None:
    """Refuse to gate stores that cannot be read, once and not for each of their types."""
    from pytest_regen.errors import MissingExtraError
    from pytest_regen.languages import DEFAULT_LANGUAGE, find_language

    try:
        find_language(DEFAULT_LANGUAGE).read("")
    except MissingExtraError as error:
        if any(_language_of(store) == DEFAULT_LANGUAGE for store in stores):
            raise plain_usage_error(str(error)) from None


def _language_of(store: Path) -> str:
    """Return the language of a store, or "" where it cannot be opened: its items say why."""
    from pytest_regen.errors import RegenError
    from pytest_regen.stores import RegenStore

    try:
        return RegenStore.open(store).envelope.language
    except RegenError:
        return ""


def stores_in_config(config: pytest.Config) -> tuple[Path, ...]:
    """Return the stores that the ini value ``regen_stores`` matches, sorted.

    Raises:
        pytest.UsageError: a glob matches none.
    """
    patterns = config.getini("regen_stores")
    if not patterns:
        return ()
    from pytest_regen.store_folders import find_stores

    root = config.rootpath
    # A folder whose name holds a bracket is no glob of itself.
    globs = {
        glob.escape(pattern) if (root / pattern).is_dir() else pattern: pattern
        for pattern in patterns
    }
    found = find_stores(globs, root)
    for pattern in found.unmatched:
        raise usage_error(
            f"regen_stores: {globs[pattern]!r} matches no store below {root}",
            why="a store is a folder that holds ir.json, prompts.json and pages.json; "
            "a gate that checks nothing must not pass",
            hint="correct the glob, or generate the store with pytest-regen generate",
        )
    return found.stores


def store_path(item: pytest.Item, named: str | os.PathLike[str] | None = None) -> Path:
    """Return the store that a test is about.

    The first of these that is there: the one ``named``, the ``regen`` marker's, the only one that
    ``regen_stores`` matches. Relative paths start at the rootdir.

    Raises:
        pytest.UsageError: none of them is there.
    """
    root = item.config.rootpath
    chosen = named or regen_mark(item).store
    if chosen is not None:
        return Path(os.path.normpath(root / chosen))
    configured = stores_in_config(item.config)
    if len(configured) == 1:
        return configured[0]
    raise usage_error(
        f"{item.nodeid}: which store?",
        why=f"regen_stores matches {len(configured)}, and the test names none",
        hint="regen_store('generated/GET_…'), or @pytest.mark.regen(store='generated/GET_…')",
    )


def _take_argument(
    arg: str, config: pytest.Config, configured: Sequence[Path], selection: Selection
) -> bool:
    """Add what an argument asks for; return whether pytest must not see it."""
    path, separator, type_name = arg.partition("::")
    folder = Path(os.path.normpath(config.invocation_params.dir / path))
    if not folder.is_dir():
        return False
    store = next((path for path in configured if path == folder or path.samefile(folder)), None)
    if store is None and is_store(folder):
        store = folder
    if store is not None:
        if separator:
            _refuse_unknown_type(store, type_name, from_here(store, config))
        selection.add(store, type_name if separator else None)
        return True
    real = folder.resolve()
    for below in configured:
        if not separator and below.resolve().is_relative_to(real):
            selection.add(below, None)
    return False


def _refuse_unknown_type(store: Path, type_name: str, place: str) -> None:
    names = type_names_of(store)
    # A damaged store has no names to offer; its one item says what is wrong with it.
    if names and type_name not in names:
        raise usage_error(
            f"not found: {place}::{type_name}",
            why=f"the store has no type {type_name!r}; it has {', '.join(names)}",
            hint=f"pytest --collect-only {shlex.quote(place)}",
        )


def type_names_of(store: Path) -> tuple[str, ...]:
    """Return the types in ``prompts.json``, without opening the store; none if it is damaged."""
    try:
        entries = json.loads((store / "prompts.json").read_text("utf-8"))
        return tuple(dict.fromkeys(str(entry["type_name"]) for entry in entries))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()


def refuse_unmatched(
    only: Sequence[str],
    selection: Selection,
    config: pytest.Config,
    others: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Refuse a ``--regen-only`` that names nothing in any store of the run or the project.

    Args:
        only: what the option names.
        selection: the stores of the run.
        config: pytest's configuration.
        others: returns the ids of what may be regenerated besides types of stores.

    Raises:
        pytest.UsageError: the message lists what there is.
    """
    if not only:
        return
    units = [
        f"{from_rootdir(store, config.rootpath)}::{name}"
        for store in dict.fromkeys([*selection.types, *stores_in_config(config)])
        for name in type_names_of(store)
    ]
    units += others()
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
