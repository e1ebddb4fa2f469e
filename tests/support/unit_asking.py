"""What commands do with the units of one file, driven to its end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.flow import Job, work_steps
from pytest_regen.regeneration.policies import Policy
from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.values import HealResult, TurnSettings
from pytest_regen.text import source_diff
from pytest_regen.units.ledger import PastText
from pytest_regen.units.place import UnitFile
from pytest_regen.validation.issues import Feedback

__all__ = ["ask_for_unit", "generate_units", "heal_units", "regenerate_units", "unit_history"]


def generate_units(
    file: UnitFile, *names: Any, settings: TurnSettings, **options: Any
) -> verbs.Result:
    """Ask for the units that are missing or stale."""
    return drive_flow(verbs.generate_steps(file, *names, settings=settings, **options), settings)


def regenerate_units(
    file: UnitFile,
    names: Sequence[str],
    *,
    settings: TurnSettings,
    corrections: Sequence[Feedback] = (),
    **options: Any,
) -> verbs.Result:
    """Ask for units again, whatever their state; the corrections are for all of them."""
    notes = dict.fromkeys(names, corrections)
    steps = verbs.regenerate_steps(file, names, settings=settings, corrections=notes, **options)
    return drive_flow(steps, settings)


def heal_units(file: UnitFile, *names: Any, settings: TurnSettings, **options: Any) -> verbs.Result:
    """Ask again for the units that have errors."""
    return drive_flow(verbs.heal_steps(file, *names, settings=settings, **options), settings)


def ask_for_unit(
    file: UnitFile, name: str, *, settings: TurnSettings, rounds: int = 1, **options: Any
) -> HealResult:
    """Ask for a unit as a test that fails does."""
    work = drive_flow(
        work_steps(file, Job(Policy(), [name], rounds, **options), settings), settings
    )
    (result,) = work.results
    diff = source_diff(work.before.text, work.view.text, file.file_name)
    return replace(result, diff=diff)


def unit_history(file: UnitFile) -> tuple[PastText, ...]:
    """Return the past texts of a file's units, oldest first."""
    return tuple(past.entry for past in verbs.history(file))
