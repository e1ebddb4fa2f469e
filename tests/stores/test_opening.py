"""What an opened store tells of itself."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_store import PROMPTS, filled_store, page, source_of
from store_factory import FACTORY_IR, planned_store
from store_work import on_trial

from pytest_regen.documents.ir import FieldIR, Scalar
from pytest_regen.errors import UnknownTypeError
from pytest_regen.files import observe_effects
from pytest_regen.sources import extract_type_block, list_type_names
from pytest_regen.stores import RegenStore, check_staleness


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A complete store."""
    return filled_store(tmp_path / "out" / "GET_v1_projects")


def planned(path: Path) -> RegenStore:
    """Return a store that is not there yet."""
    return planned_store(path, ir=FACTORY_IR, prompts=PROMPTS, source_file="Project.cs")


def test_a_new_store_is_made_together_with_its_first_pages(tmp_path: Path) -> None:
    """In one change, which waits for the disk ten times: once for each of five files."""
    (tmp_path / "generated").mkdir()
    plan = planned(tmp_path / "generated" / "GET_v1_projects")
    pages = [page(entry.type_name, entry.page) for entry in PROMPTS]
    effects: list[str] = []

    with RegenStore.create_or_update(plan, schema="# Schema\n") as tx:
        assert tx.store is plan
        with observe_effects(lambda effect, _: effects.append(effect)):
            tx.write(pages=pages, source=source_of({one.key: one for one in pages}))
        assert tx.store.missing_pages == ()

    store = RegenStore.open(plan.path)
    assert [one.output for one in store.pages.values()] == [one.output for one in pages]
    assert (store.path / "schema.md").read_text("utf-8") == "# Schema\n"
    assert effects.count("before fsync") == 7
    assert [path.name for path in store.path.parent.iterdir() if path.name != ".regen"] == [
        "GET_v1_projects"
    ]


def test_a_store_that_was_made_meanwhile_is_updated(store: RegenStore) -> None:
    """What another process has put there stays."""
    new = page("Owner", 1, "// new")
    with RegenStore.create_or_update(planned(store.path), schema="# Another\n") as tx:
        assert tx.store.pages == store.pages
        tx.write(pages=[new], source=source_of({**store.pages, new.key: new}))

    after = RegenStore.open(store.path)
    assert after.pages[new.key].output == "// new"
    assert after.pages.keys() == store.pages.keys()
    assert (store.path / "schema.md").read_text("utf-8") != "# Another\n"


def test_a_name_that_means_no_type_or_two_lists_types(store: RegenStore) -> None:
    """A misspelt one all there are; two of one schema name are meant by declared names only."""
    assert store.resolve_type("#/components/schemas/Project") == "ProjectDataObject"
    with pytest.raises(UnknownTypeError, match="Projekt") as caught:
        store.resolve_type("Projekt")
    assert "ProjectDataObject, Owner, State" in caught.value.hint
    root, owner, state = FACTORY_IR.types
    ir = FACTORY_IR.model_copy(
        update={
            "types": (
                root.model_copy(update={"schema_id": "#/schemas/Thing"}),
                owner.model_copy(update={"schema_id": "other.yaml#/schemas/Thing"}),
                state,
            )
        }
    )
    with RegenStore.update(store.path) as tx:
        tx.write(ir=ir)
        with pytest.raises(UnknownTypeError, match="several") as caught:
            tx.store.resolve_type("Thing")
    assert "ProjectDataObject, Owner" in caught.value.hint


def test_only_the_type_that_changed_is_stale(store: RegenStore) -> None:
    """A changed IR makes the store stale, and of its types the changed one alone; findings none."""
    found = {"Owner": [{"code": "SYNTAX"}]}
    with RegenStore.update(store.path) as tx:
        tx.write(ir=FACTORY_IR.model_copy(update={"validation": found}))
        assert not check_staleness(tx.store.envelope.to_json(), tx.store.ir.to_json())
        assert not any(map(tx.store.is_stale, tx.store.type_names))
    root, owner, state = FACTORY_IR.types
    more = FieldIR(json_name="extra", type=Scalar(kind="string"))
    changed = owner.model_copy(update={"fields": (*owner.fields, more)})
    ir = FACTORY_IR.model_copy(update={"types": (root, changed, state)})
    with RegenStore.update(store.path) as tx:
        tx.write(ir=ir)
        after = tx.store

    assert [name for name in after.type_names if after.is_stale(name)] == ["Owner"]
    assert check_staleness(after.envelope.to_json(), after.ir.to_json())


def test_the_assembly_is_made_of_the_stored_pages(store: RegenStore) -> None:
    """Each complete type in its block, no half one; edits of the source file do not count."""
    store.source_path.write_text("// edited away\n")

    text = RegenStore.open(store.path).assembly()

    assert list_type_names(text) == ["ProjectDataObject", "Owner", "State"]
    assert "namespace Projects;" in text
    root = extract_type_block(text, "ProjectDataObject") or ""
    assert root.index('"id"') < root.index('"owner"') < root.index('"tags"') < root.rindex("}")
    pages = (page("ProjectDataObject", 1), page("Owner", 1))
    half = replace(store, envelope=replace(store.envelope, pages=pages))
    assert list_type_names(half.assembly()) == ["Owner"]


def test_a_store_with_boundaries_of_another_tag_is_read(store: RegenStore) -> None:
    """Files that say SCHMITH load, take a candidate and give it back."""
    source = store.source.replace("[REGEN:", "[SCHMITH:")
    pages = store.path / "pages.json"
    pages.write_text(pages.read_text("utf-8").replace('"REGEN"', '"SCHMITH"'), "utf-8")
    with RegenStore.update(store.path) as tx:
        tx.write(source=source)
    old = RegenStore.open(store.path)
    new = page("Owner", 1, "// new", attempt=2)
    with on_trial(old, new, source.replace(old.pages[new.key].output, "// new")):
        with RegenStore.update(store.path) as tx:
            tx.write(schema="# by another\n")
        store.source_path.write_text(store.source_path.read_text() + "// mine\n")

    after = RegenStore.open(store.path)
    assert after.envelope.boundary_tag == "SCHMITH"
    assert after.source == source + "// mine\n"
    assert after.pages == old.pages
