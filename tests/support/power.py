"""A disk whose power fails: what it may hold then, after each effect of some work.

It has what was waited for by an fsync. Of everything else it may have any part: each name of a
folder as it was at its last fsync or as it is, each content whole, half or as it was then.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_regen.files import observe_effects

_Names = dict[str, "_Inode | _Folder"]


@dataclass(eq=False)
class _Inode:
    """A file, whatever its name is."""

    data: bytes = b""
    synced: bytes = b""


@dataclass(eq=False)
class _Folder:
    """A folder: its names, and those that the disk surely has."""

    names: _Names = field(default_factory=dict)
    synced: _Names = field(default_factory=dict)


class Disk:
    """What is below a folder, followed effect by effect."""

    def __init__(self, root: Path) -> None:
        self._path = root
        self._root = self._read(root)

    def _read(self, path: Path) -> "_Folder":
        names: _Names = {
            entry.name: self._read(entry)
            if entry.is_dir()
            else _Inode(entry.read_bytes(), entry.read_bytes())
            for entry in path.iterdir()
        }
        return _Folder(names, dict(names))

    def follow(self, effect: str, path: Path) -> None:
        """Do what was done."""
        steps = path.relative_to(self._path).parts
        name = steps[-1] if steps else ""
        parent = self._root
        for step in steps[:-1]:
            below = parent.names.setdefault(step, _Folder())  # made along with one below it
            assert isinstance(below, _Folder)
            parent = below
        if effect in {"create", "write"}:
            old = parent.names.get(name)
            inode = old if isinstance(old, _Inode) else _Inode()
            parent.names[name] = inode
            inode.data = path.read_bytes()
        elif effect == "mkdir":
            parent.names.setdefault(name, _Folder())
        elif effect in {"unlink", "rmdir"}:
            parent.names.pop(name, None)
        elif effect == "fsync":
            self._sync(parent.names[name] if name else parent)
        else:
            assert effect == "rename"
            parent.names[name] = self._gone(self._root, self._path)

    def _sync(self, node: "_Inode | _Folder") -> None:
        if isinstance(node, _Folder):
            node.synced = dict(node.names)
        else:
            node.synced = node.data

    def _gone(self, folder: _Folder, path: Path) -> "_Inode | _Folder":
        """Take the one name away that is there no more: what was renamed had it."""
        for name, node in list(folder.names.items()):
            if not (path / name).exists():
                return folder.names.pop(name)
            if isinstance(node, _Folder):
                try:
                    return self._gone(node, path / name)
                except LookupError:
                    continue
        raise LookupError(path)

    def lay_out(self, folder: Path, chance: random.Random) -> None:
        """Write what the disk may hold now into a folder."""
        self._lay_out(self._root, folder, chance)

    def _lay_out(self, node: _Folder, folder: Path, chance: random.Random) -> None:
        folder.mkdir()
        wins = chance.choice([0.0, 0.5, 1.0])
        for name in sorted({*node.names, *node.synced}):
            found = (node.names if chance.random() < wins else node.synced).get(name)
            if isinstance(found, _Folder):
                self._lay_out(found, folder / name, chance)
            elif found is not None:
                data = chance.choice([found.synced, found.data, found.data[: len(found.data) // 2]])
                (folder / name).write_bytes(found.synced if found.synced == found.data else data)


def states_after_power_loss(
    work: Callable[[Path], None], template: Path, space: Path, samples: int
) -> Iterator[tuple[str, Path]]:
    """Yield states of the disk after each effect of some work, with what was done last.

    Args:
        work: called with a copy of ``template``.
        template: a folder.
        space: where copies and states go.
        samples: of what the disk may hold, for each effect.
    """
    space.mkdir()
    shutil.copytree(template, space / "work" / template.name)
    disk = Disk(space / "work")
    chance = random.Random(20260102)
    states: list[tuple[str, Path]] = []

    def observe(effect: str, path: Path) -> None:
        when, what = effect.split()
        if when == "after":
            disk.follow(what, path)
            for _ in range(samples):
                state = space / f"{len(states):05}"
                disk.lay_out(state, chance)
                states.append((f"{what} {path.name}", state / template.name))

    with observe_effects(observe):
        work(space / "work" / template.name)
    yield from states
