"""Invalid instances: wrong at one place, by one keyword, and judged by hand."""

from pathlib import Path

import pytest
from drawn import instances_in, plan_of

from pytest_regen.strategies import Violation

SCHEMA = {
    "type": "object",
    "required": ["id", "size"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "size": {"type": "integer", "minimum": 2, "maximum": 9},
        "code": {"type": "string", "pattern": "^[a-z]{2}$"},
        "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 5},
        "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "seats": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "flag": {"type": "boolean"},
        "kind": {"const": "boat"},
        "count": {"type": "integer", "format": "int32"},
        "rates": {"type": "object", "additionalProperties": {"type": "number"}},
        "state": {"$ref": "#/components/schemas/State"},
        "prize": {
            "oneOf": [{"$ref": "#/components/schemas/Cup"}, {"$ref": "#/components/schemas/Purse"}]
        },
        "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    },
}
OTHERS = {
    "State": {"type": "string", "enum": ["open", "on-hold"]},
    "Cup": {
        "type": "object",
        "required": ["sort", "metal"],
        "properties": {"sort": {"const": "cup"}, "metal": {"type": "string"}},
    },
    "Purse": {
        "type": "object",
        "required": ["sort", "sum"],
        "properties": {"sort": {"const": "purse"}, "sum": {"type": "integer"}},
    },
}
WANTED = {
    "id": {"required", "nullable", "type", "format"},
    "size": {"required", "nullable", "type", "coercion", "minimum", "maximum"},
    "code": {"nullable", "type", "pattern"},
    "name": {"type", "minLength", "maxLength"},
    "ratio": {"nullable", "type", "exclusiveMinimum", "multipleOf"},
    "tags": {"nullable", "type", "minItems", "maxItems"},
    "seats": {"nullable", "type", "uniqueItems"},
    "flag": {"nullable", "type", "coercion"},
    "kind": {"nullable", "type", "const"},
    "count": {"nullable", "type", "format"},
    "rates": {"nullable", "type"},
    "state": {"nullable"},
    "prize": {"nullable", "discriminator", "union"},
    "either": {"nullable", "union"},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Violation, ...]:
    """The violations of the root."""
    folder = tmp_path_factory.mktemp("violations")
    return next(iter(instances_in(folder, SCHEMA, OTHERS).values())).invalid


def test_each_keyword_of_each_field_is_violated(found: tuple[Violation, ...]) -> None:
    """All that the IR keeps of a field."""
    told: dict[str, set[str]] = {}
    for each in found:
        told.setdefault(each.field, set()).add(each.keyword)

    missing = {name: wanted - told.get(name, set()) for name, wanted in WANTED.items()}
    assert not any(missing.values()), missing
    # Items of arrays and values of maps, whose paths are longer than that of the field.
    paths = {(each.field, each.keyword, len(each.path)) for each in found}
    assert {("tags", "type", 2), ("tags", "nullableItems", 2), ("rates", "type", 2)} <= paths


def test_one_thing_is_wrong(found: tuple[Violation, ...], tmp_path: Path) -> None:
    """Without it the instance would be right: it is where the path leads, in the field named."""
    check = plan_of(tmp_path, SCHEMA, components=OTHERS)

    for each in found:
        assert not check.allows(each.instance), each
        assert each.path[0] == each.field
        without = {name: value for name, value in each.instance.items() if name != each.field}
        if each.field not in {"id", "size"}:
            assert check.allows(without), each


def test_an_enum_refuses_what_looks_like_a_name(tmp_path: Path) -> None:
    """The value in capitals is what a look-up by name would take."""
    invalid = instances_in(tmp_path, SCHEMA, OTHERS)["State"].invalid

    assert {"OPEN", "Open"} <= {e.instance for e in invalid if e.keyword == "enum"}
    assert {each.path for each in invalid} == {()}
    assert {each.field for each in invalid} == {""}


def test_what_cannot_be_violated_alone_says_so(tmp_path: Path) -> None:
    """No text is too short without breaking the pattern as well."""
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "minLength": 2, "pattern": "^..$"}},
    }
    (found,) = instances_in(tmp_path, schema).values()

    assert "minLength" not in {each.keyword for each in found.invalid}
    assert [s.keyword for s in found.skipped if s.field == "code"] == ["minLength"]
