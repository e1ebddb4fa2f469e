"""``generate --schemas`` and ``--request``: other parts of a document than responses."""

import json
import shlex
from pathlib import Path
from typing import Any

from command_line import command
from small_documents import document_of

from pytest_regen.stores import RegenStore
from pytest_regen.validation.stores import stale_types, update_command

FREE = ("--provider", "template")
SCHEMAS = Path("generated", "schemas")
REQUEST = Path("generated", "POST-request_kites")
MAKER: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
KITE: dict[str, Any] = {
    "type": "object",
    "required": ["id", "secret"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "secret": {"type": "string", "writeOnly": True},
        "maker": {"$ref": "#/components/schemas/Maker"},
    },
}
COMPONENTS = {
    "Kite": KITE,
    "Maker": MAKER,
    "Kites": {"type": "array", "items": {"$ref": "#/components/schemas/Kite"}},
    "Word": {"type": "string"},
}


def save(components: dict[str, Any] = COMPONENTS) -> Path:
    """Write a description whose one operation takes and answers with a kite."""
    kite = {"$ref": "#/components/schemas/Kite"}
    data = document_of(kite, components)
    operation = data["paths"].pop("/things")["get"]
    operation["requestBody"] = {"content": {"application/json": {"schema": kite}}}
    data["paths"]["/kites"] = {"post": operation, "get": {"responses": operation["responses"]}}
    Path("api.json").write_text(json.dumps(data), "utf-8")
    return Path("api.json")


def test_the_schemas_with_names_are_one_store() -> None:
    """None is a root; those that are no types by themselves are told."""
    ran = command("generate", save(), "--schemas", *FREE)

    assert ran.code == 0, ran.err
    assert "skipped     2 schemas without a type: Kites (an array), Word (a string)" in (ran.err)
    store = RegenStore.open(SCHEMAS)
    assert store.type_names == ("Kite", "Maker")
    assert not any(type_.is_root for type_ in store.ir.types)
    assert store.ir.endpoint.model_dump() == {
        "method": "SCHEMAS",
        "path": "#/components/schemas",
        "status": "schemas",
    }
    assert store.envelope.source_file == "Schemas.cs"
    assert store.envelope.namespace == "Generated.Schemas"
    assert command("validate", SCHEMAS).code == 0
    assert command("generate", "api.json", "--schemas", "--check").code == 0
    told = command("generate", "api.json", "--schemas", *FREE, "--json").json
    assert told["skipped"][1] == {"schema": "Word", "reason": "it is a string"}


def test_named_schemas_bring_what_they_use() -> None:
    assert command("generate", save(), "--schemas", "Maker", *FREE).code == 0
    assert RegenStore.open(SCHEMAS).type_names == ("Maker",)
    assert command("generate", "api.json", "--schemas", "Kites", "Maker", *FREE).code == 0

    store = RegenStore.open(SCHEMAS)
    assert store.type_names == ("Kite", "Maker")
    assert store.ir.schemas == ("Kites", "Maker")
    assert update_command(store).split()[2:6] == ["api.json", "--schemas", "Kites", "Maker"]


def test_schemas_are_not_taken_out_by_naming_others() -> None:
    """Nor by another document; who names one of two loses none, who names none gets all."""
    command("generate", save(), "--schemas", "Kite", "Maker", *FREE)
    Path("other.json").write_text(Path("api.json").read_text("utf-8"), "utf-8")

    ran = command("generate", "api.json", "--schemas", "Maker", *FREE)
    other = command("generate", "other.json", "--schemas", *FREE)

    assert (ran.code, other.code) == (2, 2)
    assert "generated/schemas holds schemas that are not named: Kite" in ran.told
    assert "holds the schemas of api.json, not of other.json" in other.told
    assert "--out" in other.told
    assert command("generate", "api.json", "--schemas", *FREE).code == 0


def test_schemas_follow_their_document() -> None:
    """A change makes them stale, one that is gone too; the update is the command that is told."""
    command("generate", save(), "--schemas", *FREE)
    maker = {"type": "object", "properties": {"name": {"type": "string"}, "town": {}}}
    save({"Kite": {**KITE, "properties": {"id": {"type": "string"}}}, "Maker": maker})

    store = RegenStore.open(SCHEMAS)
    assert stale_types(store).keys() == {"Kite", "Maker"}
    ran = command("validate", SCHEMAS)
    assert "next: pytest-regen generate api.json --schemas" in ran.told
    ran = command("generate", "api.json", "--schemas", "--check")
    assert ran.code == 1
    assert "next: pytest-regen generate api.json --schemas" in ran.told
    assert command(*shlex.split(update_command(store))[1:], *FREE).code == 0
    assert stale_types(RegenStore.open(SCHEMAS)) == {}
    save({"Kite": KITE})
    assert stale_types(RegenStore.open(SCHEMAS)).keys() == {"Kite", "Maker"}


def test_a_json_schema_is_read() -> None:
    """The schema itself is a type, called by its title or its file, and its parts are others."""
    maker = {"$ref": "#/$defs/Maker"}
    schema = {
        "type": "object",
        "properties": {"maker": maker, "twin": {"$ref": "#"}},
        "$defs": {"Maker": MAKER},
    }
    Path("kite-schema.json").write_text(json.dumps(schema), "utf-8")

    assert command("generate", "kite-schema.json", "--schemas", *FREE).code == 0
    assert RegenStore.open(SCHEMAS).type_names == ("KiteSchema", "Maker")
    assert command("validate", SCHEMAS).code == 0
    assert command("generate", "kite-schema.json", "--all").code == 2


# --- requests -----------------------------------------------------------------------------------


def test_a_request_is_a_store_beside_the_response() -> None:
    """What is only read is optional there, as what is only written is in a response."""
    assert command("generate", save(), "POST /kites", *FREE).code == 0
    assert command("generate", "api.json", "POST /kites", "--request", *FREE).code == 0

    required = {}
    for folder in (Path("generated", "POST_kites"), REQUEST):
        root = RegenStore.open(folder).ir.root
        assert root is not None
        required[folder.name] = [field.json_name for field in root.fields if field.required]
        assert command("validate", folder).code == 0
    assert required == {"POST_kites": ["id"], "POST-request_kites": ["secret"]}
    store = RegenStore.open(REQUEST)
    assert (store.ir.endpoint.status, store.envelope.namespace) == (
        "request",
        "Generated.PostKitesRequest",
    )
    assert update_command(store) == (
        "pytest-regen generate api.json 'POST /kites' --request --out generated --provider template"
    )
    assert command("generate", "api.json", "POST /kites", "--request", "--check").code == 0


def test_a_request_of_swagger_is_the_body() -> None:
    """A parameter of the operation or of its path; a form is no JSON."""
    body = {"in": "body", "name": "kite", "schema": {"$ref": "#/definitions/Maker"}}
    data = document_of(True, {"Maker": MAKER}, version="2.0")  # noqa: FBT003 - the schema ``true``
    data["paths"] = {
        "/a": {"parameters": [body], "post": {"responses": {}}},
        "/b": {"post": {"parameters": [{"$ref": "#/parameters/Kite"}], "responses": {}}},
        "/c": {"post": {"parameters": [body], "consumes": ["text/plain"], "responses": {}}},
        "/d": {"post": {"parameters": [{"in": "formData", "name": "x"}], "responses": {}}},
    }
    data["parameters"] = {"Kite": body}
    Path("api.json").write_text(json.dumps(data), "utf-8")

    ran = command("generate", "api.json", "--all", "--request", *FREE)
    assert ran.code == 0, ran.err
    assert {path.name for path in Path("generated").iterdir()} == {
        "POST-request_a",
        "POST-request_b",
    }
