"""Code that a model wrote, run in a process of its own: what it returns is judged here."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.sandbox.examples import ExamplesResult as ExamplesResult
    from pytest_regen.sandbox.examples import run_examples as run_examples
    from pytest_regen.sandbox.examples import without_examples as without_examples
    from pytest_regen.sandbox.levels import missing as missing
    from pytest_regen.sandbox.processes import Limits as Limits
    from pytest_regen.sandbox.processes import Outcome as Outcome
    from pytest_regen.sandbox.processes import run as run
    from pytest_regen.sandbox.questions import Job as Job
    from pytest_regen.sandbox.questions import Module as Module
    from pytest_regen.sandbox.questions import Raised as Raised
    from pytest_regen.sandbox.questions import ask as ask
else:
    __getattr__, __dir__ = lazy(__name__)
