"""Instances of a store: read from its document, kept in the cache, and never guessed.

docs/behaviour.md shows the strategies in tests.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from small_documents import document_of

from pytest_regen import strategies
from pytest_regen.cache import Cache
from pytest_regen.errors import NoInstanceError
from pytest_regen.regeneration import generate_store
from pytest_regen.stores import RegenStore
from pytest_regen.strategies import instances_key, instances_of, instances_of_store
from pytest_regen.strategies.instances import Instances, Source
from pytest_regen.turns.providers import TemplateProvider

KITE = {
    "type": "object",
    "required": ["sail"],
    "properties": {
        "sail": {"type": "string", "maxLength": 9},
        "tail": {"$ref": "#/components/schemas/Tail"},
    },
}
TAIL = {"type": "object", "properties": {"length": {"type": "integer", "minimum": 1}}}


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A store of two types, beside its document."""
    document = document_of({"$ref": "#/components/schemas/Kite"}, {"Kite": KITE, "Tail": TAIL})
    (tmp_path / "api.json").write_text(json.dumps(document), "utf-8")
    made = generate_store(
        tmp_path / "api.json",
        "GET /things",
        tmp_path / "api",
        provider=TemplateProvider(),
        language="python",
    )
    return RegenStore.open(made.plan.path)


def test_a_folder_serves_and_the_root_is_the_default(store: RegenStore) -> None:
    """The same for the folder, for the opened store, and for the name of the root."""
    found = instances_of(store.path)

    assert found == instances_of(store) == instances_of(str(store.path), "Kite")
    assert found.valid[0].keys() == {"sail"}
    assert instances_of_store(store).keys() == {"Kite", "Tail"}


def test_drawing_is_paid_once(
    store: RegenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time the document is not even read."""
    cache = Cache(tmp_path / "cache")
    first = instances_of_store(store, cache=cache)

    monkeypatch.setattr(Source, "instances", lambda *_: pytest.fail("drawn again"))
    monkeypatch.setattr("pytest_regen.documents.read_document", lambda *_: pytest.fail("read"))

    assert instances_of_store(store, cache=cache) == first


def test_a_type_that_the_document_changed_is_not_drawn(store: RegenStore, tmp_path: Path) -> None:
    """What it says now is no measure of code that was written for what it said then."""
    cache = Cache(tmp_path / "cache")
    before = instances_of_store(store, cache=cache)
    document = tmp_path / "api.json"
    document.write_text(document.read_text("utf-8").replace('"maxLength": 9', '"maxLength": 8'))

    now = instances_of_store(store, cache=cache)

    assert now["Kite"].valid == ()
    assert "generate" in now["Kite"].skipped[0].reason
    assert now["Tail"] == before["Tail"]
    assert instances_key(store) != instances_key(store, 50)


def test_without_its_document_a_store_has_no_instances(store: RegenStore, tmp_path: Path) -> None:
    """It says so; nothing is made up from the IR."""
    (tmp_path / "api.json").unlink()

    found = instances_of_store(store)

    assert all(each.valid == () and "api.json" in each.skipped[0].reason for each in found.values())
    with pytest.raises(NoInstanceError, match="Kite"):
        Source(store).plan("Kite")


def test_a_spoilt_cache_is_a_miss(store: RegenStore, tmp_path: Path) -> None:
    """Whatever stands there instead."""
    cache = Cache(tmp_path / "cache")
    first = instances_of_store(store, cache=cache)
    cache.put("instances", instances_key(store), {"Kite": "no such key", "Tail": 7})

    assert instances_of_store(store, cache=cache) == first
    assert Instances.from_json({"valid": 1}) is None
    assert Instances.from_json(json.loads(json.dumps(first["Kite"].to_json()))) == first["Kite"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{type: string, pattern: '[a'}", "pattern"),
        ("{type: integer, minimum: 3, maximum: 2}", "nothing"),
    ],
)
def test_what_nothing_satisfies_says_so(tmp_path: Path, schema: str, reason: str) -> None:
    """Instead of a health check, or no end."""
    document = tmp_path / "api.yaml"
    document.write_text(
        "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {}\n"
        f"components:\n  schemas:\n    X: {schema}\n",
        "utf-8",
    )

    @given(strategies.from_schema(document, "#/components/schemas/X"))
    def draws(value: object) -> None:
        raise AssertionError(value)

    with pytest.raises(NoInstanceError, match="X") as caught:
        draws()
    assert reason in caught.value.why

    with pytest.raises(NoInstanceError, match="Y"):
        strategies.from_schema(document, "#/components/schemas/Y").validate()
