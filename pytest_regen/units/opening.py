"""The files with units of a project: those that kinds claim, and those that the ledger has.

The ledger is the inventory of the gate: what is recorded is tested, or says where it went.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regen.units.ledger import Ledger, ledger_places
from pytest_regen.units.loading import ProjectKinds
from pytest_regen.units.place import UnitFile, open_units, project_files

if TYPE_CHECKING:
    from pytest_regen.regeneration.places import Project


def at(project: "Project", path: Path) -> UnitFile | None:
    """Return the file at a path, if a kind of the project claims it, or the ledger has units."""
    kinds, real = project.kinds, Path.cwd() / path
    lost = is_lost(kinds, real)
    if not lost and (not kinds or kinds.kind_of(real) is None):
        return None
    return open_units(kinds, real, ignore=project.ignored_codes, is_lost=lost)


def below(project: "Project", folder: Path | None) -> Iterable[Path]:
    """Return the files at or below a folder; by default all of the project."""
    kinds = project.kinds
    if folder is None:
        return (*kinds.files, *lost_files(kinds))
    real = Path.cwd() / folder
    if real.is_dir():
        lost = (path for path in lost_files(kinds) if path.is_relative_to(real))
        return (*kinds.below(real), *lost)
    return [real] if is_lost(kinds, real) or kinds.kind_of(real) is not None else []


def unmarked_kinds(kinds: ProjectKinds) -> Iterator[str]:
    """Yield which kinds have no unit yet, in words; none that had some, for each of those fails."""
    for claim in kinds.kinds:
        # An installed kind need not be wanted here, because a package brought it along.
        if not claim.can_enclose or claim.is_installed:
            continue
        files = [path for path, kind in kinds.files.items() if kind is claim.kind]
        if any(b"[REGEN:BEGIN" in path.read_bytes() for path in files if path.is_file()):
            continue
        if not any(kinds.kind_to_enclose(path) is claim.kind for path in lost_files(kinds)):
            yield f"{claim.origin}: no function of {', '.join(claim.globs)} has markers yet"


def is_lost(kinds: ProjectKinds, path: Path) -> bool:
    """Return whether the ledger has units of a file that no kind claims, or that is gone."""
    path = kinds.absolute(path)
    place = kinds.place(path)
    if place is None or path in kinds.files:
        return False
    ledger = Ledger.read(project_files(kinds.root).view(), place)
    return bool(ledger.entries or ledger.broken)


def lost_files(kinds: ProjectKinds) -> tuple[Path, ...]:
    """Return the files of which the ledger has units, and that are not among those of kinds.

    A file that was moved to where a kind claims it is none: its units are recognised there.
    """
    places = project_files(kinds.root).read(ledger_places)
    claimed = {place: path for path in kinds.files if (place := kinds.place(path)) is not None}
    lost = [place for place in places if place not in claimed]
    if lost:
        # Those without a ledger alone, because what has one was not moved there.
        new = [path for place, path in claimed.items() if place not in places]
        moved = {open_units(kinds, path).open().ledger.place for path in new}
        lost = [place for place in lost if place not in moved]
    return tuple(kinds.root / place for place in lost)
