"""A folder to work in, with a store, a description, and an emulated API where asked for."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference_writer import ReferenceWriter
from small_documents import document_of
from store_factory import MISSPELT, make_store

from pytest_regen.emulator import Emulator

STORE = Path("generated", "GET_v1_projects")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty but for an empty project file."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("pyproject.toml").write_text("", "utf-8")
    return tmp_path


@pytest.fixture
def good(here: Path) -> Path:
    """A store without an error, as a user would name it."""
    make_store(here / STORE)
    return STORE


@pytest.fixture
def broken(here: Path) -> Path:
    """A store with a misspelt name in ``Owner``."""
    make_store(here / STORE, MISSPELT)
    return STORE


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An emulated API in the environment that writes every page as it must be."""
    with Emulator(ReferenceWriter()) as running:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-a-test")
        yield running


@pytest.fixture
def document(here: Path) -> Path:
    """A description with three operations; two have a tag, the last answers with nothing."""
    kite = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string"},
            "span": {"type": "number"},
            "maker": {"$ref": "#/components/schemas/Maker"},
        },
    }
    maker = {"type": "object", "properties": {"name": {"type": "string"}}}
    made = document_of(
        {"$ref": "#/components/schemas/Kite"}, {"Kite": kite, "Maker": maker}, version="3.0.3"
    )
    kites = made["paths"].pop("/things")["get"]
    made["paths"] = {
        "/kites": {"get": {**kites, "tags": ["kites"]}},
        "/makers": {
            "get": {
                "tags": ["kites", "makers"],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Maker"}}
                        },
                    }
                },
            },
            "delete": {"tags": ["none"], "responses": {"204": {"description": "gone"}}},
        },
    }
    path = here / "api.json"
    path.write_text(json.dumps(made), "utf-8")
    return Path("api.json")
