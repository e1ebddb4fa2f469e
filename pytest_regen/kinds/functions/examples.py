"""Examples of docstrings, run in the sandbox: one process per file, and what came of each kept.

A verdict holds as long as nothing changes that it was made from: the module, the modules of the
project that it imports, Python, the other packages, and what lint allows.
"""

import doctest
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_regen.canonical import canonical_hash
from pytest_regen.errors import SandboxError
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import ModuleSource
from pytest_regen.sandbox import (
    ExampleFailure,
    ExamplesResult,
    Limits,
    Module,
    Raised,
    missing,
    run_examples,
)
from pytest_regen.sandbox.verdicts import VerdictCache
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue

_FORMAT: Final = 3
"""Part of each key: a change of what is found, or how it is worded, makes kept verdicts void."""
_SECTION: Final = "functions"
_LONGEST: Final = 400
"""Characters of an output that an issue shows."""
_LATE: Final = frozenset({"runner", "processes", "forged"})
"""Why a process was stopped, where that is seen from outside."""

Issues = tuple[Issue, ...]


class Verdicts:
    """What was found of the units of modules, kept in the project's cache.

    Args:
        project: whose modules they are.
        settings: what else decides, as JSON.
    """

    def __init__(self, project: Project, settings: Mapping[str, Any]) -> None:
        self._project = project
        self._settings = [_FORMAT, settings, project.dependencies, project.python]
        self._cache = VerdictCache(project.root / ".regen" / "cache")
        self._known: dict[str, dict[str, Issues]] = {}

    def key(self, path: Path, text: str) -> str:
        """Return what stands for a module and everything that its verdicts depend on."""
        return canonical_hash([self._settings, self._project.state(path, text)])

    def get(self, key: str, name: str) -> Issues | None:
        """Return what was found of a unit."""
        if key not in self._known:
            self._known[key] = dict(_from_json(self._cache.get(_SECTION, key)))
        return self._known[key].get(name)

    def put(self, key: str, found: Mapping[str, Issues], *, unsure: Collection[str] = ()) -> None:
        """Keep what was found of units.

        Args:
            key: of the module.
            found: by name of the unit.
            unsure: units whose verdict is not to outlive this process.
        """
        known = self._known.setdefault(key, {})
        known |= found
        sure = {
            name: [issue.to_json() for issue in issues]
            for name, issues in known.items()
            if name not in unsure
        }
        self._cache.put(_SECTION, key, sure)


def _from_json(stored: object) -> Iterator[tuple[str, Issues]]:
    for name, issues in stored.items() if isinstance(stored, dict) else ():
        try:
            yield name, tuple(Issue.from_json(issue) for issue in issues)
        except (KeyError, TypeError, AttributeError):
            continue


class Examples:
    """The examples in the docstrings of a module's units.

    A unit that ends the process, or does not end, costs the others a new process, and nothing else.

    Args:
        project: that the module belongs to.
        path: of the module.
        module: with the code that is to be judged.
        names: the units whose examples are to run.
        bodies: the units whose code is part of the module; the others do nothing.
        seconds: that the examples may take, all together.
    """

    def __init__(
        self,
        project: Project,
        path: Path,
        module: ModuleSource,
        names: Iterable[str],
        bodies: Sequence[str],
        *,
        seconds: float,
    ) -> None:
        self.path = path
        self.issues: dict[str, Issues] = {}
        """What is wrong, by unit."""
        self.unsure: set[str] = set()
        """Units whose verdict may be due to the machine, such as a limit of time."""
        self._module = module
        self._seconds = seconds
        self._name, self.folder = project.module_of(path)
        self._bodies = list(bodies)
        tests = {name: module.doctest(name, str(path)) for name in names}
        self._waiting = {name: test for name, test in tests.items() if test is not None}
        self._one_by_one = False

    @property
    def is_done(self) -> bool:
        """Whether every example has run that can run."""
        return not self._waiting

    @property
    def job(self) -> tuple[Module, Sequence[doctest.DocTest]]:
        """What is to be run next."""
        source = self._module.with_bodies(self._bodies)
        return Module(self._name, source, str(self.path)), [self._waiting[n] for n in self._asked]

    @property
    def _asked(self) -> list[str]:
        return list(self._waiting)[: 1 if self._one_by_one else None]

    def give_up(self, what: str, why: str = "") -> None:
        """Note that nothing can be run here."""
        self.unsure |= self._waiting.keys()
        self.issues |= dict.fromkeys(self._waiting, (_issue("IMPORT_FAILED", what, why),))
        self._waiting.clear()

    def take(self, result: ExamplesResult) -> None:
        """Note what came of a run."""
        waiting, asked = self._waiting, self._asked
        # What ends the process that watches takes a moment: a later example may have answered.
        if result.stopped in _LATE and len(asked) > 1:
            self._one_by_one = True
            return
        self._one_by_one = self._one_by_one and not result.stopped
        if result.raised is not None or (result.stopped and result.reached is None):
            guilty = self._unit_at(result.raised)
            if guilty is None or guilty not in self._bodies:
                words = _clip(result.raised.words) if result.raised else result.why
                self.give_up(f"{self._name} cannot be imported in the sandbox", words)
                return
            if guilty in waiting:
                self.issues[guilty] = (self._broken_import(guilty, result),)
                del waiting[guilty]
            self._bodies.remove(guilty)
            return
        reached = result.reached[0] if result.reached else len(asked)
        for number, name in enumerate(asked[: reached + 1]):
            self.issues[name] = tuple(self._issues(name, number, waiting.pop(name), result))

    def _unit_at(self, raised: Raised | None) -> str | None:
        """Return the unit whose code raised while the module was imported."""
        line = raised.line if raised else None
        return next(
            (name for name, marks in self._module.marks.items() if marks.line_inside(line)),
            None,
        )

    def _broken_import(self, name: str, result: ExamplesResult) -> Issue:
        assert result.raised is not None  # its line is how the unit was found
        line = self._module.marks[name].line_inside(result.raised.line)
        message = f"{self._name} cannot be imported, as it calls this function"
        return replace(_issue("DOCTEST", message, _clip(result.raised.words)), line=line)

    def _issues(
        self, name: str, number: int, test: doctest.DocTest, result: ExamplesResult
    ) -> Iterator[Issue]:
        """Yield an issue for each example that failed, and one where the process ended."""
        ended = result.reached[1] if result.reached and result.reached[0] == number else None
        for failure in result.failures:
            if failure.test != number:
                continue
            place = next(n for n, one in enumerate(test.examples) if one is failure.example)
            if ended is None or place < ended:
                yield self._failed(name, failure)
            elif place == ended:
                self.unsure.add(name)
                yield self._ended(failure, result)

    def _failed(self, name: str, failure: ExampleFailure) -> Issue:
        example, raised = failure.example, failure.raised
        wanted = _clip(example.exc_msg or example.want)
        lines = [f"expected: {wanted or 'nothing'}", f"got:      {_clip(failure.got) or 'nothing'}"]
        line = self._module.marks[name].line_inside(raised.line if raised else None)
        message = f"the example {_source(example)} {_where(failure)}"
        message += " raises" if raised is not None else " shows something else"
        return replace(_issue("DOCTEST", message, "\n".join(lines)), line=line)

    def _ended(self, failure: ExampleFailure, result: ExamplesResult) -> Issue:
        words = f"does not end within {self._seconds:g} seconds"
        if result.stopped != "seconds":
            words = f"ends the process: {result.why}"
        message = f"the example {_source(failure.example)} {_where(failure)} {words}"
        return _issue("DOCTEST", message)


def run_all(all_examples: Sequence[Examples], project: Project, *, seconds: float) -> None:
    """Run the examples of several modules in one sandbox, each in a process of its own.

    Args:
        all_examples: those of each module, which take what comes of it.
        project: whose modules they are.
        seconds: that those of one module may take.
    """
    folders = dict.fromkeys(one.folder for one in all_examples)
    limits = Limits(seconds=seconds, cpu_seconds=max(1, round(seconds)))
    while waiting := [one for one in all_examples if not one.is_done]:
        if why := missing():
            for one in waiting:
                one.give_up(why)
            return
        try:
            results = run_examples(
                [one.job for one in waiting],
                import_path=tuple(dict.fromkeys((*folders, *project.import_path))),
                hidden=tuple(one.path for one in waiting),
                limits=limits,
                flags=project.doctest_flags,
            )
        except SandboxError as error:
            for one in waiting:
                one.give_up(error.what, error.why)
            return
        for one, result in zip(waiting, results, strict=True):
            one.take(result)


def _issue(code: str, message: str, detail: str = "") -> Issue:
    return Issue.of(code, message, detail=detail or None)


def _source(example: doctest.Example) -> str:
    lines = example.source.strip().split("\n")
    return in_quotes(lines[0] if len(lines) == 1 else f"{lines[0]} …")


def _where(failure: ExampleFailure) -> str:
    return f"(line {failure.line})" if failure.line else ""


def _clip(text: str) -> str:
    text = text.rstrip("\n")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
