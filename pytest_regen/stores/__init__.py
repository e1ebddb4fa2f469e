"""The folder of one endpoint: prompts, pages, IR, source and history; atomic, locked, versioned."""

from pytest_regen.store_folders import find_stores, is_store
from pytest_regen.stores.formats import StoredPage, check_staleness
from pytest_regen.stores.history import HistoryEntry, history
from pytest_regen.stores.store import RegenStore, StoreUpdate

__all__ = [
    "HistoryEntry",
    "RegenStore",
    "StoreUpdate",
    "StoredPage",
    "check_staleness",
    "find_stores",
    "history",
    "is_store",
]
