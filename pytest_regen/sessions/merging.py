"""Corrections put into a set of scenarios, and replacements merged into it."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pytest_regen.errors import UsageError
from pytest_regen.sessions.values import (
    DiscardedScenario,
    ScenarioCorrection,
    TestScenario,
)

__all__ = ["ScenarioIndex", "apply_corrections", "merge_replacements"]


class ScenarioIndex:
    """Scenarios by request and by description, so that each is hashed once.

    Args:
        scenarios: a set; of several with one request the last one counts.
    """

    def __init__(self, scenarios: Iterable[TestScenario]) -> None:
        self.ids: list[str] = []
        """Of each scenario, in order."""
        self.by_id: dict[str, TestScenario] = {}
        self._by_description: dict[str, dict[str, TestScenario]] = defaultdict(dict)
        for one in scenarios:
            id_ = one.id
            self.ids.append(id_)
            self.by_id[id_] = one
            self._by_description[one.description].setdefault(id_, one)

    def find(self, correction: ScenarioCorrection) -> tuple[str, TestScenario] | None:
        """Return the scenario that a correction is about and its id; ``None`` if it names none.

        Raises:
            UsageError: a description is that of several scenarios and no id tells them apart.
        """
        id_ = correction.id
        if id_ is not None:
            return (id_, self.by_id[id_]) if id_ in self.by_id else None
        named = self._by_description.get(correction.scenario_description, {})
        if len(named) > 1:
            raise UsageError(
                f"{len(named)} scenarios are called {correction.scenario_description!r}",
                why="correcting them together would break the right ones",
                hint="give the correction the scenario_id of the one it is about",
            )
        return next(iter(named.items()), None)


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
    index = ScenarioIndex(scenarios)
    corrected = [found for one in corrections if (found := index.find(one)) is not None]
    gone = [(one.scenario.id, one.scenario) for one in discarded]
    if accepts is None:
        faulty = [(id_, one.description) for id_, one in [*corrected, *gone]]
        return _merged_by_description(scenarios, index.ids, replacements, faulty)
    accepted = {one.id: one for one in reversed(replacements) if accepts(one)}
    covered = {id_ for id_, _ in corrected if id_ in accepted}
    return _merged_by_request(scenarios, index.ids, accepted, covered | {id_ for id_, _ in gone})


def _merged_by_request(
    scenarios: Sequence[TestScenario],
    ids: Sequence[str],
    accepted: Mapping[str, TestScenario],
    removed: Collection[str],
) -> list[TestScenario]:
    """Return the scenarios that are not removed, then the accepted ones of other requests."""
    kept = [
        (id_, one)
        for id_, one in zip(ids, scenarios, strict=True)
        if one.is_handwritten or id_ not in removed
    ]
    there = {id_ for id_, _ in kept}
    fresh = [one for id_, one in accepted.items() if id_ not in there]
    return [*(one for _, one in kept), *reversed(fresh)]


def _merged_by_description(
    scenarios: Sequence[TestScenario],
    ids: Sequence[str],
    replacements: Sequence[TestScenario],
    faulty: Iterable[tuple[str, str]],
) -> list[TestScenario]:
    """Replace what is faulty; where several requests share a description, the request decides."""
    requests: dict[str, set[str]] = defaultdict(set)
    for id_, one in zip(ids, scenarios, strict=True):
        requests[one.description].add(id_)
    gone = {
        (description, id_)
        for faulty_id, description in faulty
        for id_ in requests[description]
        if len(requests[description]) == 1 or id_ == faulty_id
    }
    kept = [
        one
        for id_, one in zip(ids, scenarios, strict=True)
        if one.is_handwritten or (one.description, id_) not in gone
    ]
    descriptions = {one.description for one in kept}
    return [*kept, *(one for one in replacements if one.description not in descriptions)]


def apply_corrections(
    scenarios: Sequence[TestScenario], corrections: Sequence[ScenarioCorrection]
) -> list[TestScenario]:
    """Return ``scenarios`` with corrected expectations in place; handwritten ones stay.

    Raises:
        UsageError: a correction names no scenario, several of them, or a handwritten one.
    """
    index = ScenarioIndex(scenarios)
    changed = {}
    for correction in corrections:
        found = index.find(correction)
        if found is None:
            raise UsageError(
                f"no scenario is called {correction.scenario_description!r}",
                why="a correction that names nothing would be lost",
                hint="give the correction the scenario_id of the scenario it is about",
            )
        id_, scenario = found
        if scenario.is_handwritten:
            raise UsageError(
                f"the correction of {correction.scenario_description!r} contradicts a handwritten "
                "scenario",
                why="what a person wrote is never changed by a model's verdict",
                hint="change the scenario by hand, or take the correction for a fault of the rules",
            )
        changed[id_] = scenario.model_copy(
            update={
                "expected_decision": correction.corrected_decision,
                "reasoning": correction.corrected_reasoning or scenario.reasoning,
            }
        )
    return [changed.get(id_, one) for id_, one in zip(index.ids, scenarios, strict=True)]
