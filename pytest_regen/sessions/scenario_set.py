"""The scenarios of a run: who may enter, who is corrected, what the generator is to be told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_regen.sessions.arguments import argument_problems
from pytest_regen.sessions.blame import attributed
from pytest_regen.sessions.loop_parts import LoopParts
from pytest_regen.sessions.memory import checked_handwritten
from pytest_regen.sessions.merging import merge_replacements
from pytest_regen.sessions.protocols import Attribution, Engine, ExecutionResult, Judgement
from pytest_regen.sessions.report import Fates
from pytest_regen.sessions.values import (
    ActualDecision,
    DiscardedScenario,
    ScenarioCorrection,
    ScenarioFeedback,
    TestScenario,
)

__all__ = ["ScenarioSet", "Score"]


@dataclass(frozen=True, slots=True)
class Score:
    """How many scenarios an engine fails; those it gives what the judge wants do not count."""

    failing: int
    handwritten: int


class ScenarioSet:
    """Scenarios by id, each request once, handwritten ones untouchable."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._annotations = {one.tool: one for one in parts.annotations}
        self._scenarios: dict[str, TestScenario] = {}
        self._engine: Engine | None = None
        self._verdicts: dict[str, Attribution] = {}
        self._first_tools: set[tuple[str, str]] = set()
        self._untold_corrections: list[ScenarioCorrection] = []
        self._untold_discards: list[DiscardedScenario] = []
        self._untold_probes: list[TestScenario] = []
        self.corrections: list[ScenarioCorrection] = []
        self.fates = Fates()

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """The set as it stands, handwritten ones first."""
        return tuple(self._scenarios.values())

    @property
    def handwritten(self) -> tuple[TestScenario, ...]:
        """The scenarios of people."""
        return tuple(one for one in self.scenarios if one.is_handwritten)

    @property
    def generated_count(self) -> int:
        """Scenarios that were generated."""
        return len(self._scenarios) - len(self.handwritten)

    @property
    def lost_tools(self) -> tuple[tuple[str, str], ...]:
        """Tools of the first answer that no scenario tests any more."""
        return tuple(sorted(self._first_tools - {one.request.tool for one in self.scenarios}))

    @property
    def coverage(self) -> float:
        """Share of the tools of the first answer that are still tested."""
        if not self._first_tools:
            return 1.0
        return 1 - len(self.lost_tools) / len(self._first_tools)

    @property
    def untold(self) -> ScenarioFeedback:
        """What the generator was not told yet."""
        return ScenarioFeedback(
            corrections=tuple(self._untold_corrections),
            discarded_scenarios=tuple(self._untold_discards),
            probe_scenarios=tuple(self._untold_probes),
        )

    def use(self, engine: Engine) -> None:
        """Let ``engine`` decide from now on."""
        self._engine = engine

    def verdict_on(self, scenario_id: str) -> Attribution | None:
        """Return the judge's last verdict on a scenario."""
        return self._verdicts.get(scenario_id)

    def execute(self, engine: Engine | None = None) -> tuple[ExecutionResult, ...]:
        """Return what the engine decides about every scenario of the set."""
        return tuple(self._run(one, engine) for one in self.scenarios)

    def _run(self, scenario: TestScenario, engine: Engine | None = None) -> ExecutionResult:
        ruling = (engine or self._ruler).evaluate(scenario.request)
        return ExecutionResult(scenario, ruling.decision, ruling.rule)

    @property
    def _ruler(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("no engine is in use yet")
        return self._engine

    def add_first(self, scenarios: Iterable[TestScenario]) -> None:
        """Take the first answer: handwritten scenarios as they are, others if they can pass."""
        given = list(scenarios)
        own = checked_handwritten(self._parts.handwritten)
        for one in [*own, *(one for one in given if one.is_handwritten)]:
            self._scenarios.setdefault(one.id, one)
            self.fates.saw(self._scenarios[one.id], "", "passed")
            if self._parts.structural(one, self._ruler):
                self.fates.saw(one, "contradicts a structural invariant; kept, because handwritten")
        for one in given:
            if not one.is_handwritten:
                self._first_tools.add(one.request.tool)
                self._enter(one, "generated")

    def _enter(self, scenario: TestScenario, origin: str) -> bool:
        """Let a scenario in, unless its request is there or nothing can satisfy it."""
        known = self._scenarios.get(scenario.id)
        if known is not None:
            self.fates.saw(known, f"{origin} again as {scenario.description!r}; left out")
            return False
        discarded = self._impossible(scenario)
        if discarded is not None:
            self._discard(discarded, origin)
            return False
        self._scenarios[scenario.id] = scenario
        self.fates.saw(scenario, "" if origin == "generated" else origin, "passed")
        return True

    def _impossible(self, scenario: TestScenario) -> DiscardedScenario | None:
        annotation = self._annotations.get(scenario.request.tool)
        problems = argument_problems(scenario.request, annotation) if annotation else ()
        if problems:
            rule = f"invalid-schema: {'; '.join(problems)}"
            return DiscardedScenario(scenario=scenario, actual="deny", rule=rule)
        return self._parts.structural(scenario, self._ruler)

    def _discard(self, discarded: DiscardedScenario, origin: str) -> None:
        scenario = discarded.scenario
        event = (
            f"{origin} and discarded: it expects {scenario.expected_decision}, and "
            f"{discarded.rule} always gives {discarded.actual}"
        )
        self._scenarios.pop(scenario.id, None)
        self.fates.saw(scenario, event, "discarded")
        if origin != "probe":
            self._untold_discards.append(discarded)

    def add_probes(self, probes: Sequence[TestScenario], limit: int) -> int:
        """Take requests that nobody tested; return how many were new."""
        added = 0
        for probe in self._generated(probes):
            if added == limit:
                break
            if probe.id not in self._scenarios and self._enter(probe, "probe"):
                self._untold_probes.append(probe)
                added += 1
        return added

    def take_verdicts(self, judgement: Judgement, results: Sequence[ExecutionResult]) -> None:
        """Correct what the judge blames and the engine agrees to; remember the other verdicts."""
        verdicts, notes = attributed(judgement.attributions, results)
        for note in notes:
            self.fates.note(note)
        self._verdicts.update(verdicts)
        by_id = {one.scenario.id: one for one in results}
        for id_, verdict in verdicts.items():
            self._take_verdict(verdict, by_id[id_])

    def _take_verdict(self, verdict: Attribution, result: ExecutionResult) -> None:
        scenario = result.scenario
        if verdict.kind == "rule":
            self.fates.saw(scenario, f"fails; the judge blames the rules: {verdict.reasoning}")
        elif scenario.is_handwritten:
            event = "fails; the judge blames it, but it is handwritten: the rules are to blame"
            self.fates.saw(scenario, event)
        elif verdict.corrected_decision == result.actual:
            self._correct(result, verdict)
        else:
            self.fates.saw(
                scenario,
                f"the judge wants {verdict.corrected_decision}, the engine says {result.actual} "
                f"({result.rule}): not corrected",
            )

    def _correct(self, result: ExecutionResult, verdict: Attribution) -> None:
        """Put a correction in place that the engine agrees to."""
        scenario, reasoning = result.scenario, verdict.corrected_reasoning or verdict.reasoning
        correction = ScenarioCorrection(
            scenario_description=scenario.description,
            corrected_decision=result.actual,
            corrected_reasoning=reasoning,
            scenario_id=scenario.id,
            original_decision=scenario.expected_decision,
            request=scenario.request,
            rule=result.rule,
        )
        corrected = scenario.model_copy(
            update={
                "expected_decision": result.actual,
                "reasoning": reasoning or scenario.reasoning,
            }
        )
        self._scenarios[scenario.id] = corrected
        self.corrections.append(correction)
        self._untold_corrections.append(correction)
        self.fates.saw(
            corrected,
            f"expected {scenario.expected_decision}, corrected to {result.actual}: the judge says "
            f"so and the engine agrees ({result.rule})",
            "corrected",
        )

    def wanted(self, failing: Sequence[ExecutionResult]) -> Mapping[str, ActualDecision]:
        """Return what the judge holds right where that is neither expected nor decided."""
        found: dict[str, ActualDecision] = {}
        for result in failing:
            verdict = self._verdicts.get(result.scenario.id)
            right = verdict.corrected_decision if verdict and verdict.kind != "rule" else None
            if right is not None and not result.scenario.is_handwritten:
                found[result.scenario.id] = right
        return found

    def score(self, engine: Engine | None = None) -> Score:
        """Return how the set fares with ``engine``, or with the one in use."""
        results = self.execute(engine)
        failing = [one for one in results if not one.passed]
        wanted = self.wanted(failing)
        left = [one for one in failing if wanted.get(one.scenario.id) != one.actual]
        return Score(len(left), sum(one.scenario.is_handwritten for one in left))

    def settle_wanted(self) -> None:
        """Correct what the judge wanted all along, now that new rules agree."""
        failing = [one for one in self.execute() if not one.passed]
        wanted = self.wanted(failing)
        for result in failing:
            if wanted.get(result.scenario.id) == result.actual:
                self._correct(result, self._verdicts[result.scenario.id])

    def add_replacements(
        self, replacements: Sequence[TestScenario], told: ScenarioFeedback
    ) -> None:
        """Check replacements at once: take what passes, discard what cannot, judge the rest.

        A failing replacement of a new request enters the set as well: who is wrong is for the
        judge to say, and leaving it out would hide what it found.
        """
        self._untold_corrections, self._untold_discards, self._untold_probes = [], [], []
        possible: dict[str, TestScenario] = {}
        for one in self._generated(replacements):
            # Of two that ask the same, one that passes is the better one.
            if self._is_new(one, told) and (one.id not in possible or self._run(one).passed):
                possible[one.id] = one
        passing = {id_ for id_, one in possible.items() if self._run(one).passed}
        merged = merge_replacements(
            self.scenarios,
            list(possible.values()),
            told.corrections,
            (),
            accepts=lambda one: one.id in passing,
        )
        for id_, one in possible.items():
            known = self._scenarios.get(id_)
            if known is None:
                self.fates.saw(one, "replacement", "passed")
            elif id_ in passing:
                self.fates.saw(one, f"replaces {known.description!r}, which asked the same")
            else:
                event = f"a replacement expecting {one.expected_decision} fails; the old one stays"
                self.fates.saw(known, event)
        failing = [one for id_, one in possible.items() if id_ not in self._scenarios]
        self._scenarios = {one.id: one for one in [*merged, *failing]}

    def _generated(self, scenarios: Iterable[TestScenario]) -> Iterator[TestScenario]:
        """Yield scenarios of a model as such; 'not-allow' is for people to say."""
        for one in scenarios:
            if one.expected_decision == "not-allow":
                self.fates.note(
                    f"{one.description!r} expects 'not-allow'; only people may: left out"
                )
            else:
                yield one.model_copy(update={"source": "generated"})

    def _is_new(self, one: TestScenario, told: ScenarioFeedback) -> bool:
        """Return whether a replacement may stand for what it replaces, or beside the others."""
        known = self._scenarios.get(one.id)
        corrected = {correction.id for correction in told.corrections}
        if known is not None and (known.is_handwritten or known.id not in corrected):
            self.fates.saw(known, f"asked again by replacement {one.description!r}; left out")
            return False
        discarded = self._impossible(one)
        if discarded is None:
            return True
        if known is None:
            self._discard(discarded, "replacement")
        return False
