"""A type of a store that is asked for as a test that fails does, driven to its end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_regen.regeneration import HealResult, TurnSettings
from pytest_regen.regeneration.flow import Job, work_steps
from pytest_regen.regeneration.policies import Policy
from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.text import source_diff

__all__ = ["heal_type"]


def heal_type(
    path: Path, name: str, *, settings: TurnSettings, rounds: int = 1, **options: Any
) -> HealResult:
    """Ask the pages at fault of a type again until nothing is wrong, or a reason to stop."""
    job = Job(Policy(), [name], rounds, **options)
    place = StorePlace(path)
    work = drive_flow(work_steps(place, job, settings), settings)
    (result,) = work.results
    diff = source_diff(work.before.text, work.view.text, place.file_name)
    return replace(result, diff=diff)
