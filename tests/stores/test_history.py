"""The history: one file per output that is no longer stored; read by id, never cleaned."""

from pathlib import Path

import pytest
from small_store import filled_store, page

from pytest_regen.errors import StoreCorruptError
from pytest_regen.stores import HistoryEntry, RegenStore, history
from pytest_regen.validation.issues import Issue


@pytest.fixture
def store(tmp_path: Path) -> RegenStore:
    """A store that replaced a page of two types, each once, and rejected one more."""
    store = filled_store(tmp_path / "GET_v1_projects")
    issue = Issue.of("EMPTY_OUTPUT", "nothing there", type_name="State", page=1)
    for new in (page("Owner", 1, "// 2"), page("State", 1, "// 2")):
        with RegenStore.update(store.path) as tx:
            tx.write(pages=[new])
    with RegenStore.update(store.path) as tx:
        tx.write(aside=[HistoryEntry.of(page("State", 1, ""), "rejected", [issue])])
    return store


def test_entries_come_oldest_first(store: RegenStore) -> None:
    """All of them, or those of a type; the id is the name of the file."""
    entries = history(store.path)

    assert [(entry.type_name, entry.reason) for entry in entries] == [
        ("Owner", "replaced"),
        ("State", "replaced"),
        ("State", "rejected"),
    ]
    assert history(store.path, "State") == entries[1:]
    assert entries[2].issues[0].code == "EMPTY_OUTPUT"
    assert (entries[2].model, entries[2].attempt, entries[2].key.total_pages) == ("model-a", 1, 1)
    assert [entry.id for entry in entries] == sorted(
        file.stem for file in (store.path / "history").glob("*.json")
    )


def test_a_damaged_entry_is_told(store: RegenStore) -> None:
    """One error that names the file and the value."""
    files = (store.path / "history").glob("*.json")
    file = next(file for file in files if '"replaced"' in file.read_text())
    file.write_text(file.read_text().replace('"replaced"', '"lost"'))

    with pytest.raises(StoreCorruptError, match=r"\$\.reason.*'lost'") as caught:
        history(store.path)

    assert file.name in caught.value.what
