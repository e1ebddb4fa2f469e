"""Corrections put into a set of scenarios, and replacements merged into it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pytest_regen.errors import UsageError
from pytest_regen.sessions.values import (
    DiscardedScenario,
    ScenarioCorrection,
    TestScenario,
    are_similar,
)

__all__ = ["apply_corrections", "find_corrected", "merge_replacements"]


def merge_replacements(
    scenarios: Sequence[TestScenario],
    replacements: Sequence[TestScenario],
    corrections: Sequence[ScenarioCorrection],
    discarded: Sequence[DiscardedScenario],
    *,
    accepts: Callable[[TestScenario], bool] | None = None,
) -> list[TestScenario]:
    """Return ``scenarios`` with the corrected and discarded ones replaced.

    Without ``accepts``, what was corrected or discarded goes, and replacements are appended. A
    handwritten scenario stays, whatever a correction or a discard says of it: that a person is
    wrong is for a person to say, and a namesake may have been meant.

    With ``accepts`` nothing that is right is lost: a corrected scenario stays unless an accepted
    replacement covers the same request, and a replacement that is not accepted does not enter.

    Args:
        scenarios: the set as it stands.
        replacements: what ``regenerate`` returned.
        corrections: what was told to be wrong; by id where they carry one, else by description.
        discarded: what no policy can satisfy.
        accepts: says whether a replacement passes verification.

    Returns:
        Those kept in their order, then the replacements, except those that repeat one that is
        kept: its description or, with ``accepts``, its request.

    Raises:
        UsageError: a correction's description is that of several scenarios and it has no id.
    """
    corrected = find_corrected(scenarios, corrections)
    gone = [one.scenario for one in discarded]
    if accepts is None:
        return _merged_by_description(scenarios, replacements, [*corrected, *gone])
    accepted = [one for one in replacements if accepts(one)]
    return _merged_by_request(scenarios, accepted, corrected, gone)


def _merged_by_request(
    scenarios: Sequence[TestScenario],
    accepted: Sequence[TestScenario],
    corrected: Sequence[TestScenario],
    discarded: Sequence[TestScenario],
) -> list[TestScenario]:
    """Let accepted replacements take the place of corrected scenarios of the same request."""
    covered = {one.id for one in accepted} & {one.id for one in corrected}
    removed = covered | {one.id for one in discarded}
    kept = [one for one in scenarios if one.is_handwritten or one.id not in removed]
    ids = {one.id for one in kept}
    fresh = {one.id: one for one in reversed(accepted) if one.id not in ids}
    return [*kept, *reversed(fresh.values())]


def _merged_by_description(
    scenarios: Sequence[TestScenario],
    replacements: Sequence[TestScenario],
    faulty: Sequence[TestScenario],
) -> list[TestScenario]:
    """Replace what is faulty; where several requests share a description, the request decides."""
    requests: dict[str, set[str]] = defaultdict(set)
    for one in scenarios:
        requests[one.description].add(one.id)
    gone = {
        (one.description, id_)
        for one in faulty
        for id_ in requests[one.description]
        if len(requests[one.description]) == 1 or id_ == one.id
    }
    kept = [one for one in scenarios if one.is_handwritten or (one.description, one.id) not in gone]
    descriptions = {one.description for one in kept}
    return [*kept, *(one for one in replacements if one.description not in descriptions)]


def apply_corrections(
    scenarios: Sequence[TestScenario], corrections: Sequence[ScenarioCorrection]
) -> list[TestScenario]:
    """Return ``scenarios`` with corrected expectations in place; handwritten ones stay.

    Raises:
        UsageError: a correction names no scenario, several of them, or a handwritten one.
    """
    changed = {}
    for correction in corrections:
        found = find_corrected(scenarios, [correction])
        if not found:
            raise UsageError(
                f"no scenario is called {correction.scenario_description!r}",
                why="a correction that names nothing would be lost",
                hint="give the correction the scenario_id of the scenario it is about",
            )
        if found[0].is_handwritten:
            raise UsageError(
                f"the correction of {correction.scenario_description!r} contradicts a handwritten "
                "scenario",
                why="what a person wrote is never changed by a model's verdict",
                hint="change the scenario by hand, or take the correction for a fault of the rules",
            )
        changed[found[0].id] = found[0].model_copy(
            update={
                "expected_decision": correction.corrected_decision,
                "reasoning": correction.corrected_reasoning or found[0].reasoning,
            }
        )
    return [changed.get(one.id, one) for one in scenarios]


def find_corrected(
    scenarios: Sequence[TestScenario], corrections: Iterable[ScenarioCorrection]
) -> list[TestScenario]:
    """Return the scenarios that ``corrections`` are about; those that name none are passed over.

    Raises:
        UsageError: a description is that of several scenarios and no id tells them apart.
    """
    by_id = {one.id: one for one in scenarios}
    by_description: dict[str, list[TestScenario]] = defaultdict(list)
    for one in scenarios:
        by_description[one.description].append(one)
    found = []
    for correction in corrections:
        if correction.id is not None:
            found += [by_id[correction.id]] if correction.id in by_id else []
            continue
        named = by_description[correction.scenario_description]
        if any(not are_similar(named[0], other) for other in named[1:]):
            raise UsageError(
                f"{len(named)} scenarios are called {correction.scenario_description!r}",
                why="correcting them together would break the right ones",
                hint="give the correction the scenario_id of the one it is about",
            )
        found += named[:1]
    return found
