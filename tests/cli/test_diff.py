"""``diff``: what changed between two versions, and whether it breaks code made from the older."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, command
from small_documents import document_of

KITE = {
    "type": "object",
    "required": ["id", "sail"],
    "properties": {
        "id": {"type": "integer", "format": "int32"},
        "sail": {"type": "string", "enum": ["red", "blue"]},
        "span": {"type": "number", "maximum": 5},
        "maker": {"$ref": "#/components/schemas/Maker"},
    },
}
MAKER = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}}


def write(name: str, kite: Mapping[str, Any] = KITE, maker: Mapping[str, Any] = MAKER) -> Path:
    """Write a description with one operation."""
    made = document_of(
        {"$ref": "#/components/schemas/Kite"}, {"Kite": kite, "Maker": maker}, version="3.0.3"
    )
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), "utf-8")
    return path


def changed(name: str, **properties: Any) -> Path:
    """Write a description in which some fields of the kite are others."""
    return write(name, {**KITE, "properties": {**KITE["properties"], **properties}})  # type: ignore[dict-item]  # a plain table


def told(ran: Ran) -> dict[tuple[str, object], bool]:
    """Return what changed where, and whether it breaks."""
    return {
        (change["kind"], change["field"]): change["breaking"]
        for entry in ran.json["operations"]
        for change in entry["changes"]
    }


def test_an_operation_that_is_gone() -> None:
    """It breaks; one more does not."""
    old = write("a.json")
    made = json.loads(old.read_text("utf-8"))
    made["paths"]["/others"] = made["paths"].pop("/things")
    Path("b.json").write_text(json.dumps(made), "utf-8")

    ran = command("diff", old, "b.json")

    assert ran.code == 1
    assert "GET /things: was removed (breaking)\n" in ran.err
    assert "GET /others: was added\n" in ran.err
    assert command("diff", old, "b.json", "--operation", "get /others").code == 0
    unknown = command("diff", old, "b.json", "--operation", "GET /nowhere")
    assert unknown.code == 2
    assert "neither version has an operation 'GET /nowhere'" in unknown.err


def test_stores_and_descriptions_and_revisions() -> None:
    """A store beside the document it follows, and both beside what git had before."""
    document = write("api.json")
    free = ("--provider", "template")
    command("generate", document, "GET /things", *free)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(*words)
    changed("api.json", span={"type": "string"})
    breaking = {("type", "span"): True}

    behind = command("diff", "generated/GET_things", document, "--json")
    command("generate", document, "GET /things", *free)
    followed = command("diff", "generated", document)
    stores = command("diff", "HEAD:generated", "generated", "--json")
    documents = command("diff", "HEAD:api.json", document, "--json")

    assert told(behind) == told(stores) == told(documents) == breaking
    assert (followed.code, followed.err) == (0, "1 operation, nothing changed\n  next: pytest\n")


def git(*words: str) -> None:
    """Run git in the working directory."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def test_a_revision_from_a_folder_below(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are seen from here first; files that the description refers to come along."""
    write("apis/api.json")
    text = Path("apis/api.json").read_text("utf-8")
    Path("apis/api.json").write_text(
        text.replace("#/components/schemas/Maker", "parts/maker.json"), "utf-8"
    )
    Path("apis/parts").mkdir()
    Path("apis/parts/maker.json").write_text(json.dumps(MAKER), "utf-8")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"], ["tag", "v1"]):
        git(*words)
    Path("apis/parts/maker.json").write_text(
        json.dumps({"type": "object", "properties": {"title": {"type": "string"}}}), "utf-8"
    )
    monkeypatch.chdir(here / "apis")

    assert told(command("diff", "v1:api.json", "api.json", "--json")) == {
        ("field_removed", "name"): True,
        ("field_added", "title"): False,
    }
    assert command("diff", "v1:apis/api.json", "v1:api.json").code == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.json", "there is no nowhere.json"),
        ("main:api.json", "git knows no revision 'main' here"),
        ("empty", "is a folder without stores"),
    ],
)
def test_what_cannot_be_compared(name: str, words: str) -> None:
    Path("empty").mkdir()

    ran = command("diff", write("a.json"), "--", name)

    assert ran.code == 2
    assert words in ran.err


def with_request(name: str, **properties: Any) -> Path:
    """Write a description whose operation takes a maker, too."""
    path = write(name)
    made = json.loads(path.read_text("utf-8"))
    taken = {"type": "object", "required": ["name"], "properties": {"name": {}, **properties}}
    body = {"content": {"application/json": {"schema": taken}}}
    made["paths"]["/things"]["post"] = {
        "requestBody": body,
        "responses": {"204": {"description": "done"}},
    }
    path.write_text(json.dumps(made), "utf-8")
    return path


def test_requests_are_looked_at_by_who_writes_them() -> None:
    """What may be sent no longer breaks; what may be sent as well does not."""
    old = with_request("a.json", note={"type": "string", "maxLength": 9})
    new = with_request("b.json", note={"type": "string", "maxLength": 3, "nullable": True})
    options = ("--language", "python", "--provider", "template")
    assert command("generate", old, "POST /things", "--request", *options).code == 0

    documents = command("diff", old, new, "--json").json["operations"]
    stored = command("diff", "generated", new, "--json").json["operations"]

    (entry,) = [each for each in documents if each["state"] == "changed"]
    assert entry["operation"] == "POST /things, the request"
    found = {change["kind"]: change["breaking"] for change in entry["changes"]}
    assert found == {"constraint": True, "nullable": False}
    assert stored == [entry]
