"""``diff``: what changed between two versions of stores or of an API description."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_regen.cli.output import AsJson, emit_json, say
from pytest_regen.cli.revisions import at_revision
from pytest_regen.documents import IR, Document, build_ir, read_document, rebuild_ir
from pytest_regen.documents.changes import Change, Direction, compare_types, direction_of
from pytest_regen.documents.ir import REQUEST, SCHEMAS, Endpoint
from pytest_regen.documents.parts import Components, Part, Request
from pytest_regen.errors import (
    NothingToGenerateError,
    RegenError,
    UnknownOperationError,
    UsageError,
)
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language, language_names
from pytest_regen.languages.base import Language
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.text import in_quotes, plural


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="A store, a folder of stores, or an API description; or REVISION:PATH of git.",
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, newer.")],
    operations: Annotated[
        list[str] | None,
        typer.Option(
            "--operation", metavar="OPERATION", help='Only this one, "GET /path"; may be repeated.'
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two versions, and whether it breaks code made from the older one.

    Exits with 1 where a change is breaking.
    """
    with ExitStack() as stack:
        before, after = (_read(text, stack.enter_context(at_revision(text))) for text in (old, new))
        found = list(_compare(before, after, operations))
    breaking = sum(entry.breaking for entry in found)
    if as_json:
        emit_json({"ok": not breaking, "operations": [entry.to_json() for entry in found]})
    else:
        _show(found)
    unread = [entry.error.exit_code for entry in found if entry.error is not None]
    raise typer.Exit(max([*unread, int(bool(breaking))]))


# --- what is compared ----------------------------------------------------------------------------

_Read = Callable[[IR | None, Language], IR]
"""Returns the types of a part; given those of the other side's store, where it is one."""


@dataclass(frozen=True, slots=True, order=True)
class _Key:
    """A part of an API: the response or the request of an operation, or its schemas."""

    method: str
    path: str
    kind: str = ""
    """``REQUEST`` or ``SCHEMAS``; empty for a response."""

    @classmethod
    def of(cls, endpoint: Endpoint) -> "_Key":
        kind = endpoint.status if endpoint.status in {REQUEST, SCHEMAS} else ""
        return cls(endpoint.method, endpoint.path, kind)

    @property
    def operation(self) -> str:
        return f"{self.method} {self.path}"

    def __str__(self) -> str:
        if self.kind == SCHEMAS:
            return "the schemas"
        return f"{self.operation}{', the request' if self.kind else ''}"


@dataclass(frozen=True, slots=True)
class _Side:
    """One version: the parts it has, each with the way to its types."""

    parts: Mapping[_Key, _Read]
    stores: Mapping[_Key, IR]
    """What is stored; nothing of a description."""
    document: Document | None = None

    def reader(self, key: _Key) -> _Read | None:
        """Return how to read a part; a description has schemas whether or not they are a part."""
        if key.kind == SCHEMAS and self.document is not None:
            return _reader(self.document, Components())
        return self.parts.get(key)


def _read(text: str, path: Path) -> _Side:
    """Return what a store, a folder of stores or a description holds.

    Raises:
        StoreError, DocumentError: it cannot be read.
    """
    if not path.is_dir():
        document = read_document(path)
        return _Side(dict(_parts(document)), {}, document)
    folders = [path] if is_store(path) else sorted(filter(is_store, path.iterdir()))
    if not folders:
        raise UsageError(
            f"{text} is a folder without stores",
            hint="name a store, the folder that holds stores, or an API description",
        )
    irs = [RegenStore.open(folder).ir for folder in folders]
    stores = {_Key.of(ir.endpoint): ir for ir in irs}
    return _Side({key: _stored(ir) for key, ir in stores.items()}, stores)


def _parts(document: Document) -> Iterator[tuple[_Key, _Read]]:
    for operation in document.operations:
        if operation.schemas or operation.broken:
            yield _Key(operation.method, operation.path), _reader(document, operation)
        if operation.request is not None or operation.broken_request is not None:
            key = _Key(operation.method, operation.path, REQUEST)
            yield key, _reader(document, Request(operation))


def _reader(document: Document, part: Part) -> _Read:
    def read(stored: IR | None, language: Language) -> IR:
        if stored is not None:
            return rebuild_ir(stored, document, language=language).ir
        return build_ir(document, part, language=language).ir

    return read


def _stored(ir: IR) -> _Read:
    return lambda _stored, _language: ir


@dataclass(frozen=True, slots=True)
class _Compared:
    """One operation in both versions."""

    operation: str
    state: str
    """``changed``, ``same``, ``added``, ``removed`` or ``unread``."""
    changes: Sequence[Change] = ()
    direction: Direction = "response"
    error: RegenError | None = None
    """Why one of the versions cannot be read."""

    @property
    def breaking(self) -> int:
        """How many of the changes break."""
        if self.state == "removed":
            return 1
        return sum(change.breaks(self.direction) for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "operation": self.operation,
            "state": self.state,
            "breaking": self.breaking,
            "changes": changes_json(self.changes, self.direction),
            **({"error": self.error.what} if self.error is not None else {}),
        }


def _compare(old: _Side, new: _Side, names: Sequence[str] | None) -> Iterator[_Compared]:
    """Yield the parts that either version has, or those of operations that were named.

    Where one side is stores and the other a description, only what has a store counts.

    Raises:
        UnknownOperationError: neither has an operation that is named.
    """
    keys = dict.fromkeys((*old.parts, *new.parts))
    if bool(old.stores) != bool(new.stores):
        keys = dict.fromkeys(old.stores or new.stores)
    for key in _chosen(list(keys), names):
        before, after = old.reader(key), new.reader(key)
        if before is None or after is None:
            yield _Compared(str(key), "removed" if after is None else "added")
        else:
            stored = old.stores.get(key) or new.stores.get(key)
            yield _compare_one(str(key), before, after, stored)


def _chosen(keys: Sequence[_Key], names: Sequence[str] | None) -> Iterator[_Key]:
    if not names:
        yield from keys
        return
    for name in names:
        wanted = " ".join(name.split()).upper()
        found = [key for key in keys if key.operation.upper() == wanted]
        if not found:
            known = dict.fromkeys(key.operation for key in keys)
            listed = ", ".join(map(in_quotes, list(known)[:8]))
            raise UnknownOperationError(
                f"neither version has an operation {name!r}", hint=f"there are {listed or 'none'}"
            )
        yield from found


def _compare_one(name: str, old: _Read, new: _Read, stored: IR | None) -> _Compared:
    language = find_language(stored.language) if stored else _language_of_documents()
    try:
        before, after = (_types(read, stored, language) for read in (old, new))
    except RegenError as error:
        return _Compared(name, "unread", error=error)
    known = after or before
    if known is None:
        return _Compared(name, "same")
    if before is not None and after is not None:
        changes = compare_types(before, after)
    else:
        message = "it has no types any more" if after is None else "it has types now"
        changes = (Change("answer", known.types[0].name, None, message, "other"),)
    return _Compared(name, "changed" if changes else "same", changes, direction_of(known))


def _types(read: _Read, stored: IR | None, language: Language) -> IR | None:
    """Return the types of a part; ``None`` where it holds plain values, or nothing."""
    try:
        return read(stored, language)
    except NothingToGenerateError:
        return None


def _language_of_documents() -> Language:
    """Return a language that loses nothing: one with unions, where there is one."""
    languages = map(find_language, language_names())
    return next((each for each in languages if each.has_unions), find_language(DEFAULT_LANGUAGE))


# --- what is shown -------------------------------------------------------------------------------


def changes_json(changes: Sequence[Change], direction: Direction) -> list[dict[str, Any]]:
    """Return changes as plain JSON."""
    return [
        {
            "kind": change.kind,
            "type_name": change.type_name,
            "field": change.field,
            "breaking": change.breaks(direction),
            "message": change.message,
            "before": change.before,
            "after": change.after,
        }
        for change in changes
    ]


def show_changes(changes: Sequence[Change], direction: Direction) -> None:
    """Print a line per change, those that break first; other descriptions are counted."""
    described = [change for change in changes if change.kind == "description"]
    others = [change for change in changes if change.kind != "description"]
    for change in sorted(others, key=lambda change: not change.breaks(direction)):
        breaks = change.breaks(direction)
        where = change.type_name
        if change.field is not None:
            where += f".{change.field}"
        word = "breaking" if breaks else "safe"
        say(f"  {word:<8}  {where}: {change.message}", "red" if breaks else "")
    if described:
        say(f"  {'safe':<8}  {plural(len(described), 'description')} changed")


def _show(found: Sequence[_Compared]) -> None:
    for entry in found:
        if entry.state == "same":
            continue
        words = {"removed": ": was removed (breaking)", "added": ": was added"}
        say(f"{entry.operation}{words.get(entry.state, '')}", "red" if entry.breaking else "")
        if entry.error is not None:
            say(f"  unread    {entry.error.what}; {entry.error.hint}", "yellow")
        show_changes(entry.changes, entry.direction)
    changed = [entry for entry in found if entry.state != "same"]
    breaking = sum(entry.breaking for entry in found)
    if not changed:
        say(f"{plural(len(found), 'operation')}, nothing changed", "green")
        return
    safe = sum(len(entry.changes) for entry in found)
    safe += sum(entry.state in {"added", "removed"} for entry in found) - breaking
    say(
        f"{len(changed):,} of {plural(len(found), 'operation')} changed: "
        f"{plural(breaking, 'breaking change')}, {safe:,} safe",
        "red" if breaking else "",
    )
