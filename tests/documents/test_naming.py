"""Names of types: readable, unique, and moved by nothing unrelated."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import PlainNames, build
from tables import each

from pytest_regen.documents.naming import give_names, home_name, singular
from pytest_regen.documents.places import Pointer, pointer_segments


@each(
    ("plural", "expected"),
    [
        ("status", "status"),
        ("series", "series"),
        ("addresses", "address"),
        ("movies", "movie"),
        ("branches", "branch"),
        ("analysis", "analysis"),
        ("people", "person"),
        ("indices", "index"),
        ("buses", "bus"),
        ("heroes", "hero"),
        ("orderLines", "orderLine"),
        ("OrderStatuses", "OrderStatus"),
        ("userIDs", "userID"),
        ("", ""),
    ],
)
def test_singular(plural: str, expected: str) -> None:
    """The last word of a name is put in the singular, and left alone if it is no plural."""
    assert singular(plural) == expected


@each(
    ("pointer", "expected"),
    [
        ("/components/schemas/Order", "Order"),
        ("/components/schemas/Order/properties/lines/items", "OrderLine"),
        ("/components/schemas/Order/properties/lines/items/properties/tax", "OrderLineTax"),
        ("/components/schemas/Order/properties/items", "OrderItems"),
        ("/components/schemas/Order/$defs/Line", "Line"),
        ("/paths/~1v1~1statuses/get/responses/200/content/application~1json/schema", "Status"),
        ("/paths/~1users.json/get/responses/200/schema/items", "User"),
        ("/paths/~1{a}~1{b}/get/responses/200/schema", "Response"),
        ("/components/responses/Cases/content/application~1json/schema/items", "Case"),
    ],
)
def test_a_name_comes_from_the_place(pointer: str, expected: str) -> None:
    """An inline schema is named after its owner and its property, singular inside arrays."""
    assert home_name(Pointer("", pointer_segments(pointer))) == expected


def names(folder: Path, schema: Any, components: dict[str, Any]) -> dict[str, str]:
    """Return the declared name of each type by its place."""
    return {type_.schema_id: type_.name for type_ in build(folder, schema, components).ir.types}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


OBJECT: dict[str, Any] = {"properties": {"a": {"type": "string"}}}


def test_names_that_collide_are_told_apart_and_stay(tmp_path: Path) -> None:
    """Rivals differ by a hash of their place; a newcomer elsewhere changes no name."""
    components = {"a-b": OBJECT, "a_b": OBJECT, "A.B": OBJECT, "New": OBJECT}
    few = {"properties": {name: ref(name) for name in ("a-b", "a_b")}}
    more = {"properties": {name: ref(name) for name in ("New", "a_b", "a-b")}}
    before, after = names(tmp_path, few, components), names(tmp_path, more, components)
    assert before["#/components/schemas/a-b"] == "AB"
    assert before["#/components/schemas/a_b"] == "ABType"
    assert {place: after[place] for place in before} == before


def test_a_root_does_not_take_a_component_s_name(tmp_path: Path) -> None:
    """An unnamed root steps back behind the schemas that have a name in the document."""
    components = {"ThingDataObject": OBJECT}
    made = names(tmp_path, {"properties": {"x": ref("ThingDataObject")}}, components)
    assert made["#/components/schemas/ThingDataObject"] == "ThingDataObject"
    assert "ThingResponseDataObject" in made.values()


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Cargo list", "CargoList"),
        ("../../pwned", "Pwned"),
        ("A list of all the things there are", "Thing"),
        ("...", "Thing"),
    ],
)
def test_the_title_of_an_unnamed_root(tmp_path: Path, title: str, name: str) -> None:
    """A short title names the root; a sentence or nothing leaves it to the path."""
    made = build(tmp_path, {**OBJECT, "title": title})
    assert made.ir.types[0].name == name + "DataObject"


def test_of_two_schemas_of_one_name_the_other_file_s_is_named_for_its_file(tmp_path: Path) -> None:
    """By the file's first word: neither folders nor endings are part of a name."""
    (tmp_path / "parts").mkdir()
    other = tmp_path / "parts" / "harbour.v2.json"
    other.write_text(json.dumps({"definitions": {"Owner": OBJECT}}), "utf-8")
    schema = {
        "properties": {
            "ours": ref("Owner"),
            "theirs": {"$ref": "parts/harbour.v2.json#/definitions/Owner"},
        }
    }

    found = names(tmp_path, schema, {"Owner": OBJECT})

    assert found["#/components/schemas/Owner"] == "Owner"
    assert found["parts/harbour.v2.json#/definitions/Owner"] == "HarbourOwner"


def test_long_names_are_bounded_and_stay_different(tmp_path: Path) -> None:
    """Three hundred equal characters do not make two names equal."""
    components = {"x" * 300 + "1": OBJECT, "x" * 300 + "2": OBJECT}
    root = {"properties": {name[-1]: ref(name) for name in components}}
    made = names(tmp_path, root, components)
    assert all(len(name) <= 90 for name in made.values())
    assert len(set(made.values())) == 3


@given(st.lists(st.text(min_size=1), min_size=1, max_size=12, unique=True), st.randoms())
def test_names_are_unique_whatever_schemas_are_called(labels: list[str], order: Any) -> None:
    """Any text names a schema; the names differ by case-blind comparison, in every order."""
    places = [Pointer("", ("components", "schemas", label)) for label in labels]
    first = give_names(places, [places[0]], None, PlainNames())
    shuffled = places.copy()
    order.shuffle(shuffled)
    assert give_names(shuffled, [places[0]], None, PlainNames()) == first
    assert len({name.casefold() for name in first.values()}) == len(places)
    assert not set(first.values()) & PlainNames.reserved_type_names


class Unmarked(PlainNames):
    """A language in which the name of a root has no suffix."""

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return the name that any other type would have."""
        del is_root
        return super().type_name(schema_name, is_root=False)


def test_the_root_chooses_before_other_types_that_have_no_name() -> None:
    """A name that the document gives comes first, then the root, wherever it stands."""
    answer = ("responses", "200", "content", "application/json", "schema")
    root = Pointer("", ("paths", "/kites", "get", *answer))
    inline = Pointer("", ("components", "schemas", "Wind", "properties", "kites"))
    named = Pointer("", ("components", "schemas", "Kites"))

    assert give_names([inline, root], [root], None, Unmarked())[str(root)] == "Kite"
    assert give_names([inline, root], [root], "Kites", Unmarked())[str(root)] == "Kites"
    assert give_names([named, root], [root], "Kites", Unmarked())[str(named)] == "Kites"
