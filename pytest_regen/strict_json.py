"""JSON that can be compared and written back: each key once, no NaN, not endlessly deep."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from pytest_regen.errors import CassetteError

__all__ = ["DuplicateKeyError", "json_bytes", "json_or_none", "too_deep", "unique_keys"]


class DuplicateKeyError(ValueError):
    """An object names a key twice; parsers disagree on which of the values counts."""


def json_or_none(body: bytes) -> Any:
    """Return the JSON in ``body``, or ``None`` where it is none, or would not survive as such.

    An object that names a key twice, NaN and infinities are not what JSON can carry back.
    """
    try:
        return json.loads(body, object_pairs_hook=unique_keys, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def json_bytes(value: object, default: Callable[[Any], object] | None = None) -> bytes:
    """Return ``value`` as JSON in UTF-8, half a character (a lone surrogate) included.

    Args:
        value: any JSON value.
        default: gives what JSON can hold for what it has no words for, as in ``json.dumps``.
    """
    text = json.dumps(value, ensure_ascii=False, default=default)
    return text.encode("utf-8", "surrogatepass")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; an ``object_pairs_hook`` of ``json.loads``.

    Raises:
        DuplicateKeyError: two of them have the same key.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise DuplicateKeyError(f"the key {twice!r} stands twice")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(name)


def too_deep() -> CassetteError:
    """Return the error for JSON that only a stack as deep could compare, or write."""
    return CassetteError(
        "the JSON of a request or of its answer is nested too deeply for a cassette",
        why="hundreds of levels",
        hint="send the inner part as text, or leave this request outside the cassette",
    )
