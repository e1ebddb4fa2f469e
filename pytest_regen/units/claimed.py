"""A file that a kind claims: how it is called, and where its units may have gone."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from pytest_regen.commit import AtomicFiles
from pytest_regen.files import from_here
from pytest_regen.units.kind import Kind
from pytest_regen.units.loading import ProjectKinds
from pytest_regen.units.texts import texts_or_none, units_in

_LOCK: Final = ".regen/locks/units.lock"

Ignored = Callable[[str], Collection[str]]
"""Returns the codes that are not reported for a unit, by its id."""


def project_files(root: Path) -> AtomicFiles:
    """Return the files of a project as units are written: all or none."""
    return AtomicFiles(
        root,
        what=f"the units of {root}",
        lock=root / _LOCK,
        journal=".regen/journal",
        aside=".regen/history",
    )


class ClaimedFile:
    """A file whose units are of one kind.

    Args:
        kinds: of the project.
        place: the file, from the root, with forward slashes.
        kind: claims the file.
        ignore: the codes that are not reported, by id of a unit.
        is_lost: whether the kind does not claim the file, or the file is gone.
    """

    def __init__(
        self,
        kinds: ProjectKinds,
        place: str,
        kind: Kind,
        ignore: Ignored = lambda _: (),
        *,
        is_lost: bool = False,
    ) -> None:
        self.kind = kind
        self.ignore = ignore
        self.is_lost = is_lost
        self.root = kinds.root
        self.files = project_files(kinds.root)
        self.path = self.root / place
        self.place = self.file_name = self.recording = place
        """The file, as ids and diffs name it, and the folder of its recorded requests."""
        self.here = self.source = from_here(self.path)
        """The file as commands name it."""
        self.is_imported, self.trial_seconds = kind.is_imported, kind.trial_seconds
        self.has_users = type(kind).uses is not Kind.uses
        """Whether the kind may say that units use one another."""
        self._kinds = kinds

    @property
    def title(self) -> str:
        """How reports name the kind: ``functions``, ``translations``, a class."""
        kind = type(self.kind)
        package, _, module = kind.__module__.partition(".kinds.")
        if package != "pytest_regen":
            return kind.__name__
        shipped = {"translation": "translations", "gettext": "translations"}
        return shipped.get(module, module.partition(".")[0])

    def elsewhere(self, name: str) -> str:
        """Return another file that has a unit, or had it but for its marks, and tests it not."""
        is_code = hasattr(self.kind.region, "defined")
        if not is_code and type(self.kind).units is not Kind.units:
            return ""  # Such names are no file's own: every catalogue has the same.
        word = name.rpartition(".")[2]
        for place, text in self._kinds.texts_like(self.path).items():
            is_near = place != self.place and (is_code or Path(place).name == self.path.name)
            if is_near and word in text and name in units_in(self.kind, text):
                kind = self._kinds.kind_of(self.root / place)
                if kind is None or name not in texts_or_none(kind, text):
                    return place
        return ""
