"""Valid instances: of hand-made schemas, judged by functions that know nothing of JSON Schema."""

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from drawn import instances_in, ir_of, plan_of
from tables import each

from pytest_regen.strategies.samples import Samples

THINGS: dict[str, Any] = {
    "Node": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "next": {"$ref": "#/components/schemas/Node"},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        },
    },
    "Base": {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}},
        "discriminator": {"propertyName": "kind", "mapping": {"car": "Car", "boat": "Boat"}},
    },
    "Car": {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"required": ["wheels"], "properties": {"wheels": {"type": "integer", "minimum": 3}}},
        ]
    },
    "Boat": {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"properties": {"sails": {"type": "boolean"}}},
        ]
    },
}


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_integer(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)


def is_node(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_text(value.get("name"))
        and value.keys() <= {"name", "next", "children"}
        and ("next" not in value or is_node(value["next"]))
        and all(is_node(child) for child in value.get("children", []))
    )


def is_vehicle(value: Any) -> bool:
    if value.get("kind") == "car":
        return is_integer(value.get("wheels")) and value["wheels"] >= 3 and len(value) == 2
    return value.get("kind") == "boat" and value.get("sails") in (None, True, False)


def declared(value: Any) -> Any:
    """Return a value without the names that an API may add."""
    if isinstance(value, list):
        return [*map(declared, value)]
    if isinstance(value, dict):
        return {k: declared(v) for k, v in value.items() if k not in {"x-new", "newField"}}
    return value


CASES: list[tuple[str, str, Any, Callable[[Any], bool], list[Any]]] = [
    ("any text", "3.1.0", {"type": "string"}, is_text, ["", "a", " padded ", "👩‍🚀😀"]),
    (
        "patterns",
        "3.1.0",
        {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$", "maxLength": 6},
        lambda v: re.fullmatch("[A-Z]{2}-[0-9]{1,3}", v) is not None,
        [],
    ),
    (
        "names by pattern",
        "3.1.0",
        {
            "type": "object",
            "patternProperties": {"^x-[a-z]+$": {"type": "integer"}},
            "additionalProperties": False,
        },
        lambda v: all(re.fullmatch("x-[a-z]+", k) and is_integer(i) for k, i in v.items()),
        [{}],
    ),
    (
        "null as OpenAPI 3.0 writes it",
        "3.0.3",
        {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {
                    "oneOf": [
                        {"$ref": "#/components/schemas/Node"},
                        {"type": "object", "nullable": True, "additionalProperties": False},
                    ]
                }
            },
        },
        lambda v: v["a"] is None or is_node(v["a"]),
        [{"a": None}],
    ),
    ("recursion", "3.1.0", {"$ref": "#/components/schemas/Node"}, is_node, [{"name": "a"}]),
    (
        "subtypes",
        "3.0.3",
        {"$ref": "#/components/schemas/Base"},
        is_vehicle,
        [{"kind": "boat"}, {"kind": "car", "wheels": 3}],
    ),
]


@each(
    ("version", "schema", "is_right", "shown"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_values_are_what_a_schema_allows(
    tmp_path: Path,
    version: str,
    schema: Any,
    is_right: Callable[[Any], bool],
    shown: list[Any],
) -> None:
    """All different, and with the telling ones among them."""
    plan = plan_of(tmp_path, schema, components=THINGS, version=version)

    values = Samples().of(plan, 100)

    assert [value for value in values if not is_right(declared(value))] == []
    assert [value for value in shown if value not in values] == []
    assert len(values) >= min(2, len(shown) or 2)
    assert len({json.dumps(value, sort_keys=True) for value in values}) == len(values)


def test_each_field_goes_through_its_own_values(tmp_path: Path) -> None:
    """Absent, null, each value of an enum, each limit: all of it among few instances."""
    schema = {
        "type": "object",
        "properties": {
            "state": {"enum": ["open", "shut", "lost"]},
            "note": {"type": ["string", "null"], "maxLength": 9},
            "depth": {"type": "number", "minimum": -3, "maximum": 8},
        },
    }
    (found,) = (i for i in instances_in(tmp_path, schema).values() if isinstance(i.valid[0], dict))

    first = found.valid[:30]
    assert found.valid[0] == {}
    assert found.valid[1].keys() == {"state", "note", "depth"}
    assert {each.get("state") for each in first} == {"open", "shut", "lost", None}
    assert {"", None, "abcdefghi"} <= {each.get("note", 0) for each in first}
    assert {-3, 8} <= {each.get("depth") for each in first}
    assert any("note" not in each for each in first)


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ({}, {str, int, bool}),
        ({"additionalProperties": {"type": "string"}}, {str}),
        ({"unevaluatedProperties": False}, set()),
    ],
    ids=["open", "typed", "closed"],
)
def test_some_instances_have_names_that_are_not_declared(
    tmp_path: Path, more: dict[str, Any], kinds: set[type]
) -> None:
    """The least and the whole, where the document allows it; all others have their own alone."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, **more}
    (found,) = instances_in(tmp_path, schema).values()

    added = [each for each in found.valid if {"x-new", "newField"} & each.keys()]
    assert [set(each) - {"x-new", "newField"} for each in added] == (
        [set(), set(), {"a"}] if kinds else []
    )
    assert {type(value) for each in added for name, value in each.items() if name != "a"} <= kinds


def test_a_pattern_that_cannot_be_read_is_told_of_the_types_that_need_it(tmp_path: Path) -> None:
    """All others are drawn, those among them that may do without it."""
    unread = {"type": "string", "pattern": "(?<a"}
    needs = {"type": "object", "required": ["a"], "properties": {"a": unread}}
    may = {"needs": {"$ref": "#/components/schemas/Needs"}, "b": {"enum": [1]}}
    found = instances_in(tmp_path, {"type": "object", "properties": may}, {"Needs": needs})

    needed = found.pop("Needs")
    assert needed.valid == ()
    assert "pattern" in needed.skipped[0].reason
    (drawn,) = ({key for each in one.valid for key in each} for one in found.values())
    assert {"b"} <= drawn <= {"b", "x-new", "newField"}


@each(
    ("outer", "inner", "beside"),
    product([{}, {"nullable": False}], [{}, {"nullable": True}], [{"nullable": False}, {}]),
)
def test_null_is_drawn_where_the_ir_has_it(
    tmp_path: Path, outer: dict[str, Any], inner: dict[str, Any], beside: dict[str, Any]
) -> None:
    """One reading of each spelling: a type and its instances do not differ about null."""
    schema = {"allOf": [{"type": "string", **inner}, beside], **outer}
    whole = {"type": "object", "properties": {"id": schema}}
    (found,) = instances_in(tmp_path, whole, version="3.0.3").values()
    (type_,) = ir_of(tmp_path / "api.json").types

    has_null = any(each.get("id", "") is None for each in found.valid)
    assert has_null is type_.fields[0].nullable
    assert has_null is ("nullable" not in {each.keyword for each in found.invalid})
