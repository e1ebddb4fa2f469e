"""Which scenarios no set of rules can satisfy: by the invariants of a real engine."""

import pytest
from library import PROTECTED, SANDBOX, engine

from pytest_regen.sessions import ScenarioRequest, TestScenario, structural_conflict

DONORS = f"{PROTECTED[0]}/list.csv"
RULES = [
    {"name": "read-all", "if": {"paths": {"roles": ["read-path"], "within": "/"}}, "then": "allow"}
]


def about(
    path: str, expected: str, tool: str = "read_file", source: str = "generated"
) -> TestScenario:
    """Return a scenario about a file of the seed library."""
    request = ScenarioRequest(
        server_name="filesystem", tool_name=tool, arguments={"path": path, "text": "x"}
    )
    return TestScenario(
        description="x",
        request=request,
        expected_decision=expected,
        source=source,
    )


@pytest.mark.parametrize(
    ("scenario", "rule", "decision"),
    [
        (about(DONORS, "allow"), "structural-protected-path", "deny"),
        (about("/x", "allow", tool="no_such_tool"), "structural-unknown-tool", "deny"),
        (about(DONORS, "allow", source="handwritten"), "structural-protected-path", "deny"),
        (about(f"{SANDBOX}/x", "not-allow", source="handwritten"), "structural-sandbox", "allow"),
    ],
)
def test_what_an_invariant_contradicts_is_named(
    scenario: TestScenario, rule: str, decision: str
) -> None:
    found = structural_conflict(scenario, engine({"rules": RULES}))

    assert found is not None
    assert found.scenario == scenario
    assert found.rule.startswith(rule)
    assert found.actual == decision


def test_what_rules_can_decide_is_left_to_them() -> None:
    """An invariant that agrees is no conflict, nor is a rule, or the want of one, that does not."""
    agreeing, by_rule = about(DONORS, "deny"), about("/srv/x", "deny")
    for one in (agreeing, by_rule, about("/srv/x", "allow", "write_file")):
        assert structural_conflict(one, engine({"rules": RULES})) is None
