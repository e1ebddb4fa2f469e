"""A claimed file as a place that is worked on: opened, asked about, written."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_regen.errors import UsageError
from pytest_regen.units.commit import AtomicFiles
from pytest_regen.units.kind import Kind
from pytest_regen.units.loading import ProjectKinds
from pytest_regen.units.naming import unit_id
from pytest_regen.units.view import FileUnits
from pytest_regen.validation.issues import Issue, ValidationResult

__all__ = ["Ignored", "UnitFile", "open_units", "project_files"]

Ignored = Callable[[str], Collection[str]]
"""Returns the codes that are not reported for a unit, by its id."""

_LOCK: Final = ".regen/locks/units.lock"


def project_files(root: Path) -> AtomicFiles:
    """Return the files of a project as units are written: all or none."""
    return AtomicFiles(
        root,
        what=f"the units of {root}",
        lock=root / _LOCK,
        journal=".regen/journal",
        aside=".regen/history",
        is_users=lambda name: not name.startswith(".regen/"),
    )


def open_units(kinds: ProjectKinds, path: Path, *, ignore: Ignored = lambda _: ()) -> "UnitFile":
    """Return the file at ``path``, which a kind claims.

    Raises:
        UsageError: no kind claims it.
    """
    kind, place = kinds.kind_of(path), kinds.place(path)
    if kind is None or place is None:
        raise UsageError(
            f"no kind claims {path}",
            why=f"the project has {', '.join(one.origin for one in kinds.kinds) or 'no kinds'}",
            hint="name a file that the globs of a kind match",
        )
    return UnitFile(kinds.root, place, kind, ignore)


@dataclass(frozen=True)
class UnitFile:
    """A file whose units are of one kind."""

    root: Path
    place: str
    """The file, from the root, with forward slashes."""
    kind: Kind
    ignore: Ignored = lambda _: ()

    @property
    def path(self) -> Path:
        """The file."""
        return self.root / self.place

    @property
    def files(self) -> AtomicFiles:
        """The project's files."""
        return project_files(self.root)

    def open(self) -> FileUnits:
        """Return what the file holds now."""
        return FileUnits(self.kind, self.place, self.files.view())

    def kept(self, issues: Iterable[Issue]) -> tuple[Issue, ...]:
        """Return the issues whose codes the project does not ignore."""
        return tuple(
            issue
            for issue in issues
            if issue.code not in self.ignore(unit_id(self.place, issue.type_name or ""))
        )

    def result(self, units: FileUnits, name: str) -> ValidationResult:
        """Return what is wrong with a unit, as far as the project wants to know."""
        return ValidationResult(self.kept(units.issues(name)))
