"""Which parts of a document ``generate`` is about: operations, requests, schemas with names."""

import difflib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pytest_regen.cli.project import short_path
from pytest_regen.documents import Components, Document, Operation, Part, Request
from pytest_regen.errors import UsageError
from pytest_regen.text import plural

NO_ANSWER: Final = "without a successful JSON response"
NO_REQUEST: Final = "without a JSON request"
PLAIN_VALUES: Final = "answered with plain values, which need no type"
PLAIN_REQUEST: Final = "that take plain values, which need no type"
UNREADABLE: Final = "that cannot be read"


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
    excluded: Sequence[Operation] = field(default=())


def select_parts(
    document: Document,
    names: Sequence[str],
    *,
    every: bool,
    tag: str | None,
    exclude: Sequence[str],
    status: str | None,
    schemas: bool,
    request: bool,
) -> PartSelection:
    """Return the parts of a document that a command is about.

    Args:
        document: as it was read.
        names: one operation; of schemas those that are wanted.
        every: all operations with a response, or a request, in JSON.
        tag: all of these with that tag.
        exclude: patterns of operations to leave out.
        status: the response that is to be generated.
        schemas: the schemas with names in place of operations.
        request: what operations take in place of what they answer.

    Raises:
        UsageError: the options contradict one another, or stand for nothing.
    """
    _refuse_contradictions(
        {
            "--schemas": schemas,
            "--request": request,
            "--status": status is not None,
            "--exclude": bool(exclude),
            "--all": every,
            "--tag": tag is not None,
        }
    )
    if schemas:
        return PartSelection([Components(tuple(dict.fromkeys(names)))])
    if len(names) + (tag is not None) + every != 1:
        readable = [each for each in document.operations if each.is_answered_in_json]
        first = next(iter(readable), None)
        words = ["pytest-regen", "generate", short_path(document.path).as_posix()]
        raise UsageError(
            "generate takes one operation, --tag, --all or --schemas",
            why=f"{short_path(document.path)} is an API description: name what to generate of it",
            hint=shlex.join([*words, str(first) if first else "--schemas"]),
        )
    if names:
        if exclude:
            raise UsageError(
                "--exclude goes with --all or --tag", hint="leave it out: one operation is named"
            )
        operation = document.find(names[0])
        return PartSelection([Request(operation) if request else operation])
    return select_operations(document, tag=tag, exclude=exclude, status=status, request=request)


def _refuse_contradictions(given: dict[str, bool]) -> None:
    for option, others in (
        ("--schemas", ("--all", "--tag", "--exclude", "--status", "--request")),
        ("--request", ("--status",)),
    ):
        other = next((other for other in others if given[option] and given[other]), None)
        if other is not None:
            raise UsageError(f"{option} and {other} contradict each other", hint="give one of them")


def select_operations(
    document: Document,
    *,
    tag: str | None,
    exclude: Sequence[str],
    status: str | None,
    request: bool = False,
) -> PartSelection:
    """Return the operations of a document that a command is about.

    Args:
        document: as it was read.
        tag: only operations with this tag; by default all.
        exclude: patterns of operations to leave out: ``GET /internal/*``, ``* /admin/*``, or the
            path alone. ``*`` stands for any text, slashes too, and ``?`` for one character.
        status: the response that is to be generated; by default the successful one.
        request: whether what they take is to be generated.

    Raises:
        UsageError: the tag or a pattern fits no operation; nothing is left to generate.
    """
    named = [found for found in document.operations if tag is None or tag in found.tags]
    if tag is not None and not named:
        known = sorted({name for found in document.operations for name in found.tags})
        raise UsageError(
            f"no operation has the tag {tag!r}",
            hint=f"the tags are: {', '.join(known) or 'none at all'}",
        )
    left_out = {operation for text in exclude for operation in _matching(text, document)}
    chosen: list[Part] = []
    skipped, excluded = [], []
    for operation in named:
        if operation in left_out:
            excluded.append(operation)
        elif request:
            if operation.request is not None or operation.broken_request is not None:
                chosen.append(Request(operation))
            else:
                reason = f"it is {NO_REQUEST}"
                skipped.append(Skipped(str(operation), NO_REQUEST, reason))
        elif _is_answered(operation, status):
            chosen.append(operation)
        else:
            kind = NO_ANSWER if status is None else f"without a JSON response {status}"
            declared = ", ".join(operation.statuses) or "none"
            reason = f"it is {kind}; its responses are: {declared}"
            skipped.append(Skipped(str(operation), kind, reason))
    if not chosen and not document.lost_operations:
        body = "request" if request else "response"
        raise UsageError(
            f"no operation of {document.path} is left to generate",
            why=f"{plural(len(named), 'operation')}{f' with the tag {tag!r}' if tag else ''}: "
            f"{len(skipped):,} without a JSON {body}, {len(excluded):,} excluded",
            hint="name a document, a tag or patterns that leave operations with a JSON schema",
        )
    return PartSelection(chosen, skipped, excluded)


def _is_answered(operation: Operation, status: str | None) -> bool:
    if status is None:
        return operation.is_answered_in_json
    readable = (*operation.json_statuses, *(known for known, _ in operation.broken))
    return status.lower() in map(str.lower, readable)


def _matching(text: str, document: Document) -> list[Operation]:
    """Return the operations that a pattern stands for.

    Raises:
        UsageError: it matches none; if a misspelt pattern were ignored, the operations it was to
            exclude would be generated and paid for.
    """
    method, _, path = text.strip().partition(" ")
    if not path:
        method, path = "*", method
    fits_method = _glob(method.upper())
    fits_path = _glob(path.strip())
    found = [
        operation
        for operation in document.operations
        if fits_method.fullmatch(operation.method) and fits_path.fullmatch(operation.path)
    ]
    if not found:
        names = [str(operation) for operation in document.operations]
        near = difflib.get_close_matches(text, [*names, *(n.split(" ", 1)[1] for n in names)], n=5)
        raise UsageError(
            f"--exclude {text!r} matches no operation of {document.path}",
            hint=f"near matches: {', '.join(map(repr, near))}"
            if near
            else "a pattern is a path, or a method and a path: '/admin/*', 'GET /internal/*'",
        )
    return found


def _glob(pattern: str) -> re.Pattern[str]:
    """Return a pattern in which only ``*`` and ``?`` are special: paths hold brackets, braces."""
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped, re.DOTALL)
