"""Compile, generate, verify, repair, until every scenario passes or nothing changes any more.

The engine is the oracle. The judge says whose fault a failure is; its word counts where the engine
agrees, and is reported as a disagreement where it does not. What could have been otherwise:

- A corrected scenario is corrected in place and stays, unless a replacement of the same request
  passes. Taking it out and hoping for an equivalent would undo the correction just made, and lose
  its request where the answer is empty or about something else.
- Replacements are asked for where something is to be replaced: corrections, discards, tools that
  nothing tests. Never for probes alone: a probe is in the set already, so that a turn about it
  would be paid for nothing, and "the ones above" would name none.
- Success is declared by the last full execution alone, after the last change of anything.
- The loop is a function over protocols, and the session a class that any caller may own, rather
  than steps of one program: what people have is compilers, engines and judges of their own.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from pytest_regen.errors import (
    StoreWriteError,
)
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
from pytest_regen.sessions.state import (
    Artifact,
    check_path,
    check_policy,
    content_hash,
    read_artifact,
    write_artifact,
)
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

R = TypeVar("R")


_MOST_CHANGES = 10
"""Most decisions of new rules that are sent to the generator."""


class Verification:
    """Repairs a policy and a set of scenarios until the one decides what the other expects.

    Args:
        parts: who does what.
        settings: limits.
        policy: the rules to begin with.
        tell: is called with one line per step.

    Attributes:
        policy: the rules as they stand.
        set: the scenarios as they stand; handwritten ones are there from the beginning.

    Raises:
        UsageError: the policy is not plain JSON, or the engine returns no decision.
    """

    def __init__(
        self,
        parts: LoopParts,
        settings: LoopSettings,
        policy: Policy,
        tell: Callable[[str], None],
    ) -> None:
        self.policy = check_policy(policy)
        self.set = ScenarioSet(parts, parts.engine(policy))
        self._parts = parts
        self._settings = settings
        self._tell = tell
        self._repairs = 0
        self._judgements = 0
        self._analysis = ""
        self._rule_changes: list[str] = []
        self._source: object = None
        self._failing: tuple[ExecutionResult, ...] = ()
        self._is_heard = True
        self._shown: dict[str, tuple[str, str, str]] = {}
        """By scenario id, how it stood when the judge last heard of it."""

    def verify_and_repair(self, source: object) -> PartCalls[RunStop]:
        """Verify and repair until everything passes, attempts are used up or nothing changes."""
        self._source = source
        return (yield from repeat(self, self._settings.max_repairs))

    def verify(self, attempt: int) -> PartCalls[bool]:
        """Execute everything, hear the judge about what is new, execute its probes.

        Returns:
            Whether nothing is left to repair.
        """
        rounds, verification = self._settings.max_rounds, f"verification {attempt}, "
        self._is_heard = True
        for number in range(1, rounds + 1):
            results = self.set.execute()
            news = self._news(results, repeats_questions=number == 1)
            if not news:
                break
            which = f"{verification if attempt > 1 else ''}round {number}"
            self._tell(f"Judging {plural(len(news), 'scenario')} ({which})...")
            judgement = yield from self._judge(news)
            if judgement is None:
                self._is_heard = False
                break
            # A judge whose verdicts name nothing is asked again, as one who was not heard.
            self._is_heard = self.set.apply_verdicts(judgement, results) and self._is_heard
            judged = {result.scenario.id for result in news}
            for result in self.set.execute():
                if result.scenario.id in judged:
                    self._shown[result.scenario.id] = _state_of(result)
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
        if not self._shown:
            return tuple(results)
        changed, is_open = [], False
        for result in results:
            id_ = result.scenario.id
            is_new = self._shown.get(id_) != _state_of(result)
            is_unjudged = not result.passed and id_ not in self.set.verdicts
            if is_new or (repeats_questions and is_unjudged):
                changed.append(result)
                is_open = is_open or not result.passed
        return tuple(changed) if is_open else ()

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
        candidate = check_policy(answer)
        if candidate == self.policy:
            self.set.log.note(f"repair {attempt} changed no rule")
            return
        engine = self._parts.engine(candidate)
        before, after = self.set.execute(), self.set.execute(engine)
        (failed, handwritten_failed), (fail, handwritten_fail) = map(
            self.set.score, (self.set.engine, engine)
        )
        if fail >= failed or handwritten_fail > handwritten_failed:
            self.set.log.note(
                f"repair {attempt} of the rules was not taken: {plural(fail, 'scenario')} would "
                f"fail instead of {failed}"
            )
            return
        self.policy = candidate
        self.set.use(engine)
        self._rule_changes += _changes(before, after)

    def state(self) -> str:
        """Return what a repair has to change: the rules, the set, or what is to be sent."""
        return content_hash(self.policy, list(self.set.scenarios), [self.set.unsent_feedback])

    def report(self, stop: RunStop, input_hash: str, *, cached: bool = False) -> LoopReport:
        """Return how the run ended, after one last execution of everything.

        Args:
            stop: why it ended; a set in which nothing fails has passed, or lacks something.
            input_hash: of everything the run depends on.
            cached: whether the result is from the artifact, without a call.
        """
        results = self.set.execute()
        if all(result.passed for result in results):
            tested = 1 - len(self.set.untested_tools) / max(1, len(self.set.tools))
            stop = "passed" if tested >= self._settings.min_coverage else "coverage"
            if len(results) == len(self.set.handwritten):
                stop = "empty"  # People's scenarios alone need no run.
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
            input_hash=input_hash,
            cached=cached,
        )


def _changes(before: Sequence[ExecutionResult], after: Sequence[ExecutionResult]) -> Iterator[str]:
    """Yield the requests of the set that new rules decide otherwise."""
    changed = [
        (was, now) for was, now in zip(before, after, strict=True) if was.actual != now.actual
    ]
    for was, now in changed[:_MOST_CHANGES]:
        yield (
            f"{was.scenario.request}: was {was.actual} ({was.rule}), is now {now.actual} "
            f"({now.rule})"
        )
    if len(changed) > _MOST_CHANGES:
        yield f"and {plural(len(changed) - _MOST_CHANGES, 'other request')}"


def _state_of(result: ExecutionResult) -> tuple[str, str, str]:
    return result.scenario.expected_decision, result.actual, result.rule


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
        self._artifact = None if artifact is None else check_path(artifact)
        self._tell = partial(tell, on_progress)
        # As they are before they were asked anything.
        self._asked = [fingerprint_of(parts.compiler), fingerprint_of(parts.judge)]
        self._unknown = [
            type(part).__name__
            for part, hash_ in zip((parts.compiler, parts.judge), self._asked, strict=True)
            if not hash_
        ]
        self._hash = ""
        self._reached: Verification | None = None
        self._source: object = None
        self._generated: list[TestScenario] = []

    def run(self) -> PartCalls[LoopReport]:
        return self._from_artifact() or (yield from self._compile_and_verify())

    def _from_artifact(self) -> LoopReport | None:
        """Return the report of a verified artifact that still passes; its rules decide again."""
        stored = read_artifact(self._artifact) if self._artifact else None
        if stored is None or stored.status != "verified":
            return None
        if stored.policy is None or not stored.scenarios:
            return None
        try:
            self._hash = self._input_hash(self._parts.generator(stored.policy))
            if stored.input_hash != self._hash:
                return None
            work = self._work(stored.policy)
            work.set.add_first(stored.scenarios)
            report = work.report("passed", self._hash, cached=True)
        except Exception as error:  # noqa: BLE001 - damaged rules may break an engine in any way
            self._tell(f"{self._artifact} cannot be used and is made again: {error!r}")
            return None
        is_whole = len(report.results) == len(stored.scenarios)
        if not is_whole or not report.passed or report.disagreements:
            return None  # The engine has changed under it; its word is final here, too.
        for name in self._unknown:
            self._tell(
                f"{name} has no fingerprint and holds no session: a change of it makes no new set"
            )
        self._tell(f"{plural(len(report.results), 'scenario')} (cached)")
        return report

    def _compile_and_verify(self) -> PartCalls[LoopReport]:
        self._tell("Compiling...")
        self._reached = work = self._work((yield PartCall(self._parts.compiler, "compile")))
        self._source = source = self._parts.generator(work.policy)
        self._hash, first = self._input_hash(source), work.policy
        generated = yield PartCall(source, "generate")
        self._generated = check_list(generated, TestScenario, "generate()", source)
        work.set.add_first(self._generated)
        self._tell(plural(len(work.set.scenarios), "scenario"))
        stop = yield from work.verify_and_repair(source)
        if work.policy != first:
            # The next run has nothing but the last rules to make the generator with.
            self._hash = self._input_hash(self._parts.generator(work.policy))
        report = work.report(stop, self._hash)
        self._keep(report)
        return report

    def _work(self, policy: Policy) -> Verification:
        return Verification(self._parts, self._settings, policy, self._tell)

    def _input_hash(self, source: object) -> str:
        """Return the hash of everything a set depends on that ``source`` wrote."""
        parts, settings = self._parts, self._settings
        return content_hash(
            "loop",
            PROMPT_FORMAT,
            *self._asked,
            fingerprint_of(source),
            len(parts.fingerprint),
            *parts.fingerprint,
            parts.handwritten,
            parts.annotations,
            settings.max_repairs,
            settings.max_rounds,
            settings.max_probes,
            str(settings.min_coverage),
        )

    def _keep(self, report: LoopReport) -> None:
        if self._artifact is None:
            return
        reached = Artifact(
            self._hash,
            "verified" if report.passed else "failed",
            report.scenarios,
            report.policy,
        )
        failed = _failed_path(self._artifact)
        try:
            write_artifact(self._artifact if report.passed else failed, reached)
        except StoreWriteError as error:
            error.unkept = report
            raise
        if report.passed:
            failed.unlink(missing_ok=True)

    @contextmanager
    def keep_if_stopped(self) -> Iterator[None]:
        """Keep what was paid for where the run is interrupted, cancelled or fails."""
        try:
            yield
        except BaseException as error:
            if self._reached is not None and getattr(error, "unkept", None) is None:
                self._keep_partial(self._reached, error)
            raise

    def _keep_partial(self, work: Verification, error: BaseException) -> None:
        # Of a first turn that did not end, what was answered by then.
        answered: Sequence[TestScenario] = self._generated or getattr(
            self._source, "unfinished", []
        )
        unseen = (scenario for scenario in answered if not work.set.log.knows(scenario))
        reached = Artifact(self._hash, "failed", (*work.set.scenarios, *unseen), work.policy)
        note = "pytest_regen.cassettes.journal(path) around the run lets the next one go on"
        if self._artifact is not None:
            path = _failed_path(self._artifact)
            with suppress(StoreWriteError):
                write_artifact(path, reached)
                note = f"What was reached by then is kept in {path}, for reading; {note}"
        error.add_note(note)


def _failed_path(artifact: Path) -> Path:
    return artifact.with_suffix(".failed.json")
