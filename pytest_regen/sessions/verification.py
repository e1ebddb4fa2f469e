"""One run of verifying and repairing, from a policy and a set of scenarios to their agreement."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from pytest_regen.errors import BudgetError, NoProgressError, ProviderError
from pytest_regen.plurals import counted
from pytest_regen.sessions.artifacts import checked_policy, content_hash
from pytest_regen.sessions.calls import Call, Calls
from pytest_regen.sessions.loop_parts import LoopParts, LoopSettings
from pytest_regen.sessions.protocols import (
    AsyncScenarioSource,
    ExecutionResult,
    Judgement,
    Policy,
    RepairContext,
    ScenarioSource,
)
from pytest_regen.sessions.report import Disagreement, LoopReport, RunStop
from pytest_regen.sessions.scenario_set import ScenarioSet
from pytest_regen.sessions.values import ScenarioFeedback, TestScenario

__all__ = ["Verification"]

_FAILED_TURN = (ProviderError, BudgetError, NoProgressError)
"""What ends one turn with a model and not the run: what was reached so far is kept."""

_MOST_CHANGES = 10
"""Decisions of new rules that the generator is told."""


class Verification:
    """A policy, a set of scenarios, and what is done until the one gives what the other expects.

    Args:
        parts: who does what.
        settings: limits.
        policy: the rules to begin with.
        tell: is called with one line per step.

    Attributes:
        policy: the rules as they stand.
        set: the scenarios as they stand; handwritten ones are there from the beginning.

    Raises:
        UsageError: the policy is not plain JSON, or the engine gives what is no decision.
    """

    def __init__(
        self,
        parts: LoopParts,
        settings: LoopSettings,
        policy: Policy,
        tell: Callable[[str], None],
    ) -> None:
        self.policy = checked_policy(policy)
        self.set = ScenarioSet(parts, parts.engine(policy))
        self._parts = parts
        self._settings = settings
        self._tell = tell
        self._repairs = 0
        self._judgements = 0
        self._analysis = ""
        self._rule_changes: list[str] = []
        self._shown: dict[str, tuple[str, str, str]] = {}
        """By scenario id, how it stood when the judge last heard of it."""

    def repaired(self, source: ScenarioSource | AsyncScenarioSource) -> Calls[RunStop]:
        """Verify and repair until all is well, attempts are used up or nothing moves."""
        attempts = self._settings.max_repairs
        for attempt in range(1, attempts + 2):
            failing, is_heard = yield from self._verify(attempt)
            if not failing and not self.set.untold.asks_for_replacements:
                return "passed"
            if attempt > attempts:
                return "attempts"
            before = self._state()
            # Without the judge, only what people wrote says by itself that the rules are wrong.
            blamed = [one for one in failing if is_heard or one.scenario.is_handwritten]
            yield from self._repair(source, blamed, attempt)
            # A judge who was not heard may be heard the next time, about the same state.
            if is_heard and self._state() == before:
                return "no_progress"
        raise AssertionError("unreachable: the last attempt returns")  # pragma: no cover

    def _verify(self, attempt: int) -> Calls[tuple[tuple[ExecutionResult, ...], bool]]:
        """Execute everything, hear the judge about what is new, execute its probes.

        Returns:
            What fails, and whether the judge was heard about all of it.
        """
        rounds, verification = self._settings.max_rounds, f"verification {attempt}, "
        is_heard = True
        for number in range(1, rounds + 1):
            results = self.set.execute()
            news = self._news(results, repeats_questions=number == 1)
            if not news:
                break
            which = f"{verification if attempt > 1 else ''}round {number}"
            self._tell(f"Judging {counted(len(news), 'scenario')} ({which})...")
            judgement = yield from self._judge(news)
            is_heard = judgement is not None
            if judgement is None:
                break
            self.set.take_verdicts(judgement, results)
            judged = {one.scenario.id for one in news}
            for one in self.set.execute():
                if one.scenario.id in judged:
                    self._shown[one.scenario.id] = _standing(one)
            added = self.set.add_probes(
                judgement.probes, self._settings.max_probes, are_judged=number < rounds
            )
            if not added:
                break
        return tuple(one for one in self.set.execute() if not one.passed), is_heard

    def _news(
        self, results: Sequence[ExecutionResult], *, repeats_questions: bool
    ) -> tuple[ExecutionResult, ...]:
        """Return what the judge is to be asked about: everything once, then what it has not judged.

        That are failures that are new, changed, or stand without a verdict, and with them what else
        has changed. Where nothing fails that it has not judged, there is nothing to ask.

        Args:
            results: of the whole set.
            repeats_questions: whether a failure that it left without a verdict is asked again.
        """
        if not self._shown:
            return tuple(results)
        changed, is_open = [], False
        for one in results:
            id_ = one.scenario.id
            is_new = self._shown.get(id_) != _standing(one)
            is_unjudged = not one.passed and self.set.verdict_on(id_) is None
            if is_new or (repeats_questions and is_unjudged):
                changed.append(one)
                is_open = is_open or not one.passed
        return tuple(changed) if is_open else ()

    def _judge(self, results: Sequence[ExecutionResult]) -> Calls[Judgement | None]:
        try:
            judgement: Judgement = yield Call(self._parts.judge, "judge", (self.policy, results))
        except _FAILED_TURN as error:
            self.set.fates.note(f"the judge could not be heard: {error}")
            return None
        self._judgements += 1
        self._analysis = judgement.analysis
        if judgement.passed != all(one.passed for one in results):
            says = "all is well" if judgement.passed else "something is wrong"
            self.set.fates.note(f"the judge says {says}; the engine says otherwise and decides")
        return judgement

    def _repair(
        self,
        source: ScenarioSource | AsyncScenarioSource,
        blamed: Sequence[ExecutionResult],
        attempt: int,
    ) -> Calls[None]:
        """Have the rules mended that fail ``blamed``, and ask for what is to be replaced."""
        if blamed or self.set.untold.asks_for_replacements:
            self._repairs += 1
        if blamed:
            yield from self._repair_rules(blamed, attempt)
        feedback = self.set.untold
        if not feedback.asks_for_replacements:
            return
        feedback = feedback.model_copy(update={"rule_changes": tuple(self._rule_changes)})
        self._tell("Asking for replacements...")
        replacements = yield from self._replacements(source, feedback)
        if replacements is not None:
            self._rule_changes = []
            self.set.add_replacements(replacements, feedback)

    def _replacements(
        self, source: ScenarioSource | AsyncScenarioSource, feedback: ScenarioFeedback
    ) -> Calls[list[TestScenario] | None]:
        try:
            return cast("list[TestScenario]", (yield Call(source, "regenerate", (feedback,))))
        except _FAILED_TURN as error:
            self.set.fates.note(f"no replacements: {error}")
            return None

    def _repair_rules(self, failing: Sequence[ExecutionResult], attempt: int) -> Calls[None]:
        """Have the rules mended; take them only if fewer scenarios fail and no handwritten more."""
        self._tell(f"Repairing the rules ({counted(len(failing), 'failure')})...")
        context = RepairContext(
            tuple(failing),
            self._analysis,
            attempt,
            self.set.handwritten,
            self.set.wanted(failing),
        )
        try:
            answer = yield Call(self._parts.compiler, "repair", (self.policy, context))
        except _FAILED_TURN as error:
            self.set.fates.note(f"the rules were not repaired: {error}")
            return
        candidate = checked_policy(answer)
        if candidate == self.policy:
            self.set.fates.note(f"repair {attempt} changed no rule")
            return
        engine = self._parts.engine(candidate)
        before, after = self.set.execute(), self.set.execute(engine)
        was, now = self.set.score(), self.set.score(engine)
        if not (now.failing < was.failing and now.handwritten <= was.handwritten):
            self.set.fates.note(
                f"repair {attempt} of the rules was not taken: "
                f"{counted(now.failing, 'scenario')} would fail instead of {was.failing}"
            )
            return
        self.policy = candidate
        self.set.use(engine)
        self.set.settle_wanted()
        self._rule_changes += _changes(before, after)

    def _state(self) -> str:
        """Return what a repair must change to be one: the rules, the set, or what is to be told."""
        return content_hash(self.policy, list(self.set.scenarios), [self.set.untold])

    def report(self, stop: RunStop, input_hash: str, *, cached: bool = False) -> LoopReport:
        """Return how the run ended, after one last execution of everything.

        Args:
            stop: why it ended; a set in which nothing fails has passed, or lacks something.
            input_hash: of everything the run depends on.
            cached: whether nobody was asked.
        """
        results = self.set.execute()
        if all(one.passed for one in results):
            stop = self._verdict(results)
        return LoopReport(
            passed=stop == "passed",
            stop_reason=stop,
            policy=self.policy,
            scenarios=self.set.scenarios,
            results=results,
            fates=self.set.fates.all(results),
            disagreements=tuple(self._disagreement(one) for one in results if not one.passed),
            corrections=tuple(self.set.corrections),
            untested_tools=self.set.untested_tools,
            repairs=self._repairs,
            judgements=self._judgements,
            notes=tuple(self.set.fates.notes),
            input_hash=input_hash,
            cached=cached,
        )

    def _verdict(self, results: Sequence[ExecutionResult]) -> RunStop:
        """Return how a set ends in which nothing fails."""
        if not self.set.generated_count and self._parts.needs_generated:
            return "empty"
        if not results:
            return "empty"
        return "passed" if self.set.coverage >= self._settings.min_coverage else "coverage"

    def _disagreement(self, result: ExecutionResult) -> Disagreement:
        verdict = self.set.verdict_on(result.scenario.id)
        return Disagreement(
            result.scenario,
            result.actual,
            result.rule,
            verdict.kind if verdict else None,
            # Where rules are blamed the expectation is held right, whatever else the verdict says.
            verdict.corrected_decision if verdict and verdict.kind != "rule" else None,
        )


def _changes(before: Sequence[ExecutionResult], after: Sequence[ExecutionResult]) -> Iterator[str]:
    """Yield what new rules decide otherwise, as far as the set shows it."""
    changed = [
        (was, now) for was, now in zip(before, after, strict=True) if was.actual != now.actual
    ]
    for was, now in changed[:_MOST_CHANGES]:
        yield (
            f"{was.scenario.request}: was {was.actual} ({was.rule}), is now {now.actual} "
            f"({now.rule})"
        )
    if len(changed) > _MOST_CHANGES:
        yield f"and {counted(len(changed) - _MOST_CHANGES, 'other request')}"


def _standing(result: ExecutionResult) -> tuple[str, str, str]:
    return result.scenario.expected_decision, result.actual, result.rule
