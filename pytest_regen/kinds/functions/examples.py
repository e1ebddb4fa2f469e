"""Examples of docstrings, run in the sandbox: one process per file, and what came of each kept.

A verdict holds as long as nothing changes that it was made from: the module, the modules of the
project that it imports, Python, the other packages, and what lint allows.
"""

import doctest
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_regen import sandbox
from pytest_regen.canonical import canonical_hash
from pytest_regen.errors import SandboxError
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import ModuleSource
from pytest_regen.sandbox.verdicts import VerdictCache
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue

# Part of each key: a change of what is found, or how it is worded, makes kept verdicts void.
_FORMAT: Final = 3
_SECTION: Final = "functions"
# Characters of an output that an issue shows.
_LONGEST: Final = 400

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
        self._issues: dict[str, dict[str, Issues]] = {}

    def key(self, path: Path, text: str) -> str:
        """Return what stands for a module and everything that its verdicts depend on."""
        return canonical_hash([self._settings, self._project.state(path, text)])

    def get(self, key: str, name: str) -> Issues | None:
        """Return what is wrong with a unit; ``None`` where that is not known."""
        if key not in self._issues:
            # Read as it was written, because what nobody sealed is not given out.
            stored = self._cache.get(_SECTION, key) or {}
            issues = {unit: tuple(map(Issue.from_json, found)) for unit, found in stored.items()}
            self._issues[key] = issues
        return self._issues[key].get(name)

    def put(self, key: str, judged: Mapping[str, Issues], *, unsure: Collection[str] = ()) -> None:
        """Keep what is wrong with units.

        Args:
            key: of the module.
            judged: by name of the unit.
            unsure: units whose verdict is not to outlive this process.
        """
        verdicts = self._issues.setdefault(key, {})
        verdicts |= judged
        # A slow machine must not leave a failure in the cache.
        sure = [name for name in verdicts if name not in unsure]
        stored = {name: [issue.to_json() for issue in verdicts[name]] for name in sure}
        self._cache.put(_SECTION, key, stored)


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
        # Units without examples are only linted.
        tests = {name: module.doctest(name, str(path)) for name in names}
        self.waiting = {name: test for name, test in tests.items() if test is not None}
        """The examples that have not run, by unit."""

    @property
    def job(self) -> tuple["sandbox.Module", Sequence[doctest.DocTest]]:
        """What is to be run next."""
        source = self._module.with_bodies(self._bodies)
        return sandbox.Module(self._name, source, str(self.path)), list(self.waiting.values())

    def give_up(self, what: str, why: str = "") -> None:
        """Note that nothing can be run here."""
        self.unsure |= self.waiting.keys()
        issue = Issue.of("IMPORT_FAILED", what, detail=why or None)
        self.issues |= dict.fromkeys(self.waiting, (issue,))
        self.waiting.clear()

    def take(self, result: "sandbox.ExamplesResult") -> None:
        """Note what came of a run."""
        if result.raised is not None or (result.stopped and result.reached is None):
            # The module could not be imported: it is tried again without the unit at fault.
            line = result.raised.line if result.raised else None
            words = _clip(result.raised.words) if result.raised else result.why
            for name, marks in self._module.marks.items():
                if marks.line_inside(line) and name in self._bodies:
                    if self.waiting.pop(name, None):
                        message = f"{self._name} cannot be imported, as it calls this function"
                        self.issues[name] = (self._issue(name, message, line, words),)
                    # Left out from now on, because the units beside it may be right.
                    self._bodies.remove(name)
                    return
            self.give_up(f"{self._name} cannot be imported in the sandbox", words)
            return
        reached = result.reached[0] if result.reached else len(self.waiting)
        for number, name in enumerate(list(self.waiting)[: reached + 1]):
            self.issues[name] = tuple(self._judge(name, number, self.waiting.pop(name), result))

    def _judge(
        self, name: str, number: int, test: doctest.DocTest, result: "sandbox.ExamplesResult"
    ) -> Iterator[Issue]:
        """Yield an issue for each example that failed, and one where the process ended."""
        ended = result.reached[1] if result.reached and result.reached[0] == number else None
        for failure in result.failures:
            if failure.test != number:
                continue
            example = failure.example
            first, *more = example.source.strip().split("\n")
            where = f"(line {failure.line})" if failure.line else ""
            message = f"the example {in_quotes(f'{first} …' if more else first)} {where}"
            # By identity, because an example may be written twice.
            place = next(n for n, other in enumerate(test.examples) if other is example)
            if ended is None or place < ended:
                message += " shows something else" if failure.raised is None else " raises"
                want = _clip(example.exc_msg or example.want) or "nothing"
                detail = f"expected: {want}\ngot:      {_clip(failure.got) or 'nothing'}"
                line = failure.raised.line if failure.raised else None
                yield self._issue(name, message, line, detail)
            elif place == ended:
                self.unsure.add(name)
                words = f"does not end within {self._seconds:g} seconds"
                if result.stopped != "seconds":
                    words = f"ends the process: {result.why}"
                yield self._issue(name, f"{message} {words}")

    def _issue(self, name: str, message: str, line: int | None = None, detail: str = "") -> Issue:
        issue = Issue.of("DOCTEST", message, detail=detail or None)
        return replace(issue, line=self._module.marks[name].line_inside(line))


def run_all(all_examples: Sequence[Examples], project: Project, *, seconds: float) -> None:
    """Run the examples of several modules in one sandbox, each in a process of its own.

    Args:
        all_examples: those of each module, which take what comes of it.
        project: whose modules they are.
        seconds: that those of one module may take.
    """
    folders = dict.fromkeys(examples.folder for examples in all_examples)
    limits = sandbox.Limits(seconds=seconds, cpu_seconds=max(1, round(seconds)))
    while waiting := [examples for examples in all_examples if examples.waiting]:
        try:
            results = sandbox.run_examples(
                [examples.job for examples in waiting],
                import_path=tuple(dict.fromkeys((*folders, *project.import_path))),
                hidden=tuple(examples.path for examples in waiting),
                limits=limits,
                flags=project.doctest_flags,
            )
        except SandboxError as error:
            for examples in waiting:
                examples.give_up(error.what, error.why)
            return
        for examples, result in zip(waiting, results, strict=True):
            examples.take(result)


def _clip(text: str) -> str:
    text = text.rstrip("\n")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
