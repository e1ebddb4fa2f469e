"""Marks that cannot work, refused while tests are collected.

Otherwise a misspelt store would be found when the test first fails under ``--regen``. Nothing heavy
is imported, so that a misspelt type is told then. Marks that hooks add later are checked when the
test is set up.
"""

from collections.abc import Iterator, Sequence

import pytest

from pytest_regen.pytest_plugin import project
from pytest_regen.pytest_plugin.choices import cassette_mark, regen_mark
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
    store, root = project.store_path(item), item.config.rootpath
    if not project.is_store(store):
        stores = [
            project.from_rootdir(path, root) for path in project.stores_in_config(item.config)
        ]
        raise usage_error(
            f"{item.nodeid}: regen(store={mark.store!r}): there is no store",
            why=f"stores are named from {root}; there is {_list(stores) or 'none'}",
            hint="name the folder of a store, or make it with pytest-regen generate",
        )


def _list(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
