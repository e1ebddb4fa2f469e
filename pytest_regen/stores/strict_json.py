"""JSON of artifacts: every defect is reported with its file, place and value."""

import gc
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from pytest_regen.errors import StoreCorruptError
from pytest_regen.modes import TEMPLATE
from pytest_regen.strict_json import DuplicateKeyError, TooDeepError, strict_loads

_SHOWN = 80
"""Characters of an offending value that a message shows."""

_MISSING = object()

_WORDS = {None: "null", True: "true", False: "false"}

_CONFLICT = re.compile(rb"^<{7}(?= |\r?$)", re.MULTILINE)
"""What begins a place that git could not merge; no string of JSON has line ends."""

_MARKER = re.compile(rb"(<{7}|\|{7}|={7}|>{7})(?: .*)?\r?", re.DOTALL)
"""A line that git writes there. Longer ones stand in a common ancestor that was merged itself."""


def corrupt(file: Path, where: str, what: str, *, why: str = "") -> StoreCorruptError:
    """Return the error for a defect of ``file`` at the JSON path ``where``."""
    place = f"{file}, at {where}" if where else str(file)
    return StoreCorruptError(
        f"{place}: {what}",
        why=why,
        hint=f"restore the file from version control (git checkout -- '{file}'), or move the "
        f"folder {file.parent} away and run pytest-regen generate again",
    )


def as_json(value: Any) -> bytes:
    """Return ``value`` as an artifact holds it: indented, UTF-8 unescaped, with a final line end.

    Raises:
        ValueError: it holds NaN, an infinity, or text that UTF-8 has no bytes for.
    """
    return (_indented(value, "\n") + "\n").encode()


def _indented(value: Any, line: str) -> str:
    """Return what ``json.dumps(value, indent=2, ensure_ascii=False)`` does, in less than half.

    With an indent, ``json`` writes piece after piece in Python; artifacts are mostly that work.

    Args:
        value: a JSON value.
        line: a line end with the indent of what ``value`` stands in.
    """
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    inner = f"{line}  "
    if isinstance(value, dict) and value:
        items = [
            f"{encode_basestring(key) if isinstance(key, str) else _key(key)}: "
            f"{_indented(item, inner)}"
            for key, item in value.items()
        ]
        return f"{{{inner}{f',{inner}'.join(items)}{line}}}"
    if isinstance(value, list | tuple) and value:
        items = [_indented(item, inner) for item in value]
        return f"[{inner}{f',{inner}'.join(items)}{line}]"
    return json.dumps(value, allow_nan=False)


def _key(key: Any) -> str:
    """Return a key that is no text, such as a number, as JSON has it: in quotes."""
    return json.dumps({key: 0}, allow_nan=False)[1 : -len(": 0}")]


@contextmanager
def without_collection() -> Iterator[None]:
    """Make many objects that all stay without having each of them searched for garbage.

    The collector looks at every live object again and again while a large file is turned into
    values; on a store of 1,000 types that is three quarters of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def parse_json(data: bytes, file: Path) -> Any:
    """Return the value of ``data``.

    Raises:
        StoreCorruptError: not UTF-8, not JSON, nested too deeply, or with NaN, a key given twice
            or text that cannot be written again.
    """
    try:
        text = data.decode("utf-8-sig")
        value = strict_loads(text, half_characters=False)
    except UnicodeDecodeError as error:
        raise corrupt(file, "", f"not UTF-8 at byte {error.start}", why=error.reason) from None
    except json.JSONDecodeError as error:
        line = conflict_line(data)
        if line is not None:
            raise _conflict(file, line) from None
        place = f"line {error.lineno}, column {error.colno}"
        raise corrupt(file, place, "this is no JSON", why=error.msg) from None
    except DuplicateKeyError as error:
        twice = f"the key {_show(error.key)} is given twice in one object"
        raise corrupt(file, "", twice) from None
    except TooDeepError:
        raise corrupt(file, "", "nested too deeply to be read") from None
    except ValueError as error:
        raise corrupt(file, "", str(error)) from None
    return value


def conflict_line(data: bytes) -> int | None:
    """Return the line, from 1, of the first conflict marker of git; ``None`` without one."""
    found = _CONFLICT.search(data)
    return data.count(b"\n", 0, found.start()) + 1 if found else None


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
        found = _MARKER.fullmatch(line)
        sign = chr(found[1][0]) if found else ""
        if sign and sign in followers[state]:
            state = "" if sign == ">" else sign
            continue
        for version in holders[state]:
            version.append(line)
    return None if state else (b"\n".join(ours), b"\n".join(theirs))


def _conflict(file: Path, line: int) -> StoreCorruptError:
    return StoreCorruptError(
        f"{file}, at line {line}: a conflict marker of git",
        why="the file is two versions of itself; the next command joins both, and keeps every "
        "answer of either, in history/ if not in the store",
        hint=_way_out(file.parent),
    )


def _way_out(store: Path) -> str:
    """Return the command that joins the two versions of a store."""
    try:
        ir, theirs = (json.loads(version) for version in _sides(store / "ir.json"))
        prompts = (store / "prompts.json").read_bytes()
        is_same = ir["types"] == theirs["types"] and ir["document"] == theirs["document"]
        if not is_same or conflict_line(prompts) is not None:
            return _update(store, ir)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    return f"pytest-regen rebuild {shlex.quote(str(store))}"


def _update(store: Path, ir: Any) -> str:
    """Return the command that makes a store anew whose branches follow different documents."""
    from pytest_regen.documents.ir import Endpoint

    document = store / ir["document"]["path"] if ir["document"] else None
    spec = os.path.relpath(document) if document and document.is_file() else "SPEC"
    part = Endpoint.model_validate(ir["endpoint"]).words(ir.get("schemas"))
    words = ["pytest-regen", "generate", spec, *part, "--out", str(store.parent)]
    if json.loads(_sides(store / "pages.json")[0])["model"] == TEMPLATE:
        words += ["--provider", TEMPLATE]
    return shlex.join(words)


def _sides(file: Path) -> tuple[bytes, bytes]:
    """Return both versions of a file; of one that git merged, twice the same."""
    both = versions(file.read_bytes())
    if both is None:
        raise ValueError(file)
    return both


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


class Node:
    """A JSON object together with where it stands, for messages."""

    __slots__ = ("_data", "_file", "_where")

    def __init__(self, data: object, file: Path, where: str = "$") -> None:
        self._file = file
        self._where = where
        if not isinstance(data, Mapping):
            raise corrupt(file, where, f"expected an object, found {_show(data)}")
        self._data = data

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def text(self, key: str, default: str | None = None) -> str:
        """Return the string at ``key``; without a default it must be there."""
        value = self._data.get(key, _MISSING if default is None else default)
        if type(value) is not str:
            raise self._expected(key, "a string", value)
        return value

    def optional_text(self, key: str) -> str | None:
        """Return the string at ``key``, or ``None`` where it is null or absent."""
        return None if self._data.get(key) is None else self.text(key)

    def count(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """Return the integer at ``key``, which is ``least`` or more."""
        value = self._data.get(key, _MISSING if default is None else default)
        # bool is an int to Python, and 1.0 equals 1; neither is a count.
        if type(value) is not int or value < least:
            raise self._expected(key, f"an integer of {least} or more", value)
        return value

    def optional_count(self, key: str) -> int | None:
        """Return the integer at ``key``, or ``None`` where it is null or absent."""
        return None if self._data.get(key) is None else self.count(key)

    def flag(self, key: str) -> bool:
        """Return the boolean at ``key``."""
        value = self._data.get(key, _MISSING)
        if type(value) is not bool:
            raise self._expected(key, "true or false", value)
        return value

    def list(self, key: str, default: Sequence[Any] | None = None) -> Sequence[Any]:
        """Return the array at ``key``."""
        value = self._data.get(key, _MISSING if default is None else default)
        if not isinstance(value, list | tuple):
            raise self._expected(key, "an array", value)
        return value

    def node(self, key: str) -> "Node":
        """Return the object at ``key``."""
        return Node(self._data.get(key), self._file, f"{self._where}.{key}")

    def error(self, key: str, what: str) -> StoreCorruptError:
        """Return the error for the value at ``key``."""
        return corrupt(self._file, f"{self._where}.{key}", what)

    def _expected(self, key: str, wanted: str, value: object) -> StoreCorruptError:
        found = "nothing" if value is _MISSING else _show(value)
        return self.error(key, f"expected {wanted}, found {found}")
