"""What a scenario session knows: the scenarios it gave, what was wrong, what it was told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pytest_regen.errors import NoProgressError, UsageError
from pytest_regen.sessions.feedback import Said
from pytest_regen.sessions.merging import find_corrected
from pytest_regen.sessions.values import (
    ScenarioCorrection,
    ScenarioFeedback,
    TestScenario,
    ToolAnnotation,
)

__all__ = ["Memory", "checked_handwritten", "checked_tools"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Immutable: a turn that fails has changed nothing."""

    known: Mapping[str, TestScenario] = field(default_factory=dict)
    """By id; corrected expectations in place."""
    wrong: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Scenario id to expectations that were corrected or discarded."""
    said: Said = field(default_factory=Said)

    @classmethod
    def of(cls, handwritten: Sequence[TestScenario]) -> Self:
        """Return what is known before the first turn."""
        return cls({one.id: one for one in handwritten})

    def knowing(self, scenarios: Iterable[TestScenario]) -> Self:
        """Return this and ``scenarios``; handwritten ones stay as they are."""
        added = {one.id: one for one in scenarios}
        kept = {id_: one for id_, one in self.known.items() if one.is_handwritten}
        return replace(self, known={**self.known, **added, **kept})

    def to_tell(self, feedback: ScenarioFeedback, turns: int) -> ScenarioFeedback:
        """Return what of ``feedback`` is worth a turn, its corrections completed.

        Raises:
            UsageError: there was no first turn, or the feedback asks for nothing, or for what
                cannot be.
            NoProgressError: everything was told before.
        """
        if not turns:
            raise UsageError(
                "there is nothing to replace yet",
                why="no turn of this session was committed",
                hint="call generate() first",
            )
        if not feedback.asks_for_replacements:
            raise UsageError(
                "the feedback has nothing to replace",
                why="probes and changed rules are hints; without corrections, discards or notes a "
                "turn would be paid for nothing",
                hint="pass corrections, discarded_scenarios or notes",
            )
        completed = tuple(self._completed(one) for one in feedback.corrections)
        new = self.said.unsaid(feedback.model_copy(update={"corrections": completed}))
        if not new.asks_for_replacements:
            raise NoProgressError(
                "everything in this feedback was told in an earlier turn",
                why="asking again in the same words would be answered as before",
                hint="stop here, or say what else is wrong",
            )
        return new

    def _completed(self, correction: ScenarioCorrection) -> ScenarioCorrection:
        """Return a correction that tells the old decision and the request."""
        named = find_corrected(list(self.known.values()), [correction])
        if not named:
            if correction.request is not None:
                return correction
            raise UsageError(
                f"this session knows no scenario called {correction.scenario_description!r}",
                why="a correction that names nothing would be lost",
                hint="give it the scenario_id or the request it is about",
            )
        scenario = named[0]
        if scenario.is_handwritten:
            raise UsageError(
                f"{scenario.description!r} is handwritten and cannot be corrected",
                why="what a person wrote is never contradicted",
                hint="take the correction for a fault of the rules, or change the scenario by hand",
            )
        return correction.model_copy(
            update={
                "scenario_id": scenario.id,
                "request": scenario.request,
                "original_decision": correction.original_decision or scenario.expected_decision,
            }
        )

    def standing(self, feedback: ScenarioFeedback) -> dict[str, TestScenario]:
        """Return the known scenarios that ``feedback`` asks no replacement for, by id."""
        asked = {one.id for one in feedback.corrections}
        asked |= {one.scenario.id for one in feedback.discarded_scenarios}
        return {id_: one for id_, one in self.known.items() if id_ not in asked}

    def after(self, feedback: ScenarioFeedback) -> Self:
        """Return what is known once ``feedback`` was told."""
        known = dict(self.known)
        wrong = {id_: set(decisions) for id_, decisions in self.wrong.items()}
        for one in feedback.corrections:
            if one.id is None:
                continue
            if one.original_decision and one.original_decision != one.corrected_decision:
                wrong.setdefault(one.id, set()).add(one.original_decision)
            wrong.get(one.id, set()).discard(one.corrected_decision)
            if one.id in known:
                update = {"expected_decision": one.corrected_decision}
                known[one.id] = known[one.id].model_copy(update=update)
        for discarded in feedback.discarded_scenarios:
            scenario = discarded.scenario
            wrong.setdefault(scenario.id, set()).add(scenario.expected_decision)
            if not scenario.is_handwritten:
                known.pop(scenario.id, None)
        frozen = {id_: frozenset(decisions) for id_, decisions in wrong.items()}
        return replace(self, known=known, wrong=frozen, said=self.said.plus(feedback))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "known": [one.to_json() for one in self.known.values()],
            "wrong": {id_: sorted(decisions) for id_, decisions in self.wrong.items()},
            "said": sorted(self.said.keys),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the memory that ``to_json`` wrote."""
        known = [TestScenario.model_validate(one) for one in data["known"]]
        return cls(
            {one.id: one for one in known},
            {id_: frozenset(decisions) for id_, decisions in data["wrong"].items()},
            Said(frozenset(data["said"])),
        )


def checked_tools(annotations: Sequence[ToolAnnotation]) -> tuple[ToolAnnotation, ...]:
    """Return ``annotations`` if each tool stands there once.

    Raises:
        UsageError: one stands there twice.
    """
    seen: set[tuple[str, str]] = set()
    for one in annotations:
        if one.tool in seen:
            raise UsageError(
                f"the tool {'/'.join(one.tool)} is annotated twice",
                hint="pass one annotation per tool",
            )
        seen.add(one.tool)
    return tuple(annotations)


def checked_handwritten(scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Return ``scenarios``, marked as handwritten, if they do not contradict each other.

    Raises:
        UsageError: two expect of one request what no decision can be.
    """
    found: dict[str, TestScenario] = {}
    for given in scenarios:
        one = given.model_copy(update={"source": "handwritten"})
        other = found.setdefault(one.id, one)
        expected = {one.expected_decision, other.expected_decision}
        if len(expected) > 1 and expected not in ({"deny", "not-allow"}, {"escalate", "not-allow"}):
            raise UsageError(
                f"{other.description!r} and {one.description!r} contradict each other",
                why=f"both ask {one.request}; one expects {other.expected_decision}, the other "
                f"{one.expected_decision}",
                hint="keep the one that is right",
            )
    return tuple(one.model_copy(update={"source": "handwritten"}) for one in scenarios)
