"""The verbs on a file of units, under the names that they had; and marks around texts."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.values import Changes, Written
from pytest_regen.units.keeping import refuse_unreadable
from pytest_regen.units.ledger import PastText
from pytest_regen.units.place import UnitFile
from pytest_regen.units.texts import call_region
from pytest_regen.units.view import refuse_unknown

UnitChanges = Changes
adopt_units = verbs.adopt
rebuild_units = verbs.rebuild
forget_units = verbs.forget
__all__ = ["refuse_unknown"]


def restore_unit(file: UnitFile, name: str, to: str | None = None) -> tuple[Written, Changes]:
    """Make a text from the history the recorded one."""
    changes = verbs.restore(file, name, to=to)
    (written,) = changes.pages
    return written, changes


def unit_history(file: UnitFile, name: str | None = None) -> tuple[PastText, ...]:
    """Return the past texts of a file's units, oldest first."""
    return tuple(past.entry for past in file.past() if name in (None, past.name))


def enclose_units(file: UnitFile, names: Sequence[str]) -> tuple[str, ...]:
    """Put markers around texts that stand in a file without them; return whose they are.

    Args:
        file: the file; a region without ``enclose`` or ``enclose_all`` leaves it as it is.
        names: the units; those that have their markers stay as they are.

    Raises:
        SourceError: the file cannot be read, or holds no such text.
    """
    kind = file.kind
    with file.writing() as (units, write):
        refuse_unreadable(units)
        text, new = units.text, [name for name in dict.fromkeys(names) if name not in units.texts]
        enclose_all: Any = getattr(kind.region, "enclose_all", None)
        enclose: Any = getattr(kind.region, "enclose", None)
        if enclose_all and new:  # A file of hundreds of them is read once.
            text = call_region(kind, "enclose_all", partial(enclose_all, text, new), file.place)
        elif enclose:
            for name in new:
                text = call_region(kind, "enclose", partial(enclose, text, name), file.place)
        if text != units.text:
            write.text = text
            write.commit()
    return tuple(new)
