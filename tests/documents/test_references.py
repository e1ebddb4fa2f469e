"""References: into other files, through responses and path items, and out of bounds."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_documents import build_field, build_file, document_of, messages
from tables import each

from pytest_regen.documents import read_document


def write(folder: Path, files: dict[str, Any]) -> Path:
    """Write files as JSON or, where they are text, as they are; return the first one's path."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, "utf-8")
    return folder / next(iter(files))


def test_files_beside_and_below_are_followed(tmp_path: Path) -> None:
    """References are relative to the file they stand in, and may lead back."""
    root = {
        "properties": {
            "port": {"$ref": "parts/port.yaml"},
            "money": {"$ref": "common.json#/definitions/Money"},
        }
    }
    port = """
type: object
properties:
  pilot: {$ref: "people.yaml#/Pilot"}
  fee: {$ref: "../common.json#/definitions/Money"}
  here: {$ref: "../api.json#/components/schemas/Local"}
  local: {$ref: "#/properties/pilot"}
"""
    path = write(
        tmp_path,
        {
            "api.json": document_of(root, {"Local": {"properties": {"a": {}}}}),
            "parts/port.yaml": port,
            "parts/people.yaml": "Pilot: {properties: {name: {type: string}}}\n",
            "common.json": {"definitions": {"Money": {"properties": {"amount": {}}}}},
        },
    )
    made = build_file(path)
    assert {type_.name: type_.schema_id for type_ in made.ir.types[1:]} == {
        "Port": "parts/port.yaml#",
        "Pilot": "parts/people.yaml#/Pilot",
        "Money": "common.json#/definitions/Money",
        "Local": "#/components/schemas/Local",
    }
    assert made.defects == ()


@each(
    ("reference", "reason"),
    [
        ("https://example.org/a.json#/x", "leads out of"),
        ("file:///etc/passwd", "leads out of"),
        ("%2e%2e/outside.json", "leads out of"),
        ("link.json", "leads out of the document's folder"),
        ("missing.json", "No such file"),
        ("broken.json", "is not JSON"),
        ("broken.yaml#/x", "neither JSON nor YAML"),
        ("#/components/schemas/Nope", "points at nothing"),
        ("#/paths/-1", "points at nothing"),
    ],
)
def test_a_reference_out_of_bounds_is_a_defect(tmp_path: Path, reference: str, reason: str) -> None:
    """Nothing outside the document's folder is read; the defect shows the reference and why."""
    (tmp_path / "outside.json").write_text('{"type": "string"}', "utf-8")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.json").symlink_to(tmp_path / "outside.json")
    write(inside, {"broken.json": "{", "broken.yaml": "a: [1"})
    field, made = build_field(inside, {"$ref": reference})
    assert field.type.model_dump()["kind"] == "any"
    assert reference in messages(made)
    assert reason in messages(made)
    assert [defect.severity for defect in made.defects] == ["error"]


def test_defects_of_other_files_are_told_with_their_name(tmp_path: Path) -> None:
    """A key given twice in a file that is used is shown with that file."""
    path = write(
        tmp_path,
        {
            "api.json": document_of({"$ref": "a.yaml#/A"}),
            "a.yaml": "A: {properties: {x: {type: string, type: integer}, y: {$ref: '#/B'}}}\n",
        },
    )
    doubled, broken = build_file(path).defects
    assert doubled.where == "a.yaml#/A/properties/x/type"
    assert "stands twice" in doubled.message
    assert str(broken) == "a.yaml#/A/properties/y: $ref '#/B' points at nothing"


def test_pointers_are_unescaped(tmp_path: Path) -> None:
    """``~1``, ``~0`` and percent signs mean what they mean in a JSON pointer."""
    components: dict[str, Any] = {"a/b~c d": {"properties": {"v": {}}}}
    field, made = build_field(tmp_path, {"$ref": "#/components/schemas/a~1b~0c%20d"}, components)
    assert made.ir.types[1].schema_id == "#/components/schemas/a~1b~0c d"
    assert field.type.model_dump() == {"kind": "ref", "name": "ABCD"}


def test_responses_and_path_items_may_be_references(tmp_path: Path) -> None:
    """So may an operation; a broken one is a defect of the document, and the rest is read."""
    schema: dict[str, Any] = {"properties": {"a": {}}}
    content = {"content": {"application/json": {"schema": schema}}}
    good = {"$ref": "#/components/responses/Best"}
    document = {
        "openapi": "3.0.0",
        "paths": {
            "/a": {"$ref": "#/x-items/one"},
            "/b": {"get": {"responses": {"200": {"$ref": "#/components/responses/Good"}}}},
            "/c": {"get": {"responses": {"200": {"$ref": "#/components/responses/Bad"}}}},
            "/d": {"$ref": "#/x-items/none"},
        },
        "x-items": {"one": {"get": {"responses": {"200": content}}}},
        "components": {"responses": {"Good": good, "Best": content}},
    }
    path = write(tmp_path, {"api.json": document})
    assert build_file(path, "GET /a").ir.types[0].name == "OneDataObject"
    assert build_file(path, "GET /b").ir.types[0].name == "BestDataObject"
    read = read_document(path)
    assert [str(each) for each in read.operations] == ["GET /a", "GET /b", "GET /c"]
    assert [defect.where for defect in read.lost_operations] == ["#/paths/~1d"]


@pytest.mark.parametrize(
    ("reference", "near"),
    [
        ("#/components/schemas/Mony", "; near names: Money, Monkey"),
        ("#/components/schema/Money", "; near names: schemas"),
        ("#/components/schemas/Money/property/x", ""),
        ("parts.yaml#/Prot", "; near names: Port"),
    ],
)
def test_a_reference_to_nothing_names_what_may_be_meant(
    tmp_path: Path, reference: str, near: str
) -> None:
    """Names like the first part of the pointer that is not there."""
    (tmp_path / "parts.yaml").write_text("Port: {properties: {a: {}}}", "utf-8")
    components: dict[str, Any] = {"Money": {"type": "object"}, "Monkey": {}, "Other": {}}
    _, made = build_field(tmp_path, {"$ref": reference}, components)
    (defect,) = made.defects
    assert defect.message == f"$ref {reference!r} points at nothing{near}"


def test_only_what_an_operation_reaches_is_its_defect(tmp_path: Path) -> None:
    """Broken places elsewhere, in parameters, requests and other operations, do not count."""
    gone = {"$ref": "#/components/schemas/Gone"}
    document = document_of({"$ref": "#/components/schemas/Pet"})
    document["components"]["schemas"] = {
        "Pet": {"properties": {"a": {"type": "string"}}},
        "Unused": gone,
        "Loop": {"$ref": "#/components/schemas/Loop"},
    }
    operation = document["paths"]["/things"]["get"]
    operation["parameters"] = [gone, {"name": "q", "schema": gone}]
    operation["requestBody"] = {"content": {"application/json": {"schema": gone}}}
    operation["responses"]["404"] = {"$ref": "#/components/responses/Gone"}
    document["paths"]["/others"] = {"$ref": "#/components/pathItems/Gone"}
    text = json.dumps(document).replace(
        '"parameters"', '"summary": "", "summary": "", "parameters"'
    )
    path = write(tmp_path, {"api.json": text})

    assert build_file(path).defects == ()
    assert [each.where for each in read_document(path).lost_operations] == ["#/paths/~1others"]
