"""Stores beside one another share answers: ``generate --all`` asks for each distinct page once."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from reference_writer import ReferenceWriter
from small_documents import document_of

from pytest_regen.emulator import Emulator
from pytest_regen.stores import RegenStore, StoredPage, history

OUT = Path("generated")
KITES, MAKERS, SHOPS = (OUT / f"GET_{name}" for name in ("kites", "makers", "shops"))
MAKER: dict[str, Any] = {"properties": {"name": {"type": "string"}, "town": {"type": "string"}}}


def ref(name: str) -> dict[str, Any]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def save(maker: dict[str, Any] = MAKER) -> None:
    """Write a description of three operations; all use a maker, which uses a colour."""
    parts = {
        "Colour": {"type": "string", "enum": ["red", "green"]},
        "Maker": {**maker, "properties": {**maker["properties"], "colour": ref("Colour")}},
        "Kite": {"properties": {"maker": ref("Maker")}},
        "Shop": {"properties": {"makers": {"type": "array", "items": ref("Maker")}}},
    }
    data = document_of(ref("Kite"), parts)
    operation = data["paths"].pop("/things")["get"]
    for name in ("kites", "shops", "towns"):
        answer = {
            "content": {"application/json": {"schema": ref("Kite" if name == "kites" else "Shop")}}
        }
        if name != "towns":
            data["paths"][f"/{name}"] = {"get": {**operation, "responses": {"200": answer}}}
    Path("api.json").write_text(json.dumps(data), "utf-8")


@pytest.fixture
def made(api: Emulator) -> Emulator:
    """Two stores that were made by one command."""
    save()
    ran = command("generate", "api.json", "--all")
    assert ran.code == 0, ran.err
    return api


def pages(path: Path) -> dict[str, StoredPage]:
    """Return the first page of each type of a store."""
    return {page.type_name: page for page in RegenStore.open(path).pages.values()}


def shared(path: Path) -> dict[str, str | None]:
    """Return where the page of each type comes from."""
    return {name: page.shared_from for name, page in pages(path).items()}


def test_each_distinct_page_is_asked_for_once(api: Emulator) -> None:
    """The copy says where it comes from; who wrote it, and when, is what the original says."""
    save()
    plan = command("generate", "api.json", "--all", "--dry-run")
    ran = command("generate", "api.json", "--all", "--json")

    assert "pages       4 to ask, about" in plan.err
    assert "2 pages shared by stores" in plan.err
    assert [store["calls"] for store in ran.json["stores"]] == [3, 1]
    assert [len(store["asked"]) for store in ran.json["stores"]] == [3, 1]
    assert [entry["from"] for entry in ran.json["stores"][1]["shared"]] == ["GET_kites"] * 2
    assert len(api.requests) == 4
    assert shared(KITES) == {"KiteDataObject": None, "Maker": None, "Colour": None}
    assert shared(SHOPS) == {"ShopDataObject": None, "Maker": "GET_kites", "Colour": "GET_kites"}
    first, copy = pages(KITES)["Maker"], pages(SHOPS)["Maker"]
    assert (copy.output, copy.model, copy.generated_at) == (
        first.output,
        first.model,
        first.generated_at,
    )
    assert (copy.input_tokens, copy.output_tokens, copy.attempt) == (None, None, 1)
    entry = json.loads((KITES / "pages.json").read_text("utf-8"))["pages"][0]
    assert "shared_from" not in entry
    assert command("validate", KITES, SHOPS).code == 0


def test_a_store_is_healed_without_the_others(
    made: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that store changes, and its page is a copy no longer."""
    del made
    before = {file: file.read_bytes() for file in KITES.iterdir() if file.is_file()}
    with Emulator(ReferenceWriter(2)) as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", other.base_url)
        ran = command("regenerate", SHOPS, "--type", "Maker")
    assert ran.code == 0, ran.err
    assert len(other.requests) == 1
    assert shared(SHOPS)["Maker"] is None
    assert shared(SHOPS)["Colour"] == "GET_kites"
    assert {file: file.read_bytes() for file in before} == before
    (entry,) = history(SHOPS)
    assert entry.shared_from == "GET_kites"
    assert command("restore", SHOPS, "--type", "Maker", "--to", entry.id).code == 0
    assert shared(SHOPS)["Maker"] == "GET_kites"


def test_an_adopted_edit_is_shared_no_more(made: Emulator) -> None:
    """A person wrote it for one store: it answers for no other."""
    store = RegenStore.open(SHOPS)
    edited = store.source.replace("public string? Town", "public string? Town2", 1)
    store.source_path.write_text(edited, "utf-8")
    assert command("adopt", SHOPS, "--type", "Maker").code == 0
    assert (shared(SHOPS)["Maker"], pages(SHOPS)["Maker"].model) == (None, "hand")
    shutil.rmtree(KITES)
    made.requests.clear()
    command("generate", "api.json", "--all")
    assert len(made.requests) == 2  # the kite and its maker; the colour is shared again
    assert shared(KITES)["Maker"] is None


def test_a_change_of_the_document_is_asked_for_once(made: Emulator) -> None:
    """Both stores are stale; the second is updated by what the first was answered."""
    save({"properties": {"name": {"type": "integer"}}})
    assert command("generate", "api.json", "--check", "--all").code == 1
    made.requests.clear()
    assert command("generate", "api.json", "GET /kites").code == 0
    assert command("generate", "api.json", "GET /shops").code == 0
    assert len(made.requests) == 1
    assert shared(SHOPS)["Maker"] == "GET_kites"
    assert command("generate", "api.json", "--check", "--all").code == 0


@pytest.mark.parametrize("options", [("--force",), ("--model", "claude-opus-5")])
def test_another_model_is_asked_anew(made: Emulator, options: tuple[str, ...]) -> None:
    """And with ``--force``, everybody; each page is asked for once all the same."""
    if options[0] == "--model":
        shutil.rmtree(SHOPS)
    made.requests.clear()
    assert command("generate", "api.json", "--all", *options).code == 0
    assert len(made.requests) == (4 if options[0] == "--force" else 3)


def test_an_enum_of_one_value_is_not_asked_for(api: Emulator) -> None:
    """There is nothing to decide: its language writes it, and the page says so."""
    save()
    data = json.loads(Path("api.json").read_text("utf-8"))
    data["components"]["schemas"]["Colour"]["enum"] = ["red"]
    Path("api.json").write_text(json.dumps(data), "utf-8")
    ran = command("generate", "api.json", "GET /kites", "--json")
    assert ran.code == 0, ran.err
    assert len(api.requests) == 2
    assert len(ran.json["asked"]) == 2
    page = pages(KITES)["Colour"]
    assert (page.model, page.provider, page.shared_from) == ("template", "template", None)
    assert pages(KITES)["Maker"].provider is None
    assert RegenStore.open(KITES).envelope.model == pages(KITES)["Maker"].model
