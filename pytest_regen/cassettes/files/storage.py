"""Cassettes in the file system: names, appending, replacing, and files that no test uses."""

import errno
import gzip
import os
import re
import stat
import sys
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from pytest_regen.errors import CassetteError
from pytest_regen.files import append, replace_file

PARTIAL = ".partial"
"""The suffix of the file a run records into; a killed run may leave half a recording in it."""


_PACKED = ".gz"


def is_packed(path: Path) -> bool:
    """Whether a cassette's name says that it is compressed as a whole: ``x.yaml.gz``."""
    return path.suffix.lower() == _PACKED


def name_parts(path: Path) -> tuple[str, str, str]:
    """Return the parts of a file's name: ``x``, ``.yaml``, ``.gz``.

    The suffixes are in lower case, and empty if missing.
    """
    packed = _PACKED if is_packed(path) else ""
    inner = Path(path.stem) if packed else path
    return inner.stem, inner.suffix.lower(), packed


def partial_path(path: Path, number: int = 1) -> Path:
    """Return the file that holds recordings until they are promoted, one for each run."""
    return path.with_name(
        f"{path.name}.{number}{PARTIAL}" if number > 1 else f"{path.name}{PARTIAL}"
    )


_noted: list[Path] = []


def note_folder() -> None:
    """Remember the working directory: event loops must not block to ask for it."""
    with suppress(OSError):
        _noted[:] = [Path.cwd()]


def display_path(path: Path) -> str:
    """Return a path relative to the working directory if it lies below it, else the whole path."""
    # Not imported here: if it is not loaded, no loop is running.
    asyncio = sys.modules.get("asyncio")
    is_in_loop = asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001 - documented for libraries
    try:
        return str(path.relative_to(_noted[0] if is_in_loop and _noted else Path.cwd()))
    except (ValueError, OSError):
        # It lies elsewhere, or the working directory was removed.
        return str(path)


def append_or_nothing(path: Path, data: bytes) -> None:
    """Append to a file that no other process reads or writes yet; create it if necessary.

    Raises:
        OSError: the disk is full or the file cannot be written; it is unchanged.
    """
    with path.open("ab", buffering=0) as file:
        at = file.tell()
        try:
            append(file.fileno(), path, data)
        except BaseException:
            with suppress(OSError):
                file.truncate(at)
            raise


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        # Reading a pipe or a device might never end.
        raise OSError(errno.EINVAL, "it is a folder" if path.is_dir() else "it is not a file")
    return path.read_bytes()


def behind_links(path: Path) -> Path:
    """Return the target of a link: replacing the link itself would disconnect its other users."""
    try:
        return Path(os.path.realpath(path)) if path.is_symlink() else path
    except (OSError, ValueError):
        # Reported when something is written there.
        return path


def replace_cassette(path: Path, text: str) -> None:
    """Write a cassette in one step, compressed where its name says so.

    Raises:
        OSError: it cannot be written; an older file is unchanged.
    """
    # Without a time stamp: recording the same again must give the same bytes.
    replace_file(path, gzip.compress(text.encode(), mtime=0) if is_packed(path) else text)


def unwritable(path: Path, error: Exception) -> CassetteError:
    """Return the error for a cassette that the file system refuses."""
    code = error.errno if isinstance(error, OSError) else None
    return CassetteError(
        f"{display_path(path)}: the cassette cannot be written",
        why=str((isinstance(error, OSError) and error.strerror) or error),
        hint=_HINTS.get(code or 0, "make the folder writable, or record into another one"),
    )


_HINTS = {
    errno.ENAMETOOLONG: "choose a shorter name: beside a cassette of 200 bytes there is room for "
    "what a recording puts there",
    errno.ENOSPC: "make room, then record again",
    errno.EISDIR: "name a file",
    errno.ENODEV: "name a file",
}


_MODULES = ("test_*", "*_test")
"""Names of test modules under pytest's default configuration."""
_WITHOUT_TESTS = frozenset({"ABC", "IsolatedAsyncioTestCase", "TestCase", "object"})
_SHORTENED = re.compile(r".+_[0-9a-f]{8}")
"""Names that were shortened for the file system: whose they are nobody can tell."""


def unused_reason(path: Path) -> str:
    """Return why no test can use a cassette; empty if one may.

    Only cassettes at the place of the fixture and the mark are considered:
    ``cassettes/<module>/<test>.yaml``. A name that occurs anywhere in the module counts as used, so
    that only names computed at run time are reported wrongly.
    """
    absolute = Path(os.path.abspath(path))  # a link is where it stands
    folder = next((p for p in absolute.parents if p.parent.name == "cassettes"), None)
    if folder is None or not any(fnmatch(folder.name, pattern) for pattern in _MODULES):
        return ""
    module = folder.parent.parent / f"{folder.name}.py"
    display = os.path.relpath(module) if not path.is_absolute() else str(module)
    if not module.is_file():
        # Tests from anywhere may use the folder, as those of python-lokalise-api.
        conftest = module.with_name("conftest.py")
        is_shared = conftest.is_file() and b"vcr_cassette_dir" in conftest.read_bytes()
        return "" if is_shared else f"its test module {display} is gone"
    source = module.read_text("utf-8", "replace")
    below = absolute.relative_to(folder)
    name = below.with_name(name_parts(below)[0]).as_posix()
    plain = name.partition("[")[0]
    # A name that Windows takes for a device is a file without its dots: ``nul.txt``.
    chosen = re.escape(name).replace("_", "[_.]")
    words = set(re.findall(r"\w+", source))
    owner = re.escape(plain.partition(".")[0])
    head = re.search(rf"^[ \t]*class {owner}\(([^)]*)\)", source, re.MULTILINE)
    bases = {base.strip().rpartition(".")[2] for base in (head[1] if head else "").split(",")}
    if (
        words.issuperset(plain.split("."))
        or _SHORTENED.fullmatch(name)
        or re.search(rf"""["'/]{chosen}["'.]""", source)
        # A base from another module may give it any test.
        or any(base and f"class {base}" not in source for base in bases - _WITHOUT_TESTS)
    ):
        return ""
    return f"{display} has no test {plain}"
