"""The ledger as the inventory of the gate: what is recorded is tested, or says where it went."""

from collections.abc import Iterator
from pathlib import Path

from pytest_regen.units.ledger import Ledger, ledger_places
from pytest_regen.units.loading import ProjectKinds
from pytest_regen.units.place import open_units, project_files


def unmarked_kinds(kinds: ProjectKinds) -> Iterator[str]:
    """Yield which kinds have no unit yet, in words; none that had some, for each of those fails."""
    unmarked = tuple(kinds.unmarked())
    lost = lost_files(kinds) if unmarked else ()
    for claim in unmarked:
        if not any(kinds.kind_to_enclose(path) is claim.kind for path in lost):
            yield f"{claim.origin}: no function of {', '.join(claim.globs)} has markers yet"


def is_lost(kinds: ProjectKinds, path: Path) -> bool:
    """Return whether the ledger has units of a file that no kind claims, or that is gone."""
    path = kinds.absolute(path)
    place = kinds.place(path)
    if place is None or path in kinds.files:
        return False
    ledger = Ledger(project_files(kinds.root).view(), place)
    return bool(ledger.entries or ledger.broken)


def lost_files(kinds: ProjectKinds) -> tuple[Path, ...]:
    """Return the files of which the ledger has units, and that are not among those of kinds.

    A file that was moved to where a kind claims it is none: its units are recognised there.
    """
    places = project_files(kinds.root).read(ledger_places)
    claimed = {place: path for path in kinds.files if (place := kinds.place(path)) is not None}
    lost = [place for place in places if place not in claimed]
    if lost:
        new = [path for place, path in claimed.items() if place not in places]
        moved = {open_units(kinds, path).open().ledger.place for path in new}
        lost = [place for place in lost if place not in moved]
    return tuple(kinds.root / place for place in lost)
