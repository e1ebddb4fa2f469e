"""A store survives the death of its writer at any moment."""

from pathlib import Path

import pytest
from killing import Killed, kill_at_every_effect
from small_store import filled_store, source_of
from store_work import replace_page, tree

from pytest_regen.files import observe_effects
from pytest_regen.stores import RegenStore, history


def outputs(store: RegenStore) -> set[str]:
    """Return all that the store holds of what a model wrote, history included."""
    return {page.output for page in store.pages.values()} | {
        entry.output for entry in history(store.path)
    }


def facts(store: RegenStore) -> tuple[object, ...]:
    """Return what a reader of the store sees."""
    return store.envelope.pages, store.source, store.prompts, store.ir, store.missing_pages


def check_survival(killed: Killed, before: RegenStore, after: RegenStore) -> None:
    """Assert what must hold wherever the writer died."""
    left = tree(killed.folder)
    seen = RegenStore.open(killed.folder)
    assert tree(killed.folder) == left, "reading wrote something"
    assert facts(seen) in (facts(before), facts(after)), "a mixture of before and after"
    assert {page.output for page in before.pages.values()} <= outputs(seen), "an output is lost"
    assert seen.source == source_of(seen), "pages and source do not belong together"

    with RegenStore.update(killed.folder) as tx:
        assert facts(tx.store) == facts(seen), "recovery changed what readers saw"
        tx.write(schema="# written after the kill\n")
    assert facts(RegenStore.open(killed.folder)) == facts(seen)
    leftovers = [name for name in tree(killed.folder) if name.startswith(".")]
    assert not leftovers


def kills_of(work: str, tmp_path: Path, step: int) -> None:
    """Kill ``work`` at every ``step``-th effect and check what is left each time."""
    before = filled_store(tmp_path / "template" / "GET_v1_projects")

    kills = kill_at_every_effect(f"store_work:{work}", before.path, tmp_path / "copies", step=step)

    assert kills[-1].effect == ""
    kinds = {" ".join(killed.effect.split()[:2]) for killed in kills[:-1]}
    assert step > 1 or kinds == {
        f"{when} {what}"
        for when in ("before", "after")
        for what in ("create", "write", "fsync", "rename", "unlink", "mkdir", "rmdir")
    }
    assert len(kills) * step > 60
    after = RegenStore.open(kills[-1].folder)
    for killed in kills:
        check_survival(killed, before, after)


def test_a_kill_at_any_effect_of_a_write_leaves_before_or_after(tmp_path: Path) -> None:
    """Killed before or after each write, fsync, rename, unlink: it reads as before or as after."""
    kills_of("replace_page", tmp_path, 1)


def test_a_kill_during_a_change_of_plan_leaves_before_or_after(tmp_path: Path) -> None:
    """The same, at every fifth effect."""
    kills_of("change_plan", tmp_path, 5)


def stop_after_commit(effect: str, path: Path) -> None:
    """Leave a writer at the moment its change holds and none of its files is in place."""
    if (effect, path.name) == ("after rename", "commit.json"):
        raise KeyboardInterrupt


def test_a_kill_while_recovering_from_a_kill(tmp_path: Path) -> None:
    """Killed before any effect of the recovery, the next one still gets to the same end."""
    before = filled_store(tmp_path / "template" / "GET_v1_projects")
    with pytest.raises(KeyboardInterrupt), observe_effects(stop_after_commit):
        replace_page(before.path)
    seen = RegenStore.open(before.path)
    assert seen.envelope != before.envelope

    kills = kill_at_every_effect("store_work:recover", before.path, tmp_path / "second", step=2)

    assert len(kills) > 8
    for killed in kills:
        check_survival(killed, seen, seen)
