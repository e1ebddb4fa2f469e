"""Which operations of a document ``generate --all`` and ``--tag`` are about."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pytest_regen.documents import Document, Operation
from pytest_regen.errors import UsageError
from pytest_regen.plurals import counted

__all__ = [
    "NO_ANSWER",
    "PLAIN_VALUES",
    "UNREADABLE",
    "Selection",
    "Skipped",
    "select_operations",
]

NO_ANSWER: Final = "without a successful JSON response"
PLAIN_VALUES: Final = "answered with plain values, which need no type"
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
class Selection:
    """The operations to generate, and the others."""

    chosen: Sequence[Operation]
    skipped: Sequence[Skipped] = ()
    excluded: Sequence[Operation] = field(default=())


def select_operations(
    document: Document, *, tag: str | None, exclude: Sequence[str], status: str | None
) -> Selection:
    """Return the operations of a document that a command is about.

    Args:
        document: as it was read.
        tag: only operations with this tag; by default all.
        exclude: patterns of operations to leave out: ``GET /internal/*``, ``* /admin/*``, or the
            path alone. ``*`` stands for any text, slashes too, and ``?`` for one character.
        status: the response that is to be generated; by default the successful one.

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
    chosen, skipped, excluded = [], [], []
    for operation in named:
        if operation in left_out:
            excluded.append(operation)
        elif _is_answered(operation, status):
            chosen.append(operation)
        else:
            kind = NO_ANSWER if status is None else f"without a JSON response {status}"
            declared = ", ".join(operation.statuses) or "none"
            reason = f"it is {kind}; its responses are: {declared}"
            skipped.append(Skipped(str(operation), kind, reason))
    if not chosen and not document.lost_operations:
        raise UsageError(
            f"no operation of {document.path} is left to generate",
            why=f"{counted(len(named), 'operation')}{f' with the tag {tag!r}' if tag else ''}: "
            f"{len(skipped):,} without a JSON response, {len(excluded):,} excluded",
            hint="name a document, a tag or patterns that leave operations with a JSON schema",
        )
    return Selection(chosen, skipped, excluded)


def _is_answered(operation: Operation, status: str | None) -> bool:
    if status is None:
        return operation.is_answered_in_json
    readable = (*operation.json_statuses, *(known for known, _ in operation.broken))
    return status.lower() in map(str.lower, readable)


def _matching(text: str, document: Document) -> list[Operation]:
    """Return the operations that a pattern stands for.

    Raises:
        UsageError: there is none; a misspelt pattern would have them generated and paid for.
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
