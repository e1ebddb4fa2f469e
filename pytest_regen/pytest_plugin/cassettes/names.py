"""Where cassettes lie, and what their files are called."""

import re
from collections.abc import Callable
from hashlib import md5
from pathlib import Path

import pytest

from pytest_regen.canonical import text_hash
from pytest_regen.file_names import safe_file_name
from pytest_regen.pytest_plugin.marks import cassette_mark
from pytest_regen.pytest_plugin.usage_errors import usage_error
from pytest_regen.turns.secrets import scrub_text

__all__ = [
    "cassette_of_test",
    "cassette_of_type",
    "mode_to_record",
    "own_cassette",
    "plain_cassette_name",
    "vcr_cassettes",
    "vcr_file_name",
]

_FORBIDDEN = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)", re.IGNORECASE)
"""What Windows takes for a device, whatever comes after the dot."""
_SUFFIXES = (".yaml", ".yml", ".json")
_LONGEST_NAME = 200
"""Bytes; file systems stop at 255."""
_LONGEST_FILE = 255


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
    name = plain_cassette_name(item, lambda: folder / item.path.stem)
    if len(name.encode()) > _LONGEST_NAME:
        name = safe_file_name(name)
    return folder / item.path.stem / f"{name}.yaml"


def cassette_of_type(config: pytest.Config, store: Path, type_name: str) -> Path:
    """Return the file in which regenerating one type of a store is recorded, as its own item."""
    folder = config.rootpath / "cassettes" / "regen" / store.name
    return folder / f"{safe_file_name(type_name)}.yaml"


def mode_to_record(path: Path) -> str:
    """Return the mode that records what a cassette lacks: ``once`` adds nothing to a file."""
    return "new_episodes" if path.exists() else "once"


def plain_cassette_name(item: pytest.Item, folder: Callable[[], Path]) -> str:
    """Return the name pytest-recording gives a test's cassette, so that a suite may switch.

    Of a parameter that is a credential another one stands in its place, unless that plugin has
    recorded the test.

    Args:
        item: the test.
        folder: says where its cassette is, if that matters.
    """
    cls = getattr(item, "cls", None)
    name = f"{cls.__name__}.{item.name}" if cls is not None else item.name
    clean, theirs = scrub_text(name), name.translate(_FORBIDDEN)
    if clean == name or _is_recorded(folder(), theirs):
        return theirs
    # Two of them are two cassettes.
    return f"{clean}-{text_hash(name).removeprefix('sha256:')[:8]}".translate(_FORBIDDEN)


def _is_recorded(folder: Path, name: str) -> bool:
    """Whether there is a cassette of this name, of whatever suffix the serializer chose."""
    try:
        return any(file.name.startswith(f"{name}.") for file in folder.iterdir())
    except OSError:
        return False


def vcr_file_name(name: str, suffix: str) -> str:
    """Return the name of a cassette of a test marked ``vcr``, if it is too long a shorter one.

    The one that pytest-recording would give it, unless that is too long as well.

    Args:
        name: the name, or a path, with or without suffix.
        suffix: what that plugin counts as the suffix: the serializer, or ``.yaml``.
    """
    if len(name) + len(suffix) > _LONGEST_FILE:
        digest = md5(name.encode(), usedforsecurity=False).hexdigest()
        name = f"{name[: _LONGEST_FILE - len(suffix) - len(digest) - 3]}...{digest}"
    folder, _, file = name.rpartition("/")
    whole = len(file.encode()) + len(suffix) + (not suffix.startswith("."))
    if whole > _LONGEST_FILE and not file.endswith(suffix):
        return f"{folder}/{safe_file_name(file)}" if folder else safe_file_name(file)
    return name


def _named_cassette(item: pytest.Item, folder: Path, name: str) -> Path:
    if not name.rpartition("/")[2].strip():
        raise usage_error(
            f"{item.nodeid}: cassette(name={name!r}) names no file",
            hint="name the file, with or without .yaml, or leave the name out",
        )
    file = Path(name if name.removesuffix(".gz").endswith(_SUFFIXES) else f"{name}.yaml")
    if file.is_absolute() or ".." in file.parts or "\0" in name:
        raise usage_error(
            f"{item.nodeid}: cassette(name={name!r}) leads out of {folder}",
            hint="name a file below that folder",
        )
    # Folders in a name are folders; each part becomes a name that every file system takes.
    stem = file.name.removesuffix(".gz").rpartition(".")[0]
    parts = [*file.parts[:-1], stem]
    safe = [part if _fits(part) else safe_file_name(part.replace(".", "_")) for part in parts]
    return folder.joinpath(*safe[:-1], safe[-1] + file.name[len(stem) :])


def _fits(name: str) -> bool:
    return (
        len(name.encode()) <= _LONGEST_NAME
        and name == name.translate(_FORBIDDEN)
        and name.isprintable()
        and _RESERVED.match(name) is None
    )


def own_cassette(item: pytest.Item) -> Path | None:
    """Return the cassette of a test that has one of its own, as far as its markers name it."""
    fixtures = getattr(item, "fixturenames", None)
    if fixtures is None:
        return None
    # What a test with the marker `regen` regenerates is recorded there, too.
    marked = any(item.get_closest_marker(name) is not None for name in ("cassette", "regen"))
    is_there = marked or "cassette" in fixtures
    return cassette_of_test(item) if is_there else None


def vcr_cassettes(item: pytest.Item) -> tuple[Path, ...]:
    """Return the files that a test marked ``vcr`` may use; none for another one."""
    if not hasattr(item, "fixturenames") or item.get_closest_marker("vcr") is None:
        return ()
    folder = item.path.parent / "cassettes" / item.path.stem
    default = item.get_closest_marker("default_cassette")
    named = (
        str(default.args[0])
        if default and default.args
        else plain_cassette_name(item, lambda: folder)
    )
    named = vcr_file_name(named, ".yaml")
    names = [named, *(str(one) for each in item.iter_markers("vcr") for one in each.args)]
    # With and without a suffix: the suite's own configuration chooses it.
    return tuple(folder / f"{name}{end}" for name in names for end in ("", ".yaml", ".json"))
