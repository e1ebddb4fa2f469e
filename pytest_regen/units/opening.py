"""The files with units of a project: those that kinds claim, and those that the ledger has."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regen.units.inventory import is_lost, lost_files
from pytest_regen.units.place import UnitFile, open_units

if TYPE_CHECKING:
    from pytest_regen.regeneration.registry import Project


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
