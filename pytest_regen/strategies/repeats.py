"""Regular expressions that some texts keep busy without end: repeats of what repeats itself.

``re`` tries every way to share a text out between such repeats, twice as many with each character;
nothing in this process could stop it.
"""

import re._constants as ops  # type: ignore[import-untyped, import-not-found, unused-ignore]
import re._parser as reading  # type: ignore[import-untyped, import-not-found, unused-ignore]
from collections.abc import Iterable, Iterator
from typing import Any, Final

_MANY: Final = 10
"""Repeats up to this are few enough to try them all."""
_MANY_EMPTY: Final = 50
"""The same where a repeat may be empty."""
_SEEN: Final = frozenset(range(256))
"""Characters that count when it is asked whether two parts can match the same."""


def takes_endlessly(pattern: str) -> bool:
    """Return whether a pattern, as Python reads it, repeats what repeats without a separator.

    A separator is a part that must be there, and shares no character with the other parts.
    """
    return any(_is_endless(most, body) for _, most, body in _repeats(reading.parse(pattern)))


def _is_endless(most: int, body: Any) -> bool:
    if most >= _MANY_EMPTY and body.getwidth()[0] == 0 and body.getwidth()[1] > 0:
        return True
    if most < _MANY or not _grows([*body]):
        return False
    parts = list(_flat(body))
    return not any(_separates(part, parts[:i] + parts[i + 1 :]) for i, part in enumerate(parts))


def _separates(part: Any, others: "list[Any]") -> bool:
    """Return whether it is plain where a part stands among the others."""
    if not _least(part) or _letters([part]) & _letters(others):
        return False
    # What repeats itself needs something between one and the next.
    return not _grows([part]) or any(map(_least, others))


def _grows(parts: "list[Any]") -> bool:
    return any(least != most >= _MANY for least, most, _ in _repeats(parts))


def _repeats(parts: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield how often something is repeated, at least and at most, and what, however deep."""
    for op, value in parts:
        if op in {ops.MAX_REPEAT, ops.MIN_REPEAT}:
            least, most, body = value
            yield int(least), int(most), body
        for inner in _inside(op, value):
            yield from _repeats(inner)


def _inside(op: Any, value: Any) -> "list[Any]":
    if op in {ops.MAX_REPEAT, ops.MIN_REPEAT}:
        return [value[2]]
    if op == ops.SUBPATTERN:
        return [value[3]]
    if op == ops.BRANCH:
        return list(value[1])
    if op in {ops.ASSERT, ops.ASSERT_NOT}:
        return [value[1]]
    return []


def _flat(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts of a sequence, those of its groups as its own."""
    for op, value in parts:
        if op == ops.SUBPATTERN:
            yield from _flat(value[3])
        else:
            yield op, value


def _least(part: Any) -> int:
    """Return how many characters a part takes at least, none or some."""
    op, value = part
    if op in {ops.MAX_REPEAT, ops.MIN_REPEAT}:
        return int(value[0] and value[2].getwidth()[0])
    if op == ops.BRANCH:
        return int(min(branch.getwidth()[0] for branch in value[1]))
    return int(op in {ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN})


def _letters(parts: Iterable[Any]) -> "set[int]":
    """Return the characters that parts may match; of a class that is hard to tell, all."""
    found: set[int] = set()
    for op, value in parts:
        if op == ops.LITERAL:
            found.add(value)
        elif op == ops.NOT_LITERAL:
            found |= _SEEN - {value}
        elif op == ops.IN:
            found |= _of_class(value)
        elif op in {ops.ANY, ops.GROUPREF}:
            found |= _SEEN
        for inner in _inside(op, value) if op not in {ops.ASSERT, ops.ASSERT_NOT} else ():
            found |= _letters(inner)
    return found


def _of_class(members: Iterable[Any]) -> "set[int]":
    found: set[int] = set()
    is_negated = False
    for op, value in members:
        if op == ops.NEGATE:
            is_negated = True
        elif op == ops.LITERAL:
            found.add(value)
        elif op == ops.RANGE:
            found |= set(range(value[0], min(value[1], 0x2FF) + 1))
        else:
            return set(_SEEN)
    return set(_SEEN) - found if is_negated else found
