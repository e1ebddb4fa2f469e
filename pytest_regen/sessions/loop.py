"""Compile, generate, verify, repair, until every scenario passes or nothing changes any more.

The engine is the oracle. The judge says whose fault a failure is; its word counts where the engine
agrees, and is reported as a disagreement where it does not.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions import state
from pytest_regen.sessions.feedback import check_handwritten, check_tools
from pytest_regen.sessions.prompts import PROMPT_FORMAT
from pytest_regen.sessions.protocols import (
    ExecutionResult,
    Judgement,
    LoopParts,
    LoopSettings,
    Policy,
    RepairContext,
    fingerprint_of,
)
from pytest_regen.sessions.report import Disagreement, LoopReport, RunStop
from pytest_regen.sessions.scenario_set import ScenarioSet
from pytest_regen.sessions.scenarios import TestScenario
from pytest_regen.sessions.verification import (
    FAILED_TURN,
    PartCall,
    PartCaller,
    PartCalls,
    check_list,
    repeat,
    wrong_type,
)
from pytest_regen.text import plural
from pytest_regen.turns.steps import adrive, drive, tell

_MOST_CHANGES = 10
"""Most decisions of new rules that are sent to the generator."""


def compile_verify_repair(
    parts: LoopParts,
    *,
    settings: LoopSettings | None = None,
    artifact: str | os.PathLike[str] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> LoopReport:
    """Compile a policy, have scenarios written for it, and verify and repair both.

    Args:
        parts: compiler, generator, engine, judge, and what they work on.
        settings: limits.
        artifact: where a verified policy and its scenarios are kept. If nothing they depend on
            has changed they are executed again; if all pass, no model is asked. What a failed
            run reached is kept beside it as ``<name>.failed.json``, and never reused.
        on_progress: called with one line per step. What it raises is warned of and ends nothing.

    Returns:
        What happened. A run that did not reach agreement is a report with ``passed=False``, not
        an exception.

    Raises:
        RegenError: the policy or the first set of scenarios could not be made.
        UsageError: handwritten scenarios contradict each other, a tool is annotated twice, a part
            has no method for what is asked of it, the engine gives what is no decision, or the
            policy is not plain JSON.
        StoreWriteError: the artifact cannot be written, which is looked at first; the report of a
            run that ended is its attribute ``unkept``.

    What else a part raises ends the run, and is raised; so do Ctrl-C and, in an event loop, a
    cancellation. What was reached by then is kept as that of a failed run: the rules, and what was
    answered of the scenarios. In a ``pytest_regen.cassettes.journal`` the next run continues from
    there.
    """
    run = _Run(parts, settings, artifact, on_progress)
    with run.keep_if_stopped():
        return drive(run.run(), PartCaller())


async def acompile_verify_repair(
    parts: LoopParts,
    *,
    settings: LoopSettings | None = None,
    artifact: str | os.PathLike[str] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> LoopReport:
    """Compile, verify and repair without blocking the event loop; as ``compile_verify_repair``.

    ``acompile``, ``arepair``, ``agenerate``, ``aregenerate`` and ``ajudge`` are awaited where a
    part has them; a part without is called in a thread. The engine decides in the event loop.
    """
    run = _Run(parts, settings, artifact, on_progress)
    with run.keep_if_stopped():
        return await adrive(run.run(), PartCaller())


class _Run:
    """Repairs a policy and a set of scenarios until the one decides what the other expects."""

    def __init__(
        self,
        parts: LoopParts,
        settings: LoopSettings | None,
        artifact: str | os.PathLike[str] | None,
        on_progress: Callable[[str], None] | None,
    ) -> None:
        # Whatever can be known to fail is known before anything is paid.
        check_handwritten(parts.handwritten)
        check_tools(parts.annotations)
        self._parts = parts
        self._settings = settings or LoopSettings()
        self._artifact = None if artifact is None else state.check_path(artifact)
        self._tell = partial(tell, on_progress)
        # At once, because a part may change as it is asked.
        self._fingerprints = [fingerprint_of(part) for part in (parts.compiler, parts.judge)]
        self._hash = ""
        self._source: object = None
        self._generated: Sequence[TestScenario] = ()
        self._is_paid = False

    def _begin(self, policy: Policy) -> None:
        """Begin with these rules and the scenarios that people wrote.

        Raises:
            UsageError: the policy is not plain JSON, or the engine returns no decision.
        """
        self.policy = state.check_policy(policy)
        self.set = ScenarioSet(self._parts, self._parts.engine(policy))
        self._source = self._parts.generator(policy)
        self._repairs = self._judgements = 0
        self._analysis = ""
        self._rule_changes: list[str] = []
        self._failing: tuple[ExecutionResult, ...] = ()
        self._is_heard = True
        self._judged_state: dict[str, tuple[str, str, str]] = {}
        """By scenario id, how it stood when the judge last heard of it."""

    def _from_artifact(self) -> LoopReport | None:
        """Return the report of a verified artifact that still passes; its rules decide again."""
        stored = state.read_artifact(self._artifact) if self._artifact else None
        if stored is None or stored.status != "verified" or stored.policy is None:
            return None
        try:
            self._begin(stored.policy)
            self._hash = self._input_hash()
            if stored.input_hash != self._hash:
                return None
            self.set.add_first(stored.scenarios)
            report = self._report("no_progress", cached=True)
        except Exception as error:  # noqa: BLE001 - damaged rules may break an engine in any way
            self._tell(f"{self._artifact} cannot be used and is made again: {error!r}")
            return None
        if len(report.results) != len(stored.scenarios) or not report.passed:
            return None  # The engine has changed under it; its word is final here, too.
        asked = (self._parts.compiler, self._parts.judge)
        for part, fingerprint in zip(asked, self._fingerprints, strict=True):
            if not fingerprint:
                self._tell(
                    f"{type(part).__name__} has no fingerprint and holds no session: a change of "
                    "it makes no new set"
                )
        self._tell(f"{plural(len(report.results), 'scenario')} (cached)")
        return report

    def run(self) -> PartCalls[LoopReport]:
        if cached := self._from_artifact():
            return cached
        self._tell("Compiling...")
        self._begin((yield PartCall(self._parts.compiler, "compile")))
        self._is_paid, first, self._hash = True, self.policy, self._input_hash()
        generated = yield PartCall(self._source, "generate")
        self._generated = check_list(generated, TestScenario, "generate()", self._source)
        self.set.add_first(self._generated)
        self._tell(plural(len(self.set.scenarios), "scenario"))
        stop = yield from repeat(
            self.verify, self.repair, self.snapshot, self._settings.max_repairs
        )
        if self.policy != first:
            # Because the next run has nothing but the last rules to make the generator with.
            self._source = self._parts.generator(self.policy)
            self._hash = self._input_hash()
        report = self._report(stop)
        if self._artifact is not None:
            try:
                path = self._write("verified" if report.passed else "failed", report.scenarios)
            except StoreWriteError as error:
                error.unkept = report
                raise
            # A success makes the failed set void, which a reader would take for the newer one.
            if path == self._artifact:
                _failed_path(path).unlink(missing_ok=True)
        return report

    def _input_hash(self) -> str:
        """Return the hash of everything a set depends on that the session wrote."""
        parts, settings = self._parts, self._settings
        return state.content_hash(
            "loop",
            PROMPT_FORMAT,
            *self._fingerprints,
            fingerprint_of(self._source),
            len(parts.fingerprint),
            *parts.fingerprint,
            parts.handwritten,
            parts.annotations,
            repr(settings),
        )

    def verify(self, attempt: int) -> PartCalls[bool]:
        """Execute everything, hear the judge about what is new, execute its probes.

        Returns:
            Whether nothing is left to repair.
        """
        rounds = self._settings.max_rounds
        prefix = f"verification {attempt}, " if attempt > 1 else ""
        self._is_heard = True
        for number in range(1, rounds + 1):
            results = self.set.execute()
            news = self._news(results, repeats_questions=number == 1)
            if not news:
                break
            self._tell(f"Judging {plural(len(news), 'scenario')} ({prefix}round {number})...")
            judgement = yield from self._judge(news)
            if judgement is None:
                self._is_heard = False
                break
            # A judge whose verdicts name nothing is asked again, as one who was not heard.
            self._is_heard = self.set.apply_verdicts(judgement, results) and self._is_heard
            judged = {result.scenario.id for result in news}
            states = {result.scenario.id: _state_of(result) for result in self.set.execute()}
            self._judged_state |= {id_: states[id_] for id_ in judged}
            added = self.set.add_probes(
                judgement.probes, self._settings.max_probes, are_judged=number < rounds
            )
            if not added:
                break
        self._failing = tuple(result for result in self.set.execute() if not result.passed)
        return not self._failing and not self.set.unsent_feedback.asks_for_replacements

    def _news(
        self, results: Sequence[ExecutionResult], *, repeats_questions: bool
    ) -> tuple[ExecutionResult, ...]:
        """Return what the judge is to be asked about: everything once, then what it has not judged.

        These are failures that are new, changed or without a verdict, and with them whatever else
        has changed. Where nothing fails that it has not judged, there is nothing to ask.

        Args:
            results: of the whole set.
            repeats_questions: whether a failure that it left without a verdict is asked again.
        """
        if not self._judged_state:
            return tuple(results)
        changed = []
        for result in results:
            id_ = result.scenario.id
            is_unjudged = not result.passed and id_ not in self.set.verdicts
            is_new = self._judged_state.get(id_) != _state_of(result)
            if is_new or (repeats_questions and is_unjudged):
                changed.append(result)
        return () if all(result.passed for result in changed) else tuple(changed)

    def _judge(self, results: Sequence[ExecutionResult]) -> PartCalls[Judgement | None]:
        try:
            judgement = yield PartCall(self._parts.judge, "judge", (self.policy, results))
        except FAILED_TURN as error:
            self.set.log.note(f"the judge could not be heard: {error}")
            return None
        if not isinstance(judgement, Judgement):
            raise wrong_type(self._parts.judge, "judge()", judgement, "a Judgement")
        self._judgements += 1
        self._analysis = judgement.analysis
        if judgement.passed != all(result.passed for result in results):
            says = "all is well" if judgement.passed else "something is wrong"
            self.set.log.note(f"the judge says {says}; the engine says otherwise and decides")
        return judgement

    def repair(self, attempt: int) -> PartCalls[bool]:
        """Have the rules repaired that fail, and ask for what is to be replaced.

        Returns:
            Whether the judge was heard: one who was not may be heard about the same state.
        """
        # Without the judge, only what people wrote says by itself that the rules are wrong.
        blamed = [r for r in self._failing if self._is_heard or r.scenario.is_handwritten]
        if blamed or self.set.unsent_feedback.asks_for_replacements:
            self._repairs += 1
        if blamed:
            yield from self._repair_rules(blamed, attempt)
        feedback = self.set.unsent_feedback
        # Never for probes alone, because a probe is in the set already: a turn about it would be
        # paid for nothing, and "the ones above" would name none.
        if not feedback.asks_for_replacements:
            return self._is_heard
        feedback = feedback.model_copy(update={"rule_changes": tuple(self._rule_changes)})
        self._tell("Asking for replacements...")
        try:
            answer = yield PartCall(self._source, "regenerate", (feedback,))
        except FAILED_TURN as error:
            self.set.log.note(f"no replacements: {error}")
            return self._is_heard
        replacements = check_list(answer, TestScenario, "regenerate()", self._source)
        # Only now, because a turn that failed has told the generator nothing.
        self._rule_changes = []
        self.set.add_replacements(replacements, feedback)
        return self._is_heard

    def _repair_rules(self, failing: Sequence[ExecutionResult], attempt: int) -> PartCalls[None]:
        """Have the rules repaired; accept them if less fails, and no more that is handwritten."""
        self._tell(f"Repairing the rules ({plural(len(failing), 'failure')})...")
        context = RepairContext(
            tuple(failing),
            self._analysis,
            attempt,
            self.set.handwritten,
            self.set.wanted_decisions(failing),
        )
        try:
            answer = yield PartCall(self._parts.compiler, "repair", (self.policy, context))
        except FAILED_TURN as error:
            self.set.log.note(f"the rules were not repaired: {error}")
            return
        candidate = state.check_policy(answer)
        # The same rules would fail the same scenarios, so that there is nothing to execute.
        if candidate == self.policy:
            self.set.log.note(f"repair {attempt} changed no rule")
            return
        engine = self._parts.engine(candidate)
        before, after = self.set.execute(), self.set.execute(engine)
        was, would_be = self.set.score(self.set.engine), self.set.score(engine)
        if would_be[0] >= was[0] or would_be[1] > was[1]:
            self.set.log.note(
                f"repair {attempt} of the rules was not taken: {plural(would_be[0], 'scenario')} "
                f"would fail instead of {was[0]}"
            )
            return
        self.policy = candidate
        self.set.use(engine)
        # Request by request, because a count of failures says nothing to a generator.
        changes = [
            f"{old.scenario.request}: was {old.actual} ({old.rule}), is now {new.actual} "
            f"({new.rule})"
            for old, new in zip(before, after, strict=True)
            if old.actual != new.actual
        ]
        self._rule_changes += changes[:_MOST_CHANGES]

    def snapshot(self) -> str:
        """Return what a repair has to change: the rules, the set, or what is to be sent."""
        return state.content_hash(self.policy, list(self.set.scenarios), [self.set.unsent_feedback])

    def _report(self, stop: RunStop, *, cached: bool = False) -> LoopReport:
        """Return how the run ended, after one last execution of everything.

        Args:
            stop: why it ended; a set in which nothing fails has passed, or lacks something.
            cached: whether the result is from the artifact, without a call.
        """
        results = self.set.execute()
        # This execution alone says whether the run passed, because nothing changes after it.
        if all(result.passed for result in results):
            tested = 1 - len(self.set.untested_tools) / max(1, len(self.set.tools))
            stop = "passed" if tested >= self._settings.min_coverage else "coverage"
            if len(results) == len(self.set.handwritten):
                stop = "empty"  # Because what people wrote alone needs no generator.
        return LoopReport(
            passed=stop == "passed",
            stop_reason=stop,
            policy=self.policy,
            scenarios=self.set.scenarios,
            results=results,
            histories=self.set.log.histories(results),
            disagreements=tuple(
                Disagreement(result, self.set.verdicts.get(result.scenario.id))
                for result in results
                if not result.passed
            ),
            corrections=tuple(self.set.corrections),
            untested_tools=self.set.untested_tools,
            repairs=self._repairs,
            judgements=self._judgements,
            notes=tuple(self.set.log.notes),
            input_hash=self._hash,
            cached=cached,
        )

    def _write(self, status: state.ArtifactStatus, scenarios: Sequence[TestScenario]) -> Path:
        assert self._artifact is not None
        path = self._artifact if status == "verified" else _failed_path(self._artifact)
        state.write_artifact(
            path, state.Artifact(self._hash, status, tuple(scenarios), self.policy)
        )
        return path

    @contextmanager
    def keep_if_stopped(self) -> Iterator[None]:
        """Keep what was paid for where the run is interrupted, cancelled or fails."""
        try:
            yield
        except BaseException as error:
            if self._is_paid and getattr(error, "unkept", None) is None:
                note = "pytest_regen.cassettes.journal(path) around the run lets the next one go on"
                # Of a first turn that did not end, what was answered by then.
                answered = self._generated or getattr(self._source, "unfinished", ())
                unseen = [scenario for scenario in answered if not self.set.log.knows(scenario)]
                if self._artifact is not None:
                    with suppress(StoreWriteError):
                        path = self._write("failed", [*self.set.scenarios, *unseen])
                        note = f"What was reached by then is kept in {path}, for reading; {note}"
                error.add_note(note)
            raise


def _failed_path(artifact: Path) -> Path:
    return artifact.with_suffix(".failed.json")


def _state_of(result: ExecutionResult) -> tuple[str, str, str]:
    return result.scenario.expected_decision, result.actual, result.rule
