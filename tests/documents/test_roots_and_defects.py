"""What may be a root, what is generated, and how defects are told."""

from pathlib import Path
from typing import Any

import pytest
from short_types import PET, fields_of, ref, root_of
from small_documents import build, build_field, messages
from tables import each

from pytest_regen.errors import DocumentDefectError, NothingToGenerateError


@each(
    ("schema", "word", "severity"),
    [
        ({"$ref": "#/components/schemas/Nowhere"}, "points at nothing", "error"),
        ({"$ref": 5}, "must be a string", "error"),
        ({"$ref": "#anchor"}, "only JSON pointers", "error"),
        (None, "a schema is a mapping", "error"),
        ({"type": "object", "properties": []}, "it is ignored", "warning"),
        ({"enum": ["a"], "x-enumNames": []}, "one name per value", "warning"),
        ({**PET, "required": ["ghost"]}, "'ghost' is required but is not a property", "warning"),
        ({**PET, "additionalProperties": {"type": "string"}}, "are left out", "warning"),
        ({**PET, "not": {}}, "not is not read", "warning"),
    ],
)
def test_defects_are_collected_with_their_place(
    tmp_path: Path, schema: Any, word: str, severity: str
) -> None:
    """The build succeeds and says what is wrong where."""
    _, made = build_field(tmp_path, schema)
    assert word in messages(made)
    assert [defect.severity for defect in made.defects] == [severity]
    assert "/schema/properties/x" in made.defects[0].where


def test_a_forbidden_property_is_no_field(tmp_path: Path) -> None:
    """The schema ``false`` says that the property is never there."""
    assert fields_of(root_of(tmp_path, {"properties": {"a": False, "b": {}}})) == {"b": "any"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": PET},
        {"additionalProperties": {"type": "array", "items": PET}},
        {"items": {"patternProperties": {"^x": PET}}},
    ],
)
def test_roots_are_unwrapped(tmp_path: Path, schema: Any) -> None:
    """Arrays and maps as root are taken off, however deep."""
    assert fields_of(root_of(tmp_path, schema)) == {"id": "integer!"}


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "string"}, "is a string"),
        ({"items": {"items": {"type": "number"}}}, "is an array"),
        ({}, "is any value"),
    ],
)
def test_plain_values_leave_nothing_to_generate(tmp_path: Path, schema: Any, word: str) -> None:
    """Nothing is wrong with the document: an error of its own names the operation and says so."""
    with pytest.raises(NothingToGenerateError, match=word) as caught:
        build(tmp_path, schema)
    assert "GET /things" in caught.value.what
    assert "plain values need no type" in caught.value.why


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"oneOf": [{"type": "string"}, PET]}, "object or string"),
        ({"$ref": "#/components/schemas/None"}, "points at nothing"),
    ],
)
def test_other_roots_are_a_named_defect(tmp_path: Path, schema: Any, word: str) -> None:
    """A root that cannot be read is refused, naming the operation and the reason."""
    with pytest.raises(DocumentDefectError, match=word) as caught:
        build(tmp_path, schema)
    assert not isinstance(caught.value, NothingToGenerateError)
    assert "GET /things" in caught.value.what


def test_only_what_is_used_is_generated(tmp_path: Path) -> None:
    """Types come root first, then by name; what nothing refers to stays away."""
    components = {"Zoo": {"properties": {"p": ref("Pet")}}, "Pet": PET, "Unused": PET}
    schema = {"properties": {"z": ref("Zoo"), "inline": {"properties": {"a": {}}}}}
    made = build(tmp_path, schema, components)
    assert [t.name for t in made.ir.types] == ["ThingDataObject", "Pet", "ThingInline", "Zoo"]
    assert [t.schema_id for t in made.ir.types][1] == "#/components/schemas/Pet"
