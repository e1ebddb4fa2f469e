"""The edits of a store, by its path: adopted, dropped; outputs restored."""

from collections.abc import Sequence
from pathlib import Path

from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.regeneration.store_view import is_edited
from pytest_regen.regeneration.values import Changes
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store


def edited_types(store: RegenStore) -> tuple[str, ...]:
    """Return the types whose block is not what their pages make."""
    results = validate_store(store, behaviour=False)
    return tuple(name for name, result in results.items() if is_edited(result))


def restore_outputs(
    path: Path | str, type_name: str, *, page: int | None = None, to: str | None = None
) -> Changes:
    """Make outputs from the history of a store the stored ones, as ``verbs.restore`` does."""
    return verbs.restore(StorePlace(path), type_name, page=page, to=to)


def rebuild_source(path: Path | str, type_names: Sequence[str] | None = None) -> Changes:
    """Write a store's source from its stored pages, as ``verbs.rebuild`` does."""
    return verbs.rebuild(StorePlace(path), type_names)


def adopt_edits(path: Path | str, type_names: Sequence[str] | None = None) -> Changes:
    """Make what was edited by hand the stored outputs, as ``verbs.adopt`` does."""
    return verbs.adopt(StorePlace(path), type_names)
