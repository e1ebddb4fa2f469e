"""The scenarios of a run: which may enter, which are corrected, what has to be sent of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    apply_corrections,
    untested_tools,
)


class ScenarioSet:
    """Scenarios by id: each request once, and handwritten ones never changed.

    Args:
        parts: those of the run; its handwritten scenarios are in the set from the beginning.
        engine: decides, until it is replaced.

    Raises:
        UsageError: handwritten scenarios contradict each other, a tool is annotated twice, or the
            engine returns no decision.
    """

    def __init__(self, parts: LoopParts, engine: Engine) -> None:
        self.engine = engine
        self.verdicts: dict[str, Attribution] = {}
        """By scenario id, the judge's last verdict."""
        self.corrections: list[ScenarioCorrection] = []
        self.log = LoopLog()
        self._parts = parts
        self._annotations = check_tools(parts.annotations)
        self.tools = set(self._annotations)
        """Tools that have to be tested: those annotated, and those of the first answer."""
        self._scenarios: dict[str, TestScenario] = {}
        self._probes: dict[str, bool] = {}
        """By scenario id, whether the generator has no need to hear of it any more."""
        self._unsent_corrections: dict[str, ScenarioCorrection] = {}
        self._unsent_discards: list[DiscardedScenario] = []
        self._tools_asked_for: set[tuple[str, str]] = set()
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
    def untested_tools(self) -> tuple[tuple[str, str], ...]:
        """Tools that have to be tested, and that no scenario tests."""
        return untested_tools(sorted(self.tools), self.scenarios)

    @property
    def unsent_feedback(self) -> ScenarioFeedback:
        """What was not sent to the generator yet."""
        # For a discarded scenario a replacement is asked for, and that of the same tool.
        tools_asked = self._tools_asked_for.union(
            discard.scenario.request.tool for discard in self._unsent_discards
        )
        # A probe is a gap to the generator once it expects what is right.
        gaps = [self._scenarios[id_] for id_, is_sent in self._probes.items() if not is_sent]
        return ScenarioFeedback(
            corrections=tuple(self._unsent_corrections.values()),
            discarded_scenarios=tuple(self._unsent_discards),
            probe_scenarios=tuple(filter(self._passes, gaps)),
            untested_tools=tuple(tool for tool in self.untested_tools if tool not in tools_asked),
        )

    def execute(self, engine: Engine | None = None) -> tuple[ExecutionResult, ...]:
        """Return what the engine decides about every scenario of the set."""
        return tuple(execute(scenario, engine or self.engine) for scenario in self.scenarios)

    def _passes(self, scenario: TestScenario) -> bool:
        return execute(scenario, self.engine).passed

    def add_first(self, scenarios: Sequence[TestScenario]) -> None:
        """Take the first answer: handwritten scenarios as they are, others if they can pass.

        Raises:
            UsageError: its handwritten scenarios contradict those of the run, or the engine gives
                what is no decision.
        """
        self._add_handwritten(scenario for scenario in scenarios if scenario.is_handwritten)
        for scenario in scenarios:
            if not scenario.is_handwritten:
                # Also of one that is discarded next, because coverage would shrink unseen.
                self.tools.add(scenario.request.tool)
                self._enter(scenario, "generated")

    def _add_handwritten(self, scenarios: Iterable[TestScenario]) -> None:
        for scenario in check_handwritten([*self.handwritten, *scenarios]):
            present = self._scenarios.get(scenario.id)
            counts = present is None or present.expected_decision == "not-allow"
            if not counts or scenario == present:
                # Two people may ask the same; what holds for the stricter one holds for both.
                continue
            self._scenarios[scenario.id] = scenario
            is_impossible = self._parts.structural(scenario, self.engine) is not None
            event = "contradicts a structural invariant; kept, because handwritten"
            self.log.record(scenario, event if is_impossible else "", "passed")

    def _enter(self, scenario: TestScenario, origin: str) -> bool:
        """Let a scenario in, unless its request is there or nothing can satisfy it."""
        present = self._scenarios.get(scenario.id)
        if present is not None:
            event = f"asked again by {origin} {scenario.description!r}; left out"
            self.log.record(present, event)
            return False
        discarded = self._impossible(scenario)
        if discarded is None:
            self._scenarios[scenario.id] = scenario
            self.log.record(scenario, "" if origin == "generated" else origin, "passed")
            return True
        event = (
            f"{origin} and discarded: it expects {scenario.expected_decision}, and "
            f"{discarded.rule} always gives {discarded.actual}"
        )
        self.log.record(scenario, event, "discarded")
        if origin != "probe":  # Because the generator did not write those.
            self._unsent_discards.append(discarded)
        return False

    def _impossible(self, scenario: TestScenario) -> DiscardedScenario | None:
        annotation = self._annotations.get(scenario.request.tool)
        problems = argument_problems(scenario.request, annotation) if annotation else ()
        if problems:
            rule = f"invalid-schema: {'; '.join(problems)}"
            return DiscardedScenario(scenario=scenario, actual="deny", rule=rule)
        return self._parts.structural(scenario, self.engine)

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
            if added == limit or probe.id in self._scenarios:
                continue
            result = execute(probe, self.engine)
            if not (are_judged or result.passed or self._impossible(probe)):
                self.log.note(f"a probe of the judge's last round was left out: {result}")
            elif self._enter(probe, "probe"):
                # One that passes showed no gap; the generator need not hear of it.
                self._probes[probe.id] = result.passed
                added += 1
        return added

    def apply_verdicts(self, judgement: Judgement, results: Sequence[ExecutionResult]) -> bool:
        """Correct scenarios where judge and engine agree; remember the other verdicts.

        A verdict counts for one failing scenario: the one of its id, else the only failing one of
        its description. The first verdict on a scenario counts.

        Returns:
            Whether all verdicts name a scenario.
        """
        by_name: dict[str, list[ExecutionResult]] = defaultdict(list)
        for result in results:
            by_name[result.scenario.id].append(result)
            by_name[result.scenario.description].append(result)
        judged: dict[str, tuple[Attribution, ExecutionResult]] = {}
        name_all = True
        for verdict in judgement.attributions:
            name = verdict.scenario_id or verdict.scenario_description
            meant = by_name.get(name, [])
            failing = [result for result in meant if not result.passed]
            # A name may be a description, because a model copies those more reliably than hashes.
            if len(failing) == 1:
                judged.setdefault(failing[0].scenario.id, (verdict, failing[0]))
            elif meant and not failing:
                self.log.note(f"the judge blames {name!r}, which passes; ignored")
            else:
                # Nothing is guessed, because a wrong guess would correct a right scenario.
                name_all = False
                number = len(failing) or "no"
                self.log.note(
                    f"the judge blames {name!r}, and {number} failing scenarios are called so"
                )
        for id_, (verdict, result) in judged.items():
            self.verdicts[id_] = verdict
            if verdict.kind == "rule":
                event = f"fails; the judge blames the rules: {verdict.reasoning}"
            elif result.scenario.is_handwritten:
                event = "fails; the judge blames it, but it is handwritten: the rules are to blame"
            elif verdict.corrected_decision == result.actual:
                self._correct(result, verdict)
                continue
            else:
                event = (
                    f"the judge wants {verdict.corrected_decision}, the engine says "
                    f"{result.actual} ({result.rule}): not corrected"
                )
            self.log.record(result.scenario, event)
        return name_all

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
        [corrected] = apply_corrections([scenario], [correction])
        self._scenarios[scenario.id] = corrected
        self.corrections.append(correction)
        self.log.record(
            corrected,
            f"expected {scenario.expected_decision}, corrected to {result.actual}: the judge says "
            f"so and the engine agrees ({result.rule})",
            "corrected",
        )
        if scenario.id in self._probes:
            return  # It is sent as what is right, because the generator did not write it.
        # One correction for the generator, from what it said to what is right now, because rules
        # may have changed before it could hear of the first.
        earlier = self._unsent_corrections.pop(scenario.id, correction)
        if earlier.original_decision != result.actual:
            update = {"original_decision": earlier.original_decision}
            self._unsent_corrections[scenario.id] = correction.model_copy(update=update)

    def wanted_decisions(self, failing: Sequence[ExecutionResult]) -> Mapping[str, ActualDecision]:
        """Return what the judge holds right where that is neither expected nor decided."""
        return {
            result.scenario.id: verdict.corrected_decision
            for result in failing
            if not result.scenario.is_handwritten
            and (verdict := self.verdicts.get(result.scenario.id))
            and verdict.kind != "rule"
            and verdict.corrected_decision
        }

    def score(self, engine: Engine) -> tuple[int, int]:
        """Return how many scenarios fail with ``engine``, and how many of these are handwritten.

        One that is decided as the judge wants does not count: it is corrected then.
        """
        failing = [result for result in self.execute(engine) if not result.passed]
        decisions = self.wanted_decisions(failing)
        left = [result for result in failing if decisions.get(result.scenario.id) != result.actual]
        return len(left), sum(result.scenario.is_handwritten for result in left)

    def use(self, engine: Engine) -> None:
        """Let ``engine`` decide, and correct what the judge wanted all along where it agrees."""
        self.engine = engine
        failing = [result for result in self.execute() if not result.passed]
        decisions = self.wanted_decisions(failing)
        for result in failing:
            if decisions.get(result.scenario.id) == result.actual:
                self._correct(result, self.verdicts[result.scenario.id])

    def add_replacements(
        self, replacements: Sequence[TestScenario], sent: ScenarioFeedback
    ) -> None:
        """Check replacements at once: take what passes, discard what cannot, judge the rest.

        A failing replacement of a new request enters the set as well: who is wrong is for the
        judge to say, and leaving it out would hide what it found.
        """
        # Only now, because a turn that failed would have lost them.
        self._unsent_corrections, self._unsent_discards = {}, []
        self._tools_asked_for.update(sent.untested_tools)
        self._probes.update({probe.id: True for probe in sent.probe_scenarios})
        replaceable = {correction.id for correction in sent.corrections}
        for scenario in self._as_generated(replacements):
            id_ = scenario.id
            present = self._scenarios.get(id_)
            if present is None or present.is_handwritten or id_ not in replaceable:
                # Of two that ask the same, one that passes is the better one.
                replaceable |= {id_} if self._enter(scenario, "replacement") else set()
            elif not self._passes(scenario):
                event = f"a replacement expecting {scenario.expected_decision} fails; the old one"
                self.log.record(present, f"{event} stays")
            # Otherwise the corrected one stays, because taking it out and hoping for an equivalent
            # would lose its request where the answer is empty or about something else.
            elif self._impossible(scenario) is None:
                del self._scenarios[id_]  # It stands where replacements do: at the end.
                self._scenarios[id_] = scenario
                self.log.record(scenario, f"replaces {present.description!r}, which asked the same")

    def _as_generated(self, scenarios: Iterable[TestScenario]) -> Iterator[TestScenario]:
        """Yield scenarios marked as generated; only people may expect 'not-allow'."""
        for scenario in scenarios:
            if scenario.expected_decision == "not-allow":
                self.log.note(
                    f"{scenario.description!r} expects 'not-allow'; only people may: left out"
                )
            else:
                yield scenario.model_copy(update={"source": "generated"})
