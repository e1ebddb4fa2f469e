"""Where things of a test are: its store, its cassette."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.pytest_plugin.locate import configured_stores
from pytest_regen.pytest_plugin.marks import cassette_mark, regen_mark
from pytest_regen.stores import safe_file_name

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.feedback import Target

__all__ = ["cassette_of_test", "heal_cassette", "store_path"]

_FORBIDDEN = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))
_LONGEST_NAME = 200
"""Bytes; file systems stop at 255."""


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
    configured = configured_stores(item.config)
    if len(configured) == 1:
        return configured[0]
    raise pytest.UsageError(
        f"{item.nodeid}: which store?\n"
        f"  why:  regen_stores matches {len(configured)}, and the test names none\n"
        "  next: regen_store('generated/GET_…'), or @pytest.mark.regen(store='generated/GET_…')"
    )


def cassette_of_test(item: pytest.Item) -> Path:
    """Return the file of a test's own cassette: ``<folder>/cassettes/<module>/<test>.yaml``."""
    folder = item.path.parent / "cassettes"
    named = cassette_mark(item).name
    if named is not None:
        file = named if named.endswith((".yaml", ".yml", ".json")) else f"{named}.yaml"
        return folder / item.path.stem / file
    cls = getattr(item, "cls", None)
    name = f"{cls.__name__}.{item.name}" if cls is not None else item.name
    # As pytest-recording names its files, so that a suite may switch.
    name = name.translate(_FORBIDDEN)
    if len(name.encode()) > _LONGEST_NAME:
        name = safe_file_name(name)
    return folder / item.path.stem / f"{name}.yaml"


def heal_cassette(item: pytest.Item, target: "Target") -> Path:
    """Return the file in which the regeneration of a type is recorded."""
    from pytest_regen.pytest_plugin.nodes import TypeItem  # noqa: PLC0415 - nodes come later

    if not isinstance(item, TypeItem):
        return cassette_of_test(item)
    folder = item.config.rootpath / "cassettes" / "regen" / target.store.name
    return folder / f"{safe_file_name(target.type_name)}.yaml"
