"""What generated code does with JSON: valid instances must come back, invalid ones be refused."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.behaviour.findings import Finding as Finding
    from pytest_regen.behaviour.findings import to_issue as to_issue
    from pytest_regen.behaviour.gate import Behaviour as Behaviour
    from pytest_regen.behaviour.gate import Block as Block
    from pytest_regen.behaviour.gate import Known as Known
    from pytest_regen.behaviour.gate import Subject as Subject
    from pytest_regen.behaviour.gate import Verdict as Verdict
    from pytest_regen.behaviour.gate import check as check
else:
    __getattr__, __dir__ = lazy(__name__)
