"""Which places, and which of their units, this run is about; what is left for pytest to collect.

pytest takes ``folder::name`` for a mistake, and a folder with a bracket in its name too. So every
argument that names a place is taken out of pytest's hands before it looks.
"""

import fnmatch
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen import store_folders
from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin import options, project
from pytest_regen.pytest_plugin.choices import cassette_mark, regen_mark
from pytest_regen.pytest_plugin.names import own_cassette
from pytest_regen.text import shorten
from pytest_regen.units.naming import decode_name, node_id, unit_id

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.looks import Look


def look_at(config: pytest.Config, path: Path) -> "Look":
    """Return the look at a place; it is read on first use, once in a run."""
    # Not at the top, because a run that replays cassettes looks at no place.
    from pytest_regen.pytest_plugin.looks import LOOKS, Look

    looks = config.stash.setdefault(LOOKS, {})
    if path not in looks:
        look_class = Look
        if store_folders.is_store(path):
            from pytest_regen.pytest_plugin.stores import StoreLook

            look_class = StoreLook
        looks[path] = look_class(config, path)
    return looks[path]


Selection = dict[Path, set[str] | None]
"""The places of a run, in a stable order, each with the units asked for; ``None``: all."""


def select(config: pytest.Config) -> tuple[Selection, list[str]]:
    """Return the places of this run and the arguments that remain for pytest.

    Without a path on the command line all of the project are in, whatever ``testpaths`` says; with
    paths, those that they name or contain.

    Raises:
        pytest.UsageError: a glob matches nothing, a kind cannot be loaded, a place has no unit of
            the name asked for, or stores cannot be read, since an extra is not installed.
    """
    selection: Selection = {}
    args, stores = list(config.args), project.stores_in_config(config)
    run_project = project.RunProject(config)
    is_typed = config.args_source is pytest.Config.ArgsSource.ARGS

    def store_at(path: Path) -> Path | None:
        # A link to it, or another spelling, is the same store.
        same = (s for s in stores if s == path or (path.is_dir() and path.samefile(s)))
        return next(same, path if project.is_store(path) else None)

    def stores_below(folder: Path) -> Iterable[Path]:
        real = folder.resolve()
        return (store for store in stores if store.resolve().is_relative_to(real))

    if is_typed:
        args = _left_of(args, config, store_at, stores_below, selection)
    else:
        selection.update(dict.fromkeys(stores))
    is_spread = getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput")
    # Where workers read the stores, and can, nobody else need load what reads.
    if selection and not (is_spread and find_spec("tree_sitter")):
        _require_readers(selection)
    modules = ["pytest_regen.units.opening"] if options.has_kinds(config) else []
    for module in (*modules, *options.other_places()):
        kind = import_module(module)
        at, below = partial(kind.at, run_project), partial(kind.below, run_project)
        try:
            if is_typed:
                args = _left_of(args, config, at, below, selection)
            else:
                selection.update(dict.fromkeys(below(None)))
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


def _left_of(
    args: Sequence[str],
    config: pytest.Config,
    at: Callable[[Path], Any],
    below: Callable[[Path], Iterable[Path]],
    selection: Selection,
) -> list[str]:
    """Select what arguments ask for of one kind of place; return those that pytest must see.

    Args:
        args: as they were typed.
        config: of the run.
        at: returns the place at a path, or its path, or ``None``.
        below: returns the places at or below a folder.
        selection: is added to; whoever asks for more wins.
    """
    remaining = []
    for arg in args:
        typed, separator, text = arg.partition("::")
        path = Path(os.path.normpath(config.invocation_params.dir / typed))
        place = at(path)
        if place is not None:
            path = place if isinstance(place, Path) else path
            names = selection.get(path, set())
            name = look_at(config, path).known_name(text) if separator else None
            selection[path] = None if name is None or names is None else {*names, name}
            continue
        if path.is_dir() and not separator:
            selection.update(dict.fromkeys(below(path)))
        remaining.append(arg)
    return remaining


def refuse_unmatched(only: Sequence[str], selection: Selection, config: pytest.Config) -> None:
    """Refuse a ``--regen-only`` that names nothing in any place of the run or the project.

    Raises:
        pytest.UsageError: the message lists what there is.
    """
    if not only:
        return
    paths = dict.fromkeys((*selection, *project.stores_in_config(config)))
    looks = [look_at(config, path) for path in paths]
    units = [look.id_of(name) for look in looks for name in look.names]
    # A unit is named as in a report, or as the terminal prints it below the rootdir.
    ids = [*units, *(project.id_from_here(unit, config) for unit in units)]
    for pattern in only:
        if pattern not in ids and not fnmatch.filter(ids, pattern):
            raise options.usage_error(
                f"--regen-only {pattern!r} matches nothing",
                why=f"there is {shorten(units) or 'no store'}",
                hint="name one of these, as STORE::Type; * and ? stand for anything",
            )


def marked_units(item: pytest.Item) -> "list[tuple[Look, str]]":
    """Return the units that the mark of a test names.

    Raises:
        pytest.UsageError: one of them is not there.
    """
    config, kinds = item.config, project.kinds_of(item.config)
    marked: list[tuple[Look, str]] = []
    for unit in regen_mark(item).units:
        place, separator, text = unit.partition("::")
        path = kinds.absolute(place)
        try:
            is_claimed = kinds.kind_of(path) is not None
        except RegenError as error:
            raise options.plain_usage_error(str(error)) from None
        look = look_at(config, path) if separator and is_claimed else None
        with suppress(pytest.UsageError):
            if look is not None:
                marked.append((look, look.known_name(text)))
                continue
        why, hint = "a unit is named path::name", "correct the mark"
        if separator:
            why, hint = _what_is_meant(item, path, decode_name(text), look.names if look else ())
        raise options.usage_error(
            f"{item.nodeid}: regen(unit={unit!r}): there is no such unit", why=why, hint=hint
        )
    return marked


def _what_is_meant(
    item: pytest.Item, path: Path, name: str, known: Collection[str]
) -> tuple[str, str]:
    """Return why a mark names no unit, and what to do about it.

    Args:
        item: the test.
        path: the file that the mark names.
        name: the unit that it names.
        known: the units of the file.
    """
    from pytest_regen.kinds.functions.source import FunctionRegion

    kinds, defined = project.kinds_of(item.config), FunctionRegion().defined
    place, texts = project.from_rootdir(path, kinds.root), kinds.texts_like(path)
    functions = defined(texts.get(place, ""))
    if name in functions:
        unit = shlex.quote(node_id(project.from_here(path, item.config), name))
        return f"{name} has no marker lines", f"pytest-regen init {unit} --yes"
    # By its last word first, because to parse every module of a project takes seconds.
    likely = [other for other, text in texts.items() if name.rpartition(".")[2] in text]
    moved = [(other, name) for other in likely if name in defined(texts[other])]
    near = [(place, other) for other in get_close_matches(name, {*known, *functions}, n=1)]
    for other, unit in (*moved, *near):
        return f"{unit} is in {other}", f'name it: regen(unit="{unit_id(other, unit)}")'
    why = f"the file has {shorten([*known])}" if known else "no kind claims the file"
    return f"{why}; paths begin at {kinds.root}", "correct the mark"


def check_marks(item: pytest.Item) -> None:
    """Check the marks of a test, those too that hooks have added.

    When the test is set up: a misspelt store would be found only when it first fails under
    ``--regen``.

    Raises:
        pytest.UsageError: one of them cannot work.
    """
    mark = regen_mark(item)
    cassette_mark(item)
    own_cassette(item)
    if mark.units:
        marked_units(item)
    if mark.store is None and not mark.types:
        return
    store, root = project.store_path(item), item.config.rootpath
    if not project.is_store(store):
        stores = [
            project.from_rootdir(path, root) for path in project.stores_in_config(item.config)
        ]
        raise options.usage_error(
            f"{item.nodeid}: regen(store={mark.store!r}): there is no store",
            why=f"stores are named from {root}; there is {shorten(stores) or 'none'}",
            hint=f"name a function or a text by regen(unit={mark.store!r})"
            if "::" in str(mark.store)
            else "name the folder of a store, or make it with pytest-regen generate",
        )
