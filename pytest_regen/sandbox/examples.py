"""Doctests of code that a model wrote: the child runs the examples, the answers are judged here."""

import ast
import doctest
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Final

from pytest_regen.sandbox.levels import Level
from pytest_regen.sandbox.processes import Limits
from pytest_regen.sandbox.questions import Answer, Job, Module, Raised, Result, ask


@dataclass(frozen=True, slots=True)
class ExampleFailure:
    """An example that did not come out as its docstring says."""

    test: int
    """Which of the module's doctests, from 0."""
    name: str
    """Of the doctest."""
    example: doctest.Example
    got: str
    """What was printed, or raised; or why there is no answer."""
    line: int | None
    """Line of the example in the file, from 1; ``None`` where the doctest does not know its own."""
    raised: Raised | None
    """The exception it ended in, if it asks for another or for none."""


@dataclass(frozen=True, slots=True)
class ExamplesResult:
    """What became of the examples of one module."""

    failures: tuple[ExampleFailure, ...]
    """In the order of the examples. Those without an answer are among them."""
    attempted: int
    """Examples that were to run."""
    raised: Raised | None
    """The module could not be imported."""
    stopped: str | None
    """As in ``Result``."""
    why: str
    reached: tuple[int, int] | None
    """Numbers of the doctest and of its example that ran when it was stopped."""
    level: Level

    @property
    def has_passed(self) -> bool:
        """Whether the module was imported and every example came out as it should."""
        return not self.failures and self.raised is None and self.stopped is None


def run_examples(
    jobs: Sequence[tuple[Module, Sequence[doctest.DocTest]]],
    *,
    import_path: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    limits: Limits = Limits(),
    flags: Sequence[str] = (),
    python: str = sys.executable,
) -> tuple[ExamplesResult, ...]:
    """Run doctests in the sandbox, each in a copy of its module's names, one process per module.

    A module that is given as text is run ``without_examples``, so that a function cannot look up
    what is expected of it.

    Args:
        jobs: modules and their doctests; the names that a doctest brings are not used.
        import_path: as for ``ask``.
        hidden: as for ``run``.
        limits: what one module may use.
        flags: names of those of ``doctest`` and pytest, for examples that set no others.
        python: the interpreter.

    Raises:
        SandboxError: nothing can be run.
        UsageError: ``REGEN_SANDBOX`` asks for a level that does not work here.
    """
    known = doctest.OPTIONFLAGS_BY_NAME
    set_flags = reduce(or_, (known[name] for name in flags if name in known), 0)
    wanted = [[*_wanted(tests)] for _, tests in jobs]
    modules = [_blind(module) for module, _ in jobs]
    asked = [
        Job(module, tuple([number, place, text.source] for number, place, text in examples))
        for module, examples in zip(modules, wanted, strict=True)
    ]
    results = ask(
        asked,
        handler=_HANDLER,
        # One may import another, whose file is hidden.
        beside=[module for module in modules if module.source is not None],
        import_path=import_path,
        hidden=hidden,
        limits=limits,
        python=python,
    )
    return tuple(
        _judged(result, tests, examples, set_flags)
        for (_, tests), examples, result in zip(jobs, wanted, results, strict=True)
    )


_HANDLER: Final = """
import __future__
import io, sys

features = [getattr(__future__, name) for name in __future__.all_feature_names]
make, execute, show = compile, exec, sys.displayhook
names = {}

def answer(module, question):
    test, place, source = question
    if test not in names:
        names.clear()
        names[test] = dict(module.__dict__)
    room = names[test]
    flags = 0
    for feature in features:
        if any(value is feature for value in room.values()):
            flags |= feature.compiler_flag
    printed = io.StringIO()
    sys.stdout, sys.displayhook = printed, show
    execute(make(source, "<doctest %d[%d]>" % (test, place), "single", flags, True), room)
    return printed.getvalue()
"""
"""Runs one example. Doctests follow one another, so that the names of one are kept at a time."""


def _blind(module: Module) -> Module:
    if module.source is None:
        return module
    return replace(module, source=without_examples(module.source))


def _wanted(tests: Sequence[doctest.DocTest]) -> Iterator[tuple[int, int, doctest.Example]]:
    for number, test in enumerate(tests):
        for place, example in enumerate(test.examples):
            if not example.options.get(doctest.SKIP):
                yield number, place, example


def _judged(
    result: Result,
    tests: Sequence[doctest.DocTest],
    examples: Sequence[tuple[int, int, doctest.Example]],
    flags: int,
) -> ExamplesResult:
    failures = []
    reached = None
    answers = result.answers
    if result.stopped and answers and None not in answers:
        answers = (*answers[:-1], None)  # Whoever ends the process may answer before it has ended.
    pairs = zip(examples, answers, strict=True)
    for (number, place, example), answer in pairs if result.raised is None else ():
        if answer is None:
            reached = reached or (number, place)
        elif _is_right(example, answer, flags):
            continue
        test, raised = tests[number], answer.raised if answer else None
        line = None if test.lineno is None else test.lineno + example.lineno + 1
        got = f"no answer: {result.why}\n" if answer is None else answer.value
        got = raised.words if raised else got
        failures.append(ExampleFailure(number, test.name, example, str(got), line, raised))
    return ExamplesResult(
        failures=tuple(failures),
        attempted=len(examples),
        raised=result.raised,
        stopped=result.stopped,
        why=result.why,
        reached=reached,
        level=result.level,
    )


def _is_right(example: doctest.Example, answer: Answer, flags: int) -> bool:
    """Return whether an answer is what the docstring says, as pytest itself decides it."""
    from _pytest.doctest import _get_checker

    check = _get_checker().check_output
    for flag, is_set in example.options.items():
        flags = flags | flag if is_set else flags & ~flag
    if answer.raised is None:
        return isinstance(answer.value, str) and check(example.want, answer.value, flags)
    if example.exc_msg is None:
        return False
    if check(example.exc_msg, answer.raised.words, flags):
        return True
    wanted, words = _class_name(example.exc_msg), _class_name(answer.raised.words)
    return bool(flags & doctest.IGNORE_EXCEPTION_DETAIL) and check(wanted, words, flags)


def _class_name(words: str) -> str:
    """Return the name of the class that the words of an exception begin with."""
    return words.split("\n", 1)[0].split(":", 1)[0].rpartition(".")[2].strip()


def without_examples(source: str) -> str:
    """Return Python with the examples taken out of its docstrings; no line of code moves.

    A function that could read its docstring could look up what is expected of it. What cannot be
    parsed is returned as it is.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    data = source.encode("utf-8", "surrogatepass")
    starts = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", data))]
    edits = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node, clean=False)
        if text is None or ">>>" not in text:
            continue
        place = node.body[0]
        begin = starts[place.lineno - 1] + place.col_offset
        end = starts[(place.end_lineno or place.lineno) - 1] + (place.end_col_offset or 0)
        # One line, then as many empty ones as the docstring had; brackets make it one statement.
        lines = "\n" * ((place.end_lineno or place.lineno) - place.lineno)
        edits.append((begin, end, f"({_prose(text)!a}{lines})".encode()))
    for begin, end, new in sorted(edits, reverse=True):
        data = data[:begin] + new + data[end:]
    return data.decode("utf-8", "surrogatepass")


def _prose(text: str) -> str:
    try:
        pieces = doctest.DocTestParser().parse(text)
    except ValueError:  # examples that doctest itself refuses
        return ""
    return "".join(piece for piece in pieces if isinstance(piece, str))
