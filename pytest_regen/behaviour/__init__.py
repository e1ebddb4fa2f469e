"""What generated code does with JSON: valid instances must come back, invalid ones be refused."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.behaviour.findings import Finding, to_issue
    from pytest_regen.behaviour.gate import Behaviour, Block, Known, Subject, Verdict, check
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = ["Behaviour", "Block", "Finding", "Known", "Subject", "Verdict", "check", "to_issue"]
