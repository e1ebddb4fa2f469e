"""Asking for units of a file, under the names that this had."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.queue import Flow
from pytest_regen.units.place import UnitFile
from pytest_regen.units.view import FileUnits
from pytest_regen.validation.issues import Feedback

if TYPE_CHECKING:
    from pytest_regen.regeneration.flow import Work

UnitsResult = verbs.Result
generate_steps = verbs.generate_steps
heal_steps = verbs.heal_steps


def needs_answer(units: FileUnits, name: str) -> bool:
    """Return whether ``generate`` asks for a unit: it is missing, a stub, or stale."""
    return units.needs_answer(name)


def regenerate_steps(
    file: UnitFile,
    names: Sequence[str] | None = None,
    *,
    corrections: Sequence[Feedback] = (),
    **options: Any,
) -> Flow[verbs.Result]:
    """Ask for units again, whatever their state; the corrections are for all of them."""
    chosen = file.open().names if names is None else names
    notes = dict.fromkeys(chosen, corrections)
    return verbs.regenerate_steps(file, chosen, corrections=notes, **options)


def ask_for_unit_steps(
    file: UnitFile, name: str, *, rounds: int = 1, **options: Any
) -> "Flow[Work[FileUnits]]":
    """Ask for one unit again because a test item fails."""
    result = yield from verbs.heal_steps(file, [name], attempts=rounds, **options)
    assert result.work is not None  # healing is one work
    return result.work
