"""Scenarios as values: identity, aliases, expectations, arguments, merging."""

import json

import pytest
from pydantic import ValidationError
from scenario_doubles import FETCH, READ, correction, discard, handwritten, named, request, scenario

from pytest_regen.errors import UsageError
from pytest_regen.sessions import (
    Attribution,
    TestScenario,
    apply_corrections,
    expectation_holds,
    merge_replacements,
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


A, B, C = scenario("/a"), scenario("/b"), scenario("/c")


def test_a_corrected_scenario_makes_room_and_replacements_come_last() -> None:
    """What was wrong is removed, what replaces it appended.

    Requirement 1, merge: what was corrected is replaced.
    """
    merged = merge_replacements([A, B], [C], [correction("/a", "deny")], [])

    assert merged == [B, C]


def test_a_discarded_scenario_goes() -> None:
    """So does one that no policy can satisfy.

    Requirement 1, merge: what was discarded goes.
    """
    twin = scenario("/z", description="read /a")

    assert merge_replacements([A, B, twin], [C], [], [discard("/a")]) == [B, twin, C]


def test_handwritten_scenarios_are_never_removed() -> None:
    """Neither by a discard nor by a correction, whatever the samples of the text do.

    Requirement 1, merge: handwritten ones stay.
    """
    own = handwritten("/a", description="read /a")

    merged = merge_replacements(
        [own, A.model_copy(update={"request": request("/x")})], [], [], [discard("/a")]
    )
    assert own in merged
    assert merge_replacements([own], [], [correction("/a", "allow")], []) == [own]


def test_a_replacement_of_a_kept_description_is_left_out() -> None:
    """Descriptions tell scenarios apart for a reader.

    Requirement 1, merge: duplicates of kept ones.
    """
    again = scenario("/other", description="read /b")

    assert merge_replacements([A, B], [again], [correction("/a", "deny")], []) == [B]


def test_an_ambiguous_description_is_an_error() -> None:
    """Correcting both would break the right one; an id tells them apart."""
    twin = scenario("/z", description="read /a")

    with pytest.raises(UsageError, match="2 scenarios are called"):
        merge_replacements([A, twin], [], [correction("/a", "deny")], [])
    by_id = correction("/a", "deny", scenario_id=twin.id)
    assert merge_replacements([A, twin], [], [by_id], []) == [A]


def test_corrections_are_put_in_place() -> None:
    changed = apply_corrections([A, B], [correction("/a", "deny")])

    assert named(changed) == [("read /a", "deny"), ("read /b", "allow")]
    assert changed[0].reasoning == "the constitution says so"
    with pytest.raises(UsageError, match="handwritten"):
        apply_corrections([handwritten("/h")], [correction("/h", "deny")])
