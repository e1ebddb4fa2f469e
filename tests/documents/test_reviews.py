"""What a type says less than its document: on which type or field it is reported, and how."""

from pathlib import Path
from typing import Any

import pytest
from short_types import PET, fields_of, ref
from small_documents import build, messages

from pytest_regen.documents import IR, ir_hash

CAT: dict[str, Any] = {"type": "object", "properties": {"id": {}, "claws": {}, "lives": {}}}
DOG: dict[str, Any] = {"type": "object", "properties": {"id": {}, "barks": {}}}


def reviews(folder: Path, schema: Any, components: dict[str, Any], **kw: Any) -> list[list[str]]:
    """Return type, field and message of each review of an IR."""
    made = build(folder, schema, components, **kw)
    return [[each.type_name, each.field or "", each.message] for each in made.ir.reviews]


@pytest.mark.parametrize("word", ["oneOf", "anyOf"])
def test_a_merged_union_names_its_branches(tmp_path: Path, word: str) -> None:
    """The type they became says which they were, and which fields not all of them have."""
    root = {"properties": {"pet": {word: [ref("Cat"), ref("Dog"), {"type": "null"}]}}}
    made = build(tmp_path, root, {"Cat": CAT, "Dog": DOG})
    (review,) = made.ir.reviews
    assert (review.type_name, review.field) == ("ThingPet", None)
    assert review.message == "Cat and Dog are merged into one type"
    assert review.detail.splitlines() == [
        "fields that not all of them have:",
        "Cat: claws and lives",
        "Dog: barks",
    ]
    assert fields_of(made.ir.type_named("ThingPet")).keys() == {"id", "claws", "lives", "barks"}


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [ref("Pet"), {"type": "null"}]},
        {"oneOf": [ref("Pet"), ref("Pet")]},
        {**PET, "anyOf": [{"required": ["id"]}, {"required": ["name"]}]},
        {"allOf": [ref("Pet"), {"properties": {"x": {}}}]},
    ],
)
def test_what_is_no_choice_of_objects_is_not_announced(tmp_path: Path, schema: Any) -> None:
    """Null, one schema twice, alternatives of ``required``, and ``allOf`` merge no types."""
    assert reviews(tmp_path, schema, {"Pet": PET}) == []


def test_many_branches_are_counted(tmp_path: Path) -> None:
    """The message stays a line."""
    parts: dict[str, Any] = {f"Part{n}": {"properties": {f"f{n}": {}}} for n in range(30)}
    made = build(tmp_path, {"oneOf": [ref(name) for name in parts]}, parts)
    assert made.ir.reviews[0].message.startswith("Part0, Part1, ")
    assert made.ir.reviews[0].message.endswith(" and 23 more are merged into one type")
    assert made.ir.reviews[0].detail.endswith("\nand 10 more")


def animals(discriminator: Any) -> dict[str, Any]:
    """Return a base type and two that extend it, one of them by way of the other."""
    return {
        "Animal": {"properties": {"kind": {"type": "string"}}, "discriminator": discriminator},
        "Cat": {"allOf": [ref("Animal"), {"properties": {"claws": {}, "lives": {}}}]},
        "Lion": {"allOf": [ref("Cat"), {"allOf": [{"properties": {"mane": {}}}]}]},
        "Stone": {"properties": {"weight": {}}},
    }


LEFT_OUT = "Cat and Lion extend it by the discriminator 'kind', and their own fields are left out"


@pytest.mark.parametrize(
    "mapping",
    [
        None,
        {"cat": "Cat", "lion": "#/components/schemas/Lion"},
    ],
)
def test_subtypes_behind_a_discriminator_are_told(
    tmp_path: Path, mapping: dict[str, str] | None
) -> None:
    """By its mapping, by their own names, directly or not: REVIEW says whose fields are lost."""
    discriminator: dict[str, Any] = {"propertyName": "kind"}
    if mapping:
        discriminator["mapping"] = mapping
    made = build(tmp_path, {"properties": {"pet": ref("Animal")}}, animals(discriminator))
    (review,) = made.ir.reviews
    assert (review.type_name, review.message) == ("Animal", LEFT_OUT)
    assert review.detail.splitlines() == ["Cat: claws and lives", "Lion: claws, lives and mane"]


def test_a_mapping_to_nothing_is_told(tmp_path: Path) -> None:
    """It is no reference that a type needs: a warning."""
    components = animals({"propertyName": "kind", "mapping": {"fish": "Fish.json"}})
    made = build(tmp_path, ref("Animal"), components)
    assert "the discriminator maps to nothing: $ref 'Fish.json': " in messages(made)
    assert {defect.severity for defect in made.defects} == {"warning"}


BROKEN = ref("Gone")


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ({"A": {"properties": {"x": BROKEN}}}, [["A", "x"]]),
        ({"A": {"properties": {"x": ref("Alias")}}, "Alias": BROKEN}, [["A", ""]]),
        ({"A": {"properties": {"x": {}}, "allOf": [BROKEN]}}, [["A", ""]]),
        (
            {
                "A": {"properties": {"x": {}}, "allOf": [ref("Mixin")]},
                "B": {"properties": {"y": {}}, "allOf": [ref("Mixin")]},
                "Mixin": {"properties": {"m": BROKEN}},
            },
            [["A", ""], ["B", ""]],
        ),
        ({"A": {"properties": {"x": ref("B")}}, "B": {"properties": {"y": BROKEN}}}, [["B", "y"]]),
    ],
)
def test_each_type_that_lost_something_says_so(
    tmp_path: Path, components: dict[str, Any], expected: list[list[str]]
) -> None:
    """All types that a place serves are told, and none that only refers to them."""
    root = {"properties": {"a": ref("A"), "b": ref("B") if "B" in components else {}}}
    told = reviews(tmp_path, root, components)
    assert [each[:2] for each in told] == expected
    assert all("'#/components/schemas/Gone' points at nothing" in each[2] for each in told)


def test_reviews_are_no_part_of_the_hashes(tmp_path: Path) -> None:
    """A store is not stale because we say more about it; without reviews the key is absent."""
    plain = build(tmp_path, PET)
    assert "reviews" not in plain.ir.to_json()
    union = build(tmp_path, {"oneOf": [ref("Cat"), ref("Dog")]}, {"Cat": CAT, "Dog": DOG}).ir
    silent = union.model_copy(update={"reviews": ()})
    assert union.to_json()["reviews"][0].keys() == {
        "type_name",
        "field",
        "where",
        "message",
        "detail",
    }
    assert ir_hash(union) == ir_hash(silent)
    assert IR.model_validate(union.to_json()) == union


def test_branches_without_a_name_are_told_by_title_or_number(tmp_path: Path) -> None:
    """Unions inside unions are one list."""
    union = {"oneOf": [{**CAT, "title": "Tom"}, {"oneOf": [DOG, ref("Pet")]}]}
    ((_, _, message),) = reviews(tmp_path, union, {"Pet": PET})
    assert message == "Tom, branch 1 and Pet are merged into one type"
