"""Writing a store: together or not at all, one at a time, and nothing a model wrote is lost."""

import errno
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killing import run_together
from laws import scaled
from small_store import IR_OF_STORE, PROMPTS, filled_store, new_store, page, plan, source_of
from store_work import change_plan, replace_page, tree, wide_plan

from pytest_regen.errors import StoreWriteError, UnknownPageError
from pytest_regen.files import observe_effects
from pytest_regen.prompts.values import PageKey
from pytest_regen.stores import HistoryEntry, RegenStore, StoredPage, history


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A complete store."""
    return filled_store(tmp_path / "GET_v1_projects")


def test_a_page_and_its_source_are_written_together(store: RegenStore) -> None:
    """The new page, its source, its model in the envelope; all other pages untouched."""
    new = replace(page("Owner", 1, "// new", attempt=2), model="model-b")
    source = source_of({**store.pages, new.key: new})
    with RegenStore.update(store.path) as tx:
        tx.write(pages=[new], source=source)

    after = RegenStore.open(store.path)
    assert after.pages[new.key] == replace(new, index=3)
    assert after.source == source
    assert after.envelope == replace(store.envelope, model="model-b", pages=after.envelope.pages)
    assert {key: one for key, one in after.pages.items() if key != new.key} == {
        key: one for key, one in store.pages.items() if key != new.key
    }


def test_a_page_by_hand_leaves_the_model_that_answered(store: RegenStore) -> None:
    """What the envelope calls the model is one that can be asked."""
    new = replace(page("Owner", 1, "// new", attempt=2), model="hand")
    with RegenStore.update(store.path) as tx:
        tx.write(pages=[new])

        assert tx.store.envelope.model == store.envelope.model


def test_findings_stay_with_their_types(store: RegenStore) -> None:
    """A new IR without findings keeps those of the types that it still has."""
    root, owner, _ = IR_OF_STORE.types
    found = {"Owner": [{"code": "SYNTAX"}], "State": []}
    with RegenStore.update(store.path) as tx:
        tx.write(ir=IR_OF_STORE.model_copy(update={"validation": found}))
        tx.write(ir=IR_OF_STORE.model_copy(update={"types": (root, owner)}))

        assert tx.store.ir.validation == {root.name: [], "Owner": found["Owner"]}


def test_what_is_replaced_goes_to_the_history(store: RegenStore) -> None:
    """Without being asked to, with the reason, and readable there."""
    with RegenStore.update(store.path) as tx:
        ids = tx.write(pages=[page("Owner", 1, "// new", attempt=2)])

    (entry,) = history(store.path)
    assert (entry.id,) == ids
    assert entry.reason == "replaced"
    assert entry.output == store.pages_of("Owner")[0].output


def test_an_entry_given_stands_in_for_the_automatic_one(store: RegenStore) -> None:
    """The caller's reason for the same output is the one that is kept, once."""
    old = store.pages_of("Owner")[0]
    with RegenStore.update(store.path) as tx:
        tx.write(
            pages=[page("Owner", 1, "// edited by hand", attempt=2)],
            replaced=[HistoryEntry.of(old, "adopted")],
        )

    assert [entry.reason for entry in history(store.path)] == ["adopted"]


def test_a_page_without_a_prompt_is_refused(store: RegenStore) -> None:
    """A caller's mistake raises and writes nothing."""
    before = tree(store.path)
    stray = StoredPage.of(
        plan(IR_OF_STORE.types[0], 2)[0], "// stray", model="model-a", type_hash=None
    )
    with RegenStore.update(store.path) as tx, pytest.raises(UnknownPageError, match="page 1 of 2"):
        tx.write(pages=[stray])

    assert tree(store.path) == before


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
    entry = plan(IR_OF_STORE.types[1], 2)[0]
    prompts = [one for one in PROMPTS if one.type_name != "Owner"] + plan(IR_OF_STORE.types[1], 2)
    moved = replace(store.pages_of("Owner")[0], total_pages=2, prompt_hash=entry.prompt_hash)
    with RegenStore.update(store.path) as tx:
        tx.write(prompts=prompts, pages=[moved])

        assert tx.store.missing_pages == (PageKey("Owner", 2, 2),)
    assert history(store.path) == ()


def test_a_source_file_of_another_name_is_moved(store: RegenStore) -> None:
    """A renamed root leaves no second source behind, and what it held is kept."""
    with RegenStore.update(store.path) as tx:
        tx.write(envelope=replace(tx.store.envelope, source_file="Other.cs", namespace="N"))

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
        RegenStore.update(store.path, timeout=0.05),
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


class Refusing:
    """A disk that refuses its n-th effect, once."""

    def __init__(self, number: int, code: int) -> None:
        self.left = number
        self.code = code
        self.refused = False

    def __call__(self, effect: str, path: Path) -> None:
        """Count the effects; raise at the n-th."""
        if not effect.startswith("before"):
            return
        if self.left == 0:
            self.refused = True
            self.left -= 1
            raise OSError(self.code, os.strerror(self.code), str(path))
        self.left -= 1


def test_a_disk_that_refuses_any_effect_loses_nothing(tmp_path: Path) -> None:
    """For every effect of a write refused: a clear error or success; before or after; heals."""
    refused_at_all = []
    template = filled_store(tmp_path / "GET_v1_projects").path
    for number in range(200):
        folder = shutil.copytree(template, tmp_path / str(number) / template.name)
        store = RegenStore.open(folder)
        refusing = Refusing(number, errno.ENOSPC)
        message = ""
        with observe_effects(refusing):
            try:
                replace_page(store.path)
            except StoreWriteError as error:
                message = str(error)
        seen = RegenStore.open(store.path)
        assert seen.source == source_of(seen)
        if not refusing.refused:
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


def test_a_folder_that_may_not_be_written_is_told(store: RegenStore) -> None:
    """The message says why, and what to do."""
    with (
        observe_effects(Refusing(0, errno.EACCES)),
        pytest.raises(StoreWriteError, match="Permission denied") as caught,
    ):
        replace_page(store.path)

    assert "make the folder writable" in caught.value.hint


def test_a_file_where_the_folder_should_be_is_told(tmp_path: Path) -> None:
    """Creating a store over a file is a write error, and the file stays."""
    path = tmp_path / "GET_v1_projects"
    path.write_text("mine")

    with pytest.raises(StoreWriteError, match="cannot be written"):
        new_store(path, ir=IR_OF_STORE, prompts=PROMPTS, source_file="X.cs")

    assert path.read_text() == "mine"


@settings(max_examples=scaled(12))
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(PROMPTS), st.text(max_size=8), st.booleans()), max_size=4
    )
)
def test_nothing_ever_written_is_lost(steps: list[tuple[object, str, bool]]) -> None:
    """Whatever pages are written in whatever order, each output is stored or in the history."""
    with tempfile.TemporaryDirectory() as name:
        store = filled_store(Path(name) / "GET_v1_projects")
        ever = {(one.type_name, one.output) for one in store.pages.values()}
        for entry, text, is_rejected in steps:
            assert isinstance(entry, type(PROMPTS[0]))
            new = page(entry.type_name, entry.page, text)
            ever.add((new.type_name, new.output))
            with RegenStore.update(store.path) as tx:
                if is_rejected:
                    tx.write(replaced=[HistoryEntry.of(new, "rejected")])
                else:
                    tx.write(pages=[new])

        after = RegenStore.open(store.path)
        kept = {(one.type_name, one.output) for one in after.pages.values()}
        kept |= {(entry.type_name, entry.output) for entry in history(store.path)}
        assert ever == kept


def test_a_linked_artifact_is_read_and_not_replaced(store: RegenStore, tmp_path: Path) -> None:
    """A rename would put a file in the place of the link: the write is refused, nothing changes."""
    name = "pages.json"
    elsewhere = tmp_path / name
    (store.path / name).rename(elsewhere)
    (store.path / name).symlink_to(elsewhere)
    before = tree(tmp_path)

    with pytest.raises(StoreWriteError, match="is a symbolic link") as caught:
        replace_page(store.path)

    assert str(store.path) in caught.value.hint
    assert (store.path / name).is_symlink()
    assert RegenStore.open(store.path).pages == store.pages
    assert tree(tmp_path) == before


def test_a_store_behind_a_linked_folder_is_written(store: RegenStore, tmp_path: Path) -> None:
    """The folder may be a link: its files are where they were."""
    link = tmp_path / "link"
    link.symlink_to(store.path)

    replace_page(link)

    assert link.is_symlink()
    assert RegenStore.open(store.path).pages != store.pages
