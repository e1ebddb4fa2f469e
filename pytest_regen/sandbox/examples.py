"""Doctests of code that a model wrote: the child runs the examples, the answers are judged here."""

import ast
import doctest
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_regen.sandbox.processes import Limits
from pytest_regen.sandbox.questions import Answer, Job, Module, Raised, Result, ask


@dataclass(frozen=True, slots=True)
class ExampleFailure:
    """An example that did not come out as its docstring says."""

    test: int
    """Which of the module's doctests, from 0."""
    example: doctest.Example
    got: str
    """What was printed, or raised; or why there is no answer."""
    line: int | None
    """Line of the example in the file, from 1; ``None`` where the doctest does not know its own."""
    raised: Raised | None
    """The exception it ended in, if it asks for another or for none."""


@dataclass(frozen=True, slots=True)
class ExamplesResult(Result):
    """What became of the examples of one module."""

    failures: tuple[ExampleFailure, ...]
    """In the order of the examples. Those without an answer are among them."""
    reached: tuple[int, int] | None
    """Numbers of the doctest and of its example that ran when it was stopped."""


_Example = tuple[int, int, doctest.Example]
"""The number of a doctest, that of an example of it, and the example."""


def run_examples(
    jobs: Sequence[tuple[Module, Sequence[doctest.DocTest]]],
    *,
    import_path: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    limits: Limits = Limits(),
    flags: Sequence[str] = (),
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

    Raises:
        SandboxError: nothing can be run.
        UsageError: ``REGEN_SANDBOX`` asks for a level that does not work here.
    """
    # A set, because a flag that is named twice must not be added twice.
    set_flags = sum({doctest.OPTIONFLAGS_BY_NAME.get(name, 0) for name in flags})
    work: list[Job] = []
    all_examples: list[list[_Example]] = []
    for module, tests in jobs:
        source = None if module.source is None else without_examples(module.source)
        examples = [
            (number, place, example)
            for number, test in enumerate(tests)
            for place, example in enumerate(test.examples)
            if not example.options.get(doctest.SKIP)
        ]
        all_examples.append(examples)
        questions = tuple((number, place, example.source) for number, place, example in examples)
        work.append(Job(replace(module, source=source), questions))
    results = ask(
        work,
        handler=_HANDLER,
        # One may import another, whose file is hidden.
        beside=[job.module for job in work if job.module.source is not None],
        import_path=import_path,
        hidden=hidden,
        limits=limits,
    )
    judged = []
    for (_, tests), examples, result in zip(jobs, all_examples, results, strict=True):
        answers = result.answers
        if result.stopped and answers and None not in answers:
            # Whoever ends the process may answer before it has ended.
            answers = (*answers[:-1], None)
        failures: list[ExampleFailure] = []
        reached = None
        pairs = zip(examples, answers, strict=True)
        for (number, place, example), answer in pairs if result.raised is None else ():
            raised = answer.raised if answer else None
            if answer is None:
                reached = reached or (number, place)
                got = f"no answer: {result.why}\n"
            elif _is_right(example, answer, set_flags):
                continue
            else:
                got = raised.words if raised else str(answer.value)
            test = tests[number]
            line = None if test.lineno is None else test.lineno + example.lineno + 1
            failures.append(ExampleFailure(number, example, got, line, raised))
        # With all answers, because the one that no longer counts was given all the same.
        values = result.answers, result.raised, result.stopped, result.why
        judged.append(ExamplesResult(*values, tuple(failures), reached))
    return tuple(judged)


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
    present = [f for f in features if any(value is f for value in room.values())]
    flags = sum(feature.compiler_flag for feature in present)
    printed = io.StringIO()
    sys.stdout, sys.displayhook = printed, show
    execute(make(source, "<doctest %d[%d]>" % (test, place), "single", flags, True), room)
    return printed.getvalue()
"""
"""Runs one example. Doctests follow one another, so that the names of one are kept at a time."""


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
    # The class alone counts then, without its module, because versions move classes about.
    want, got = (
        words.split("\n", 1)[0].split(":", 1)[0].rpartition(".")[2].strip()
        for words in (example.exc_msg, answer.raised.words)
    )
    return bool(flags & doctest.IGNORE_EXCEPTION_DETAIL) and check(want, got, flags)


def without_examples(source: str) -> str:
    """Return Python without the docstrings that hold examples; no line of code moves.

    A function that could read its docstring could look up what is expected of it. What cannot be
    parsed is returned as it is.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    literals = [
        ast.get_source_segment(source, node.body[0]) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if ">>>" in (ast.get_docstring(node, clean=False) or "")
    ]
    # The longest first, because the text of one may stand in another.
    for literal in sorted(literals, key=len, reverse=True):
        # One line, then as many empty ones as the docstring had; brackets make it one statement.
        empty_lines = "\n" * literal.count("\n")
        source = source.replace(literal, f"(''{empty_lines})")
    return source
