"""allOf, oneOf, anyOf, references to oneself: what is merged, and what ends in any."""

from pathlib import Path
from typing import Any

import pytest
from short_types import PET, fields_of, ref, root_of, spelled
from small_documents import build, build_field, messages


@pytest.mark.parametrize(
    "schema",
    [
        ref("Pet"),
        {"allOf": [ref("Pet"), {"description": "d"}]},
        {"allOf": [ref("Pet"), {"type": "object"}], "title": "t", "type": "object"},
        {"anyOf": [{"allOf": [ref("Pet")]}, {"type": "null"}]},
        {"oneOf": [ref("Pet"), ref("Alias")]},
    ],
)
def test_wrappers_are_what_they_wrap(tmp_path: Path, schema: Any) -> None:
    """A composition that only describes one schema is no type of its own."""
    components = {"Pet": PET, "Alias": ref("Pet")}
    field, made = build_field(tmp_path, schema, components)
    assert (spelled(field.type), len(made.ir.types)) == ("Pet", 2)


def test_all_of_merges_properties_and_required(tmp_path: Path) -> None:
    """Members come first, ``required`` counts wherever it stands, bases are not emitted."""
    dog = {
        "allOf": [ref("Pet"), {"required": ["name", "tail"], "properties": {"tail": {}}}],
        "properties": {"name": {"type": "string"}},
        "required": ["tail"],
    }
    made = build(tmp_path, ref("Dog"), {"Pet": PET, "Dog": dog})
    assert fields_of(made.ir.root) == {"id": "integer!", "tail": "any!", "name": "string!"}
    assert [type_.name for type_ in made.ir.types] == ["DogDataObject"]
    assert made.defects == ()


def test_a_property_given_twice_holds_both(tmp_path: Path) -> None:
    """A member that narrows an inherited property refines it instead of replacing it."""
    components = {
        "Base": {"properties": {"kind": {"type": "string", "description": "d"}, "p": ref("Pet")}},
        "Pet": PET,
        "Both": {
            "allOf": [ref("Base"), {"properties": {"kind": {"enum": ["a"]}, "p": ref("Pet")}}]
        },
    }
    made = build(tmp_path, ref("Both"), components)
    assert fields_of(made.ir.root) == {"kind": "BothKind", "p": "Pet"}
    assert made.ir.root is not None
    assert made.ir.root.fields[0].description == "d"


def test_object_branches_become_one_type(tmp_path: Path) -> None:
    """A field of a union is required only if every branch requires it; branches vanish."""
    components = {
        "Cat": {
            "type": "object",
            "required": ["kind", "claws"],
            "properties": {"kind": {"const": "cat"}, "claws": {"type": "integer"}},
        },
        "Dog": {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"const": "dog"}, "tail": {"type": ["string", "null"]}},
        },
    }
    union = {"oneOf": [ref("Cat"), ref("Dog")], "discriminator": {"propertyName": "kind"}}
    made = build(tmp_path, union, components)
    assert fields_of(made.ir.root) == {
        "kind": "ThingKind!",
        "claws": "integer",
        "tail": "string?",
    }
    assert made.ir.types[1].enum_values == ("cat", "dog")
    assert len(made.ir.types) == 2


def test_required_alternatives_do_not_hide_properties(tmp_path: Path) -> None:
    """``oneOf`` of bare ``required`` lists leaves the fields optional."""
    schema = {
        "type": "object",
        "properties": {"a": {}, "b": {}, "c": {}},
        "oneOf": [{"required": ["a", "c"]}, {"required": ["b", "c"]}],
    }
    made = build(tmp_path, schema)
    assert fields_of(made.ir.root) == {"a": "any", "b": "any", "c": "any!"}
    assert made.defects == ()


def test_a_discriminator_nobody_declares_is_kept(tmp_path: Path) -> None:
    """The property a discriminator names is on the wire, declared or not."""
    union = {"oneOf": [ref("Pet"), ref("Other")], "discriminator": {"propertyName": "kind"}}
    other: dict[str, Any] = {"properties": {"o": {}}}
    made = build(tmp_path, union, {"Pet": PET, "Other": other})
    assert fields_of(made.ir.root) == {"id": "integer", "o": "any", "kind": "string!"}
    assert "discriminator" in messages(made)


def test_inheritance_through_a_union_of_children(tmp_path: Path) -> None:
    """A base that lists its children, each of which includes the base, is no endless loop."""
    components = {
        "Base": {"properties": {"id": {}}, "oneOf": [ref("One"), ref("Two")]},
        "One": {"allOf": [ref("Base"), {"properties": {"one": {}}}]},
        "Two": {"allOf": [ref("Base"), {"properties": {"two": {}}}]},
    }
    assert set(fields_of(root_of(tmp_path, ref("Base"), components))) == {"id", "one", "two"}
    assert set(fields_of(root_of(tmp_path, ref("One"), components))) == {"id", "one"}
    pair = {"properties": {"b": ref("Base"), "t": ref("Two")}}
    made = build(tmp_path, pair, components)
    two = made.ir.type_named("Two")
    assert set(fields_of(two)) == {"id", "two"}


@pytest.mark.parametrize("word", ["oneOf", "allOf"])
def test_merged_types_that_refer_to_themselves_give_one_that_does(
    tmp_path: Path, word: str
) -> None:
    """What two of them hold under one name is merged once, not level after level without end."""
    cat = {"properties": {"next": ref("Cat"), "lives": {"type": "integer"}}}
    dog = {"properties": {"next": {"allOf": [ref("Dog")]}, "age": {"type": "integer"}}}
    pet = {"properties": {"pet": {word: [ref("Cat"), ref("Dog")]}}}

    made = build(tmp_path, pet, {"Cat": cat, "Dog": dog})

    assert len(made.ir.types) == 3
    merged, nested = made.ir.types[1:]
    for one in (merged, nested):
        assert set(fields_of(one)) == {"next", "lives", "age"}
        assert fields_of(one)["next"] == nested.name
    said = [] if word == "allOf" else [merged.name, nested.name]
    assert [review.type_name for review in made.ir.reviews] == said
    assert len(made.defects) == len(said)


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "array", "items": ref("Self")}, "contains itself"),
        ({"type": "object", "additionalProperties": ref("Self")}, "contains itself"),
        ({"oneOf": [ref("Self"), {"type": "null"}]}, "refers to nothing but itself"),
    ],
)
def test_cycles_without_an_object_end_in_any(tmp_path: Path, schema: Any, word: str) -> None:
    """What never ends cannot be a type; it is any value, with a defect."""
    field, made = build_field(tmp_path, ref("Self"), {"Self": schema})
    assert "any" in spelled(field.type)
    assert word in messages(made)


def test_long_chains_are_bounded(tmp_path: Path) -> None:
    """Names for names are read to their end; what is nested too deeply is one error."""
    deep: dict[str, Any] = {f"A{n}": {"items": ref(f"A{n + 1}")} for n in range(300)}
    deep |= {
        f"B{n}": {"allOf": [ref(f"B{n + 1}"), {"properties": {f"p{n}": {}}}]} for n in range(300)
    }
    deep |= {f"C{n}": ref(f"C{n + 1}") for n in range(300)}
    deep |= {f"D{n}": {"oneOf": [ref(f"D{n + 1}"), PET]} for n in range(300)}
    last = {"A300": {}, "B300": PET, "C300": PET, "D300": PET}
    severities = {"A": {"warning"}, "B": {"error"}, "C": set[str](), "D": {"error"}}
    for letter, expected in severities.items():
        _, made = build_field(tmp_path, ref(f"{letter}0"), deep | last)
        assert len(made.ir.types) <= 2, letter
        defects = [each for each in made.defects if "merged" not in each.message]
        assert {each.severity for each in defects} == expected, letter
