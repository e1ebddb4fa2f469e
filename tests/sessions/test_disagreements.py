"""What a run says about a scenario on which engine and judge do not agree."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_regen.sessions import (
    Attribution,
    ExecutionResult,
    Judgement,
    LoopParts,
    LoopReport,
    ScenarioRequest,
    TestScenario,
    compile_verify_repair,
)

SCENARIO = TestScenario(
    description="Read the diary",
    request=ScenarioRequest(server_name="files", tool_name="read"),
    expected_decision="allow",
)


def run(*blames: dict[str, Any]) -> LoopReport:
    """Run the loop over one failing scenario that every part leaves as it is."""

    def judge(policy: object, results: list[ExecutionResult]) -> Judgement:
        del policy, results
        return Judgement(attributions=tuple(Attribution.model_validate(one) for one in blames))

    ruling = SimpleNamespace(decision="escalate", rule="ask")
    source = SimpleNamespace(generate=lambda: [SCENARIO], regenerate=lambda _: [])
    return compile_verify_repair(
        LoopParts(
            compiler=SimpleNamespace(
                fingerprint="", compile=dict, repair=lambda policy, _: dict(policy)
            ),
            generator=lambda _: source,
            engine=lambda _: SimpleNamespace(evaluate=lambda _: ruling),
            judge=SimpleNamespace(judge=judge),
        )
    )


@pytest.mark.parametrize(
    ("blame", "told"),
    [
        ({"kind": "rule"}, "the judge blames rule"),
        ({"kind": "rule", "correctedDecision": "deny"}, "the judge blames rule"),
        ({"kind": "rule", "correctedDecision": "escalate"}, "the judge blames rule"),
        ({"kind": "scenario", "correctedDecision": "deny"}, "the judge says deny"),
        ({"kind": "both", "correctedDecision": "deny"}, "the judge says deny"),
    ],
)
def test_a_disagreement_says_who_says_what(blame: dict[str, str], told: str) -> None:
    """Where the judge blames the rules it holds the expectation right, whatever it adds."""
    report = run({"scenarioDescription": SCENARIO.description, **blame})

    [disagreement] = report.disagreements
    assert not report.passed
    assert str(disagreement).endswith(f"the engine says escalate (ask), {told}")


def test_silence_of_the_judge_is_told() -> None:
    [disagreement] = run().disagreements

    assert str(disagreement).endswith("the judge does not say whose fault it is")
