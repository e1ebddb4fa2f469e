"""Which failing scenario each verdict of the judge is about."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pytest_regen.sessions.protocols import Attribution, ExecutionResult

__all__ = ["attributed"]

_ALMOST = 0.85
"""How alike a misspelt description must be to the only one it can mean."""


def attributed(
    attributions: Iterable[Attribution], results: Sequence[ExecutionResult]
) -> tuple[dict[str, Attribution], list[str]]:
    """Return the verdict on each failing scenario, by id, and what could not be made use of.

    A verdict counts for one failing scenario: the one of its id, else the only failing one of its
    description, else the only failing one whose description is nearly that. The first verdict on
    a scenario counts. Nothing is guessed beyond that: a wrong guess would correct a right scenario.
    """
    found: dict[str, Attribution] = {}
    notes = []
    for attribution in attributions:
        result, problem = _meant(attribution, results)
        if result is None:
            notes.append(problem)
        else:
            found.setdefault(result.scenario.id, attribution)
    return found, notes


def _meant(
    attribution: Attribution, results: Sequence[ExecutionResult]
) -> tuple[ExecutionResult | None, str]:
    said = attribution.scenario_id or attribution.scenario_description
    named = [one for one in results if _names(attribution, one)]
    failing = [one for one in named if not one.passed]
    if len(failing) == 1:
        return failing[0], ""
    if len(failing) > 1:
        return (
            None,
            f"the judge blames {said!r}, and {len(failing)} failing scenarios are called so",
        )
    if named:
        return None, f"the judge blames {said!r}, which passes; ignored"
    near = [one for one in results if not one.passed and _nearly_names(attribution, one)]
    if len(near) == 1:
        return near[0], ""
    return None, f"the judge blames {said!r}, and no failing scenario is called so"


def _names(attribution: Attribution, result: ExecutionResult) -> bool:
    if attribution.scenario_id is not None:
        return result.scenario.id == attribution.scenario_id
    return result.scenario.description == attribution.scenario_description


def _nearly_names(attribution: Attribution, result: ExecutionResult) -> bool:
    said, name = attribution.scenario_description.lower(), result.scenario.description.lower()
    return bool(said and get_close_matches(said, [name], n=1, cutoff=_ALMOST))
