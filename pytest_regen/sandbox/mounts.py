"""What a child sees of the file system under bubblewrap: the system, Python, and what it is given.

Everything is read-only but the working folder and ``/tmp``, which begin empty, are of limited size,
and are gone with the child. Folders are shown under their real names; the links that lead there are
made again, so that virtual environments, ``/usr/local`` and version managers work as they are.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pytest_regen.strict_json import json_or_none

_SYSTEM: Final = (
    *("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr", "/nix/store", "/gnu/store"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    "/etc/localtime",
)
_PARTS: Final = ("bin", "lib", "lib32", "lib64", "pyvenv.cfg", "share")
"""What Python needs of the folder it is installed in, which may hold a whole project beside."""
_NOTHING: Final = "65536"
"""Bytes of a folder that only hides another."""


_SECONDS: Final = 20.0
"""For what sets up a child; only a machine under great load takes as long."""


@dataclass(frozen=True, slots=True)
class Mounts:
    """What a child sees beside the system and Python."""

    holder: Path
    """A folder of ours, by its real name; holds ``work`` and ``empty``."""
    projects: Sequence[Path] = ()
    """Folders that can be read, but for names at their top that begin with a dot."""
    readable: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    """Files that read as empty."""
    size: int = 64 << 20
    """Bytes that the working folder takes, and ``/tmp`` as well."""

    @property
    def work(self) -> Path:
        """The working folder: what it holds can be read; what is written there is thrown away."""
        return self.holder / "work"

    @property
    def empty(self) -> Path:
        """An empty file."""
        return self.holder / "empty"


def plain_path(program: str) -> str:
    """Return a program by a path that leads there from anywhere, and by no folder but its own.

    Its own link stays, because a virtual environment is found beside it.
    """
    folder, name = os.path.split(program)
    return os.path.join(os.path.realpath(folder), name) if folder else program


def bwrap_options(program: str, mounts: Mounts) -> Iterator[str]:
    """Yield the options of ``bwrap`` that show a child these mounts alone, and no network.

    What begins with a dot at the top of a project is not shown, because secrets stand there; but
    the pieces of a virtual environment are.
    """
    # Asked for, because releases differ in what they offer.
    features = printed(program, "--help").decode("utf-8", "replace")
    size = ["--size", str(mounts.size)] if "--size" in features else []
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-pid")
    yield from ("--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL")
    yield from ["--disable-userns"] if "--disable-userns" in features else []
    yield from ("--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", "/tmp")  # noqa: S108 - inside
    links: dict[Path, str] = {}
    pieces, imported = _installation(plain_path(sys.executable))
    projects = {_followed(path, links) for path in (*mounts.projects, *imported)}
    open_places = {
        _followed(path, links) for path in (*map(Path, _SYSTEM), *mounts.readable, *pieces)
    }
    places = {place for place in projects | open_places if place.exists()}
    masks = {
        place
        for project in projects
        if project.is_dir()
        for place in project.iterdir()
        if place.name.startswith(".") and place not in open_places
    }
    folders = {place for place in masks if place.is_dir() and not place.is_symlink()}
    # Not an empty folder of ours, because what is shown below it must still find a place.
    empty = [*(["--size", _NOTHING] if size else []), "--tmpfs"]
    options = {place: [*empty, str(place)] for place in folders}
    for place in places:
        if not places & {*place.parents} or folders & {*place.parents}:
            options[place] = ["--ro-bind", str(place), str(place)]
    for link, target in links.items():
        nearest = next((place for place in link.parents if place in options), None)
        if nearest is None or nearest in folders:
            options[link] = ["--symlink", target, str(link)]
    for file in (*(masks - folders), *(file.resolve() for file in mounts.hidden)):
        # A link is left, because what it leads to is shown under its own name or not at all.
        if file.is_file() and not file.is_symlink():
            options[file] = ["--ro-bind", str(mounts.empty), str(file)]
    options[mounts.work] = [*size, "--tmpfs", str(mounts.work)]
    for place in mounts.work.iterdir():
        options[place] = ["--ro-bind", str(place), str(place)]
    # Outer ones first, because a mount hides what was mounted below it.
    for place in sorted(options, key=lambda path: len(path.parts)):
        yield from options[place]
    for place in folders:
        yield from ("--remount-ro", str(place))
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(mounts.work))


@cache
def printed(*argv: str) -> bytes:
    """Return what a program prints, nothing where it fails.

    It is kept, because each child needs it and it does not change.
    """
    try:
        return subprocess.run(
            argv, input=b"", capture_output=True, cwd="/", env={}, timeout=_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return b""


def _followed(path: Path, links: dict[Path, str]) -> Path:
    """Return the real path of a name, and enter each link on the way with what it points to."""
    path = Path(os.path.abspath(path))  # keeps links
    if path.exists():  # because links that lead in a circle do not
        for place in (*reversed(path.parents), path):
            if place.is_symlink():
                links[place] = str(place.readlink())
                return _followed(place.parent / links[place] / path.relative_to(place), links)
    return path


_QUESTION: Final = """
import json, sys
finders = {getattr(finder, "__module__", "") for finder in sys.meta_path}
mapped = [getattr(sys.modules.get(name), "MAPPING", None) for name in finders]
mapped = [str(path) for names in mapped if isinstance(names, dict) for path in names.values()]
roots = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
print(json.dumps([roots, sys.path + mapped]))
"""


def _installation(python: str) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the pieces of an installation of Python, and what else it imports from.

    The latter are the folders of editable installations: path files and finders name them.
    """
    folders = json_or_none(printed(python, "-I", "-c", _QUESTION))
    if not folders:
        return (Path(python),), ()
    roots, import_path = folders
    pieces = [Path(python), *(Path(root, part) for root in sorted({*roots}) for part in _PARTS)]
    # What lies within a piece is shown with it.
    outside = [
        path
        for path in map(Path, import_path)
        if path.exists() and not any(piece in (path, *path.parents) for piece in pieces)
    ]
    return tuple(piece for piece in pieces if piece.exists()), tuple(outside)
