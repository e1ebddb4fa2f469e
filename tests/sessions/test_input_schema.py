"""Input schemas as servers publish them: what is behind references, in forms and in objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from pytest_regen.sessions import (
    ScenarioRequest,
    ToolAnnotation,
    argument_problems,
    build_generator_system_prompt,
)

MODE = {"type": "string", "enum": ["r", "w"]}
NULL = {"type": "null"}
PUBLISHED: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "Mode": MODE,
        "Options": {
            "type": "object",
            "properties": {"mode": {"$ref": "#/$defs/Mode"}, "depth": {"enum": [1, 2]}},
            "required": ["mode"],
            "additionalProperties": False,
        },
        "Tree": {
            "properties": {
                "kind": {"const": "dir"},
                "inside": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            }
        },
    },
    "properties": {
        "mode": {"$ref": "#/$defs/Mode"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Mode"}, NULL]},
        "composed": {"allOf": [{"$ref": "#/$defs/Mode"}], "default": "r"},
        "options": {"$ref": "#/$defs/Options"},
        "several": {"type": "array", "items": {"oneOf": [MODE, {"const": 7}]}},
        "free": {"anyOf": [MODE, {"type": "integer"}, {"type": "object"}]},
        "tree": {"$ref": "#/$defs/Tree"},
        "remote": {"$ref": "https://elsewhere.example/schema.json"},
    },
    "required": ["mode"],
}


def problems(schema: dict[str, Any], arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return what a tool with this schema has against a call."""
    request = ScenarioRequest(server_name="s", tool_name="t", arguments=arguments)
    return argument_problems(
        request, ToolAnnotation(server_name="s", tool_name="t", input_schema=schema)
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"mode": "x"}, 'the argument \'mode\' is "x"; it takes "r", "w"'),
        ({"maybe": "x"}, "the argument 'maybe' is \"x\""),
        ({"composed": "x"}, "the argument 'composed' is \"x\""),
        ({"options": {}}, "the argument 'options.mode' is required"),
        ({"options": {"mode": "r", "x": 1}}, "'options.x' does not exist; there are depth, mode"),
        ({"options": {"mode": "r", "depth": 3}}, "the argument 'options.depth' is 3"),
        ({"several": ["r", 8]}, 'the argument \'several[1]\' is 8; it takes "r", "w" or the'),
        ({"free": "x"}, "the argument 'free' is \"x\""),
        ({"tree": {"inside": [{"kind": "file"}]}}, "'tree.inside[0].kind' is \"file\""),
        ({"remoet": 1}, "the argument 'remoet' does not exist"),
    ],
)
def test_what_stands_deeper_is_looked_at(arguments: dict[str, Any], problem: str) -> None:
    """Behind references, in compositions and forms, in objects and lists; with its place."""
    (found,) = problems(PUBLISHED, {"mode": "r", **arguments})

    assert problem in found


@pytest.mark.parametrize(
    "arguments",
    [
        {"maybe": None},
        {"maybe": "w", "composed": "w"},
        {"options": {"mode": "w", "depth": 2}},
        {"several": ["r", 7, 7.0]},
        {"free": 10**400},
        {"free": {"anything": ["goes"]}},
        {"tree": {"kind": "dir", "inside": [{"inside": []}], "note": "open"}},
        {"remote": {"whatever": 1}},
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_the_schema_takes_has_no_objection(arguments: dict[str, Any]) -> None:
    """Nor has what it does not say: a false alarm costs a paid reply."""
    assert problems(PUBLISHED, {"mode": "r", **arguments}) == ()


@each(
    ("schema", "arguments", "problem"),
    [
        ({"properties": {"a": {"enum": [1, 2]}}}, {"a": 1.0}, ""),
        ({"properties": {"a": {"enum": [1, 2]}}}, {"a": True}, "'a' is true"),
        ({"properties": {}, "additionalProperties": False}, {"a": 1}, "there are none"),
        ({"properties": {}}, {"a": 1}, ""),
        ({"properties": {"a": {}}, "patternProperties": {"^x-": {}}}, {"x-y": 1}, ""),
        ({"properties": {"a": {}}, "patternProperties": {"^x-": {}}}, {"y": 1}, "'y' does not"),
        ({"patternProperties": {"^x-": MODE}}, {"x-y": "z"}, "'x-y' is \"z\""),
        ({"properties": {"a": {}}, "patternProperties": {"(?<n>": {}}}, {"y": 1}, ""),
        ({"properties": {"a": {}}, "additionalProperties": {}}, {"y": 1}, ""),
        ({"properties": {"a": {}}, "additionalProperties": MODE}, {"y": 1}, "'y' is 1"),
        ({"properties": {"a": True}}, {"a": 1}, ""),
        ({"properties": {"a": {}}, "required": "a"}, {}, ""),
        ({"required": ["a"]}, {}, "'a' is required"),
        ({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}, {"b": 1}, ""),
        ({"properties": {"a": {}}, "allOf": [{"$ref": "x.json"}]}, {"b": 1}, ""),
        ({"properties": {"a": {}}, "if": {}, "then": {"properties": {"b": {}}}}, {"b": 1}, ""),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "the argument 'a' is required or the argument 'b' is required",
        ),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#/anyOf/0"}]}, {"a": 1}, ""),
        ({"$ref": "#"}, {"a": 1}, ""),
    ],
    ids=str,
)
def test_every_corner_of_a_schema(
    schema: dict[str, Any], arguments: dict[str, Any], problem: str
) -> None:
    """Numbers as JSON has them, patterns, openness, and what cannot be known."""
    found = problems(schema, arguments)

    assert (len(found) == 1 and problem in found[0]) if problem else not found, found


def test_the_generator_is_told_every_name_and_choice_it_is_held_to() -> None:
    """Else it would be refused what it could not know: optional names, choices at any depth."""
    annotation = ToolAnnotation(
        server_name="s", tool_name="t", args={"tree": ["none"]}, input_schema=PUBLISHED
    )
    prompt = build_generator_system_prompt("c", [annotation])

    told = prompt[prompt.index("- s/t") :].splitlines()
    optional = [
        *("maybe (string or null)", "composed (string)", "options (object)", "several (array)"),
        *("free (string or integer or object)", "remote"),
    ]
    assert told == [
        "- s/t",
        "  - tree: none",
        "  - required: mode (string)",
        f"  - optional: {', '.join(optional)}",
        '  - values of mode: ["r", "w"]',
        '  - values of maybe: ["r", "w", null]',
        '  - values of composed: ["r", "w"]',
        '  - values of options.mode: ["r", "w"]',
        "  - values of options.depth: [1, 2]",
        '  - values of several[]: ["r", "w", 7]',
        '  - values of tree.kind: ["dir"]',
        '  - values of tree.inside[].kind: ["dir"]',
    ]


VALUES = st.sampled_from(["r", "w", "x", 1, 1.0, True, None])


@given(st.lists(VALUES, min_size=1), VALUES, st.sampled_from(["plain", "ref", "anyOf", "allOf"]))
def test_a_choice_is_one_however_it_is_written(allowed: list[Any], value: Any, form: str) -> None:
    """Directly, by reference, as the only form or as a part."""
    choice = {"enum": allowed}
    written = {
        "plain": choice,
        "ref": {"$ref": "#/definitions/A~1B"},
        "anyOf": {"anyOf": [choice]},
        "allOf": {"allOf": [choice, {}]},
    }[form]
    schema = {"definitions": {"A/B": choice}, "properties": {"a": written}}
    is_allowed = any(
        value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed
    )

    assert bool(problems(schema, {"a": value})) != is_allowed


LETTER = {
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}},
        "subject": {"type": "string"},
        "copies": {"type": "integer"},
        "sent": {"type": ["boolean", "null"]},
        "reply": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "by": {"$ref": "#/$defs/carrier"},
        "odd": {"type": "email"},
        "any": {},
    },
    "$defs": {"carrier": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"to": "a@b.example"}, "'to' is \"a@b.example\"; its type is array of string"),
        ({"to": ["a@b.example", 5]}, "'to[1]' is 5; its type is string"),
        ({"subject": ["a"]}, "'subject' is [\"a\"]; its type is string"),
        ({"copies": "2"}, "'copies' is \"2\"; its type is integer"),
        ({"copies": True}, "'copies' is true; its type is integer"),
        ({"copies": 2.5}, "'copies' is 2.5; its type is integer"),
        ({"sent": "yes"}, "'sent' is \"yes\"; its type is boolean or null"),
        ({"reply": 1}, "'reply' is 1; its type is string or null"),
        ({"by": "air"}, "'by' is \"air\"; its type is object"),
        ({"by": {"name": {"x": "y" * 99}}}, '\'by.name\' is {"x":"yyy'),
    ],
)
def test_a_value_of_another_type_is_named(arguments: dict[str, Any], problem: str) -> None:
    """With the type that it should have; once, and clipped."""
    (found,) = problems(LETTER, arguments)

    assert problem in found
    assert len(found) < 120


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": []},
        {"copies": 2.0},
        {"sent": None},
        {"reply": None},
        {"odd": 1},
        {"any": [{}]},
        {"by": {"name": "air", "more": 1}},
    ],
    ids=str,
)
def test_types_raise_no_false_alarm(arguments: dict[str, Any]) -> None:
    """Whole numbers are integers, and what JSON Schema does not know is not looked at."""
    assert problems(LETTER, arguments) == ()


def test_the_generator_is_told_the_types() -> None:
    """It cannot know otherwise that one address is a list."""
    annotation = ToolAnnotation(
        server_name="mail", tool_name="send", args={"to": ["address"]}, input_schema=LETTER
    )
    prompt = build_generator_system_prompt("c", [annotation])

    assert "  - to (array of string): address" in prompt
    assert "copies (integer), sent (boolean or null), reply (string or null), by (object)" in prompt
