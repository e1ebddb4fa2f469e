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
    ToolAnnotation,
    argument_problems,
    expectation_holds,
)


def test_pytest_does_not_collect_it() -> None:
    """The class is named ``TestScenario`` and says that it is no test."""
    assert TestScenario.__test__ is False


def test_identity_is_the_request() -> None:
    """Neither words nor decision matter; server, tool and arguments do."""
    one = scenario("/a", "allow")

    assert one.id == scenario("/a", "deny", description="else").id
    assert one.id not in (scenario("/b").id, scenario("/a", tool="write").id)


def test_numbers_are_compared_as_json_has_them() -> None:
    """``1.0`` is ``1``; ``true`` and ``"1"`` are not."""
    ids = [scenario("/", request=request("/", n=value)).id for value in (1, 1.0, True, "1")]
    one, other = request("/", a=1, b=2), request("/", b=2, a=1)

    assert scenario("/", request=one).id == scenario("/", request=other).id
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

    assert [expectation_holds("not-allow", one) for one in ("allow", "deny", "escalate")] == [
        False,
        True,
        True,
    ]
    assert expectation_holds(handwritten("/a", "allow").expected_decision, "allow")


def test_no_request_holds_nan() -> None:
    with pytest.raises(ValidationError):
        request("/a", size=float("nan"))


def test_a_verdict_that_corrects_needs_the_right_decision() -> None:
    with pytest.raises(ValidationError, match="needs the decision"):
        Attribution(kind="both")


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
        ({"path": "/a"}, ""),
        ({"path": "/a", "mode": "text"}, ""),
        ({"path": "/a", "mdoe": "text"}, "'mdoe' was unexpected"),
        ({}, "'path' is a required property"),
        ({"path": "/a", "mode": "TEXT"}, "'mode': 'TEXT' is not one of"),
        ({"path": "/a", "mode": True}, "'mode': True is not one of"),
    ],
)
def test_arguments_are_held_against_the_schema(arguments: dict[str, object], problem: str) -> None:
    """Unknown names, missing ones and values beside the enum are told; the rest passes."""
    one = request("/").model_copy(update={"arguments": arguments})

    problems = argument_problems(one, READ)

    assert (problem in problems[0]) if problem else not problems


def test_a_tool_without_a_schema_has_no_objections() -> None:
    """Nothing is known, so nothing is wrong; nor where the schema is open."""
    open_schema = {"properties": {"path": {}}, "additionalProperties": True}
    tool = ToolAnnotation(server_name="files", tool_name="read", input_schema=open_schema)

    assert not argument_problems(request("/", anything=1), FETCH)
    assert not argument_problems(request("/", anything=1), tool)
