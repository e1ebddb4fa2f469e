"""Code that a model wrote, run in a process of its own: what it returns is judged here."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.sandbox.examples import (
        ExampleFailure,
        ExamplesResult,
        run_examples,
        without_examples,
    )
    from pytest_regen.sandbox.levels import (
        LEVELS,
        Level,
        missing,
        strongest_level,
    )
    from pytest_regen.sandbox.processes import Limits, Outcome, forget_used_level, run, used_level
    from pytest_regen.sandbox.questions import Answer, Job, Module, Raised, Result, ask
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "LEVELS",
    "Answer",
    "ExampleFailure",
    "ExamplesResult",
    "Job",
    "Level",
    "Limits",
    "Module",
    "Outcome",
    "Raised",
    "Result",
    "ask",
    "forget_used_level",
    "missing",
    "run",
    "run_examples",
    "strongest_level",
    "used_level",
    "without_examples",
]
