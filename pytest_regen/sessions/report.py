"""The report of a compile-verify-repair run: for each scenario what happened and why."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_regen.sessions.protocols import Attribution, ExecutionResult, Policy
from pytest_regen.sessions.scenarios import ScenarioCorrection, TestScenario
from pytest_regen.text import plural

ScenarioOutcome = Literal["passed", "corrected", "failed", "discarded"]
"""``failed`` scenarios are in the set and fail it; those discarded are not in it any more."""

RunStop = Literal["passed", "no_progress", "attempts", "coverage", "empty"]


@dataclass(frozen=True, slots=True)
class ScenarioHistory:
    """What happened to one scenario in a run."""

    id: str
    """Identity of the scenario; kept, because every look-up would hash the request again."""
    scenario: TestScenario
    """As it stands at the end."""
    outcome: ScenarioOutcome
    events: tuple[str, ...] = ()
    """What happened to it and why, in order."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A scenario that still fails, and who says what about it. A person has to decide."""

    result: ExecutionResult
    """What the scenario expects, and what the engine decides."""
    verdict: Attribution | None = None
    """What the judge says; ``None`` where it did not say so in a way that could be understood."""

    def __str__(self) -> str:
        result, verdict, scenario = self.result, self.verdict, self.result.scenario
        # Where rules are blamed the expectation is held right, whatever else the verdict says.
        if verdict and verdict.kind != "rule":
            judge = f"the judge says {verdict.corrected_decision}"
        elif verdict:
            judge = "the judge blames rule"
        else:
            judge = "the judge does not say whose fault it is"
        return (
            f"{scenario.description!r} ({scenario.request}): expected "
            f"{scenario.expected_decision}, the engine says {result.actual} ({result.rule}), "
            f"{judge}"
        )


@dataclass(frozen=True, slots=True)
class LoopReport:
    """How a run ended."""

    passed: bool
    stop_reason: RunStop
    policy: Policy
    scenarios: tuple[TestScenario, ...]
    """The set at the end, accepted probes included."""
    results: tuple[ExecutionResult, ...]
    """The last full execution: every scenario, by the last policy."""
    histories: tuple[ScenarioHistory, ...] = ()
    """Every scenario that was ever seen."""
    disagreements: tuple[Disagreement, ...] = ()
    corrections: tuple[ScenarioCorrection, ...] = ()
    untested_tools: tuple[tuple[str, str], ...] = ()
    """Tools that are annotated, or that the first answer tested, and that the set does not test."""
    repairs: int = 0
    judgements: int = 0
    """Times the judge was asked."""
    notes: tuple[str, ...] = ()
    """What else a reader of the result must know: unusable verdicts, failed turns."""
    input_hash: str = ""
    cached: bool = False
    """Whether no model was asked: all scenarios of a verified artifact passed again."""

    def history(self, scenario_id: str) -> ScenarioHistory:
        """Return what happened to one scenario.

        Raises:
            KeyError: the run never saw it.
        """
        return {history.id: history for history in self.histories}[scenario_id]

    def describe(self) -> str:
        """Return the report as text for a terminal."""
        verdict = "passed" if self.passed else f"NOT passed ({self.stop_reason})"
        cached = ", from a verified artifact" if self.cached else ""
        sums = {
            "repair": self.repairs,
            "judgement": self.judgements,
            "correction": len(self.corrections),
            "disagreement": len(self.disagreements),
        }
        lines = [
            f"{plural(len(self.scenarios), 'scenario')}, {verdict}{cached}",
            ", ".join(plural(number, noun) for noun, number in sums.items()),
            *(f"disagreement: {disagreement}" for disagreement in self.disagreements),
            *(f"not tested: {'/'.join(tool)}" for tool in self.untested_tools),
            *(f"note: {note}" for note in self.notes),
        ]
        for history in self.histories:
            if history.events:
                lines.append(f"{history.outcome}: {history.scenario.description!r}")
                lines += [f"  {event}" for event in history.events]
        return "\n".join(lines)


@dataclass(slots=True)
class LoopLog:
    """What a run notes as it goes."""

    notes: dict[str, None] = field(default_factory=dict)
    """In order, each once."""
    _histories: dict[str, ScenarioHistory] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Remember something about no scenario in particular, once."""
        self.notes[text] = None

    def record(
        self, scenario: TestScenario, event: str = "", outcome: ScenarioOutcome | None = None
    ) -> None:
        """Remember a scenario as it is now, and what happened to it."""
        id_ = scenario.id
        before = self._histories.get(id_, ScenarioHistory(id_, scenario, "passed"))
        # Each event once, because a verification after the other finds the same.
        is_new = event and event not in before.events
        events = (*before.events, event) if is_new else before.events
        self._histories[id_] = ScenarioHistory(id_, scenario, outcome or before.outcome, events)

    def knows(self, scenario: TestScenario) -> bool:
        """Return whether a scenario of this request was seen."""
        return scenario.id in self._histories

    def histories(self, results: Iterable[ExecutionResult]) -> tuple[ScenarioHistory, ...]:
        """Return every scenario seen, with the outcome that the last execution gives it."""
        passed = {result.scenario.id: result.passed for result in results}
        return tuple(
            history if passed.get(history.id, True) else replace(history, outcome="failed")
            for history in self._histories.values()
        )
