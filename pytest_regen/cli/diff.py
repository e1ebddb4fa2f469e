"""``diff``: what changed between two versions of stores or of an API description."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_regen.cli.output import AsJson, emit_json, say
from pytest_regen.cli.revisions import at_revision
from pytest_regen.documents import IR, Document, build_ir, read_document
from pytest_regen.documents.changes import Change, Direction, compare_types
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

__all__ = ["changes_json", "diff", "show_changes"]


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

_Key = tuple[str, str]
"""Method and path."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One version: the operations it has, each with the way to its types."""

    text: str
    """As it was named."""
    types_of: Mapping[_Key, Callable[[str | None, Language], IR]]
    """Takes the status and the language; a store has its own."""
    stores: Mapping[_Key, IR]
    """What is stored of them; nothing of a description."""


def _read(text: str, path: Path) -> _Side:
    """Return what a store, a folder of stores or a description holds.

    Raises:
        StoreError, DocumentError: it cannot be read.
    """
    if not path.is_dir():
        document = read_document(path)
        readers = {
            (operation.method, operation.path): _reader(document, str(operation))
            for operation in document.operations
            if operation.schemas or operation.broken
        }
        return _Side(text, readers, {})
    folders = [path] if is_store(path) else sorted(filter(is_store, path.iterdir()))
    if not folders:
        raise UsageError(
            f"{text} is a folder without stores",
            hint="name a store, the folder that holds stores, or an API description",
        )
    stores: dict[_Key, IR] = {}
    for folder in folders:
        ir = RegenStore.open(folder).ir
        stores[ir.endpoint.method, ir.endpoint.path] = ir
    return _Side(text, {key: _stored(ir) for key, ir in stores.items()}, stores)


def _reader(document: Document, operation: str) -> Callable[[str | None, Language], IR]:
    def read(status: str | None, language: Language) -> IR:
        return build_ir(document, document.find(operation), language=language, status=status).ir

    return read


def _stored(ir: IR) -> Callable[[str | None, Language], IR]:
    return lambda _status, _language: ir


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
    """Yield the operations that either version has, or those that were named.

    Where one side is stores and the other a description, only operations with a store count.

    Raises:
        UnknownOperationError: neither has an operation that is named.
    """
    keys = dict.fromkeys((*old.types_of, *new.types_of))
    if bool(old.stores) != bool(new.stores):
        keys = dict.fromkeys(old.stores or new.stores)
    for key in _chosen(list(keys), names):
        name = " ".join(key)
        if key not in new.types_of:
            yield _Compared(name, "removed")
        elif key not in old.types_of:
            yield _Compared(name, "added")
        else:
            yield _compare_one(name, key, old, new)


def _chosen(keys: Sequence[_Key], names: Sequence[str] | None) -> Iterator[_Key]:
    if not names:
        yield from keys
        return
    known = {" ".join(key).upper(): key for key in keys}
    for name in names:
        key = known.get(" ".join(name.split()).upper())
        if key is None:
            listed = ", ".join(in_quotes(" ".join(key)) for key in keys[:8])
            raise UnknownOperationError(
                f"neither version has an operation {name!r}", hint=f"there are {listed or 'none'}"
            )
        yield key


def _compare_one(name: str, key: _Key, old: _Side, new: _Side) -> _Compared:
    stored = old.stores.get(key) or new.stores.get(key)
    language = find_language(stored.language) if stored else _language_of_documents()
    status = stored.endpoint.status if stored else None
    try:
        before, after = (_types(side.types_of[key], status, language) for side in (old, new))
    except RegenError as error:
        return _Compared(name, "unread", error=error)
    changes: tuple[Change, ...] = ()
    if before is not None and after is not None:
        changes = compare_types(before, after)
    elif (known := before or after) is not None:
        message = "has no types any more" if after is None else "has types now"
        changes = (Change("answer", known.types[0].name, None, f"the answer {message}", "other"),)
    return _Compared(name, "changed" if changes else "same", changes)


def _types(
    read: Callable[[str | None, Language], IR], status: str | None, language: Language
) -> IR | None:
    """Return the types of an operation; ``None`` where it is answered with plain values, or not."""
    try:
        return read(status, language)
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
