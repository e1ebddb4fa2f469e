"""Marks that cannot work, refused while tests are collected.

Otherwise a misspelt store or type would be found when the test first fails under ``--regen``, and
paid for. Nothing heavy is imported: names of types are read from the artifacts as plain JSON. Marks
that hooks add later are checked when the test is set up.
"""

import json
import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import pytest

from pytest_regen.pytest_plugin.choices import RegenMark, cassette_mark, regen_mark
from pytest_regen.pytest_plugin.names import own_cassette
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.selection import (
    from_rootdir,
    is_store,
    store_path,
    stores_in_config,
    type_names_of,
)
from pytest_regen.pytest_plugin.stash import our_marks

_CHECKED: pytest.StashKey[list[pytest.Mark]] = pytest.StashKey()
"""Our marks of a test, as they were when they were checked."""

_SHOWN = 8
"""Names that a message lists before it counts the rest."""


def wrong_marks(items: Sequence[pytest.Item]) -> str:
    """Return what is wrong with the marks of collected tests; empty where all are right."""
    return "\n".join(dict.fromkeys(found for item in items for found in _problems(item)))


def check_late_marks(item: pytest.Item) -> None:
    """Check the marks of a test, unless they are those that it was collected with.

    Raises:
        pytest.UsageError: one of them cannot work.
    """
    if item.stash.get(_CHECKED, None) == our_marks(item):
        return
    wrong = list(_problems(item))
    if wrong:
        raise plain_usage_error("\n".join(wrong))


def _problems(item: pytest.Item) -> Iterator[str]:
    item.stash[_CHECKED] = our_marks(item)
    for check in (_check_regen, cassette_mark, own_cassette):
        try:
            check(item)
        except pytest.UsageError as error:
            yield str(error)


def _check_regen(item: pytest.Item) -> None:
    mark = regen_mark(item)
    if mark.units:
        from pytest_regen.pytest_plugin.units import marked_units

        marked_units(item)
    if mark.store is None and not mark.types:
        return
    store = store_path(item)
    if not is_store(store):
        raise _no_store(item, mark, store)
    names = type_names_of(store)
    # A damaged store has no names to offer; its one item says what is wrong with it.
    known = {*names, *_schema_names(store)} if names else set(mark.types)
    for name in mark.types:
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1)
            raise usage_error(
                f"{item.nodeid}: regen(types={name!r}): "
                f"{from_rootdir(store, item.config.rootpath)} has no such type",
                why=_did_you_mean(near, f"it has {_list(names)}"),
                hint="name types of the store, by their declared names or those of their schemas",
            )


def _no_store(item: pytest.Item, mark: RegenMark, store: Path) -> pytest.UsageError:
    root = item.config.rootpath
    there = [from_rootdir(entry, root) for entry in stores_in_config(item.config)]
    named = os.path.normpath(mark.store or from_rootdir(store, root))
    near = get_close_matches(named, there, n=1)
    place = f"stores are named from {root}"
    return usage_error(
        f"{item.nodeid}: regen(store={named!r}): there is no store",
        why=_did_you_mean(near, f"{place}; there is {_list(there)}" if there else place),
        hint="name the folder of a store, or make it with pytest-regen generate",
    )


def _did_you_mean(near: Sequence[str], why: str) -> str:
    return f"did you mean {near[0]!r}? {why}" if near else why


def _list(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _schema_names(store: Path) -> Iterator[str]:
    """Yield the words by which a user may know the schemas of a store's types."""
    try:
        types = json.loads((store / "ir.json").read_text("utf-8"))["types"]
        ids = [str(entry["schema_id"]) for entry in types]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    for schema_id in ids:
        yield schema_id
        yield schema_id.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
