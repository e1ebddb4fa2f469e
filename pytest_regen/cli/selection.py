"""Which parts of a document ``generate`` is about: operations, requests, schemas with names."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_regen.cli.project import short_path
from pytest_regen.documents import Components, Document, Operation, Part, Request
from pytest_regen.errors import UsageError
from pytest_regen.text import plural


@dataclass(frozen=True, slots=True)
class Skipped:
    """An operation of which there is nothing to generate."""

    operation: str
    kind: str
    """One of a few reasons, worded to stand behind the noun: people see them grouped."""
    reason: str
    """Why this one, in full."""


@dataclass(frozen=True, slots=True)
class PartSelection:
    """The parts of a document to generate, and operations that are left out."""

    chosen: Sequence[Part]
    skipped: Sequence[Skipped] = ()
    excluded: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True)
class PartOptions:
    """What a command line says of the parts of a document."""

    names: Sequence[str] = ()
    """One operation; of schemas those that are wanted."""
    every: bool = False
    """All operations with a response, or a request, in JSON."""
    tag: str | None = None
    """All of these with that tag."""
    exclude: Sequence[str] = ()
    """Patterns of operations to leave out: ``GET /internal/*``, ``* /admin/*``, or the path alone.
    ``*`` stands for any text, slashes too, and ``?`` for one character."""
    status: str | None = None
    """The response that is to be generated; by default the successful one."""
    schemas: bool = False
    """The schemas with names in place of operations."""
    request: bool = False
    """What operations take in place of what they answer."""

    @property
    def words(self) -> dict[str, object]:
        """The options that say which parts are meant, by name."""
        parts = {"all": self.every, "tag": self.tag, "schemas": self.schemas}
        return {**parts, "request": self.request, "exclude": list(self.exclude)}


def select_parts(document: Document, options: PartOptions) -> PartSelection:
    """Return the parts of a document that a command is about.

    Raises:
        UsageError: the options contradict one another, or stand for nothing.
    """
    names, request = options.names, options.request
    words = {**options.words, "status": options.status}
    contrary: tuple[str, ...] = ("status",) if request else ()
    if options.schemas:
        contrary = ("all", "tag", "exclude", "status", "request")
    for other in filter(words.get, contrary):
        option = "--schemas" if options.schemas else "--request"
        raise UsageError(f"{option} and --{other} contradict each other", hint="give one of them")
    if options.schemas:
        # Once each and in order, because the names are stored and would differ from run to run.
        return PartSelection([Components(tuple(dict.fromkeys(names)))])
    if len(names) + (options.tag is not None) + options.every != 1:
        document_path = short_path(document.path).as_posix()
        # One that can be generated, because the hint is copied as it stands.
        readable = (str(op) for op in document.operations if op.is_answered_in_json)
        example = next(readable, "--schemas")
        raise UsageError(
            "generate takes one operation, --tag, --all or --schemas",
            why=f"{document_path} is an API description: name what to generate of it",
            hint=shlex.join(["pytest-regen", "generate", document_path, example]),
        )
    if names:
        if options.exclude:
            raise UsageError(
                "--exclude goes with --all or --tag", hint="leave it out: one operation is named"
            )
        operation = document.find(names[0])
        return PartSelection([Request(operation) if request else operation])
    return select_operations(document, options)


def select_operations(document: Document, options: PartOptions) -> PartSelection:
    """Return the operations of a document that a command is about.

    Raises:
        UsageError: the tag or a pattern fits no operation; nothing is left to generate.
    """
    tag, status, request = options.tag, options.status, options.request
    tagged = [op for op in document.operations if tag is None or tag in op.tags]
    if tag is not None and not tagged:
        tags = sorted({name for operation in document.operations for name in operation.tags})
        raise UsageError(
            f"no operation has the tag {tag!r}",
            hint=f"the tags are: {', '.join(tags) or 'none at all'}",
        )
    answered = {op for op in tagged if op.is_answered_in_json}
    if status is not None:
        # In small letters, because `5XX` and `default` are written either way.
        code = status.lower()
        answered = {op for op in tagged if code in map(str.lower, op.answers)}
    left_out = {operation for text in options.exclude for operation in _matching(text, document)}
    chosen: list[Part] = []
    skipped, excluded = [], []
    for operation in tagged:
        if operation in left_out:
            excluded.append(operation)
        elif request and operation.takes_json:
            # Broken ones as well, because generating it says what is wrong with the document.
            chosen.append(Request(operation))
        elif not request and operation in answered:
            chosen.append(operation)
        else:
            kind, reason = "without a JSON request", ""
            if not request:
                kind = "without a successful JSON response"
                kind = kind if status is None else f"without a JSON response {status}"
                reason = f"; its responses are: {', '.join(operation.statuses) or 'none'}"
            skipped.append(Skipped(str(operation), kind, f"it is {kind}{reason}"))
    # A broken document says what it has lost, which explains more than this.
    if not chosen and not document.lost_operations:
        body = "request" if request else "response"
        raise UsageError(
            f"no operation of {document.path} is left to generate",
            why=f"{plural(len(tagged), 'operation')}{f' with the tag {tag!r}' if tag else ''}: "
            f"{len(skipped):,} without a JSON {body}, {len(excluded):,} excluded",
            hint="name a document, a tag or patterns that leave operations with a JSON schema",
        )
    return PartSelection(chosen, skipped, excluded)


def _matching(text: str, document: Document) -> list[Operation]:
    """Return the operations that a pattern stands for.

    Raises:
        UsageError: it matches none; if a misspelt pattern were ignored, the operations it was to
            exclude would be generated and paid for.
    """
    method, _, path = text.strip().rpartition(" ")
    # Not fnmatch, because paths hold brackets and braces.
    wild = re.escape(f"{method.strip().upper() or '*'} {path}")
    pattern = re.compile(wild.replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    matching = [op for op in document.operations if pattern.fullmatch(str(op))]
    if not matching:
        raise UsageError(
            f"--exclude {text!r} matches no operation of {document.path}",
            hint="a pattern is a path, or a method and a path: '/admin/*', 'GET /internal/*'",
        )
    return matching
