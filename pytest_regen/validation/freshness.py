"""Which types of a store were made for another IR than the store, or its document, holds now."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from pytest_regen.canonical import file_hash
from pytest_regen.documents.ir import FORMAT, DocumentRef, type_hash
from pytest_regen.errors import RegenError, UnknownOperationError
from pytest_regen.file_names import store_slug
from pytest_regen.languages import language_named
from pytest_regen.stores import RegenStore

__all__ = ["format_note", "stale_types", "update_command"]


def stale_types(store: RegenStore) -> dict[str, str]:
    """Return the stale types of ``store``, each with the reason in words.

    A type is stale where ``ir.json`` has moved on since its pages were written, or where the
    document is at hand and gives another IR. The document is read only if a file of it is not as it
    was when the store was made; one that cannot be read says nothing about any type.

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
        known = store.ir.format == FORMAT
        for type_ in store.ir.types:
            now = fresh.get(type_.name)
            if now is None:
                found[type_.name] = f"the document no longer has a type {type_.name!r}"
            elif now != type_hash(type_):
                found[type_.name] = (
                    f"the document has changed {type_.name!r}"
                    if known
                    else f"the document has changed, and with it perhaps {type_.name!r}, which "
                    "another version of pytest-regen read"
                )
    return found


def format_note(store: RegenStore) -> str:
    """Return that another version read the store's document; empty where this one did.

    A note, no staleness: what this version reads or words differently shows in the store with the
    next ``generate``.
    """
    if store.ir.format == FORMAT:
        return ""
    return (
        f"another version of pytest-regen made {store.path.name}; the next generate brings it up to"
        " date and asks only for what this version reads differently"
    )


def update_command(store: RegenStore) -> str:
    """Return the command that brings a store up to date with its document.

    Paths are seen from the working directory. The document is called SPEC where it is not at hand.
    """
    endpoint, reference = store.ir.endpoint, store.ir.document
    document = store.path / reference.path if reference else None
    spec = _from_here(document) if document and document.is_file() else "SPEC"
    words = ["pytest-regen", "generate", spec, f"{endpoint.method} {endpoint.path}", "--out"]
    is_named = store.path.name == store_slug(endpoint.method, endpoint.path)
    words.append(_from_here(store.path.absolute().parent) if is_named else "DIR")
    if endpoint.status != "200":
        words += ["--status", endpoint.status]
    if store.ir.language != "csharp":
        words += ["--language", store.ir.language]
    return shlex.join(words)


def _from_here(path: Path) -> str:
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # On Windows, another drive.
        return path.as_posix()


def _types_of_the_document(store: RegenStore) -> Mapping[str, str] | None:
    """Return the hash of each type that the document gives now; ``None`` where it is unchanged."""
    reference = store.ir.document
    if reference is None:
        return None
    path = store.path / reference.path
    try:
        if not path.is_file() or _is_as_it_was(path, reference):
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


def _is_as_it_was(path: Path, reference: DocumentRef) -> bool:
    """Return whether all files of the document have the bytes that the store was made from."""
    if file_hash(path.read_bytes()) != reference.sha256:
        return False
    return all(
        (path.parent / name).is_file() and file_hash((path.parent / name).read_bytes()) == hash_
        for name, hash_ in reference.files.items()
    )
