"""``diff``: what changed between two versions of stores or of an API description."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_regen import errors, languages
from pytest_regen.cli.output import AsJson, emit_json, say
from pytest_regen.cli.revisions import at_revision
from pytest_regen.documents import IR, Document, build_ir, read_document, rebuild_ir
from pytest_regen.documents.changes import Change, Direction, compare_types, direction_of
from pytest_regen.documents.ir import REQUEST, SCHEMAS
from pytest_regen.documents.parts import Components, Part, Request
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
        typer.Option("--operation", help='Only this one, "GET /path"; repeatable.'),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two versions, and whether it breaks code made from the older one.

    Exits with 1 where a change is breaking.
    """
    with ExitStack() as stack:
        before, after = (
            _Side.read(text, stack.enter_context(at_revision(text))) for text in (old, new)
        )
        compared = list(_compare(before, after, operations))
    breaking = sum(row["breaking"] for row, _ in compared)
    # The same ones are only counted, because a description may have hundreds of operations.
    changed = [(row, error) for row, error in compared if row["state"] != "same"]
    words = {"removed": ": was removed (breaking)", "added": ": was added"}
    operations_text = plural(len(compared), "operation")
    if as_json:
        emit_json({"ok": not breaking, "operations": [row for row, _ in compared]})
    elif not changed:
        say(f"{operations_text}, nothing changed", "green")
    else:
        for row, error in changed:
            style = "red" if row["breaking"] else ""
            say(f"{row['operation']}{words.get(row['state'], '')}", style)
            if error is not None:
                say(f"  unread    {error.what}; {error.hint}", "yellow")
            show_changes(row["changes"])
        # What was added or removed counts once, because it lists no changes of its own.
        total = sum(len(row["changes"]) or row["state"] in words for row, _ in changed)
        summary = f"{plural(breaking, 'breaking change')}, {total - breaking:,} safe"
        style = "red" if breaking else ""
        say(f"{len(changed):,} of {operations_text} changed: {summary}", style)
    unread = [error.exit_code for _, error in compared if error is not None]
    raise typer.Exit(max([*unread, int(bool(breaking))]))


# What is compared

_Key = tuple[str, str]
"""An operation, and ``REQUEST`` or ``SCHEMAS``; nothing for its response."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One version: the parts it has, as a description names them or as they are stored."""

    parts: Mapping[_Key, Part | IR]
    document: Document | None = None
    """Where it is no store."""

    @classmethod
    def read(cls, text: str, path: Path) -> "_Side":
        """Return what a store, a folder of stores or a description holds.

        Raises:
            StoreError, DocumentError: it cannot be read.
        """
        parts: dict[_Key, Part | IR] = {}
        if not path.is_dir():
            document = read_document(path)
            for operation in document.operations:
                if operation.answers:
                    parts[str(operation), ""] = operation
                if operation.takes_json:
                    parts[str(operation), REQUEST] = Request(operation)
            return cls(parts, document)
        for folder in [path] if is_store(path) else sorted(filter(is_store, path.iterdir())):
            ir = RegenStore.open(folder).ir
            # Whatever the status, because a response is compared though its status became another.
            kind = ir.endpoint.status if ir.endpoint.status in {REQUEST, SCHEMAS} else ""
            parts[f"{ir.endpoint.method} {ir.endpoint.path}", kind] = ir
        if not parts:
            raise errors.UsageError(
                f"{text} is a folder without stores",
                hint="name a store, the folder that holds stores, or an API description",
            )
        return cls(parts)

    def part(self, key: _Key) -> Part | IR | None:
        """Return a part; a description has schemas whether or not they are compared."""
        is_schemas = key[1] == SCHEMAS and self.document is not None
        return Components() if is_schemas else self.parts.get(key)


_Compared = tuple[dict[str, Any], errors.RegenError | None]
"""One operation in both versions as JSON, and why one of them cannot be read."""


def _compare(old: _Side, new: _Side, names: Sequence[str] | None) -> Iterator[_Compared]:
    """Yield the parts that either version has, or those of operations that were named.

    The state of each is ``changed``, ``same``, ``added``, ``removed`` or ``unread``.

    Where one side is stores and the other a description, only what has a store counts.

    Raises:
        UnknownOperationError: neither has an operation that is named.
    """
    keys = dict.fromkeys((*old.parts, *new.parts))
    # An operation without a store is no change, because nobody has asked for its types.
    if (old.document is None) != (new.document is None):
        keys = dict.fromkeys(old.parts if old.document is None else new.parts)
    if names:
        # In any case and spacing, because people copy an operation out of a log or a browser.
        spelled = {" ".join(name.split()).upper(): name for name in names}
        operations = {operation.upper(): operation for operation, _ in keys}
        if unknown := [name for key, name in spelled.items() if key not in operations]:
            spellings = ", ".join(map(in_quotes, list(operations.values())[:8]))
            raise errors.UnknownOperationError(
                f"neither version has an operation {unknown[0]!r}",
                hint=f"there are {spellings or 'none'}",
            )
        keys = {key: None for name in spelled for key in keys if key[0].upper() == name}
    for key in keys:
        operation, kind = key
        name = "the schemas" if kind == SCHEMAS else f"{operation}{', the request' * bool(kind)}"
        before, after = old.part(key), new.part(key)
        row: dict[str, Any] = {"operation": name, "state": "same", "breaking": 0, "changes": []}
        if before is None or after is None:
            state = "removed" if after is None else "added"
            yield {**row, "state": state, "breaking": int(after is None)}, None
            continue
        # Of either side, because a store may be the older of the two or the newer.
        stored = next((part for part in (before, after) if isinstance(part, IR)), None)
        try:
            old_types = _types(before, old.document, stored)
            new_types = _types(after, new.document, stored)
        except errors.RegenError as error:
            yield {**row, "state": "unread", "error": error.what}, error
            continue
        types, changes = new_types or old_types, tuple[Change, ...]()
        if old_types is not None and new_types is not None:
            changes = compare_types(old_types, new_types)
        elif types is not None:
            message = "it has types now" if new_types else "it has no types any more"
            changes = (Change("answer", types.types[0].name, None, message, "other"),)
        if types and changes:
            listed = changes_json(changes, direction_of(types))
            breaking = sum(change["breaking"] for change in listed)
            row |= {"state": "changed", "breaking": breaking, "changes": listed}
        yield row, None


def _types(part: Part | IR, document: Document | None, stored: IR | None) -> IR | None:
    """Return the types of a part; ``None`` where it holds plain values, or nothing."""
    if isinstance(part, IR) or document is None:
        return part if isinstance(part, IR) else None
    try:
        # As the store was made, because in another language the same schema is another type.
        if stored is not None:
            language = languages.find_language(stored.language)
            return rebuild_ir(stored, document, language=language).ir
        # A language that loses nothing: one with unions, where there is one.
        installed = map(languages.find_language, languages.language_names())
        default = languages.find_language(languages.DEFAULT_LANGUAGE)
        language = next((lang for lang in installed if lang.has_unions), default)
        return build_ir(document, part, language=language).ir
    except errors.NothingToGenerateError:
        return None


# What is listed


def changes_json(changes: Sequence[Change], direction: Direction) -> list[dict[str, Any]]:
    """Return changes as plain JSON."""
    rows = [{**asdict(change), "breaking": change.breaks(direction)} for change in changes]
    for row in rows:
        del row["effect"]  # Only with the direction does it say anything.
    return rows


def show_changes(changes: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per change, those that break first; other descriptions are counted.

    Args:
        changes: as ``changes_json`` returns them.
    """
    listed = [change for change in changes if change["kind"] != "description"]
    # What breaks comes first, because it is why the command fails.
    for change in sorted(listed, key=lambda change: not change["breaking"]):
        type_name, field = change["type_name"], change["field"]
        where = type_name if field is None else f"{type_name}.{field}"
        word, style = ("breaking", "red") if change["breaking"] else ("safe", "")
        say(f"  {word:<8}  {where}: {change['message']}", style)
    if described := len(changes) - len(listed):
        say(f"  {'safe':<8}  {plural(described, 'description')} changed")
