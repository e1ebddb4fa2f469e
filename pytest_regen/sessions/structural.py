"""What an engine decides, and scenarios that no set of rules can satisfy because it decides so."""

from pytest_regen.errors import UsageError
from pytest_regen.sessions.protocols import Engine, ExecutionResult
from pytest_regen.sessions.values import (
    DiscardedScenario,
    TestScenario,
    decision_of,
    expectation_holds,
)

__all__ = ["STRUCTURAL_PREFIX", "execute", "structural_conflict"]

STRUCTURAL_PREFIX = "structural-"
"""What names of invariants begin with, as against compiled rules and ``default-deny``."""


def execute(scenario: TestScenario, engine: Engine) -> ExecutionResult:
    """Return what ``engine`` decides about the request of ``scenario``.

    Raises:
        UsageError: the decision is none, or the rule has no name.
    """
    ruling = engine.evaluate(scenario.request)
    who = f"the engine {type(engine).__name__} decides about {scenario.request}"
    rule = getattr(ruling, "rule", None)
    decision = decision_of(getattr(ruling, "decision", None), f"{who}:")
    if not isinstance(rule, str):
        raise UsageError(
            f"{who} {decision!r} by the rule {rule!r}",
            why="the name of the rule is what a correction and the report give as the reason",
            hint="let evaluate() return the name as .rule, 'default-deny' where no rule decides",
        )
    return ExecutionResult(scenario, decision, rule)


def structural_conflict(scenario: TestScenario, engine: Engine) -> DiscardedScenario | None:
    """Return ``scenario`` as discarded if an invariant decides otherwise than it expects.

    Handwritten scenarios are looked at as well; the loop reports them instead of dropping them.

    Raises:
        UsageError: the engine's decision is none, or its rule has no name.
    """
    result = execute(scenario, engine)
    is_structural = result.rule.startswith(STRUCTURAL_PREFIX)
    if not is_structural or expectation_holds(scenario.expected_decision, result.actual):
        return None
    return DiscardedScenario(scenario=scenario, actual=result.actual, rule=result.rule)
