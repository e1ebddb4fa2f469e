"""Compile, generate, verify, repair, until every scenario passes or nothing moves any more.

The engine is the oracle. The judge says whose fault a failure is; its word counts where the engine
agrees, and is reported as a disagreement where it does not. What the text this follows leaves open,
or contradicts itself about, is decided so:

- A corrected scenario is corrected in place and stays, unless a replacement of the same request
  passes. (There, corrections are applied and the corrected scenarios then removed.)
- Replacements are asked for where there are corrections or discards, never for probes alone.
- Success is declared by the last full execution alone, after the last change of anything.
- The loop is a library function over protocols, the session a class that any caller may own;
  there, all of it stands in one program's main function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_regen.errors import BudgetError, NoProgressError, ProviderError
from pytest_regen.sessions.artifacts import (
    Artifact,
    ArtifactStatus,
    content_hash,
    read_artifact,
    write_artifact,
)
from pytest_regen.sessions.loop_parts import LoopParts, LoopSettings
from pytest_regen.sessions.prompts import PROMPT_FORMAT
from pytest_regen.sessions.protocols import (
    ExecutionResult,
    Judgement,
    Policy,
    RepairContext,
    ScenarioSource,
)
from pytest_regen.sessions.report import Disagreement, LoopReport, RunStop
from pytest_regen.sessions.scenario_set import ScenarioSet
from pytest_regen.sessions.values import ScenarioFeedback, TestScenario

__all__ = ["compile_verify_repair"]

_FAILED_TURN = (ProviderError, BudgetError, NoProgressError)
"""What ends one turn with a model and not the run: what was reached so far is kept."""


def compile_verify_repair(
    parts: LoopParts,
    *,
    settings: LoopSettings | None = None,
    artifact: Path | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> LoopReport:
    """Compile a policy, have scenarios written for it, and verify and repair both.

    Args:
        parts: compiler, generator, engine, judge, and what they work on.
        settings: limits.
        artifact: where a verified policy and its scenarios are kept. If nothing they depend on
            has changed they are executed again, and nobody is asked if all pass. What a failed
            run reached is kept beside it as ``<name>.failed.json``, and never reused.
        on_progress: called with one line per step.

    Returns:
        What happened. A run that did not reach agreement is a report with ``passed=False``, not
        an exception.

    Raises:
        RegenError: the policy or the first set of scenarios could not be made at all.
        StoreWriteError: the artifact cannot be written.
    """
    return _Run(parts, settings or LoopSettings(), artifact, on_progress or (lambda _: None)).run()


@dataclass(slots=True)
class _Counts:
    repairs: int = 0
    judgements: int = 0


class _Run:
    def __init__(
        self,
        parts: LoopParts,
        settings: LoopSettings,
        artifact: Path | None,
        tell: Callable[[str], None],
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._artifact = artifact
        self._tell = tell
        self._policy: Policy = {}
        self._set = ScenarioSet(parts)
        self._counts = _Counts()
        self._analysis = ""
        self._rule_changes: list[str] = []
        self._hash = _input_hash(parts, settings)

    def run(self) -> LoopReport:
        return self._from_artifact() or self._made()

    def _from_artifact(self) -> LoopReport | None:
        stored = read_artifact(self._artifact) if self._artifact else None
        if stored is None or stored.input_hash != self._hash or stored.status != "verified":
            return None
        if stored.policy is None or not stored.scenarios:
            return None
        self._policy = stored.policy
        self._set.use(self._parts.engine(stored.policy))
        self._set.add_first(stored.scenarios)
        results = self._set.execute()
        if not all(one.passed for one in results) or len(results) != len(stored.scenarios):
            # The engine has changed under the artifact; its word is final here, too.
            self._set = ScenarioSet(self._parts)
            return None
        self._tell(f"{len(results)} scenarios (cached)")
        return self._report("passed", results, cached=True)

    def _made(self) -> LoopReport:
        self._tell("Compiling...")
        self._policy = self._parts.compiler.compile()
        self._set.use(self._parts.engine(self._policy))
        source = self._parts.generator(self._policy)
        self._set.add_first(source.generate())
        self._tell(f"{len(self._set.scenarios)} scenarios")
        stop = self._repaired(source)
        results = self._set.execute()
        if stop == "passed" or all(one.passed for one in results):
            stop = self._verdict(results)
        report = self._report(stop, results)
        self._keep(report)
        return report

    def _repaired(self, source: ScenarioSource) -> RunStop:
        """Verify and repair until all is well, attempts are used up or nothing moves."""
        attempts = self._settings.max_repairs
        for attempt in range(1, attempts + 2):
            failing = self._verify()
            if not failing and not self._set.untold.asks_for_replacements:
                return "passed"
            if attempt > attempts:
                return "attempts"
            before = self._state()
            self._counts.repairs += 1
            self._repair(source, failing, attempt)
            if self._state() == before:
                return "no_progress"
        raise AssertionError("unreachable: the last attempt returns")  # pragma: no cover

    def _verify(self) -> tuple[ExecutionResult, ...]:
        """Execute everything, hear the judge, execute its probes; return what fails."""
        for number in range(1, self._settings.max_rounds + 1):
            results = self._set.execute()
            self._tell(f"Judging {len(results)} scenarios (round {number})...")
            judgement = self._judge(results)
            if judgement is None:
                break
            self._set.take_verdicts(judgement, results)
            if not self._set.add_probes(judgement.probes, self._settings.max_probes):
                break
        return tuple(one for one in self._set.execute() if not one.passed)

    def _judge(self, results: Sequence[ExecutionResult]) -> Judgement | None:
        try:
            judgement = self._parts.judge.judge(self._policy, results)
        except _FAILED_TURN as error:
            self._set.fates.note(f"the judge could not be heard: {error}")
            return None
        self._counts.judgements += 1
        self._analysis = judgement.analysis
        if judgement.passed != all(one.passed for one in results):
            says = "all is well" if judgement.passed else "something is wrong"
            self._set.fates.note(f"the judge says {says}; the engine says otherwise and decides")
        return judgement

    def _repair(
        self, source: ScenarioSource, failing: Sequence[ExecutionResult], attempt: int
    ) -> None:
        if failing:
            self._repair_rules(failing, attempt)
        feedback = self._set.untold
        if not feedback.asks_for_replacements:
            return
        feedback = feedback.model_copy(update={"rule_changes": tuple(self._rule_changes)})
        self._tell("Asking for replacements...")
        replacements = self._replacements(source, feedback)
        if replacements is not None:
            self._rule_changes = []
            self._set.add_replacements(replacements, feedback)

    def _replacements(
        self, source: ScenarioSource, feedback: ScenarioFeedback
    ) -> list[TestScenario] | None:
        try:
            return source.regenerate(feedback)
        except _FAILED_TURN as error:
            self._set.fates.note(f"no replacements: {error}")
            return None

    def _repair_rules(self, failing: Sequence[ExecutionResult], attempt: int) -> None:
        """Have the rules mended; take them only if fewer scenarios fail and no handwritten more."""
        self._tell(f"Repairing the rules ({len(failing)} failures)...")
        context = RepairContext(
            tuple(failing),
            self._analysis,
            attempt,
            self._set.handwritten,
            self._set.wanted(failing),
        )
        try:
            candidate = self._parts.compiler.repair(self._policy, context)
        except _FAILED_TURN as error:
            self._set.fates.note(f"the rules were not repaired: {error}")
            return
        if candidate == self._policy:
            self._set.fates.note(f"repair {attempt} changed no rule")
            return
        was, now = self._set.score(), self._set.score(self._parts.engine(candidate))
        if not (now.failing < was.failing and now.handwritten <= was.handwritten):
            self._set.fates.note(
                f"repair {attempt} of the rules was not taken: {now.failing} scenarios would fail "
                f"instead of {was.failing}"
            )
            return
        self._policy = candidate
        self._set.use(self._parts.engine(candidate))
        self._set.settle_wanted()
        self._rule_changes.append(
            f"{was.failing} failures led to new rules; {now.failing} are left"
        )

    def _state(self) -> str:
        """Return what a repair must change to be one: the rules, the set, or what is to be told."""
        return content_hash(self._policy, list(self._set.scenarios), [self._set.untold])

    def _verdict(self, results: Sequence[ExecutionResult]) -> RunStop:
        """Return how a set ends in which nothing fails."""
        if not self._set.generated_count and self._parts.needs_generated:
            return "empty"
        if not results:
            return "empty"
        return "passed" if self._set.coverage >= self._settings.min_coverage else "coverage"

    def _report(
        self, stop: RunStop, results: tuple[ExecutionResult, ...], *, cached: bool = False
    ) -> LoopReport:
        return LoopReport(
            passed=stop == "passed",
            stop_reason=stop,
            policy=self._policy,
            scenarios=self._set.scenarios,
            results=results,
            fates=self._set.fates.all(results),
            disagreements=tuple(self._disagreement(one) for one in results if not one.passed),
            corrections=tuple(self._set.corrections),
            lost_tools=self._set.lost_tools,
            repairs=self._counts.repairs,
            judgements=self._counts.judgements,
            notes=tuple(self._set.fates.notes),
            input_hash=self._hash,
            cached=cached,
        )

    def _disagreement(self, result: ExecutionResult) -> Disagreement:
        verdict = self._set.verdict_on(result.scenario.id)
        return Disagreement(
            result.scenario,
            result.actual,
            result.rule,
            verdict.kind if verdict else None,
            # Where rules are blamed the expectation is held right, whatever else the verdict says.
            verdict.corrected_decision if verdict and verdict.kind != "rule" else None,
        )

    def _keep(self, report: LoopReport) -> None:
        if self._artifact is None:
            return
        failed = self._artifact.with_suffix(".failed.json")
        status: ArtifactStatus = "verified" if report.passed else "failed"
        path = self._artifact if report.passed else failed
        write_artifact(path, Artifact(self._hash, status, report.scenarios, report.policy))
        if report.passed:
            failed.unlink(missing_ok=True)


def _input_hash(parts: LoopParts, settings: LoopSettings) -> str:
    return content_hash(
        "loop",
        PROMPT_FORMAT,
        parts.compiler.fingerprint,
        len(parts.fingerprint),
        *parts.fingerprint,
        parts.handwritten,
        parts.annotations,
        settings.max_repairs,
        settings.max_rounds,
        settings.max_probes,
        str(settings.min_coverage),
    )
