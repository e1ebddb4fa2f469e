"""Single schemas: what each construct becomes in the IR."""

from pathlib import Path
from typing import Any

import pytest
from short_types import COLOUR, NULL_OBJECT, PET, ref, spelled
from small_documents import build, build_field, messages
from tables import each


@each(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "string:date-time"),
        ({}, "any"),
        (True, "any"),
        ({"type": "object"}, "{any}"),
        ({"additionalProperties": {"type": "string"}}, "{string}"),
        ({"type": "object", "patternProperties": {"^a": {"type": "integer"}}}, "{integer}"),
        ({"type": "object", "additionalProperties": {"type": "array"}}, "{[any]}"),
        ({"type": "array"}, "[any]"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "[[number]]"),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "integer"}]}, "[number]"),
        ({"const": "x"}, "string"),
        ({"anyOf": [{"type": "string"}, COLOUR]}, "string"),
        ({"type": "string", "anyOf": [{"format": "a"}, {"format": "b"}]}, "string"),
    ],
)
def test_what_needs_no_type_of_its_own(tmp_path: Path, schema: Any, expected: str) -> None:
    """Scalars, arrays, maps and free-form values are spelled in place, without a defect."""
    field, made = build_field(tmp_path, schema)
    assert (spelled(field.type), made.defects) == (expected, ())
    assert len(made.ir.types) == 1


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"oneOf": [{"type": "string"}, ref("Pet")]}, "object or string"),
        ({"enum": ["a", 1]}, "enum of int and str"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}]}, "boolean"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "at once"),
        ({"allOf": [COLOUR, {"enum": ["blue"]}]}, "no value"),
        ({"type": "money"}, "no JSON type: money"),
    ],
)
def test_true_unions_are_any_value_for_review(tmp_path: Path, schema: Any, word: str) -> None:
    """What cannot be told as one type is any value, and a warning says why and where."""
    field, made = build_field(tmp_path, schema, {"Pet": PET})
    assert spelled(field.type) in {"any", "[any]"}
    assert [defect.severity for defect in made.defects] == ["warning"]
    assert word in messages(made)
    assert "properties/x" in made.defects[0].where


@pytest.mark.parametrize(
    ("enum", "expected"),
    [
        ({"enum": [True]}, "boolean"),
        ({"type": "number", "enum": [1, 2.5]}, "number"),
        ({"type": "string", "enum": [1, 2]}, "string"),
        ({"type": "integer", "enum": ["1"]}, "integer"),
    ],
)
def test_other_enums_are_their_plain_type(tmp_path: Path, enum: Any, expected: str) -> None:
    """Enums of booleans, of fractions, and against their type are no enums, for review."""
    field, made = build_field(tmp_path, enum)
    assert spelled(field.type) == expected
    assert "only strings or integers make an enum" in messages(made)


@pytest.mark.parametrize(
    ("schema", "values", "names"),
    [
        (COLOUR, ("red", "green"), None),
        ({"type": "integer", "enum": [1.0, 2]}, (1, 2), None),
        ({"enum": ["a", "b"], "x-enum-varnames": ["Alpha", "Beta"]}, ("a", "b"), ("Alpha", "Beta")),
        ({"enum": [1, None, 2], "x-enumNames": ["One", "Two"]}, (1, 2), ("One", "Two")),
        (
            {"oneOf": [{"const": 1, "title": "ONE"}, {"const": 2, "title": "TWO"}]},
            (1, 2),
            ("ONE", "TWO"),
        ),
        ({"anyOf": [COLOUR, {"enum": ["blue", "red"]}]}, ("red", "green", "blue"), None),
        ({"allOf": [COLOUR, {"enum": ["green", "blue"]}]}, ("green",), None),
    ],
)
def test_enums_keep_values_and_labels(
    tmp_path: Path, schema: Any, values: tuple[Any, ...], names: tuple[str, ...] | None
) -> None:
    """Values keep their JSON type and order; labels come from titles or extensions."""
    field, made = build_field(tmp_path, schema)
    assert spelled(field.type) == "ThingX"
    type_ = made.ir.types[1]
    assert (type_.kind, type_.enum_values, type_.enum_names) == ("enum", values, names)
    assert [type(value) for value in type_.enum_values] == [type(value) for value in values]
    assert made.defects == ()


def test_a_narrowed_enum_stays_the_enum(tmp_path: Path) -> None:
    """A discriminator limited to one value of an enum keeps the enum's type."""
    schema = {"type": "string", "enum": ["red"], "allOf": [ref("Colour")], "description": "d"}
    field, _ = build_field(tmp_path, schema, {"Colour": COLOUR})
    assert (spelled(field.type), field.constraints) == ("Colour", {"enum": ["red"]})
    assert field.description == "d"


@each(
    ("schema", "version"),
    [
        ({"allOf": [ref("Pet")], "nullable": True}, "3.0.3"),
        ({"allOf": [{"type": "string", "nullable": True}, {"nullable": False}]}, "3.0.3"),
        ({"oneOf": [ref("Pet"), NULL_OBJECT]}, "3.0.3"),
        (ref("Maybe"), "3.0.3"),
        ({"type": "string", "x-nullable": True}, "2.0"),
        ({"oneOf": [{"type": "null"}, ref("Pet")]}, "3.1.0"),
        ({"enum": ["a", None]}, "3.1.0"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}, {"const": None}]}, "3.1.0"),
        (ref("Pet", nullable=True), "3.1.0"),
    ],
)  # fmt: skip
def test_null_in_every_dialect(tmp_path: Path, schema: Any, version: str) -> None:
    """However a document says that null is allowed, the field is nullable."""
    components = {"Pet": PET, "Maybe": {**PET, "nullable": True}}
    field, _ = build_field(tmp_path, schema, components, version=version)
    assert field.nullable


def test_null_inside_arrays_and_maps_is_a_constraint(tmp_path: Path) -> None:
    """Type expressions know no null inside; the field's constraints keep the fact."""
    inner = {"type": ["string", "null"]}
    field, _ = build_field(tmp_path, {"type": "array", "items": inner})
    assert field.constraints == {"nullableItems": True}
    field, _ = build_field(tmp_path, {"additionalProperties": inner})
    assert field.constraints == {"nullableValues": True}


def test_what_the_document_says_of_a_field_is_kept(tmp_path: Path) -> None:
    """Flags, limits, defaults and examples; a description beside ``$ref`` wins."""
    components = {
        "Code": {"type": "string", "pattern": "^x", "maxLength": 9, "description": "inner"},
        "Pet": {**PET, "description": "a pet"},
    }
    outer = {"allOf": [ref("Code")], "description": "outer", "default": "x1", "maxLength": 5}
    field, _ = build_field(
        tmp_path, {**outer, "readOnly": True, "deprecated": True, "writeOnly": False}, components
    )
    assert field.description == "outer"
    assert field.constraints == {"pattern": "^x", "maxLength": 5, "default": "x1"}
    assert (field.read_only, field.write_only, field.deprecated) == (True, False, True)
    assert build_field(tmp_path, ref("Pet"), components)[0].description is None
    assert build_field(tmp_path, ref("Pet", description="his"), components)[0].description == "his"
    assert build_field(tmp_path, ref("Code"), components)[0].description == "inner"


def test_siblings_of_a_reference_count_since_3_1(tmp_path: Path) -> None:
    """Before, only the description is taken, and the rest is told to be void."""
    schema = ref("Pet", nullable=True, description="d", readOnly=True)
    new, _ = build_field(tmp_path, schema, {"Pet": PET}, version="3.1.0")
    old, made = build_field(tmp_path, schema, {"Pet": PET}, version="3.0.3")
    assert (new.nullable, new.read_only, new.description) == (True, True, "d")
    assert (old.nullable, old.read_only, old.description) == (False, False, "d")
    assert "no effect before OpenAPI 3.1" in messages(made)


def test_not_a_number_is_left_out(tmp_path: Path) -> None:
    """What JSON has no words for cannot be stored."""
    field, made = build_field(tmp_path, {"type": "number", "default": float("nan"), "minimum": 0})
    assert field.constraints == {"minimum": 0}
    assert "default is not a plain JSON value" in messages(made)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "writeOnly": True},
        {"allOf": [{"type": "string", "writeOnly": True}]},
    ],
)
def test_what_is_only_written_is_not_demanded_of_a_response(tmp_path: Path, schema: Any) -> None:
    """``required`` holds for requests there; what is only read stays required."""
    properties = {"secret": schema, "id": {"type": "string", "readOnly": True}}
    made = build(tmp_path, {"properties": properties, "required": ["secret", "id"]})
    secret, id_ = made.ir.types[0].fields
    assert (secret.required, secret.write_only) == (False, True)
    assert (id_.required, id_.read_only) == (True, True)


def test_an_enum_that_the_language_cannot_hold_is_a_string(tmp_path: Path) -> None:
    """No name can stand for some values; REVIEW says so, and every value can be read."""
    field, made = build_field(tmp_path, {"type": ["string", "null"], "enum": ["a", "", None]})
    assert spelled(field.type) == "string"
    assert "no enum member can stand for" in messages(made)
    assert [each.field for each in made.ir.reviews] == ["x"]
