"""Writing a store: together or not at all, one at a time, and nothing a model wrote is lost."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from killing import run_together
from small_store import PROMPTS, filled_store, page, plan, source_of
from store_factory import FACTORY_IR, planned_store
from store_work import change_plan, replace_page, tree, wide_plan

from pytest_regen.errors import StoreWriteError
from pytest_regen.files import observe_effects
from pytest_regen.prompts.values import PageKey
from pytest_regen.stores import RegenStore, history
from pytest_regen.stores.history import store_files


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A complete store."""
    return filled_store(tmp_path / "GET_v1_projects")


def test_a_page_and_its_source_are_written_together(store: RegenStore) -> None:
    """The new page, its source, its model in the envelope; all other pages untouched."""
    new = replace(page("Owner", 1, "// new", attempt=2), model="model-b")
    source = source_of({**store.pages, new.key: new})
    with RegenStore.update(store.path) as tx:
        tx.write(pages=[replace(new, model="hand")])
        assert tx.store.envelope.model == store.envelope.model  # One that can be asked.
        tx.write(pages=[new], source=source)

    after = RegenStore.open(store.path)
    assert after.pages[new.key] == replace(new, index=3)
    assert after.source == source
    assert after.envelope == replace(store.envelope, model="model-b", pages=after.envelope.pages)
    assert {key: one for key, one in after.pages.items() if key != new.key} == {
        key: one for key, one in store.pages.items() if key != new.key
    }


def test_findings_stay_with_their_types(store: RegenStore) -> None:
    """A new IR without findings keeps those of the types that it still has."""
    root, owner, _ = FACTORY_IR.types
    found = {"Owner": [{"code": "SYNTAX"}], "State": []}
    with RegenStore.update(store.path) as tx:
        tx.write(ir=FACTORY_IR.model_copy(update={"validation": found}))
        tx.write(ir=FACTORY_IR.model_copy(update={"types": (root, owner)}))

        assert tx.store.ir.validation == {root.name: [], "Owner": found["Owner"]}


def test_what_is_replaced_says_why(store: RegenStore) -> None:
    """By the reason that the caller gives."""
    with RegenStore.update(store.path) as tx:
        tx.write(pages=[page("Owner", 1, "// edited by hand", attempt=2)], reason="adopted")

    assert [entry.reason for entry in history(store.path)] == ["adopted"]


def test_a_changed_plan_keeps_what_vanishes(store: RegenStore) -> None:
    """Outputs whose prompt is gone are in the history; kept pages stay; the IR hash follows."""
    old = {one.output for key, one in store.pages.items() if key.type_name != "Owner"}

    change_plan(store.path)

    after = RegenStore.open(store.path)
    assert after.type_names == ("ProjectDataObject", "Owner")
    assert after.missing_pages == ()
    assert after.pages_of("Owner") == store.pages_of("Owner")
    assert {entry.output for entry in history(store.path)} == old
    assert {entry.reason for entry in history(store.path)} == {"vanished"}
    assert after.envelope.ir_hash != store.envelope.ir_hash


def test_a_page_that_moves_to_another_number_is_not_lost(store: RegenStore) -> None:
    """An output stored under a new identity of its type needs no history entry."""
    entry = plan(FACTORY_IR.types[1], 2)[0]
    prompts = [one for one in PROMPTS if one.type_name != "Owner"] + plan(FACTORY_IR.types[1], 2)
    moved = replace(store.pages_of("Owner")[0], total_pages=2, prompt_hash=entry.prompt_hash)
    planned = planned_store(store.path, ir=FACTORY_IR, prompts=prompts, source_file="Project.cs")
    with RegenStore.update(store.path) as tx:
        tx.write(planned=planned, pages=[moved])

        assert tx.store.missing_pages == (PageKey("Owner", 2, 2),)
    assert history(store.path) == ()


def test_a_source_file_of_another_name_is_moved(store: RegenStore) -> None:
    """A renamed root leaves no second source behind, and what it held is kept."""
    with RegenStore.update(store.path) as tx:
        envelope = replace(tx.store.envelope, source_file="Other.cs", namespace="N")
        tx.write(planned=replace(tx.store, envelope=envelope))

    after = RegenStore.open(store.path)
    assert [path.name for path in store.path.glob("*.cs")] == ["Other.cs"]
    assert after.source == store.source
    assert after.envelope.namespace == "N"
    assert after.pages == store.pages
    assert store.source.encode() in tree(store.path / "history").values()


def test_half_a_character_is_told_and_nothing_written(store: RegenStore) -> None:
    """A source that no file can hold is refused with a reason."""
    before = tree(store.path)
    with (
        RegenStore.update(store.path) as tx,
        pytest.raises(StoreWriteError, match="surrogate") as caught,
    ):
        tx.write(source="// \ud800")

    assert "correct the text" in caught.value.hint
    assert tree(store.path) == before


def test_a_writer_that_does_not_finish_is_told(store: RegenStore) -> None:
    """After the timeout the message names the lock, who may hold it, and what to do."""
    with (
        RegenStore.update(store.path),
        pytest.raises(StoreWriteError, match="another process") as caught,
        store_files(store.path).locked(0.05),
    ):
        pass

    assert str(Path(".regen", "locks", "get_v1_projects-")) in caught.value.why
    assert "--regen" in caught.value.why
    assert "run the same command again" in caught.value.hint


def test_eight_processes_lose_no_update(tmp_path: Path) -> None:
    """From a barrier, each writes another page: all eight are there, and so is the source."""
    folder = wide_plan(tmp_path / "GET_v1_projects", 8).path

    run_together("store_work:replace_one_of_many", folder, 8)

    after = RegenStore.open(folder)
    assert [one.output for one in after.pages.values()] == [f"// by process {n}" for n in range(8)]
    assert after.source == source_of(after)


def refusing(number: int, refused: list[str]) -> Callable[[str, Path], None]:
    """Return a disk that refuses its n-th effect, and notes it."""
    effects = count()

    def observe(effect: str, path: Path) -> None:
        if effect.startswith("before") and next(effects) == number:
            refused.append(effect)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    return observe


def test_a_disk_that_refuses_any_effect_loses_nothing(tmp_path: Path) -> None:
    """For every effect of a write refused: a clear error or success; before or after; heals."""
    refused_at_all = []
    template = filled_store(tmp_path / "GET_v1_projects").path
    for number in range(200):
        folder = shutil.copytree(template, tmp_path / str(number) / template.name)
        store = RegenStore.open(folder)
        refused: list[str] = []
        message = ""
        with observe_effects(refusing(number, refused)):
            try:
                replace_page(store.path)
            except StoreWriteError as error:
                message = str(error)
        seen = RegenStore.open(store.path)
        assert seen.source == source_of(seen)
        if not refused:
            break
        refused_at_all.append("No space left" in message)
        assert {one.output for one in store.pages.values()} <= {
            *(one.output for one in seen.pages.values()),
            *(entry.output for entry in history(store.path)),
        }
        replace_page(store.path)
        assert RegenStore.open(store.path).source != store.source

    assert len(refused_at_all) > 15
    assert all(refused_at_all)
