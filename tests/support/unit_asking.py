"""What commands do with the units of one file, driven to its end."""

from typing import Any

from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.values import TurnSettings
from pytest_regen.units.asking import (
    UnitsResult,
    generate_steps,
    heal_steps,
    regenerate_steps,
)
from pytest_regen.units.place import UnitFile

__all__ = ["generate_units", "heal_units", "regenerate_units"]


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
