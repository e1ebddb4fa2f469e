"""The one reader of JSON from outside: it refuses what two parsers could read in two ways.

Python's own takes ``NaN`` and infinities, keeps the last of two values under one key, hands on
halves of characters, and ends a deep text in a ``RecursionError``.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a character, escaped; two of them may be one whole character."""


class JsonDefectError(ValueError):
    """Python would read this text; other parsers refuse it, or read something else."""


class DuplicateKeyError(JsonDefectError):
    """An object gives a key twice; parsers disagree on which of the values counts."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} is given twice in one object")
        self.key = key


class ConstantError(JsonDefectError):
    """``NaN``, an infinity, or a number that Python turns into one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is no JSON value")
        self.name = name


class HalfCharacterError(JsonDefectError):
    """A string holds a lone surrogate, which no file can hold."""

    def __init__(self, half: str) -> None:
        super().__init__(f"half a surrogate pair, {half!r}, is no text")
        self.half = half


class TooDeepError(JsonDefectError):
    """The value is nested deeper than Python's stack."""

    def __init__(self) -> None:
        super().__init__("the value is nested too deeply")


def strict_loads(
    data: str | bytes,
    *,
    unique_keys: bool = True,
    constants: bool = False,
    large_numbers: bool = True,
    half_characters: bool = True,
    decimals: bool = False,
) -> Any:
    """Return the value that JSON text stands for.

    Args:
        data: the text, or its bytes in UTF-8, UTF-16 or UTF-32.
        unique_keys: whether a key given twice in one object is refused.
        constants: whether ``NaN``, ``Infinity`` and ``-Infinity`` are let through.
        large_numbers: whether numbers like ``1e999``, infinite to Python, are let through.
        half_characters: whether strings with escaped lone surrogates are let through.
        decimals: whether fractions are read as ``Decimal``, which loses no digits.

    Raises:
        json.JSONDecodeError: it is not JSON.
        UnicodeDecodeError: the bytes are not text.
        JsonDefectError: it is, but not to every parser; the subclass says why.
    """
    options: dict[str, Any] = {}
    if unique_keys:
        options["object_pairs_hook"] = _unique_members
    if not constants:
        options["parse_constant"] = _finite_number
    if not large_numbers:
        options["parse_float"] = _finite_number
    if decimals:
        options["parse_float"] = Decimal  # None of them is infinite.
    try:
        value = json.loads(data, **options)
        if not half_characters and _ESCAPED_HALF.search(str(data)):
            # Only what is written as such again shows whether each half has its other one.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise TooDeepError from None
    except UnicodeEncodeError as error:
        raise HalfCharacterError(error.object[error.start]) from None
    return value


def json_or_none(data: str | bytes) -> Any:
    """Return the JSON value of ``data``, or ``None`` where ``strict_loads`` refuses it."""
    try:
        return strict_loads(data)
    except ValueError:
        return None


def json_bytes(value: object, default: Callable[[Any], object] | None = None) -> bytes:
    """Return ``value`` as JSON in UTF-8, lone surrogates included.

    Args:
        value: any JSON value.
        default: replaces what JSON cannot hold, as in ``json.dumps``.
    """
    text = json.dumps(value, ensure_ascii=False, default=default)
    return text.encode("utf-8", "surrogatepass")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        [(key, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise DuplicateKeyError(key)
    return members


def _finite_number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ConstantError(digits)
    return number
