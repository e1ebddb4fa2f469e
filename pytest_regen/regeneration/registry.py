"""The kinds of places: one line each, imported when they are used."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_regen.regeneration.places import Place

if TYPE_CHECKING:
    from pytest_regen.units.loading import ProjectKinds


class Project(Protocol):
    """What it takes to open places: where a project lies, and what it fixed."""

    @property
    def root(self) -> Path:
        """The folder that ids begin at."""

    @property
    def kinds(self) -> "ProjectKinds":
        """The kinds of units that it has."""

    @property
    def ignored_codes(self) -> Callable[[str], frozenset[str]]:
        """Returns the codes that are not reported, by id of a unit."""

    def stores(self) -> Iterable[Path]:
        """Return the stores that it names; raises UsageError where it names none."""


PLACES: list[str] = [
    "pytest_regen.regeneration.store_place",
    "pytest_regen.units.opening",
]
"""Modules with two functions: ``at`` returns the place at a path, or ``None``; ``below`` returns
the paths of places at or below a folder, or, given ``None``, of the project."""


def open_place(project: Project, path: Path) -> Place[Any] | None:
    """Return the place at a path; ``None`` where nothing of the project is one.

    Raises:
        UsageError: a kind cannot be loaded, or two claim the file.
    """
    # What reads stores is imported last for a file, because it takes a while and is not needed.
    kinds = PLACES if path.is_dir() else reversed(PLACES)
    places = (import_module(kind).at(project, path) for kind in kinds)
    return next((place for place in places if place is not None), None)


def places_in(project: Project, paths: Iterable[Path] | None = None) -> list[Place[Any]]:
    """Return the places at or below paths; by default all of the project.

    Raises:
        UsageError: as by ``open_place``.
    """
    folders = [None] if paths is None else list(paths)
    # By absolute path, because the folders that are given may lie in one another.
    by_path = {
        path.absolute(): path
        for kind in PLACES
        for folder in folders
        for path in import_module(kind).below(project, folder)
    }
    places = (open_place(project, path) for path in by_path.values())
    return [place for place in places if place is not None]
