"""Code that a model wrote, run in a process of its own: what it returns is judged here."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.sandbox.examples import ExamplesResult, run_examples, without_examples
    from pytest_regen.sandbox.levels import missing
    from pytest_regen.sandbox.processes import Limits, Outcome, run
    from pytest_regen.sandbox.questions import Job, Module, Raised, ask
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "ExamplesResult",
    "Job",
    "Limits",
    "Module",
    "Outcome",
    "Raised",
    "ask",
    "missing",
    "run",
    "run_examples",
    "without_examples",
]
