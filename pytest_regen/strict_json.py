"""The one reader of JSON from outside: it refuses what two parsers could read in two ways.

Python's own takes ``NaN`` and infinities, keeps the last of two values under one key, hands on
halves of characters, and ends a deep text in a ``RecursionError``. Of artifacts, every defect is
reported with its file, place and value.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from pytest_regen.errors import StoreCorruptError

_MISSING = object()

# A line that git writes where it could not merge. Longer ones stand in a common ancestor that was
# merged itself.
_MARKER = re.compile(rb"(<{7}|\|{7}|={7}|>{7})(?: .*)?\r?", re.DOTALL)


def strict_loads(
    data: str | bytes,
    *,
    unique_keys: bool = True,
    constants: bool = False,
    decimals: bool = False,
) -> Any:
    """Return the value that JSON text stands for.

    Args:
        data: the text, or its bytes in UTF-8, UTF-16 or UTF-32.
        unique_keys: whether a key given twice in one object is refused.
        constants: whether ``NaN``, ``Infinity`` and ``-Infinity`` are let through.
        decimals: whether fractions are read as ``Decimal``, which loses no digits.

    Raises:
        ValueError: it is not JSON, or not to every parser; or the bytes are not text.
    """
    options: dict[str, Any] = {
        "object_pairs_hook": _unique_members if unique_keys else None,
        "parse_constant": None if constants else _refuse_constant,
        "parse_float": Decimal if decimals else None,
    }
    try:
        return json.loads(data, **options)
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


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


def as_json(value: Any) -> bytes:
    """Return ``value`` as an artifact holds it: indented, UTF-8 unescaped, with a final line end.

    Raises:
        ValueError: it holds NaN, an infinity, or text that UTF-8 has no bytes for.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        [(key, _)] = Counter(name for name, _ in pairs).most_common(1)
        # Refused, because parsers disagree on which of the values counts.
        raise ValueError(f"the key {key!r:.80} is given twice in one object")
    return members


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON value")


def corrupt(
    file: Path, where: str, what: str, *, why: str = "", hint: str = ""
) -> StoreCorruptError:
    """Return the error for a defect of ``file`` at the JSON path ``where``."""
    place = f"{file}, at {where}" if where else str(file)
    return StoreCorruptError(
        f"{place}: {what}",
        why=why,
        hint=hint
        or f"restore the file from version control (git checkout -- '{file}'), or move the "
        f"folder {file.parent} away and run pytest-regen generate again",
    )


def parse_json(data: bytes, file: Path) -> Any:
    """Return the value of ``data``.

    Raises:
        StoreCorruptError: not UTF-8, not JSON, nested too deeply, or with NaN or a key given
            twice.
    """
    try:
        return strict_loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise corrupt(file, "", f"not UTF-8 at byte {error.start}", why=error.reason) from None
    except json.JSONDecodeError as error:
        if line := conflict_line(data):
            raise corrupt(file, f"line {line}", "a conflict marker of git") from None
        place = f"line {error.lineno}, column {error.colno}"
        raise corrupt(file, place, "this is not JSON", why=error.msg) from None
    except ValueError as error:
        raise corrupt(file, "", str(error)) from None


def conflict_line(data: bytes) -> int | None:
    """Return the line, from 1, of the first conflict marker of git; ``None`` without one."""
    # First a plain search, because a large store has many lines.
    lines = data.split(b"\n") if b"<<<<<<<" in data else []
    return next((number for number, line in enumerate(lines, 1) if _MARKER.fullmatch(line)), None)


def versions(data: bytes) -> tuple[bytes, bytes] | None:
    """Return both versions of a file that holds conflict markers: ours, and theirs.

    What git merged is in both; a file without markers is twice the same. ``None`` where the markers
    do not belong together.
    """
    ours: list[bytes] = []
    theirs: list[bytes] = []
    # By the marker read last: which versions a line belongs to, and which markers may follow.
    holders = {"": (ours, theirs), "<": (ours,), "|": (), "=": (theirs,)}
    followers = {"": "<", "<": "|=", "|": "=", "=": ">"}
    state = ""
    for line in data.split(b"\n"):
        marker = _MARKER.fullmatch(line)
        sign = chr(marker[1][0]) if marker else ""
        if sign and sign in followers[state]:
            state = "" if sign == ">" else sign
            continue
        for version in holders[state]:
            version.append(line)
    return None if state else (b"\n".join(ours), b"\n".join(theirs))


class Node:
    """A JSON object together with where it stands, for messages."""

    __slots__ = ("_data", "_file", "_where")

    def __init__(self, data: object, file: Path, where: str = "$") -> None:
        self._file = file
        self._where = where
        if not isinstance(data, Mapping):
            raise corrupt(file, where, f"expected an object, found {data!r:.80}")
        self._data = data

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def _get(self, key: str, default: object, types: tuple[type, ...], expected: str) -> Any:
        """Return the value at ``key``; a default of ``None`` means that it must be there."""
        value = self._data.get(key, _MISSING if default is None else default)
        # Exactly these types, because bool is an int to Python, and 1.0 equals 1.
        if type(value) not in types:
            actual = "nothing" if value is _MISSING else f"{value!r:.80}"
            raise self.error(key, f"expected {expected}, found {actual}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return the string at ``key``; without a default it must be there."""
        return str(self._get(key, default, (str,), "a string"))

    def count(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """Return the integer at ``key``, which is ``least`` or more."""
        expected = f"an integer of {least} or more"
        value = int(self._get(key, default, (int,), expected))
        if value < least:
            raise self.error(key, f"expected {expected}, found {value}")
        return value

    def list(self, key: str, default: Sequence[Any] | None = None) -> Sequence[Any]:
        """Return the array at ``key``."""
        values: Sequence[Any] = self._get(key, default, (list, tuple), "an array")
        return values

    def node(self, key: str) -> "Node":
        """Return the object at ``key``."""
        return Node(self._data.get(key), self._file, f"{self._where}.{key}")

    def values(self, cls: type, defaults: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the values of a dataclass's fields that are texts, counts, flags, or null.

        Args:
            cls: the dataclass.
            defaults: values of keys that may be absent, beside those that the class has itself.
        """
        readers: dict[object, Callable[[str], Any]] = {
            str: self.text,
            int: self.count,
            bool: lambda key: self._get(key, None, (bool,), "true or false"),
            str | None: lambda key: None if self._data.get(key) is None else self.text(key),
            int | None: lambda key: None if self._data.get(key) is None else self.count(key),
        }
        values = dict(defaults or {})
        for field in fields(cls):
            is_needed = field.name not in values and field.default is MISSING
            if field.type in readers and (field.name in self or is_needed):
                values[field.name] = readers[field.type](field.name)
        return values

    def error(self, key: str, what: str) -> StoreCorruptError:
        """Return the error for the value at ``key``."""
        return corrupt(self._file, f"{self._where}.{key}", what)
