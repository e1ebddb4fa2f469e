"""Which failing scenario each verdict of the judge is about."""

from collections import defaultdict
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
    index = _Failures(results)
    found: dict[str, Attribution] = {}
    notes = []
    for attribution in attributions:
        id_, problem = index.meant(attribution)
        if id_ is None:
            notes.append(problem)
        else:
            found.setdefault(id_, attribution)
    return found, notes


class _Failures:
    """Results by what a judge may call them."""

    def __init__(self, results: Sequence[ExecutionResult]) -> None:
        self._ids: set[str] = set()
        self._descriptions: set[str] = set()
        self._failing: set[str] = set()
        self._by_description: dict[str, list[str]] = defaultdict(list)
        self._by_lower: dict[str, list[str]] = defaultdict(list)
        for one in results:
            id_, description = one.scenario.id, one.scenario.description
            self._ids.add(id_)
            self._descriptions.add(description)
            if not one.passed:
                self._failing.add(id_)
                self._by_description[description].append(id_)
                self._by_lower[description.lower()].append(id_)

    def meant(self, attribution: Attribution) -> tuple[str | None, str]:
        """Return the id of the failing scenario that is meant; else why it cannot be told."""
        id_, description = attribution.scenario_id, attribution.scenario_description
        said = id_ or description
        if id_ is not None:
            named, failing = id_ in self._ids, [id_] if id_ in self._failing else []
        else:
            named, failing = (
                description in self._descriptions,
                self._by_description.get(description, []),
            )
        if len(failing) == 1:
            return failing[0], ""
        if failing:
            return (
                None,
                f"the judge blames {said!r}, and {len(failing)} failing scenarios are called so",
            )
        if named:
            return None, f"the judge blames {said!r}, which passes; ignored"
        near = self._near(description)
        if len(near) == 1:
            return near[0], ""
        return None, f"the judge blames {said!r}, and no failing scenario is called so"

    def _near(self, said: str) -> list[str]:
        """Return the failing scenarios that are called nearly so, two at most."""
        names = get_close_matches(said.lower(), self._by_lower, n=2, cutoff=_ALMOST) if said else []
        return [id_ for name in names for id_ in self._by_lower[name]]
