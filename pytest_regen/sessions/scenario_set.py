"""The scenarios of a run: which may enter, which are corrected, what has to be sent of them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_regen.sessions.arguments import argument_problems
from pytest_regen.sessions.feedback import check_handwritten, check_tools
from pytest_regen.sessions.protocols import (
    Attribution,
    Engine,
    ExecutionResult,
    Judgement,
    LoopParts,
    execute,
)
from pytest_regen.sessions.report import LoopLog
from pytest_regen.sessions.scenarios import (
    ActualDecision,
    DiscardedScenario,
    ScenarioCorrection,
    ScenarioFeedback,
    TestScenario,
    merge_replacements,
    untested_tools,
)


def match_attributions(
    attributions: Iterable[Attribution], results: Sequence[ExecutionResult]
) -> tuple[dict[str, Attribution], list[str], list[str]]:
    """Return the verdict on each failing scenario, by id, and what is wrong with other verdicts.

    A verdict counts for one failing scenario: the one of its id, else the only failing one of its
    description. The first verdict on a scenario counts. Nothing is guessed, because a wrong guess
    would correct a right scenario.

    Returns:
        The verdicts; notes on verdicts that name no single failing scenario; notes on verdicts on
        scenarios that pass.
    """
    by_name: dict[str, dict[str, bool]] = defaultdict(dict)
    for result in results:
        for name in (result.scenario.id, result.scenario.description):
            by_name[name][result.scenario.id] = not result.passed
    verdicts: dict[str, Attribution] = {}
    unusable, idle = [], []
    for attribution in attributions:
        name = attribution.scenario_id or attribution.scenario_description
        meant = by_name.get(name, {})
        failing = [id_ for id_, fails in meant.items() if fails]
        if len(failing) == 1:
            verdicts.setdefault(failing[0], attribution)
        elif failing:
            number = len(failing)
            unusable.append(
                f"the judge blames {name!r}, and {number} failing scenarios are called so"
            )
        elif meant:
            idle.append(f"the judge blames {name!r}, which passes; ignored")
        else:
            unusable.append(f"the judge blames {name!r}, and no failing scenario is called so")
    return verdicts, unusable, idle


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How many scenarios fail; one that is decided as the judge wants does not count."""

    failing: int
    handwritten: int


class ScenarioSet:
    """Scenarios by id: each request once, and handwritten ones never changed.

    Args:
        parts: those of the run; its handwritten scenarios are in the set from the beginning.
        engine: decides, until ``use`` names another one.

    Raises:
        UsageError: handwritten scenarios contradict each other, a tool is annotated twice, or the
            engine returns no decision.
    """

    def __init__(self, parts: LoopParts, engine: Engine) -> None:
        self._parts = parts
        self._engine = engine
        self._annotations = {
            annotation.tool: annotation for annotation in check_tools(parts.annotations)
        }
        self._scenarios: dict[str, TestScenario] = {}
        self._verdicts: dict[str, Attribution] = {}
        self._tools = set(self._annotations)
        self._probes: dict[str, bool] = {}
        self._unsent_corrections: dict[str, ScenarioCorrection] = {}
        self._unsent_discards: list[DiscardedScenario] = []
        self._tools_asked_for: set[tuple[str, str]] = set()
        self.corrections: list[ScenarioCorrection] = []
        self.log = LoopLog()
        self._add_handwritten(parts.handwritten)

    @property
    def scenarios(self) -> tuple[TestScenario, ...]:
        """The set as it stands, handwritten ones first."""
        return tuple(self._scenarios.values())

    @property
    def handwritten(self) -> tuple[TestScenario, ...]:
        """The scenarios that people wrote."""
        return tuple(scenario for scenario in self.scenarios if scenario.is_handwritten)

    @property
    def generated_count(self) -> int:
        """Scenarios that were generated."""
        return len(self._scenarios) - len(self.handwritten)

    @property
    def untested_tools(self) -> tuple[tuple[str, str], ...]:
        """Tools, annotated or of the first answer, that no scenario tests."""
        return untested_tools(sorted(self._tools), self.scenarios)

    @property
    def coverage(self) -> float:
        """Share of those tools that are tested."""
        return 1 - len(self.untested_tools) / len(self._tools) if self._tools else 1.0

    @property
    def unsent_feedback(self) -> ScenarioFeedback:
        """What was not sent to the generator yet."""
        # For a discarded scenario a replacement is asked for, and that of the same tool.
        tools_asked = {
            discard.scenario.request.tool for discard in self._unsent_discards
        } | self._tools_asked_for
        return ScenarioFeedback(
            corrections=tuple(self._unsent_corrections.values()),
            discarded_scenarios=tuple(self._unsent_discards),
            probe_scenarios=tuple(self._gaps()),
            untested_tools=tuple(tool for tool in self.untested_tools if tool not in tools_asked),
        )

    def _gaps(self) -> Iterator[TestScenario]:
        """Yield probes that showed a gap and by now expect what is right."""
        for id_, is_sent in self._probes.items():
            if not is_sent and self._passes(self._scenarios[id_]):
                yield self._scenarios[id_]

    def use(self, engine: Engine) -> None:
        """Let ``engine`` decide from now on."""
        self._engine = engine

    def verdict_on(self, scenario_id: str) -> Attribution | None:
        """Return the judge's last verdict on a scenario."""
        return self._verdicts.get(scenario_id)

    def execute(self, engine: Engine | None = None) -> tuple[ExecutionResult, ...]:
        """Return what the engine decides about every scenario of the set."""
        return tuple(execute(scenario, engine or self._engine) for scenario in self.scenarios)

    def _passes(self, scenario: TestScenario) -> bool:
        return execute(scenario, self._engine).passed

    def add_first(self, scenarios: Iterable[TestScenario]) -> None:
        """Take the first answer: handwritten scenarios as they are, others if they can pass.

        Raises:
            UsageError: its handwritten scenarios contradict those of the run, or the engine gives
                what is no decision.
        """
        answer = list(scenarios)
        self._add_handwritten(scenario for scenario in answer if scenario.is_handwritten)
        for scenario in answer:
            if not scenario.is_handwritten:
                self._tools.add(scenario.request.tool)
                self._enter(scenario, "generated")

    def _add_handwritten(self, scenarios: Iterable[TestScenario]) -> None:
        for scenario in check_handwritten([*self.handwritten, *scenarios]):
            present = self._scenarios.get(scenario.id)
            counts = present is None or present.expected_decision == "not-allow"
            if not counts or scenario == present:
                # Two people may ask the same; what holds for the stricter one holds for both.
                continue
            self._scenarios[scenario.id] = scenario
            is_impossible = self._parts.structural(scenario, self._engine) is not None
            event = "contradicts a structural invariant; kept, because handwritten"
            self.log.record(scenario, event if is_impossible else "", "passed")

    def _enter(self, scenario: TestScenario, origin: str) -> bool:
        """Let a scenario in, unless its request is there or nothing can satisfy it."""
        present = self._scenarios.get(scenario.id)
        if present is not None:
            self.log.record(present, f"{origin} again as {scenario.description!r}; left out")
            return False
        discarded = self._impossible(scenario)
        if discarded is not None:
            self._discard(discarded, origin)
            return False
        self._scenarios[scenario.id] = scenario
        self.log.record(scenario, "" if origin == "generated" else origin, "passed")
        return True

    def _impossible(self, scenario: TestScenario) -> DiscardedScenario | None:
        annotation = self._annotations.get(scenario.request.tool)
        problems = argument_problems(scenario.request, annotation) if annotation else ()
        if problems:
            rule = f"invalid-schema: {'; '.join(problems)}"
            return DiscardedScenario(scenario=scenario, actual="deny", rule=rule)
        return self._parts.structural(scenario, self._engine)

    def _discard(self, discarded: DiscardedScenario, origin: str) -> None:
        scenario = discarded.scenario
        event = (
            f"{origin} and discarded: it expects {scenario.expected_decision}, and "
            f"{discarded.rule} always gives {discarded.actual}"
        )
        self._scenarios.pop(scenario.id, None)
        self.log.record(scenario, event, "discarded")
        if origin != "probe":
            self._unsent_discards.append(discarded)

    def add_probes(self, probes: Sequence[TestScenario], limit: int, *, are_judged: bool) -> int:
        """Take requests that were not tested before; return how many were new.

        Args:
            probes: what the judge proposes.
            limit: how many are taken.
            are_judged: whether the judge is heard about them. Where not, one that fails is noted
                and left out: nobody could say whether it or the rules are wrong.
        """
        added = 0
        for probe in self._as_generated(probes):
            if added == limit:
                break
            if probe.id in self._scenarios or not (are_judged or self._is_clear(probe)):
                continue
            if self._enter(probe, "probe"):
                # One that passes showed no gap; the generator need not hear of it.
                self._probes[probe.id] = self._passes(probe)
                added += 1
        return added

    def _is_clear(self, probe: TestScenario) -> bool:
        """Return whether a probe needs no judge; note one that does."""
        if self._impossible(probe) is not None:
            return True
        result = execute(probe, self._engine)
        if not result.passed:
            self.log.note(f"a probe of the judge's last round was left out: {result}")
        return result.passed

    def apply_verdicts(self, judgement: Judgement, results: Sequence[ExecutionResult]) -> bool:
        """Correct scenarios where judge and engine agree; remember the other verdicts.

        Returns:
            Whether all verdicts name a scenario.
        """
        verdicts, unusable, idle = match_attributions(judgement.attributions, results)
        for note in (*unusable, *idle):
            self.log.note(note)
        self._verdicts.update(verdicts)
        by_id = {result.scenario.id: result for result in results}
        for id_, verdict in verdicts.items():
            self._apply_verdict(verdict, by_id[id_])
        return not unusable

    def _apply_verdict(self, verdict: Attribution, result: ExecutionResult) -> None:
        scenario = result.scenario
        if verdict.kind == "rule":
            self.log.record(scenario, f"fails; the judge blames the rules: {verdict.reasoning}")
        elif scenario.is_handwritten:
            event = "fails; the judge blames it, but it is handwritten: the rules are to blame"
            self.log.record(scenario, event)
        elif verdict.corrected_decision == result.actual:
            self._correct(result, verdict)
        else:
            self.log.record(
                scenario,
                f"the judge wants {verdict.corrected_decision}, the engine says {result.actual} "
                f"({result.rule}): not corrected",
            )

    def _correct(self, result: ExecutionResult, verdict: Attribution) -> None:
        """Correct a scenario in place, as the engine agrees."""
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
        if scenario.id not in self._probes:
            # A probe is sent as what is right, not as a correction: the generator did not write it.
            self._queue_correction(correction, scenario.id)
        self.log.record(
            corrected,
            f"expected {scenario.expected_decision}, corrected to {result.actual}: the judge says "
            f"so and the engine agrees ({result.rule})",
            "corrected",
        )

    def _queue_correction(self, correction: ScenarioCorrection, id_: str) -> None:
        """Keep one correction per scenario: from the generator's decision to the right one."""
        earlier = self._unsent_corrections.pop(id_, None)
        first = earlier.original_decision if earlier else correction.original_decision
        if first != correction.corrected_decision:
            update = {"original_decision": first}
            self._unsent_corrections[id_] = correction.model_copy(update=update)

    def wanted_decisions(self, failing: Sequence[ExecutionResult]) -> Mapping[str, ActualDecision]:
        """Return what the judge holds right where that is neither expected nor decided."""
        right_ones: dict[str, ActualDecision] = {}
        for result in failing:
            verdict = self._verdicts.get(result.scenario.id)
            right = verdict.corrected_decision if verdict and verdict.kind != "rule" else None
            if right is not None and not result.scenario.is_handwritten:
                right_ones[result.scenario.id] = right
        return right_ones

    def score(self, engine: Engine | None = None) -> FailureCount:
        """Return how many scenarios fail with ``engine``, or with the one in use."""
        results = self.execute(engine)
        failing = [result for result in results if not result.passed]
        decisions = self.wanted_decisions(failing)
        left = [result for result in failing if decisions.get(result.scenario.id) != result.actual]
        return FailureCount(len(left), sum(result.scenario.is_handwritten for result in left))

    def correct_wanted(self) -> None:
        """Correct what the judge wanted all along, now that new rules agree."""
        failing = [result for result in self.execute() if not result.passed]
        decisions = self.wanted_decisions(failing)
        for result in failing:
            if decisions.get(result.scenario.id) == result.actual:
                self._correct(result, self._verdicts[result.scenario.id])

    def add_replacements(
        self, replacements: Sequence[TestScenario], sent: ScenarioFeedback
    ) -> None:
        """Check replacements at once: take what passes, discard what cannot, judge the rest.

        A failing replacement of a new request enters the set as well: who is wrong is for the
        judge to say, and leaving it out would hide what it found.
        """
        self._unsent_corrections, self._unsent_discards = {}, []
        self._tools_asked_for.update(sent.untested_tools)
        self._probes.update({probe.id: True for probe in sent.probe_scenarios})
        possible: dict[str, TestScenario] = {}
        corrected = {correction.id for correction in sent.corrections}
        for scenario in self._as_generated(replacements):
            # Of two that ask the same, one that passes is the better one.
            if self._is_new(scenario, corrected) and (
                scenario.id not in possible or self._passes(scenario)
            ):
                possible[scenario.id] = scenario
        passing = {id_ for id_, scenario in possible.items() if self._passes(scenario)}
        merged = merge_replacements(
            self.scenarios,
            list(possible.values()),
            sent.corrections,
            (),
            accepts=lambda scenario: scenario.id in passing,
        )
        for id_, scenario in possible.items():
            present = self._scenarios.get(id_)
            if present is None:
                self.log.record(scenario, "replacement", "passed")
            elif id_ in passing:
                self.log.record(scenario, f"replaces {present.description!r}, which asked the same")
            else:
                event = (
                    f"a replacement expecting {scenario.expected_decision} fails; the old one stays"
                )
                self.log.record(present, event)
        failing = [scenario for id_, scenario in possible.items() if id_ not in self._scenarios]
        self._scenarios = {scenario.id: scenario for scenario in [*merged, *failing]}

    def _as_generated(self, scenarios: Iterable[TestScenario]) -> Iterator[TestScenario]:
        """Yield scenarios marked as generated; only people may expect 'not-allow'."""
        for scenario in scenarios:
            if scenario.expected_decision == "not-allow":
                self.log.note(
                    f"{scenario.description!r} expects 'not-allow'; only people may: left out"
                )
            else:
                yield scenario.model_copy(update={"source": "generated"})

    def _is_new(self, scenario: TestScenario, corrected: Collection[str | None]) -> bool:
        """Return whether a replacement may stand for what it replaces, or beside the others."""
        present = self._scenarios.get(scenario.id)
        if present is not None and (present.is_handwritten or present.id not in corrected):
            self.log.record(
                present, f"asked again by replacement {scenario.description!r}; left out"
            )
            return False
        discarded = self._impossible(scenario)
        if discarded is None:
            return True
        if present is None:
            self._discard(discarded, "replacement")
        return False
