"""Unions and constants in the IR of a language that has them."""

from pathlib import Path
from typing import Any

import pytest
from short_types import COLOUR, fields_of, ref, spelled, type_of
from small_documents import build, build_field, messages
from tables import each

from pytest_regen.documents import IR
from pytest_regen.documents.ir import UnionOf, referenced_names

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NULL = {"type": "null"}
CAT: dict[str, Any] = {"properties": {"claws": WHOLE}, "required": ["claws"]}
DOG: dict[str, Any] = {"properties": {"bark": TEXT}}


def one_of(*branches: Any, **beside: Any) -> dict[str, Any]:
    """Return a union."""
    return {"oneOf": list(branches), **beside}


def tagged(**values: Any) -> dict[str, Any]:
    """Return components, each with a property ``kind`` of one value."""
    return {
        name: {"properties": {"kind": said, "own": TEXT}, "required": ["kind"]}
        for name, said in values.items()
    }


@each("word", ["oneOf", "anyOf"])
@each(
    ("branches", "expected"),
    [
        ([ref("Cat"), ref("Dog")], "Cat | Dog"),
        ([ref("Dog"), ref("Cat"), ref("Dog")], "Dog | Cat"),
        ([TEXT, WHOLE], "string | integer"),
        ([TEXT, ref("Cat")], "string | Cat"),
        ([ref("Colour"), ref("Level")], "Colour | Level"),
        ([ref("Cat"), {"type": "array", "items": ref("Cat")}], "Cat | [Cat]"),
        ([{"type": "array", "items": TEXT}, {"type": "array", "items": WHOLE}],
         "[string] | [integer]"),
        ([{"type": "object", "additionalProperties": TEXT}, ref("Cat")], "{string} | Cat"),
        ([one_of(ref("Cat"), TEXT), {"anyOf": [ref("Dog"), ref("Cat")]}], "Cat | string | Dog"),
        ([{"type": ["string", "integer"]}, ref("Cat")], "string | integer | Cat"),
    ],
)  # fmt: skip
def test_one_of_several_is_a_union(
    tmp_path: Path, word: str, branches: list[Any], expected: str
) -> None:
    """Each branch is an option, in the document's order, without a warning."""
    components = {"Cat": CAT, "Dog": DOG, "Colour": COLOUR, "Level": {"enum": [1, 2]}}
    field, made = build_field(tmp_path, {word: branches}, components, has_unions=True)
    assert (spelled(field.type), field.nullable) == (expected, False)
    assert made.defects == ()
    assert IR.model_validate(made.ir.to_json()) == made.ir
    names = {type_.name for type_ in made.ir.types}
    assert set(referenced_names(field.type)) <= names


@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        ([ref("Cat"), ref("Cat")], "Cat"),
        ([TEXT, {"type": "string", "format": "date"}], "string"),
        ([WHOLE, {"type": "number"}], "number"),
        ([ref("Colour"), TEXT], "string"),
        ([{"const": "a"}, {"const": "b"}], "ThingX"),
        ([ref("Cat"), {}], "any"),
    ],
)
def test_what_one_type_says_is_no_union(tmp_path: Path, branches: list[Any], expected: str) -> None:
    """One schema, scalars of one kind, enums of one kind, and anything at all."""
    components = {"Cat": CAT, "Colour": COLOUR}
    assert type_of(tmp_path, one_of(*branches), components, has_unions=True) == expected


@pytest.mark.parametrize(
    "schema",
    [
        one_of(ref("Cat"), TEXT, NULL),
        one_of({**ref("Cat"), "nullable": True}, TEXT),
        {"type": ["null", "string", "object"], "properties": CAT["properties"]},
    ],
)
def test_null_is_no_option(tmp_path: Path, schema: Any) -> None:
    """The field is nullable."""
    version = "3.0.0" if "nullable" in str(schema) else "3.1.0"
    if version == "3.0.0":
        schema = one_of({"allOf": [ref("Cat")], "nullable": True}, TEXT)
    field, _ = build_field(tmp_path, schema, {"Cat": CAT}, version=version, has_unions=True)
    assert isinstance(field.type, UnionOf)
    assert len(field.type.options) == 2
    assert field.nullable


def test_null_inside_an_array_of_a_union_is_noted(tmp_path: Path) -> None:
    """As it is for an array that stands alone."""
    schema = one_of({"type": "array", "items": {"type": ["string", "null"]}}, WHOLE)
    field, _ = build_field(tmp_path, schema, has_unions=True)
    assert spelled(field.type) == "[string] | integer"
    assert field.constraints == {"nullableItems": True}


def test_properties_beside_a_union_of_objects_are_merged(tmp_path: Path) -> None:
    """No branch has them by itself: one type, and REVIEW says which branches it is made of."""
    schema = {"properties": {"id": WHOLE}, **one_of(ref("Cat"), ref("Dog"))}
    made = build(tmp_path, schema, {"Cat": CAT, "Dog": DOG}, has_unions=True)
    assert fields_of(made.ir.root) == {"id": "integer", "claws": "integer", "bark": "string"}
    assert "Cat and Dog are merged into one type" in messages(made)


def test_an_enum_of_mixed_values_is_a_union_of_their_types(tmp_path: Path) -> None:
    """The values themselves are left out, for review."""
    field, made = build_field(tmp_path, {"enum": ["auto", 1]}, has_unions=True)
    assert spelled(field.type) == "integer | string"
    assert "an enum of int and str is read as integer or string" in messages(made)


def test_options_lead_to_their_schemas(tmp_path: Path) -> None:
    """One that is written in the union has a place there, and a name from its title or tag."""
    schema = one_of(
        {"title": "Old Cat", "properties": {"claws": WHOLE}}, {"properties": {"bark": TEXT}}
    )
    _, made = build_field(tmp_path, schema, has_unions=True)
    here = "#/paths/~1things/get/responses/200/content/application~1json/schema/properties/x/oneOf"
    assert {type_.name: type_.schema_id for type_ in made.ir.types[1:]} == {
        "ThingX": f"{here}/1",
        "ThingXOldCat": f"{here}/0",
    }
    cat, dog = ({"properties": {"t": {"const": tag}}, "required": ["t"]} for tag in ("cat", "dog"))
    _, made = build_field(tmp_path, one_of(cat, dog), has_unions=True)
    assert [type_.name for type_ in made.ir.types[1:]] == ["ThingXCat", "ThingXDog"]


# --- constants ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "a"}, ("string", "a")),
        ({"type": "string", "enum": ["a", None]}, ("string", "a")),
        ({"type": "integer", "enum": [7.0], "format": "int32"}, ("integer:int32", 7)),
        (ref("One"), ("string", "one")),
        ({"allOf": [ref("Colour"), {"const": "red"}]}, ("string", "red")),
    ],
)
def test_an_enum_of_one_value_is_a_constant(
    tmp_path: Path, schema: Any, expected: tuple[str, Any]
) -> None:
    """It is a scalar with the constraint ``const``, and no type of its own."""
    components = {"One": {"type": "string", "enum": ["one"]}, "Colour": COLOUR}
    field, made = build_field(tmp_path, schema, components, has_unions=True)
    assert (spelled(field.type), field.constraints) == (expected[0], {"const": expected[1]})
    assert len(made.ir.types) == 1
    assert made.defects == ()


# --- discriminators -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cat", "dog", "beside", "expected"),
    [
        ({"const": "cat"}, {"enum": ["dog"]}, {"discriminator": {"propertyName": "kind"}}, "kind"),
        ({"const": "cat"}, {"const": "cat"}, {"discriminator": {"propertyName": "kind"}}, ""),
        (TEXT, TEXT, {"discriminator": {"propertyName": "kind"}}, ""),
        ({"enum": ["cat", None]}, {"const": "dog"}, {}, ""),
        (TEXT, TEXT,
         {"discriminator": {"propertyName": "kind", "mapping": {"c": "Cat", "d": "Dog"}}}, "kind"),
        (TEXT, TEXT,
         {"discriminator": {"propertyName": "kind",
                            "mapping": {"c": "Cat", "C": "Cat", "d": "Dog"}}}, ""),
        ({"enum": ["c", "d"]}, {"enum": ["d", "e"]},
         {"discriminator": {"propertyName": "kind",
                            "mapping": {"c": ref("Cat")["$ref"], "d": "Dog"}}}, "kind"),
        ],
)  # fmt: skip
def test_a_property_of_one_value_in_each_option_is_the_discriminator(
    tmp_path: Path, cat: Any, dog: Any, beside: Any, expected: str
) -> None:
    """By their schemas or by the mapping, declared or not; never where two could be meant."""
    schema = one_of(ref("Cat"), ref("Dog"), **beside)
    field, _ = build_field(tmp_path, schema, tagged(Cat=cat, Dog=dog), has_unions=True)
    assert spelled(field.type) == (f"<{expected}>" if expected else "") + "Cat | Dog"


def test_a_mapping_makes_constants(tmp_path: Path) -> None:
    """The property has one value, and the enum of all of them is used no longer."""
    both = {"type": "string", "enum": ["cat", "dog"]}
    schema = one_of(
        ref("Cat"),
        ref("Dog"),
        discriminator={"propertyName": "kind", "mapping": {"cat": "Cat", "dog": "Dog"}},
    )
    components = {**tagged(Cat=ref("Kind"), Dog=ref("Kind")), "Kind": both}
    _, made = build_field(tmp_path, schema, components, has_unions=True)
    assert [type_.name for type_ in made.ir.types[1:]] == ["Cat", "Dog"]
    assert made.ir.types[1].fields[0].constraints == {"const": "cat"}


def animals(mapping: dict[str, str] | None = None, **kind: Any) -> dict[str, Any]:
    """Return a base type and types that extend it, one of them by way of another."""
    said: dict[str, Any] = {"propertyName": "kind"} | ({"mapping": mapping} if mapping else {})
    return {
        "Animal": {
            "properties": {"kind": {"type": "string", **kind}},
            "required": ["kind"],
            "discriminator": said,
        },
        "Cat": {"allOf": [ref("Animal"), {"properties": {"claws": {}}}]},
        "Lion": {"allOf": [ref("Cat"), {"allOf": [{"properties": {"mane": {}}}]}]},
        "Fish": {"description": "Nothing of its own.", "allOf": [ref("Animal")]},
    }


def test_a_base_type_is_the_union_of_those_that_extend_it(tmp_path: Path) -> None:
    """The mapping says what stands for each; then the base itself is no option."""
    mapping = {"cat": "Cat", "lion": "Lion", "fish": "Fish"}
    field, made = build_field(tmp_path, ref("Animal"), animals(mapping), has_unions=True)
    assert spelled(field.type) == "<kind>Cat | Lion | Fish"
    assert fields_of(made.ir.type_named("Lion")).keys() == {"kind", "claws", "mane"}
    assert {type_.name: type_.schema_id for type_ in made.ir.types[1:]}["Fish"] == (
        "#/components/schemas/Fish"
    )
    assert made.defects == ()


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (None, "Cat | Fish | Lion | Animal"),
        ({"cat": "Cat"}, "Cat | Lion | Fish | Animal"),
        ({"any": "Animal", "cat": "Cat", "lion": "Lion", "fish": "Fish"},
         "<kind>Cat | Lion | Fish | Animal"),
    ],
)  # fmt: skip
def test_a_base_type_is_an_option_where_it_may_be_meant(
    tmp_path: Path, mapping: dict[str, str] | None, expected: str
) -> None:
    """The mapping names it, or not every type that extends it has a value."""
    assert type_of(tmp_path, ref("Animal"), animals(mapping), has_unions=True) == expected


# --- roots, limits ------------------------------------------------------------------------------


def test_a_response_that_holds_types_is_one_itself(tmp_path: Path) -> None:
    """It is called after what it holds, which comes first, in the document's order."""
    response = {"type": "array", "items": one_of(ref("Dog"), ref("Cat"), TEXT)}
    made = build(tmp_path, response, {"Cat": CAT, "Dog": DOG}, has_unions=True)
    assert [(type_.name, type_.kind, type_.is_root) for type_ in made.ir.types] == [
        ("DogDataObject", "object", False),
        ("CatDataObject", "object", False),
        ("ThingList", "alias", True),
    ]


def test_a_union_of_itself_is_read_to_the_end(tmp_path: Path) -> None:
    """JSON as it describes itself: what is inside is anything, for review."""
    json_ = one_of(
        TEXT,
        {"type": "array", "items": ref("Json")},
        {"type": "object", "additionalProperties": ref("Json")},
    )
    field, made = build_field(tmp_path, ref("Json"), {"Json": json_}, has_unions=True)
    assert spelled(field.type) == "string | [any] | {any}"
    assert "contains itself with no object between" in messages(made)


def test_unions_that_multiply_end(tmp_path: Path) -> None:
    """Forty levels of two choices each are neither built nor written out."""
    parts: dict[str, Any] = {
        f"U{n}": one_of(
            {"type": "array", "items": ref(f"U{n + 1}")},
            {"type": "object", "additionalProperties": ref(f"U{n + 1}")},
        )
        for n in range(40)
    }
    field, made = build_field(tmp_path, ref("U0"), {**parts, "U40": TEXT}, has_unions=True)
    assert len(spelled(field.type)) < 2_000
    assert "read as any value" in messages(made)
