"""Marks that cannot work, refused while tests are collected.

Otherwise a misspelt store or type would be found when the test first fails under ``--regen``, and
paid for. Nothing heavy is imported: names of types are read from the artifacts as plain JSON. Marks
that hooks add later are checked when the test is set up.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_regen.pytest_plugin import selection
from pytest_regen.pytest_plugin.choices import cassette_mark, did_you_mean, regen_mark
from pytest_regen.pytest_plugin.names import own_cassette
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.stash import our_marks

_CHECKED: pytest.StashKey[list[pytest.Mark]] = pytest.StashKey()
"""Our marks of a test, as they were when they were checked."""

_MOST = 8
"""Names that a message lists before it counts the rest."""


def wrong_marks(items: Sequence[pytest.Item]) -> str:
    """Return what is wrong with the marks of collected tests; empty where all are right."""
    return "\n".join(dict.fromkeys(text for item in items for text in _problems(item)))


def check_late_marks(item: pytest.Item) -> None:
    """Check the marks of a test, unless they are those that it was collected with.

    Raises:
        pytest.UsageError: one of them cannot work.
    """
    if item.stash.get(_CHECKED, None) != our_marks(item):
        problems = list(_problems(item))
        if problems:
            raise plain_usage_error("\n".join(problems))


def _problems(item: pytest.Item) -> Iterator[str]:
    item.stash[_CHECKED] = our_marks(item)
    for check in (_check_regen, cassette_mark, own_cassette):
        # All three, so that one run tells what is wrong with each of several marks.
        try:
            check(item)
        except pytest.UsageError as error:
            yield str(error)


def _check_regen(item: pytest.Item) -> None:
    mark = regen_mark(item)
    if mark.units:
        from pytest_regen.pytest_plugin.places import marked_units

        marked_units(item)
    if mark.store is None and not mark.types:
        return
    store, root = selection.store_path(item), item.config.rootpath
    place = selection.from_rootdir(store, root)
    if not selection.is_store(store):
        stores = [
            selection.from_rootdir(path, root) for path in selection.stores_in_config(item.config)
        ]
        name = os.path.normpath(mark.store or place)
        why = f"stores are named from {root}" + (f"; there is {_list(stores)}" if stores else "")
        raise usage_error(
            f"{item.nodeid}: regen(store={name!r}): there is no store",
            why=did_you_mean(name, stores, why),
            hint="name the folder of a store, or make it with pytest-regen generate",
        )
    names = selection.type_names_of(store)
    # A damaged store has no names to offer; its one item says what is wrong with it.
    valid = sorted({*names, *_schema_names(store)} if names else mark.types)
    for name in mark.types:
        if name not in valid:
            raise usage_error(
                f"{item.nodeid}: regen(types={name!r}): {place} has no such type",
                why=did_you_mean(name, valid, f"it has {_list(names)}"),
                hint="name types of the store, by their declared names or those of their schemas",
            )


def _list(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _schema_names(store: Path) -> Iterator[str]:
    """Yield the words by which a user may know the schemas of a store's types."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        for entry in json.loads((store / "ir.json").read_text("utf-8"))["types"]:
            schema_id = str(entry["schema_id"])
            yield schema_id
            yield schema_id.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
