"""What was found in a store is kept, and holds for exactly what it was found in."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harbour_store import HARBOUR, HARBOUR_IR
from store_factory import make_store

from pytest_regen.canonical import file_hash
from pytest_regen.documents.ir import DocumentRef
from pytest_regen.stores import RegenStore
from pytest_regen.validation import store_cache, validate_store
from pytest_regen.validation.store_cache import StoreCache, StoreFindings


class Opened:
    """Opens a store and counts how often."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.times = 0

    def __call__(self) -> RegenStore:
        """Return the store."""
        self.times += 1
        return RegenStore.open(self.path)


def look(opened: Opened) -> StoreFindings:
    """Return what a new process finds in the store."""
    stores = StoreCache()
    facts = stores.facts(opened.path, opened)
    return stores.findings(opened.path, facts, opened, behaviour=True)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Return what opens a store with a fault that was validated before."""
    (tmp_path / "pytest.ini").touch()
    wrong = HARBOUR["Tide", 1].replace('("berth")', '("birth")')
    (tmp_path / "api.json").write_bytes(b"{}")
    document = DocumentRef(path="../api.json", sha256=file_hash(b"{}"))
    ir = HARBOUR_IR.model_copy(update={"document": document})
    outputs = {**HARBOUR, ("Tide", 1): wrong}
    opened = Opened(make_store(tmp_path / "store", outputs, ir=ir).path)
    look(opened)
    opened.times = 0
    return opened


def test_a_store_that_did_not_change_is_not_opened(opened: Opened) -> None:
    """What is found is the same, with the lines and words that a model is told."""
    found = look(opened)

    assert opened.times == 0
    fresh = validate_store(RegenStore.open(opened.path))
    assert found.results == fresh
    kept = [issue for result in found.results.values() for issue in result.issues]
    new = [issue for result in fresh.values() for issue in result.issues]
    assert any(issue.excerpt for issue in new)
    assert [(one.excerpt, one.finding) for one in kept] == [
        (one.excerpt, one.finding) for one in new
    ]


def append(name: str) -> Callable[[Path], None]:
    """Return what changes a file by a blank at its end."""

    def change(store: Path) -> None:
        with (store / name).open("ab") as file:
            file.write(b" ")

    return change


def upgrade(store: Path) -> None:
    """Install something in a folder of the import path."""
    (store.parent / "site" / "grammar-1.0.dist-info").mkdir(parents=True)


CHANGES = {
    **{name: append(name) for name in ("ir.json", "prompts.json", "pages.json", "schema.md")},
    "the document": append("../api.json"),
    "the source": append("ProjectDataObject.cs"),
    "no source": lambda store: (store / "ProjectDataObject.cs").unlink(),
    "another place": lambda store: store.rename(store.with_name("moved")),
    "another package": upgrade,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_findings_depend_on_is_looked_at(
    opened: Opened, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any change the store is validated anew."""
    monkeypatch.syspath_prepend(opened.path.parent / "site")
    store_cache.code_version.cache_clear()
    look(opened)
    opened.times = 0

    CHANGES[change](opened.path)
    store_cache.code_version.cache_clear()
    opened.path = next(opened.path.parent.glob("*/pages.json")).parent
    found = look(opened)

    assert opened.times > 0
    assert found.results == validate_store(RegenStore.open(opened.path))


def test_what_another_wrote_without_the_key_counts_for_nothing(opened: Opened) -> None:
    """A cache that came with a checkout cannot say that a store is right."""
    for file in (opened.path.parent / ".regen" / "cache" / "findings").iterdir():
        seal, _, _ = file.read_bytes().partition(b"\n")
        file.write_bytes(seal + b'\n[{}, {}, ""]')

    found = look(opened)

    assert opened.times == 1
    assert any(result.has_errors for result in found.results.values())
