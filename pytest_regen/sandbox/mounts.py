"""What a child sees of the file system under bubblewrap: the system, Python, and what it is given.

Everything is read-only but the working folder and ``/tmp``, which begin empty, are of limited size,
and are gone with the child. Folders are shown under their real names; the links that lead there are
made again, so that virtual environments, ``/usr/local`` and version managers work as they are.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from pytest_regen.strict_json import json_or_none

_SYSTEM: Final = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
_ELSEWHERE: Final = ("/usr", "/nix/store", "/gnu/store")
_SETTINGS: Final = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)
_PARTS: Final = ("bin", "lib", "lib32", "lib64", "pyvenv.cfg", "share")
"""What Python needs of the folder it is installed in, which may hold a whole project beside."""
_NOTHING: Final = "65536"
"""Bytes of a folder that only hides another."""
_HOPS: Final = 40
"""Links followed from one name; the kernel gives up there as well."""


@dataclass(frozen=True, slots=True)
class Mounts:
    """What a child sees beside the system and Python."""

    holder: Path
    """A folder of ours, by its real name; holds ``work`` and ``empty``."""
    projects: tuple[Path, ...] = ()
    """Folders that can be read, but for names at their top that begin with a dot."""
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    """Files that read as empty."""
    size: int = 64 << 20
    """Bytes that the working folder takes, and ``/tmp`` as well."""
    python: str = sys.executable

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


def bwrap_options(program: str, mounts: Mounts) -> list[str]:
    """Return the options of ``bwrap`` that show a child these mounts alone, and no network."""
    features = _features(program)
    size = ["--size", str(mounts.size)] if "--size" in features else []
    return [
        *("--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *(["--disable-userns"] if "--disable-userns" in features else []),
        *("--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", "/tmp"),  # noqa: S108 - in there
        *_system(),
        *_given(mounts, size),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(mounts.work)),
    ]


@cache
def _features(program: str) -> str:
    """Return the help text of ``bwrap``: releases differ in what they offer."""
    done = subprocess.run([program, "--help"], capture_output=True, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


@cache
def _system() -> tuple[str, ...]:
    options: list[str] = []
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    for place in (*_ELSEWHERE, *_SETTINGS):
        options += ["--ro-bind-try", place, place]
    return tuple(options)


@dataclass(slots=True)
class _Shown:
    """Folders and files by their real names, and the links that lead to them."""

    real: set[Path] = field(default_factory=set)
    links: dict[Path, str] = field(default_factory=dict)

    def add(self, path: Path) -> Path | None:
        """Enter a path; return its real one, or ``None`` where there is nothing to show."""
        real, links = _followed(path)
        if not real.exists():
            return None
        self.links |= links
        if not _is_system(real):
            self.real.add(real)
        return real

    def holds(self, path: Path) -> bool:
        return _is_system(path) or any(folder in self.real for folder in path.parents)


def _given(mounts: Mounts, size: list[str]) -> Iterator[str]:
    """Yield the options for projects, Python and the working folder, outer ones first."""
    shown = _Shown()
    pieces, imported = _installation(mounts.python)
    projects = {shown.add(path) for path in (*mounts.projects, *imported)}
    kept = {shown.add(path) for path in (*mounts.readable, *pieces)}
    options = {real: _bind(real) for real in shown.real if real in kept or not shown.holds(real)}
    masks = {*_dotted(path for path in projects if path and not _is_system(path))} - {*kept}
    folders = [place for place in masks if place.is_dir() and not place.is_symlink()]
    for link, target in shown.links.items():
        is_below = any(folder in kept for folder in link.parents)
        if not shown.holds(link) or (
            not is_below and any(place in folders for place in link.parents)
        ):
            options[link] = ["--symlink", target, str(link)]
    for place in folders:
        # Not an empty folder of ours: what is shown below it still finds a place there.
        options[place] = [*(["--size", _NOTHING] if size else []), "--tmpfs", str(place)]
    for file in (*masks.difference(folders), *(file.resolve() for file in mounts.hidden)):
        # A link is left: what it leads to is shown under its own name or not at all.
        if file.is_file() and not file.is_symlink():
            options[file] = _bind(mounts.empty, file)
    options[mounts.work] = [*size, "--tmpfs", str(mounts.work)]
    options |= {place: _bind(place) for place in mounts.work.iterdir()}
    for place in sorted(options, key=lambda path: len(path.parts)):
        yield from options[place]
    for place in folders:
        yield from ("--remount-ro", str(place))


def _bind(source: Path, place: Path | None = None) -> list[str]:
    return ["--ro-bind", str(source), str(place or source)]


def _dotted(projects: Iterable[Path]) -> Iterator[Path]:
    """Yield what stands at the top of projects and begins with a dot: ``.git``, ``.env``."""
    for project in projects:
        try:
            yield from (place for place in project.iterdir() if place.name.startswith("."))
        except OSError:
            continue  # a file, such as an archive; or not ours to read


def _is_system(real: Path) -> bool:
    shown = (*_ELSEWHERE, *_SYSTEM)
    return any(str(place) in shown for place in (real, *real.parents))


def _followed(path: Path) -> tuple[Path, dict[Path, str]]:
    """Return the real path of a name and each link on the way there, with what it points to."""
    links: dict[Path, str] = {}
    rest = list(reversed(Path(os.path.abspath(path)).parts))  # keeps links
    real = Path(rest.pop())
    while rest and len(links) < _HOPS:
        name = rest.pop()
        if name == "..":
            real = real.parent
            continue
        place = real / name
        if not place.is_symlink():
            real = place
            continue
        target = place.readlink()
        links[place] = str(target)
        if target.is_absolute():
            real = Path("/")
        rest += [part for part in reversed(target.parts) if part != "/"]
    return real, links


_QUESTION: Final = """
import json, sys
finders = {getattr(finder, "__module__", "") for finder in sys.meta_path}
mapped = [getattr(sys.modules.get(name), "MAPPING", None) for name in finders]
mapped = [path for mapping in mapped if isinstance(mapping, dict) for path in mapping.values()]
print(json.dumps([[sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
                  sys.path, [str(path) for path in mapped]]))
"""


@cache
def _installation(python: str) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the pieces of an installation of Python, and what else it imports from.

    The latter are the folders of editable installations: path files and finders name them.
    """
    done = subprocess.run(  # the interpreter of the project
        [python, "-I", "-c", _QUESTION], capture_output=True, env={}, check=False
    )
    found = json_or_none(done.stdout)
    if not found:
        return (Path(python),), ()
    roots = {Path(root) for root in found[0]}
    pieces = [Path(python), *(root / part for root in sorted(roots) for part in _PARTS)]
    pieces = [piece for piece in pieces if piece.exists()]
    others = [
        path
        for path in map(Path, [*found[1], *found[2]])
        if path.exists() and not any(piece in (path, *path.parents) for piece in pieces)
    ]
    return tuple(pieces), tuple(others)
