"""Where things of a test are: its store, its cassette."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.pytest_plugin.locate import configured_stores
from pytest_regen.pytest_plugin.marks import cassette_mark, regen_mark
from pytest_regen.stores import safe_file_name

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.feedback import Target

__all__ = [
    "cassette_of_test",
    "cassettes_claimed",
    "heal_cassette",
    "plain_cassette_name",
    "store_path",
]

_FORBIDDEN = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)", re.IGNORECASE)
"""What Windows takes for a device, whatever comes after the dot."""
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


def cassette_of_test(item: pytest.Item, named: str | None = None) -> Path:
    """Return the file of a test's own cassette: ``<folder>/cassettes/<module>/<test>.yaml``.

    Args:
        item: the test.
        named: the name given elsewhere than by its marker, which wins.

    Raises:
        pytest.UsageError: the name leads out of the folder.
    """
    folder = item.path.parent / "cassettes"
    named = cassette_mark(item).name or named
    if named is not None:
        return _named_cassette(item, folder / item.path.stem, named)
    name = plain_cassette_name(item)
    if len(name.encode()) > _LONGEST_NAME:
        name = safe_file_name(name)
    return folder / item.path.stem / f"{name}.yaml"


def plain_cassette_name(item: pytest.Item) -> str:
    """Return the name pytest-recording gives a test's cassette, so that a suite may switch."""
    cls = getattr(item, "cls", None)
    name = f"{cls.__name__}.{item.name}" if cls is not None else item.name
    return name.translate(_FORBIDDEN)


def _named_cassette(item: pytest.Item, folder: Path, name: str) -> Path:
    file = Path(name if name.endswith((".yaml", ".yml", ".json")) else f"{name}.yaml")
    if file.is_absolute() or ".." in file.parts or "\0" in name:
        raise pytest.UsageError(
            f"{item.nodeid}: cassette(name={name!r}) leads out of {folder}\n"
            "  next: name a file below that folder"
        )
    # Folders in a name are folders; each part becomes a name that every file system takes.
    parts = [*file.parts[:-1], file.stem]
    safe = [part if _fits(part) else safe_file_name(part.replace(".", "_")) for part in parts]
    return folder.joinpath(*safe[:-1], safe[-1] + file.suffix)


def _fits(name: str) -> bool:
    return (
        len(name.encode()) <= _LONGEST_NAME
        and name == name.translate(_FORBIDDEN)
        and _RESERVED.match(name) is None
    )


def cassettes_claimed(item: pytest.Item) -> tuple[Path, ...]:
    """Return the files that a test uses if it uses cassettes at all."""
    if "cassette" in getattr(item, "fixturenames", ()):
        return (cassette_of_test(item),)
    mark = item.get_closest_marker("vcr")
    if mark is None:
        return ()
    folder = item.path.parent / "cassettes" / item.path.stem
    default = item.get_closest_marker("default_cassette")
    named = str(default.args[0]) if default and default.args else plain_cassette_name(item)
    names = [named, *(str(one) for each in item.iter_markers("vcr") for one in each.args)]
    # With and without a suffix: the suite's own configuration chooses it.
    return tuple(folder / f"{name}{end}" for name in names for end in ("", ".yaml", ".json"))


def heal_cassette(item: pytest.Item, target: "Target") -> Path:
    """Return the file in which the regeneration of a type is recorded."""
    from pytest_regen.pytest_plugin.nodes import TypeItem  # noqa: PLC0415 - nodes come later

    if not isinstance(item, TypeItem):
        return cassette_of_test(item)
    folder = item.config.rootpath / "cassettes" / "regen" / target.store.name
    return folder / f"{safe_file_name(target.type_name)}.yaml"
