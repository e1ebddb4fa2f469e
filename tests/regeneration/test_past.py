"""Outputs brought back from the history, and edits made by hand taken over."""

import json
from pathlib import Path

import pytest
from kite_ir import kite_ir
from reference_writer import ReferenceWriter, request_body
from small_store import new_store

from pytest_regen.documents.ir import IR
from pytest_regen.languages import find_language
from pytest_regen.prompts import build_prompts
from pytest_regen.regeneration import TurnSettings, heal_store, partial_regenerate, verbs
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.regeneration.store_view import is_edited
from pytest_regen.stores import RegenStore, history
from pytest_regen.turns import CallableProvider
from pytest_regen.validation import validate_store


def whole(ir: IR) -> IR:
    """Return ``ir`` without half surrogate pairs, which no file can hold."""
    text = json.dumps(ir.to_json(), ensure_ascii=False)
    return IR.of(json.loads(text.encode("utf-8", "replace")))


def writer(style: int = 0) -> CallableProvider:
    """Return a provider that writes what a request asks for."""
    write = ReferenceWriter(style)
    return CallableProvider(
        lambda messages: write(request_body(messages[0]["content"], messages[1]["content"]))
    )


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A generated store; its root has several pages."""
    ir = whole(kite_ir())
    prompts = build_prompts(ir, language=find_language("csharp"), fields_per_page=8)
    path = tmp_path / "GET_kites"
    new_store(path, ir=ir, prompts=prompts, source_file="Kite.cs", namespace="Kites")
    partial_regenerate(path, provider=writer())
    return RegenStore.open(path)


def edit(store: RegenStore, old: str, new: str) -> None:
    """Edit the source by hand."""
    text = store.source_path.read_text("utf-8")
    assert text.count(old) == 1
    store.source_path.write_text(text.replace(old, new), "utf-8")


def test_what_was_replaced_can_be_restored(store: RegenStore) -> None:
    """The last replaced output of each page is back, and what it replaced is in the history."""
    before = store.source
    partial_regenerate(store.path, ["Wind"], provider=writer(style=2))
    assert RegenStore.open(store.path).source != before

    taken = verbs.restore(StorePlace(store.path), "Wind")

    after = RegenStore.open(store.path)
    assert after.source == before
    assert {page.name for page in taken.pages} == {"Wind"}
    reasons = [entry.reason for entry in history(store.path, "Wind")]
    pages = len(store.prompts_of("Wind"))
    assert reasons == ["replaced"] * pages + ["restored"] * pages


def edited_types(store: RegenStore) -> tuple[str, ...]:
    """Return the types whose block is not what their pages make."""
    results = validate_store(store, behaviour=False)
    return tuple(name for name, result in results.items() if is_edited(result))


def test_an_edit_of_one_page_is_adopted_as_that_page(store: RegenStore) -> None:
    """Only the page whose member was edited is written anew, by ``hand``; nothing drifts after."""
    prompts = store.prompts_of("KiteDataObject")
    field = prompts[2].fields[1]
    line = f'    [JsonPropertyName("{field}")]\n'
    edit(store, line, f"    // checked by hand\n{line}")
    assert edited_types(RegenStore.open(store.path)) == ("KiteDataObject",)

    taken = verbs.adopt(StorePlace(store.path))

    after = RegenStore.open(store.path)
    assert [(page.page, page.model) for page in taken.pages] == [(3, "hand")]
    assert edited_types(after) == ()
    assert "// checked by hand" in after.source
    assert not any(result.has_errors for result in validate_store(after).values())
    assert [entry.reason for entry in history(store.path)] == ["adopted"]


def test_healing_may_discard_edits(store: RegenStore) -> None:
    """Edited types are put back as their pages make them, without a call; the rest is healed."""
    edit(store, "[REGEN:BEGIN Wind]\n", "[REGEN:BEGIN Wind]\n// mine\n")
    settings = TurnSettings(writer())

    kept = heal_store(store.path, settings=settings)
    assert kept.skipped
    healed = heal_store(store.path, settings=settings, discard_edits=True)

    assert healed.calls == 0
    assert healed.source == store.source
    assert edited_types(RegenStore.open(store.path)) == ()
