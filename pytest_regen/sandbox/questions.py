"""Python that a model wrote, imported in the sandbox and asked questions.

The child answers with values and never learns which are right: that is decided here.
"""

import json
import os
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pytest_regen.errors import SandboxError
from pytest_regen.sandbox.levels import Level, strongest_level
from pytest_regen.sandbox.processes import Limits, Outcome, run
from pytest_regen.strict_json import strict_loads


@dataclass(frozen=True, slots=True)
class Module:
    """A module that is asked about."""

    name: str
    """By which it is imported, such as ``acme.durations``."""
    source: str | None = None
    """Its text; ``None``: whatever the import path holds by that name."""
    path: str | None = None
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
    output: str = ""
    """What was printed meanwhile, cut."""


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
    level: Level

    @property
    def is_complete(self) -> bool:
        """Whether the module was imported and every question has an answer."""
        return self.raised is None and self.stopped is None


def ask(
    jobs: Sequence[Job],
    *,
    handler: str,
    beside: Sequence[Module] = (),
    import_path: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    limits: Limits = Limits(),
    python: str = sys.executable,
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
        readable: as for ``run``.
        hidden: as for ``run``.
        limits: what one job may use.
        python: the interpreter.

    Raises:
        SandboxError: the interpreter does not start, or the handler cannot be made ready.
        UsageError: ``REGEN_SANDBOX`` asks for a level that does not work here.
    """
    level = strongest_level()
    results: list[Result] = []
    while len(results) < len(jobs):
        rest = jobs[len(results) :]
        word, words = secrets.token_hex(16), [secrets.token_hex(16) for _ in rest]
        frames = _Frames(word, words, [len(job.questions) for job in rest], limits.report)
        work = {
            "word": word,
            "jobs": [_as_json(job, own) for job, own in zip(rest, words, strict=True)],
            "handler": handler,
            "beside": [
                {"name": one.name, "source": one.source, "path": _path_of(one)} for one in beside
            ],
            "import_path": [str(folder) for folder in import_path],
            "seconds": limits.seconds,
            "namespace": _process_namespace() if level != "process" else "",
        }
        outcome = run(
            [python, "-I", "-B", "-c", _runner()],
            stdin=json.dumps(work).encode(),
            import_path=import_path,
            readable=readable,
            hidden=hidden,
            limits=replace(limits, seconds=limits.seconds + _MARGIN),
            python=python,
            watch=frames.feed,
        )
        results += _results(frames, rest, outcome)
    return tuple(results)


_MARGIN: Final = 5.0
"""Seconds for starting the interpreter, and for ending a job that takes too long."""


@cache
def _runner() -> str:
    return (files("pytest_regen") / "sandbox" / "runner.py").read_text("utf-8")


def _process_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _as_json(job: Job, word: str) -> dict[str, Any]:
    module = job.module
    return {
        "word": word,
        "name": module.name,
        "source": module.source,
        "path": _path_of(module),
        "questions": list(job.questions),
    }


def _path_of(module: Module) -> str:
    return module.path or f"<{module.name}>"


def _results(frames: "_Frames", jobs: Sequence[Job], outcome: Outcome) -> list[Result]:
    """Return the results of the jobs that are decided: all that ended, at least one."""
    decided = [
        _result(job, frames.reports[number], outcome.level)
        for number, job in enumerate(jobs[: frames.ended])
    ]
    if decided:
        return decided
    if not frames.reports:
        raise SandboxError(
            "the sandbox could not make ready what asks the questions",
            why=_last_words(outcome),
            hint="see docs/sandbox.md; the packages it imports must be installed there",
        )
    # The first job alone can have broken the pipe or ended the process that watches it.
    report = replace(frames.reports[0], status=None)
    why = "it ended, or held up, the process that watches it"
    stopped = "runner"
    if frames.is_forged:
        stopped, why = "forged", "it wrote to the pipe of the answers by itself"
    elif outcome.stopped == "processes":
        stopped, why = "processes", "it started too many processes"
    return [replace(_result(jobs[0], report, outcome.level), stopped=stopped, why=why)]


def _last_words(outcome: Outcome) -> str:
    words = outcome.stderr.decode("utf-8", "replace").strip()[-600:]
    return (
        words
        or f"exit {outcome.returncode}{', ' if outcome.stopped else ''}{outcome.stopped or ''}"
    )


@dataclass(frozen=True, slots=True)
class _Report:
    """What the frames of one job hold."""

    status: int | None
    """As from ``os.waitpid``; ``None``: it took too long."""
    is_loaded: bool
    raised: Raised | None
    answers: tuple[Answer, ...]


def _result(job: Job, report: _Report, level: Level) -> Result:
    missing = len(job.questions) - len(report.answers)
    answers = (*report.answers, *[None] * missing)
    if report.raised or (report.is_loaded and not missing):
        return Result(answers, report.raised, None, "", level)
    before = "before all questions were answered" if report.is_loaded else "while it was imported"
    status = report.status
    if status is None:
        stopped, why = "seconds", f"it took too long {before}"
    elif os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in {*signal.Signals} else f"signal {number}"
        stopped, why = "signal", f"its process was ended by {name} {before}"
    else:
        code = os.waitstatus_to_exitcode(status)
        stopped, why = "exit", f"it ended its process with exit code {code} {before}"
    return Result(answers, None, stopped, why, level)


class _Frames:
    """The report of a child, read as it comes: who says what, in the only order that is right."""

    def __init__(
        self, word: str, words: Sequence[str], questions: Sequence[int], most: int
    ) -> None:
        self._word = word
        self._words = words
        self._questions = questions
        self._most = most
        self._buffer = bytearray()
        self._taken = 0
        self.reports: list[_Report] = []
        """Of the jobs that have begun."""
        self.ended = 0
        """How many of them are over."""
        self.is_forged = False
        """Something came that is not ours to send."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the report; return whether all is in order so far."""
        self._buffer += piece
        try:
            while not self.is_forged and (frame := self._next()):
                self._take(*frame)
        except (ValueError, TypeError, KeyError, IndexError):
            self.is_forged = True
        return not self.is_forged

    def _next(self) -> tuple[str, dict[str, Any]] | None:
        """Return the next whole frame: the word it came with, and what it says."""
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > _HEAD:
                raise ValueError("no frame begins like that")
            return None
        word, _, digits = self._buffer[:end].decode("ascii").partition(" ")
        length = int(digits)
        # Refused before it is waited for: the word is wrong, or the frame too large.
        if word not in self._expected() or self._taken + length > self._most:
            raise ValueError("this frame is not one of ours")
        if len(self._buffer) < end + 1 + length:
            return None
        body = bytes(self._buffer[end + 1 : end + 1 + length])
        del self._buffer[: end + 1 + length]
        self._taken += length
        return word, strict_loads(body, constants=True)

    def _expected(self) -> tuple[str, ...]:
        is_running = len(self.reports) > self.ended
        return (self._word, self._words[self.ended]) if is_running else (self._word,)

    def _take(self, word: str, frame: Mapping[str, Any]) -> None:
        if word == self._word:
            self._take_ours(frame)
            return
        report = self.reports[-1]
        match frame:
            case {"loaded": True} if not report.is_loaded and not report.raised:
                report = replace(report, is_loaded=True)
            case {"raised": raised, **rest} if not rest and not report.is_loaded:
                report = replace(report, raised=Raised(**raised))
            case {"answer": number} if report.is_loaded and number == len(report.answers):
                if number >= self._questions[self.ended]:
                    raise ValueError("more answers than questions")
                raised = frame.get("raised")
                answer = Answer(
                    frame.get("value"), Raised(**raised) if raised else None, str(frame["output"])
                )
                report = replace(report, answers=(*report.answers, answer))
            case _:
                raise ValueError("this frame is out of order")
        self.reports[-1] = report

    def _take_ours(self, frame: Mapping[str, Any]) -> None:
        if frame == {"begin": self.ended} and len(self.reports) == self.ended:
            self.reports.append(_Report(0, is_loaded=False, raised=None, answers=()))
            self._taken = 0
        elif frame.get("end") == self.ended and len(self.reports) == self.ended + 1:
            self.reports[-1] = replace(self.reports[-1], status=frame["status"])
            self.ended += 1
        else:
            raise ValueError("this frame is out of order")


_HEAD: Final = 64
"""Bytes that the first line of a frame takes at most."""
