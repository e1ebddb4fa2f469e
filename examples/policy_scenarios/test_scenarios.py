"""The gate: what was verified still holds, and both recorded runs end as they did."""

import json
from pathlib import Path

import pytest
from library import engine, handwritten
from verify import ARTIFACT, parts, run

from pytest_regen import CallableProvider
from pytest_regen.sessions import (
    Artifact,
    TestScenario,
    compile_verify_repair,
    expectation_holds,
    read_artifact,
)


def verified() -> Artifact:
    """Return what record.py wrote."""
    artifact = read_artifact(ARTIFACT)
    assert artifact is not None, "python record.py writes verified/scenarios.json"
    return artifact


VERIFIED = verified()
ENGINE = engine(VERIFIED.policy or {})


@pytest.mark.parametrize("scenario", VERIFIED.scenarios, ids=lambda scenario: scenario.description)
def test_scenario(scenario: TestScenario) -> None:
    """The engine decides as expected, by the verified rules."""
    decided = ENGINE.evaluate(scenario.request)

    assert expectation_holds(scenario.expected_decision, decided.decision), decided


def test_what_people_wrote_is_all_there() -> None:
    """No handwritten scenario was changed, contradicted or dropped."""
    assert [scenario for scenario in VERIFIED.scenarios if scenario.is_handwritten] == handwritten()


def test_two_repairs_lead_to_the_verified_set(tmp_path: Path) -> None:
    """The recorded run is wrong four times, is repaired twice, and makes the very file shipped."""
    artifact = tmp_path / "scenarios.json"

    report = run("two_repairs", artifact=artifact)

    assert (report.passed, report.repairs) == (True, 2)
    decisions = [correction.original_decision for correction in report.corrections]
    assert decisions == ["escalate", "escalate"]
    assert [history.outcome for history in report.histories].count("discarded") == 1
    assert json.loads(artifact.read_text("utf-8")) == json.loads(ARTIFACT.read_text("utf-8"))


def test_a_verified_set_asks_nobody() -> None:
    """With nothing changed, the scenarios are executed again and no model is called."""
    nobody = CallableProvider(lambda messages: pytest.fail(f"asked {len(messages)} messages"))

    report = compile_verify_repair(parts(nobody), artifact=ARTIFACT)

    assert report.passed
    assert report.cached


def test_a_disagreement_is_reported_and_nothing_is_shipped(tmp_path: Path) -> None:
    """Judge and engine differ about one letter: the run fails and says who says what."""
    artifact = tmp_path / "scenarios.json"

    report = run("disagreement", artifact=artifact)

    [open_question] = report.disagreements
    result, verdict = open_question.result, open_question.verdict
    assert not report.passed
    assert result.scenario.description == "Write to a volunteer who left"
    assert (result.scenario.expected_decision, result.actual) == ("allow", "escalate")
    assert verdict is not None
    assert verdict.corrected_decision == "deny"
    assert not artifact.exists()
