"""Scenarios that no set of rules can satisfy, because an invariant of the engine decides them."""

from pytest_regen.sessions.protocols import Engine
from pytest_regen.sessions.values import DiscardedScenario, TestScenario, expectation_holds

__all__ = ["STRUCTURAL_PREFIX", "structural_conflict"]

STRUCTURAL_PREFIX = "structural-"
"""What names of invariants begin with, as against compiled rules and ``default-deny``."""


def structural_conflict(scenario: TestScenario, engine: Engine) -> DiscardedScenario | None:
    """Return ``scenario`` as discarded if an invariant decides otherwise than it expects.

    Handwritten scenarios are looked at as well; the loop reports them instead of dropping them.
    """
    ruling = engine.evaluate(scenario.request)
    is_structural = ruling.rule.startswith(STRUCTURAL_PREFIX)
    if not is_structural or expectation_holds(scenario.expected_decision, ruling.decision):
        return None
    return DiscardedScenario(scenario=scenario, actual=ruling.decision, rule=ruling.rule)
