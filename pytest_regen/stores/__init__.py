"""The folder of one endpoint: prompts, pages, IR, source and history; atomic, locked, versioned."""

from pytest_regen.files import safe_file_name, store_slug
from pytest_regen.store_folders import FoundStores, find_stores, is_store
from pytest_regen.stores.formats import PagesEnvelope, StoredPage, check_staleness
from pytest_regen.stores.history import HistoryEntry, HistoryReason, history
from pytest_regen.stores.store import RegenStore, StoreUpdate, refuse_unwritable

__all__ = [
    "FoundStores",
    "HistoryEntry",
    "HistoryReason",
    "PagesEnvelope",
    "RegenStore",
    "StoreUpdate",
    "StoredPage",
    "check_staleness",
    "find_stores",
    "history",
    "is_store",
    "refuse_unwritable",
    "safe_file_name",
    "store_slug",
]
