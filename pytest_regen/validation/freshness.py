"""Which types of a store were made for another IR than the store, or its document, holds now."""

from pytest_regen.canonical import file_hash
from pytest_regen.documents.ir import type_hash
from pytest_regen.errors import RegenError, UnknownOperationError
from pytest_regen.languages import language_named
from pytest_regen.stores import RegenStore

__all__ = ["stale_types"]


def stale_types(store: RegenStore) -> dict[str, str]:
    """Return the stale types of ``store``, each with the reason in words.

    A type is stale where ``ir.json`` has moved on since its pages were written, or where the
    document is at hand and gives another IR. The document is read only if it is not the file that
    the store was made from; one that cannot be read says nothing about any type.

    Raises:
        StoreCorruptError: ``ir.json`` does not hold an IR.
    """
    found = {
        name: f"the prompts of {name!r} were made from an older description"
        for name in store.type_names
        if store.pages_of(name) and store.is_stale(name)
    }
    fresh = _types_of_the_document(store)
    if fresh is not None:
        for type_ in store.ir.types:
            now = fresh.get(type_.name)
            if now is None:
                found[type_.name] = f"the document no longer has a type {type_.name!r}"
            elif now != type_hash(type_):
                found[type_.name] = f"the document has changed {type_.name!r}"
    return found


def _types_of_the_document(store: RegenStore) -> dict[str, str] | None:
    """Return the hash of each type that the document gives now; ``None`` where it is unchanged."""
    reference = store.ir.document
    if reference is None:
        return None
    path = store.path / reference.path
    try:
        if not path.is_file() or file_hash(path.read_bytes()) == reference.sha256:
            return None
        from pytest_regen.documents import (  # noqa: PLC0415 - only a changed document is read
            build_ir,
            read_document,
        )

        document = read_document(path)
        endpoint = store.ir.endpoint
        build = build_ir(
            document,
            document.find(f"{endpoint.method} {endpoint.path}"),
            language=language_named(store.ir.language),
            status=endpoint.status,
            language_name=store.ir.language,
        )
    except UnknownOperationError:
        return {}
    except (OSError, RegenError):
        return None
    return {type_.name: type_hash(type_) for type_ in build.ir.types}
