"""What children do to a store while they are killed or run side by side (see killing.py)."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from small_store import page, plan, source_of
from store_factory import FACTORY_IR, new_store, planned_store

from pytest_regen.commit import Candidate, Trial, View
from pytest_regen.documents.ir import IR
from pytest_regen.stores import HistoryEntry, RegenStore, StoredPage, StoreUpdate
from pytest_regen.stores.history import store_files
from pytest_regen.validation.issues import Issue

NEW_OUTPUT = "// a new page 2"


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def with_new_page(store: RegenStore, new: StoredPage) -> str:
    """Return the source of a store with another page in it."""
    return source_of({**store.pages, new.key: new})


def on_trial(
    store: RegenStore,
    new: StoredPage,
    source: str | None = None,
    issues: Mapping[str, Sequence[Issue]] = {},
) -> AbstractContextManager[Trial]:
    """Put a page on trial in the store as it is by now, with the source that it makes."""

    def place(_: View) -> Candidate:
        tx = StoreUpdate(RegenStore.open(store.path))
        text = with_new_page(tx.store, new) if source is None else source
        return tx.candidate([new], text, issues)

    return store_files(store.path).trial(place)


def replace_page(folder: Path) -> None:
    """Replace page 2 of the root and reject a candidate for another page."""
    new = page("ProjectDataObject", 2, NEW_OUTPUT, attempt=2)
    rejected = HistoryEntry.of(page("Owner", 1, "// rejected"), "rejected")
    with RegenStore.update(folder) as tx:
        tx.write(pages=[new], source=with_new_page(tx.store, new), aside=[rejected])


def change_plan(folder: Path) -> None:
    """Drop a type and plan another in two pages instead of three, all in one write."""
    root, owner, _ = FACTORY_IR.types
    ir = IR(endpoint=FACTORY_IR.endpoint, language="csharp", types=(root, owner))
    prompts = [*plan(root, 2), *plan(owner, 1)]
    written = [
        StoredPage.of(
            entry,
            f"// replanned {entry.page}",
            model="model-b",
            type_hash=None,
            generated_at="2026-02-03T04:05:06Z",
        )
        for entry in prompts[:2]
    ]
    name = RegenStore.open(folder).envelope.source_file
    planned = planned_store(folder, ir=ir, prompts=prompts, source_file=name)
    with RegenStore.update(folder) as tx:
        kept = {key: one for key, one in tx.store.pages.items() if key.type_name == "Owner"}
        source = source_of({**{one.key: one for one in written}, **kept})
        tx.write(pages=written, source=source, planned=planned, schema="# replanned\n")


def wide_plan(folder: Path, pages: int) -> RegenStore:
    """Return a new store whose root has ``pages`` pages, all of them missing."""
    root = FACTORY_IR.types[0]
    return new_store(folder, ir=FACTORY_IR, prompts=plan(root, pages), source_file="Root.cs")


def die_in_trial(folder: Path) -> None:
    """Put a candidate on trial and die while the test would run."""
    store = RegenStore.open(folder)
    new = page("ProjectDataObject", 2, NEW_OUTPUT, attempt=2)
    with on_trial(store, new):
        os.kill(os.getpid(), signal.SIGKILL)


def recover(folder: Path) -> None:
    """Lock the store and do nothing, which finishes what a killed writer left."""
    with RegenStore.update(folder):
        pass


def replace_one_of_many(folder: Path, number: int) -> None:
    """Write page ``number + 1`` of the root."""
    store = RegenStore.open(folder)
    entry = store.prompts[number]
    new = StoredPage.of(entry, f"// by process {number}", model="model-a", type_hash=None)
    with RegenStore.update(folder) as tx:
        tx.write(pages=[new], source=with_new_page(tx.store, new))
