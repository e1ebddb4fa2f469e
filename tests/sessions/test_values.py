"""Scenarios as values: identity, aliases, expectations, arguments."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scenario_doubles import FETCH, READ, handwritten, request, scenario
from tables import each

from pytest_regen.sessions import (
    Attribution,
    ScenarioCorrection,
    ScenarioFeedback,
    TestScenario,
    ToolAnnotation,
    are_similar,
    argument_problems,
    expectation_holds,
    undecided_roles,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def test_pytest_does_not_collect_it() -> None:
    """The class is named ``TestScenario`` and says that it is no test."""
    assert TestScenario.__test__ is False


def test_identity_is_the_request() -> None:
    """Neither words nor decision matter; server, tool and arguments do."""
    one = scenario("/a", "allow")

    assert are_similar(one, scenario("/a", "deny", description="else"))
    assert not are_similar(one, scenario("/b"))
    assert not are_similar(one, scenario("/a", tool="write"))


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_the_order_of_keys_is_no_difference(arguments: dict[str, object]) -> None:
    """Arguments are compared as JSON, not as text."""
    backwards = dict(reversed(arguments.items()))
    one = scenario("/", request={"server_name": "s", "tool_name": "t", "arguments": arguments})
    other = scenario("/", request={"server_name": "s", "tool_name": "t", "arguments": backwards})

    assert one.id == other.id


def test_numbers_are_compared_as_json_has_them() -> None:
    """``1.0`` is ``1``; ``true`` and ``"1"`` are not."""
    ids = [scenario("/", request=request("/", n=value)).id for value in (1, 1.0, True, "1")]

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
    """What no JSON can carry is no argument."""
    with pytest.raises(ValidationError):
        request("/a", size=float("nan"))


def test_a_verdict_in_its_nested_form_is_read() -> None:
    """``blame`` may be nested; one that corrects needs the right decision."""
    nested = {
        "scenarioDescription": "x",
        "blame": {"kind": "scenario", "reasoning": "r", "correctedDecision": "deny"},
    }

    assert Attribution.model_validate(nested).corrected_decision == "deny"
    with pytest.raises(ValidationError, match="needs the decision"):
        Attribution(kind="both")


def test_feedback_defaults_to_nothing() -> None:
    """Every list is optional; probes alone are no reason for a turn."""
    assert ScenarioFeedback().is_empty
    assert not ScenarioFeedback(probe_scenarios=(scenario("/a"),)).asks_for_replacements
    assert ScenarioFeedback(
        corrections=[ScenarioCorrection(scenario_description="x", corrected_decision="deny")]
    ).asks_for_replacements


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": "/a"}, ""),
        ({"path": "/a", "mode": "text"}, ""),
        ({"path": "/a", "mdoe": "text"}, "'mdoe' does not exist"),
        ({}, "'path' is required"),
        ({"path": "/a", "mode": "TEXT"}, "'mode' is \"TEXT\""),
        ({"path": "/a", "mode": True}, "'mode' is true"),
    ],
)
def test_arguments_are_held_against_the_schema(arguments: dict[str, object], problem: str) -> None:
    """Unknown names, missing ones and values beside the enum are told; the rest passes."""
    one = request("/").model_copy(update={"arguments": arguments})

    problems = argument_problems(one, READ)

    assert (problem in problems[0]) if problem else not problems


def test_several_problems_are_told_at_once() -> None:
    """One repair mends them all."""
    one = request("/").model_copy(update={"arguments": {"mode": "x", "size": 1}})

    assert len(argument_problems(one, READ)) == 3


def test_a_tool_without_a_schema_has_no_objections() -> None:
    """Nothing is known, so nothing is wrong; nor where the schema is open."""
    open_schema = {"properties": {"path": {}}, "additionalProperties": True}
    tool = ToolAnnotation(server_name="files", tool_name="read", input_schema=open_schema)

    assert not argument_problems(request("/", anything=1), FETCH)
    assert not argument_problems(request("/", anything=1), tool)


def conditional(*conditions: Mapping[str, object]) -> ToolAnnotation:
    """Return a tool whose path is read where one of these conditions holds."""
    when = [{"condition": one, "roles": ["read-path"]} for one in conditions]
    roles = {"default": ["read-path", "delete-path"], "when": when}
    return ToolAnnotation.model_validate(
        {"serverName": "files", "toolName": "tag", "args": {"path": roles, "label": ["none"]}}
    )


LISTS = {"arg": "mode", "equals": "list"}
MAKES = {"arg": "mode", "in": ["create", "rename"]}
DRY = {"arg": "dry", "equals": True}


@each(
    ("conditions", "arguments", "missing"),
    [
        ([LISTS, MAKES], {}, "'mode', which is missing"),
        ([LISTS, MAKES], {"mode": "LIST"}, "'mode', which is \"LIST\""),
        ([LISTS, MAKES], {"mode": None}, "'mode', which is missing"),
        ([LISTS, MAKES], {"mode": "list"}, ""),
        ([LISTS, MAKES], {"mode": "rename"}, ""),
        ([DRY, LISTS], {"dry": True}, ""),
        ([DRY, LISTS], {"dry": False}, "'mode', which is missing"),
        ([DRY], {}, ""),
        ([DRY], {"dry": False}, ""),
        ([{"arg": "force", "is": "falsy"}], {"force": True}, ""),
        ([{"arg": "force", "is": "absent"}, LISTS], {}, ""),
        ([{"arg": "force", "is": "present"}, LISTS], {"force": 0}, ""),
        ([{"arg": "force", "is": "truthy"}, LISTS], {"force": []}, ""),
        ([{"arg": "depth", "equals": 1}], {"depth": True}, "'depth', which is true"),
    ],
)
def test_roles_that_a_request_leaves_undecided_are_told(
    conditions: list[dict[str, object]], arguments: dict[str, object], missing: str
) -> None:
    """A choice by value that is missing or unknown; not one of two sides, nor one that holds."""
    one = request("/a").model_copy(update={"arguments": {"path": "/a", **arguments}})

    told = undecided_roles(one, conditional(*conditions))

    expected = f"the roles of 'path' depend on {missing}: the default ones count"
    assert told == ((expected,) if missing else ())


def test_roles_without_conditions_are_never_undecided() -> None:
    """Nor are those of an argument that is not given."""
    assert undecided_roles(request("/a"), READ) == ()
    bare = request("/a").model_copy(update={"arguments": {"label": "x"}})
    assert undecided_roles(bare, conditional(LISTS)) == ()


def test_enums_inside_lists_are_looked_at() -> None:
    """A list of choices is a choice each."""
    schema = {"properties": {"path": {}, "kinds": {"items": {"enum": ["a", "b"]}}}}
    tool = ToolAnnotation(server_name="files", tool_name="read", input_schema=schema)

    assert argument_problems(request("/", kinds=["a", "c"]), tool) == (
        'the argument \'kinds[1]\' is "c"; it takes "a", "b"',
    )
