"""Python that a model wrote, imported in the sandbox and asked questions.

The child answers with values and never learns which are right: that is decided here.
"""

import json
import os
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import SandboxError
from pytest_regen.sandbox.levels import strongest_level
from pytest_regen.sandbox.processes import Limits, Outcome, run
from pytest_regen.strict_json import strict_loads


@dataclass(frozen=True, slots=True)
class Module:
    """A module that is asked about."""

    name: str
    """By which it is imported, such as ``acme.durations``."""
    source: str | None = None
    """Its text; ``None``: whatever the import path holds by that name."""
    path: str = "<module>"
    """Its ``__file__``, and its name in tracebacks. ``__init__.py`` makes it a package."""


@dataclass(frozen=True, slots=True)
class Job:
    """One module and what is asked of it, in a process of its own."""

    module: Module
    questions: tuple[Any, ...]
    """Each a JSON value, given to the handler's ``answer``."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception in the child, in words."""

    type: str
    """Name of its class."""
    message: str
    words: str
    """As Python words it below a traceback, with its line end."""
    traceback: str
    """Only lines of the module, without their text."""
    line: int | None
    """The innermost line of the module that took part."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question."""

    value: Any = None
    """What the handler returned: a JSON value, which may hold NaN."""
    raised: Raised | None = None
    """The question ended in an exception, ``SystemExit`` included."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one job."""

    answers: tuple[Answer | None, ...]
    """One for each question; ``None``: no answer came."""
    raised: Raised | None
    """The module could not be imported."""
    stopped: str | None
    """Why answers are missing: ``seconds`` (it took too long), ``exit`` (it ended its process),
    ``signal`` (it was killed, by itself or for memory or time), ``forged`` (it wrote to the
    pipe of the answers), ``runner`` (it ended the process that watches it); or ``None``."""
    why: str
    """The same in a sentence; empty where all is well."""


def ask(
    jobs: Sequence[Job],
    *,
    handler: str,
    beside: Sequence[Module] = (),
    import_path: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    limits: Limits = Limits(),
) -> tuple[Result, ...]:
    """Import modules in the sandbox and ask questions about each.

    One interpreter starts; each job runs in a fork of it, so that what one breaks is whole for the
    next. A job that ends the interpreter itself costs the others a new one, and nothing else.

    Args:
        jobs: what is asked.
        handler: text of a module of ours, which the child runs before any job: a function
            ``answer(module, question)`` that returns a JSON value, and if wanted ``prepare()``,
            called once, for imports that all jobs need.
        beside: modules that every job may import, by their text and under their names.
        import_path: folders put at the front of the child's import path.
        hidden: as for ``run``.
        limits: what one job may use.

    Raises:
        SandboxError: the interpreter does not start, or the handler cannot be made ready.
        UsageError: ``REGEN_SANDBOX`` asks for a level that does not work here.
    """
    runner = (files("pytest_regen") / "sandbox" / "runner.py").read_text("utf-8")
    namespace = ""
    if strongest_level() != "process":
        namespace = str(Path("/proc/self/ns/pid").readlink())
    results: list[Result] = []
    while len(results) < len(jobs):
        waiting = jobs[len(results) :]
        # Secret, because whoever knows a word can answer: each job has one, and the runner another.
        word, words = secrets.token_hex(16), [secrets.token_hex(16) for _ in waiting]
        frames = _Frames(word, words, [len(job.questions) for job in waiting], limits.report)
        work = {
            "word": word,
            "jobs": [
                {**asdict(job.module), "word": its_word, "questions": job.questions}
                for job, its_word in zip(waiting, words, strict=True)
            ],
            "handler": handler,
            "beside": [asdict(module) for module in beside],
            "import_path": [str(folder) for folder in import_path],
            "seconds": limits.seconds,
            # Which is ours, because the child must know whether it has one of its own.
            "namespace": namespace,
        }
        outcome = run(
            [sys.executable, "-I", "-B", "-c", runner],
            stdin=json.dumps(work).encode(),
            import_path=import_path,
            hidden=hidden,
            limits=replace(limits, seconds=limits.seconds + _MARGIN),
            watch=frames.feed,
        )
        results += frames.results(waiting, outcome)
    return tuple(results)


_MARGIN: Final = 5.0
"""Seconds for starting the interpreter, and for ending a job that takes too long."""


_HEAD: Final = 64
"""Bytes that the first line of a frame takes at most."""


@dataclass(slots=True)
class _Report:
    """What the frames of one job hold."""

    is_loaded: bool = False
    raised: Raised | None = None
    answers: list[Answer] = field(default_factory=list)
    status: int | None = 0
    """As from ``os.waitpid``; ``None``: it took too long."""

    def end(self) -> tuple[str, str]:
        """Return why the job ended before its last answer: the word of it, and a sentence."""
        when = "before all questions were answered" if self.is_loaded else "while it was imported"
        code = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        # By the clock, or by the limit of CPU time, which comes first where nothing else runs.
        if code in {None, -signal.SIGXCPU}:
            return "seconds", f"it took too long {when}"
        if code >= 0:
            return "exit", f"it ended its process with exit code {code} {when}"
        # Those of real time have no name.
        name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
        return "signal", f"its process was ended by {name} {when}"


@dataclass(slots=True)
class _Frames:
    """The report of a child, read as it comes: who says what, in the only order that is right."""

    word: str
    """The runner's."""
    words: Sequence[str]
    """Of each job."""
    questions: Sequence[int]
    """How many each job has."""
    most: int
    """Bytes that one job may send."""
    reports: list[_Report] = field(default_factory=list)
    """Of the jobs that have begun."""
    ended: int = 0
    """How many of them are over."""
    is_forged: bool = False
    """Something came that is not ours to send."""
    buffer: bytearray = field(default_factory=bytearray)
    taken: int = 0
    """Bytes that came of the job that runs."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the report; return whether all is in order so far."""
        self.buffer += piece
        while not self.is_forged:
            head, line_end, _ = bytes(self.buffer[:_HEAD]).partition(b"\n")
            if not line_end and len(head) < _HEAD:
                break
            try:
                word, _, digits = head.decode("ascii").partition(" ")
                length = int(digits) if line_end else self.most + 1
                is_jobs = len(self.reports) > self.ended and word == self.words[self.ended]
                # Refused before it is waited for, because no more of it may ever come.
                if not (is_jobs or word == self.word) or self.taken + length > self.most:
                    self.is_forged = True
                    break
                end = len(head) + 1 + length
                if len(self.buffer) < end:
                    break
                body = bytes(self.buffer[len(head) + 1 : end])
                del self.buffer[:end]
                self.taken += length
                # With NaN, because what code returns need not be JSON.
                self._take(word, strict_loads(body, constants=True))
            except (ValueError, TypeError, KeyError):
                self.is_forged = True
        return not self.is_forged

    def _take(self, word: str, frame: Mapping[str, Any]) -> None:
        is_runners = word == self.word
        is_running = len(self.reports) > self.ended
        report = self.reports[-1] if is_running else _Report()
        match frame:
            case {"begin": self.ended} if is_runners and not is_running:
                self.reports.append(report)
                self.taken = 0
            case {"end": self.ended, "status": status} if is_runners and is_running:
                report.status = status
                self.ended += 1
            case {"loaded": True} if not (is_runners or report.is_loaded or report.raised):
                report.is_loaded = True
            case {"raised": raised} if not (is_runners or report.is_loaded or "answer" in frame):
                report.raised = Raised(**raised)
            case {"answer": number} if not is_runners and report.is_loaded:
                if number != len(report.answers) or number >= self.questions[self.ended]:
                    raise ValueError("this answer is out of order")
                raised = frame.get("raised")
                answer = Answer(frame.get("value"), Raised(**raised) if raised else None)
                report.answers.append(answer)
            case _:
                raise ValueError("this frame is out of order")

    def results(self, jobs: Sequence[Job], outcome: Outcome) -> list[Result]:
        """Return the results of the jobs that are decided: all that ended, at least one."""
        if not self.reports:
            words = outcome.stderr.decode("utf-8", "replace").strip()[-600:]
            raise SandboxError(
                "the sandbox could not make ready what asks the questions",
                why=words or f"exit {outcome.returncode} {outcome.stopped or ''}".strip(),
                hint="see docs/sandbox.md; the packages it imports must be installed there",
            )
        results = []
        # One without an end only where none has ended: the first job alone can then have broken the
        # pipe or ended the process that watches it.
        for job, report in zip(jobs, self.reports[: self.ended or 1], strict=False):
            missing = len(job.questions) - len(report.answers)
            is_whole = report.raised or (report.is_loaded and not missing)
            if self.ended:
                stopped, why = (None, "") if is_whole else report.end()
            elif self.is_forged:
                stopped, why = "forged", "it wrote to the pipe of the answers by itself"
            elif outcome.stopped == "processes":
                stopped, why = "processes", "it started too many processes"
            else:
                stopped, why = "runner", "it ended, or held up, the process that watches it"
            answers = (*report.answers, *[None] * missing)
            results.append(Result(answers, report.raised, stopped, why))
        return results
