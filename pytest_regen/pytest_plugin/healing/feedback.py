"""What a failing test says to the model.

The process of a trial needs this, and nothing of what it would import.
"""

import inspect
import linecache
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_regen.pytest_plugin.choices import regen_mark
from pytest_regen.testing.failures import FeedbackError
from pytest_regen.validation.issues import FailedTest, Feedback, Issue

_LONGEST = 2_000
"""Characters of an assertion that go into a correction; the rest is rarely what matters."""

_NOISE = (
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    (re.compile(r" at 0x[0-9a-fA-F]+"), ""),
    (re.compile(r"[^\s'\"]*[/\\]pytest-of-[^\s/\\]+[/\\]pytest-\d+"), "<tmp>"),
)
"""What differs from run to run: colours, addresses of objects, pytest's temporary folders. A
correction with any of it could not be replayed."""


def feedback_about(feedback: Iterable[Feedback], type_name: str) -> tuple[Feedback, ...]:
    """Return what of ``feedback`` is about a type, or about no type in particular."""
    return tuple(
        note for note in feedback if isinstance(note, str) or note.type_name in {None, type_name}
    )


def failure_of(item: pytest.Item) -> BaseException | None:
    """Call an item again and return what it fails with; ``None`` where it passes.

    What skips the item, says that it fails as expected, or ends the run, goes on to pytest.
    """
    try:
        item.runtest()
    except (Exception, pytest.fail.Exception) as error:
        if isinstance(error, pytest.xfail.Exception | pytest.exit.Exception):
            raise
        return error
    return None


def is_feedback(failure: BaseException | None) -> bool:
    """Return whether a failure is about what a model wrote: a failed assertion, but for one kind.

    A ``ContextLossError`` is about the code of an agent that drops part of its context: no reply
    can fix that, and neither store nor session is at fault.
    """
    # Not imported, because nothing can have raised the error of a module that nobody loaded.
    agents: Any = sys.modules.get("pytest_regen.testing.agents")
    is_of_agent = agents is not None and isinstance(failure, agents.ContextLossError)
    return isinstance(failure, AssertionError | pytest.fail.Exception) and not is_of_agent


def feedback_of(item: pytest.Item, failure: BaseException) -> tuple[Feedback, ...]:
    """Return the feedback of a failure: its own, else its words.

    With ``on=[codes]`` on the marker, only issues of those codes count.
    """
    on = regen_mark(item).on
    if isinstance(failure, FeedbackError):
        feedback: tuple[Feedback, ...] = failure.feedback
    else:
        feedback = (_words(item, failure),)
    if on is None:
        return feedback
    return tuple(note for note in feedback if isinstance(note, Issue) and note.code in on)


_QUOTED = re.compile(r"""(['"])((?:(?!\1)[^\\]|\\.)+)\1""")
"""Texts as pytest shows them in the values of an assertion."""


def _words(item: pytest.Item, failure: BaseException) -> str:
    """Return a failure in words that are the same on every machine and in every run."""
    text = _stable(str(failure).strip(), item)
    if not isinstance(failure, AssertionError | pytest.fail.Exception):
        text = f"{type(failure).__name__}: {text}"
    said, shows, expression = text.partition("\nassert ")
    values = [match[2] for match in _QUOTED.finditer(expression)]
    if shows and values and all(value in said for value in values):
        text = said  # Because each finding would stand there twice, and be paid for twice.
    if "<generator object" in text:
        # All that pytest can say of ``assert all(…)``; what was asserted stands in the test.
        for step in reversed(traceback.extract_tb(failure.__traceback__)):
            if Path(step.filename) == item.path:
                lines = linecache.getlines(step.filename)[(step.lineno or 1) - 1 : step.end_lineno]
                text += f"\nThe test asserts: {''.join(lines).strip()}"
                break
    text = text or "the test failed without a message"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def feedback_of_test(item: pytest.Item, failure: BaseException) -> tuple[Feedback, ...]:
    """Return what a test of functions says to the model: its feedback, with its own source.

    Unlike elsewhere every exception counts, for it may come from the function itself; what
    hypothesis adds to it, the falsifying example, belongs to its words.
    """
    if isinstance(failure, FeedbackError) or regen_mark(item).on is not None:
        return feedback_of(item, failure)
    notes = [
        line
        for note in getattr(failure, "__notes__", ())
        for line in _stable(str(note), item).splitlines()
        if line.strip() and not line.startswith(_REPRODUCTION)
    ]
    # A group says only how many there are; the first is what is to be mended first.
    if isinstance(failure, BaseExceptionGroup):
        first, *more = failure.exceptions
        notes += [f"and {type(other).__name__}: {other}" for other in more]
        for note in notes:
            first.add_note(note)
        return feedback_of_test(item, first)
    words = "\n".join((_words(item, failure), *_raised_at(item, failure), *notes))
    source = ""
    # A test of hypothesis or of unittest may have no function whose lines are there.
    with suppress(OSError, TypeError):
        function: Any = getattr(item, "function", None)
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
    return (FailedTest(f"[TEST] {item.name} fails: {words}", source),)


_REPRODUCTION = ("You can reproduce this example", "@reproduce_failure", "Explanation:")
"""What hypothesis says to people, which differs from release to release."""


def _raised_at(item: pytest.Item, failure: BaseException) -> Iterable[str]:
    """Yield the line that raised, where that is neither the test nor a library."""
    if isinstance(failure, AssertionError | pytest.fail.Exception):
        return
    for step in reversed(traceback.extract_tb(failure.__traceback__)):
        if Path(step.filename) == item.path:
            return
        if Path(step.filename).is_relative_to(item.config.rootpath) and step.line:
            yield f"raised by: {step.line}"
            return


def _stable(text: str, item: pytest.Item) -> str:
    """Return a text without what differs from run to run, or from machine to machine."""
    text = text.replace(f"{item.config.rootpath}{os.sep}", "")
    for pattern, stable in _NOISE:
        text = pattern.sub(stable, text)
    return text
