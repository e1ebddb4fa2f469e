"""Who wrote a page, and from what: nothing old looks new, and nothing has another's name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plugin_answers import Good
from served_stores import served
from store_factory import GOOD, MISSPELT, make_store

from pytest_regen.documents.ir import type_hash
from pytest_regen.emulator import EmulatedReply
from pytest_regen.errors import EditedPromptError, HandEditError
from pytest_regen.regeneration import TurnSettings, heal_store, partial_regenerate, verbs
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider
from pytest_regen.validation import stale_types


def change(file: Path, edit: Callable[[Any], object]) -> None:
    """Edit a JSON file in place."""
    value = json.loads(file.read_text("utf-8"))
    edit(value)
    file.write_text(json.dumps(value), "utf-8")


def newer_ir(store: RegenStore) -> None:
    """Give ``Owner`` another description, as a merge of two branches may."""
    change(store.path / "ir.json", lambda ir: ir["types"][1].update(description="Whoever owns it."))


def write_owner(_messages: list[dict[str, str]]) -> str:
    """Return the right code of ``Owner``, whatever is asked."""
    return GOOD["Owner", 1].replace("string? Name { get; set; }", "string? Name { get; init; }")


def test_the_answer_to_an_old_prompt_stays_stale(tmp_path: Path) -> None:
    """The page holds the hash of what its prompt was made from, not of what there is now."""
    store = make_store(tmp_path / "store")
    newer_ir(store)

    result = partial_regenerate(store.path, ["Owner"], provider=CallableProvider(write_owner))

    after = RegenStore.open(store.path)
    assert result.regenerated == [("Owner", 1)]
    assert "get; init;" in after.source
    assert list(stale_types(after)) == ["Owner"]


def test_a_restored_output_is_as_old_as_it_was(tmp_path: Path) -> None:
    """Bringing back what answered an older description does not make it answer this one."""
    store = make_store(tmp_path / "store")
    partial_regenerate(store.path, ["Owner"], provider=CallableProvider(write_owner))
    newer_ir(store)

    def follow(prompts: list[dict[str, Any]]) -> None:
        now = RegenStore.open(store.path).ir.types[1]
        prompts[2]["type_hash"] = type_hash(now)
        del prompts[2]["entry_hash"]

    change(store.path / "prompts.json", follow)
    partial_regenerate(store.path, ["Owner"], provider=Good())
    assert not stale_types(RegenStore.open(store.path))

    verbs.restore(StorePlace(store.path), "Owner")

    assert list(stale_types(RegenStore.open(store.path))) == ["Owner"]


def test_adopting_an_edit_is_an_answer(tmp_path: Path) -> None:
    """A person who takes a stale type over has looked at it: all of its pages are fresh."""
    store = make_store(tmp_path / "store")
    change(store.path / "ir.json", lambda ir: ir["types"][0].update(description="A project."))
    source = store.source_path
    source.write_text(
        source.read_text("utf-8").replace("string? Name", "string? Title", 1), "utf-8"
    )
    assert "ProjectDataObject" in stale_types(RegenStore.open(store.path))

    taken = verbs.adopt(StorePlace(store.path))

    after = RegenStore.open(store.path)
    assert [(page.page, page.model) for page in taken.pages] == [(1, "hand")]
    assert [page.model for page in after.pages_of("ProjectDataObject")] == [
        "hand",
        "claude-sonnet-5-5",
    ]
    assert not stale_types(after)


def test_an_edited_prompt_is_not_asked(tmp_path: Path) -> None:
    """Its answer would pass for one to the document: no call is made, and the way out is named."""
    store = make_store(tmp_path / "store", MISSPELT)
    change(store.path / "prompts.json", lambda prompts: prompts[2].update(user="TYPE: Owner"))
    provider = Good()

    with pytest.raises(EditedPromptError, match="pytest-regen generate"):
        partial_regenerate(store.path, ["Owner"], provider=provider)
    healed = heal_store(store.path, settings=TurnSettings(provider))

    assert "was edited" in healed.skipped["Owner"]
    assert provider.requests == []


def test_a_source_without_boundaries_is_not_asked_for(tmp_path: Path) -> None:
    """No reply could be put into it: refused before a page is paid, whichever type is named."""
    store = make_store(tmp_path / "store", MISSPELT)
    bare = "\n".join(line for line in store.source.split("\n") if "[REGEN:" not in line)
    store.source_path.write_text(bare, "utf-8")
    provider = Good()

    with pytest.raises(HandEditError, match="the boundary lines are gone") as caught:
        partial_regenerate(store.path, ["Owner"], provider=provider)
    healed = heal_store(store.path, settings=TurnSettings(provider))

    assert caught.value.hint == f"pytest-regen rebuild {store.path}"
    assert set(healed.skipped) == {"ProjectDataObject", "Owner"}
    assert provider.requests == []


def test_a_function_is_named_as_the_one_that_wrote(tmp_path: Path) -> None:
    """By its module and name, which the API is not asked for: that goes to another page's model."""
    store = make_store(tmp_path / "store")
    change(
        store.path / "pages.json",
        lambda pages: [page.update(model="claude-opus-5-5") for page in pages["pages"]],
    )

    partial_regenerate(store.path, ["Owner"], provider=CallableProvider(write_owner))

    after = RegenStore.open(store.path)
    (page,) = after.pages_of("Owner")
    name = f"{__name__}:write_owner"
    assert (page.model, page.provider, after.envelope.model) == (name, name, name)
    assert (page.stop_reason, page.input_tokens) == (None, None)
    with served() as server:
        server.answers(lambda _body: EmulatedReply(GOOD["Owner", 1]))
        result = partial_regenerate(store.path, ["Owner"], provider=server.provider)
    assert not result.failures
    assert [body["model"] for body in server.bodies] == ["claude-opus-5-5"]
    (page,) = RegenStore.open(store.path).pages_of("Owner")
    assert (page.model, page.provider) == ("claude-opus-5-5", None)
