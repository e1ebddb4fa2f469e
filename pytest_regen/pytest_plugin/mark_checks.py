"""Marks that cannot work, refused when their test is set up.

Otherwise a misspelt store would be found when the test first fails under ``--regen``.
"""

import pytest

from pytest_regen.pytest_plugin import project
from pytest_regen.pytest_plugin.choices import cassette_mark, regen_mark
from pytest_regen.pytest_plugin.names import own_cassette
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.text import shorten


def check_marks(item: pytest.Item) -> None:
    """Check the marks of a test, those too that hooks have added.

    Raises:
        pytest.UsageError: one of them cannot work.
    """
    mark = regen_mark(item)
    cassette_mark(item)
    own_cassette(item)
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
            why=f"stores are named from {root}; there is {shorten(stores) or 'none'}",
            hint="name the folder of a store, or make it with pytest-regen generate",
        )
