"""What was found in a store is kept, and holds for exactly what it was found in."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harbour_store import HARBOUR, harbour_store

from pytest_regen.stores import RegenStore
from pytest_regen.validation import store_cache, validate_store
from pytest_regen.validation.store_cache import StoreCache, StoreFindings

SOURCE = "HarbourDataObject.cs"


class Opened:
    """Opens a store and counts how often."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.times = 0

    def __call__(self) -> RegenStore:
        self.times += 1
        return RegenStore.open(self.path)


def look(opened: Opened, run: str = "") -> StoreFindings:
    """Return what a new process finds in the store."""
    stores = StoreCache(run)
    facts = stores.facts(opened.path, opened)
    return stores.findings(opened.path, facts, opened, behaviour=True)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Return what opens a store with faults that was validated before."""
    (tmp_path / "pytest.ini").touch()
    store = harbour_store(
        tmp_path / "store",
        {**HARBOUR, "Owner": HARBOUR["Owner"].replace('("owner', '("onwer')},
    )
    opened = Opened(store.path)
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
    assert [(x.excerpt, x.finding) for x in kept] == [(x.excerpt, x.finding) for x in new]
