"""What commands do with the units of one file, driven to its end."""

from dataclasses import replace
from typing import Any

from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.values import HealResult, TurnSettings
from pytest_regen.units.asking import (
    UnitsResult,
    ask_for_unit_steps,
    generate_steps,
    heal_steps,
    regenerate_steps,
)
from pytest_regen.units.place import UnitFile

__all__ = ["ask_for_unit", "generate_units", "heal_units", "regenerate_units"]


def generate_units(
    file: UnitFile, *names: Any, settings: TurnSettings, **options: Any
) -> UnitsResult:
    """Ask for the units that are missing or stale."""
    return drive_flow(generate_steps(file, *names, settings=settings, **options), settings)


def regenerate_units(
    file: UnitFile, *names: Any, settings: TurnSettings, **options: Any
) -> UnitsResult:
    """Ask for units again, whatever their state."""
    return drive_flow(regenerate_steps(file, *names, settings=settings, **options), settings)


def heal_units(file: UnitFile, *names: Any, settings: TurnSettings, **options: Any) -> UnitsResult:
    """Ask again for the units that have errors."""
    return drive_flow(heal_steps(file, *names, settings=settings, **options), settings)


def ask_for_unit(
    file: UnitFile, name: str, *, settings: TurnSettings, **options: Any
) -> HealResult:
    """Ask for a unit as a test that fails does."""
    steps = ask_for_unit_steps(file, name, settings=settings, **options)
    done = drive_flow(steps, settings)
    (result,) = done.results
    return replace(result, diff=done.diff)
