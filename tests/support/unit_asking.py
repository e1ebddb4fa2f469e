"""What commands do with the units of one file, driven to its end."""

from collections.abc import Sequence
from typing import Any

from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.flow import Job, work_steps
from pytest_regen.regeneration.places import Place
from pytest_regen.regeneration.policies import Policy
from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.values import HealResult, TurnSettings
from pytest_regen.turns import CallableProvider
from pytest_regen.units.place import UnitFile
from pytest_regen.validation.issues import Feedback


def answering(*texts: str, asked: list[str] | None = None) -> TurnSettings:
    """Return turns with a model that gives these answers in turn, the last for ever."""
    left = list(texts)

    def answer(messages: list[dict[str, str]]) -> str:
        if asked is not None:
            asked.append(messages[-1]["content"])
        return left.pop(0) if len(left) > 1 else left[0]

    return TurnSettings(CallableProvider(answer))


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
    place: Place[Any], name: str, *, settings: TurnSettings, rounds: int = 1, **options: Any
) -> HealResult:
    """Ask for a unit as a test that fails does."""
    job = Job(Policy(), [name], rounds, **options)
    (result,) = drive_flow(work_steps(place, job, settings), settings).results
    return result
