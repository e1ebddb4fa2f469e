"""Scenarios as values: identity, aliases, expectations, arguments."""

import json

import pytest
from pydantic import ValidationError
from scenario_doubles import FETCH, READ, handwritten, request, scenario

from pytest_regen.sessions import (
    Attribution,
    ScenarioCorrection,
    ScenarioFeedback,
    TestScenario,
    expectation_holds,
)
from pytest_regen.sessions.arguments import argument_problems


def test_identity_is_the_request() -> None:
    """Neither words nor decision matter; server, tool and arguments do."""
    one = scenario("/a", "allow")
    assert one.id == scenario("/a", "deny", description="else").id
    assert one.id not in (scenario("/b").id, scenario("/a", tool="write").id)
    # Numbers are compared as JSON has them: 1.0 is 1; true and "1" are not.
    ids = [scenario("/", request=request("/", n=value)).id for value in (1, 1.0, True, "1")]
    call, other = request("/", a=1, b=2), request("/", b=2, a=1)

    assert scenario("/", request=call).id == scenario("/", request=other).id
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_both_spellings_are_read_and_one_is_written() -> None:
    """Both camelCase and snake_case are read; JSON written is snake_case and is read again."""
    camel = {
        "description": "d",
        "request": {"serverName": "s", "toolName": "t", "arguments": {}},
        "expectedDecision": "deny",
        "reasoning": "r",
    }
    one = TestScenario.model_validate(camel)

    assert one.to_json()["request"] == {"server_name": "s", "tool_name": "t", "arguments": {}}
    assert TestScenario.model_validate(json.loads(json.dumps(one.to_json()))) == one


def test_not_allow_is_for_people() -> None:
    """A generated scenario says what it expects; deny and escalate both satisfy a person's."""
    with pytest.raises(ValidationError, match="not-allow"):
        scenario("/a", "not-allow")
    with pytest.raises(ValidationError, match="needs the decision"):
        Attribution(kind="both")

    assert [expectation_holds("not-allow", one) for one in ("allow", "deny", "escalate")] == [
        False,
        True,
        True,
    ]
    assert expectation_holds(handwritten("/a", "allow").expected_decision, "allow")


def test_feedback_defaults_to_nothing() -> None:
    assert not list(ScenarioFeedback().lines())
    assert list(ScenarioFeedback(untested_tools=["a/b"]).lines()) == ["no scenario tests a/b"]
    assert not ScenarioFeedback(probe_scenarios=(scenario("/a"),)).asks_for_replacements
    assert ScenarioFeedback(
        corrections=[ScenarioCorrection(scenario_description="x", corrected_decision="deny")]
    ).asks_for_replacements


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": "/a", "mode": "text"}, ""),
        ({"path": "/a", "mdoe": "text"}, "'mdoe' was unexpected"),
        ({}, "'path' is a required property"),
        ({"path": "/a", "mode": "TEXT"}, "'mode': 'TEXT' is not one of"),
    ],
)
def test_arguments_are_held_against_the_schema(arguments: dict[str, object], problem: str) -> None:
    """Unknown names, missing ones, values beside the enum; nothing without a closed schema."""
    one = request("/").model_copy(update={"arguments": arguments})

    problems = argument_problems(one, READ)

    assert (problem in problems[0]) if problem else not problems
    assert not argument_problems(request("/", anything=1), FETCH)
    open_schema = {"properties": {"path": {}}, "additionalProperties": True}
    is_open = READ.model_copy(update={"input_schema": open_schema})
    assert not argument_problems(request("/", anything=1), is_open)
