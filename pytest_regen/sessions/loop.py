"""Compile, generate, verify, repair, until every scenario passes or nothing moves any more.

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
from typing import TYPE_CHECKING

from pytest_regen.errors import StoreWriteError
from pytest_regen.plurals import counted
from pytest_regen.sessions.artifacts import (
    Artifact,
    checked_path,
    content_hash,
    read_artifact,
    write_artifact,
)
from pytest_regen.sessions.calls import Call, Caller, Calls
from pytest_regen.sessions.loop_parts import LoopParts, LoopSettings, fingerprint_of
from pytest_regen.sessions.memory import checked_handwritten, checked_tools
from pytest_regen.sessions.prompts import PROMPT_FORMAT
from pytest_regen.sessions.protocols import Policy
from pytest_regen.sessions.report import LoopReport
from pytest_regen.sessions.verification import Verification
from pytest_regen.turns.driving import adrive, drive, tell

if TYPE_CHECKING:
    from pytest_regen.sessions.values import TestScenario

__all__ = ["acompile_verify_repair", "compile_verify_repair"]


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
            has changed they are executed again, and nobody is asked if all pass. What a failed
            run reached is kept beside it as ``<name>.failed.json``, and never reused.
        on_progress: called with one line per step. What it raises is warned of and ends nothing.

    Returns:
        What happened. A run that did not reach agreement is a report with ``passed=False``, not
        an exception.

    Raises:
        RegenError: the policy or the first set of scenarios could not be made, be it for one
            group of tools: what is missing is never left out of a success.
        UsageError: handwritten scenarios contradict each other, a tool is annotated twice, a part
            has no method for what is asked of it, the engine gives what is no decision, or the
            policy is not plain JSON.
        StoreWriteError: the artifact cannot be written, which is looked at first; the report of a
            run that ended is its attribute ``unkept``.

    What else a part raises ends the run, and is raised; so do Ctrl-C and, in an event loop, a
    cancellation. What was reached by then is kept as that of a failed run: the rules, and what was
    answered of the scenarios. In a ``pytest_regen.cassettes.journal`` the next run goes on from
    there.
    """
    run = _Run(parts, settings, artifact, on_progress)
    with run.kept_if_stopped():
        return drive(run.run(), Caller())


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
    with run.kept_if_stopped():
        return await adrive(run.run(), Caller())


class _Run:
    def __init__(
        self,
        parts: LoopParts,
        settings: LoopSettings | None,
        artifact: str | os.PathLike[str] | None,
        on_progress: Callable[[str], None] | None,
    ) -> None:
        # Whatever can be known to fail is known before anything is paid.
        checked_handwritten(parts.handwritten)
        checked_tools(parts.annotations)
        self._parts = parts
        self._settings = settings or LoopSettings()
        self._artifact = None if artifact is None else checked_path(artifact)
        self._tell = partial(tell, on_progress)
        # As they are before they were asked anything.
        self._asked = [fingerprint_of(parts.compiler), fingerprint_of(parts.judge)]
        self._unknown = [
            type(part).__name__
            for part, known in zip((parts.compiler, parts.judge), self._asked, strict=True)
            if not known
        ]
        self._hash = ""
        self._reached: Verification | None = None
        self._source: object = None
        self._generated: list[TestScenario] = []

    def run(self) -> Calls[LoopReport]:
        return self._from_artifact() or (yield from self._made())

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
        self._tell(f"{counted(len(report.results), 'scenario')} (cached)")
        return report

    def _made(self) -> Calls[LoopReport]:
        self._tell("Compiling...")
        self._reached = work = self._work((yield Call(self._parts.compiler, "compile")))
        self._source = source = self._parts.generator(work.policy)
        self._hash, first = self._input_hash(source), work.policy
        self._generated = yield Call(source, "generate")
        work.set.add_first(self._generated)
        self._tell(counted(len(work.set.scenarios), "scenario"))
        stop = yield from work.repaired(source)
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
        kept = Artifact(
            self._hash,
            "verified" if report.passed else "failed",
            report.scenarios,
            report.policy,
        )
        failed = _failed(self._artifact)
        try:
            write_artifact(self._artifact if report.passed else failed, kept)
        except StoreWriteError as error:
            error.unkept = report
            raise
        if report.passed:
            failed.unlink(missing_ok=True)

    @contextmanager
    def kept_if_stopped(self) -> Iterator[None]:
        """Keep what was paid for where the run is interrupted, cancelled or fails."""
        try:
            yield
        except BaseException as error:
            if self._reached is not None and getattr(error, "unkept", None) is None:
                self._keep_reached(self._reached, error)
            raise

    def _keep_reached(self, work: Verification, error: BaseException) -> None:
        # Of a first turn that did not end, the groups that were answered.
        given: Sequence[TestScenario] = self._generated or getattr(self._source, "answered", [])
        unseen = (one for one in given if not work.set.fates.knows(one))
        reached = Artifact(self._hash, "failed", (*work.set.scenarios, *unseen), work.policy)
        told = "pytest_regen.cassettes.journal(path) around the run lets the next one go on"
        if self._artifact is not None:
            path = _failed(self._artifact)
            with suppress(StoreWriteError):
                write_artifact(path, reached)
                told = f"What was reached by then is kept in {path}, for reading; {told}"
        error.add_note(told)


def _failed(artifact: Path) -> Path:
    return artifact.with_suffix(".failed.json")
