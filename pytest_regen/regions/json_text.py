"""Regions of JSON files: each string, or each member of one object, is a unit.

The reader keeps the position of every value, so that only the bytes of one value change. It holds
its own stack: a hostile file cannot exhaust Python's.
"""

import json
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal

from pytest_regen.errors import RegionError
from pytest_regen.regions.base import (
    Span,
    has_crlf,
    line_at,
    refuse_unknown,
    splice,
    unix_line_ends,
)

_Path = tuple[str | int, ...]
"""Keys, and indices of lists, from the root of a document to one value."""

_MAX_DEPTH: Final = 200
"""Deeper documents are refused: the names of their units would outgrow the document itself."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_PLAIN: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])|(?:true|false|null)(?!\w)"
)
_scan_string: Final[Callable[[str, int, bool], tuple[str, int]]] = vars(json.decoder)["scanstring"]
"""The standard library's own reader of strings, in C; its type stubs leave it out."""
_CLOSERS: Final = {"object": "}", "list": "]"}


@dataclass(eq=False, slots=True)
class _Value:
    """A value of a document, with its place."""

    kind: Literal["object", "list", "string", "plain"]
    start: int
    end: int = 0
    string: str = ""
    members: "list[_Member]" = field(default_factory=list)
    by_key: "dict[str | int, _Member]" = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class _Member:
    """A member of an object, or an item of a list."""

    key: str | int
    start: int
    """Of the key; of the value, in a list."""
    number: int
    value: _Value


class _Json(ABC):
    """The units of JSON files: how they are named, found, added and removed."""

    def __init__(self, *, at: str = "", flat: bool | None = None) -> None:
        """Describe where in a file units stand.

        Args:
            at: the object or list whose values are units: keys joined by dots, or a pointer.
            flat: whether dots in the name of a new unit belong to its key. By default the file
                decides: they do where keys beside it hold dots.
        """
        self.at = at
        self.flat = flat

    def find(self, text: str) -> dict[str, Span]:
        """Return the units of ``text`` by name, in the order of the file.

        Raises:
            RegionError: the text is no JSON, an object has a key twice, or values are nested
                deeper than any catalogue is.
        """
        found, line, counted = {}, 1, 0
        for name, (_, value) in self._units(_read(text)).items():
            line += text.count("\n", counted, value.start)
            counted = value.start
            found[name] = Span(self._text(text, value), line, value.start, value.end)
        return found

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other values; no other byte changes.

        Raises:
            RegionError: see ``find``; or there is no such unit, or the new text cannot stand there.
        """
        units = self._units(_read(text))
        refuse_unknown(texts, units)
        style = _Style.of(text)
        edits = []
        for name, new in texts.items():
            _, value = units[name]
            if new != self._text(text, value):
                indent = _indent_at(text, value.start)
                edits.append((value.start, value.end, self.write_value(name, new, style, indent)))
        return splice(text, edits)

    def insert(self, text: str, texts: Mapping[str, str], order: Sequence[str] = ()) -> str:
        """Return ``text`` with units added, each behind its nearest predecessor in ``order``.

        Objects on the way to a unit are made where they are missing. A key that is there without a
        unit (``null`` among strings) gets the new value.

        Raises:
            RegionError: see ``find``; or something else stands where a unit would have to.
        """
        if not texts:
            return text
        blank = not text.strip("\ufeff \t\r\n")
        text = text if not blank else f"{text[: text.startswith(chr(0xFEFF))]}{{}}\n"
        root = _read(text)
        units = self._units(root)
        ranks = {name: number for number, name in enumerate(order)}
        additions = _Additions(text, self)
        for name, new in texts.items():
            if name in units:
                raise RegionError(
                    f"the file has the unit {name!r} already",
                    line=line_at(text, units[name][1].start),
                    hint="replace its text instead",
                )
            path = self._path(root, name)
            additions.add(root, path, (name, new), ranks.get(name, len(order)))
        placed = {path: ranks[name] for name, (path, _) in units.items() if name in ranks}
        return splice(text, additions.edits(placed, len(order)))

    def remove(self, text: str, names: Iterable[str]) -> str:
        """Return ``text`` without these units.

        Raises:
            RegionError: see ``find``; or there is no such unit, or a list would close up.
        """
        names = tuple(names)
        root = _read(text)
        units = self._units(root)
        refuse_unknown(names, units)
        gone: defaultdict[_Path, set[str | int]] = defaultdict(set)
        for name in names:
            path, _ = units[name]
            gone[path[:-1]].add(path[-1])
        return splice(
            text,
            (cut for path, keys in gone.items() for cut in _cuts(text, _walk(root, path), keys)),
        )

    def find_paths(self, text: str) -> dict[str, tuple[_Path, str]]:
        """Return the path and the text of each unit by name; a path has indices of lists as int.

        Raises:
            RegionError: see ``find``.
        """
        units = self._units(_read(text))
        return {name: (path, self._text(text, value)) for name, (path, value) in units.items()}

    def _units(self, root: _Value) -> dict[str, tuple[_Path, _Value]]:
        """Return path and value of each unit by name."""
        base = self._base(root)
        if base is None:
            return {}
        values = {(*base, *path): value for path, value in self._select(_walk(root, base))}
        return dict(zip(self._names(tuple(values)), values.items(), strict=True))

    def _base(self, root: _Value) -> _Path | None:
        """Return the path of the container of all units, or ``None`` if it is not there."""
        if not self.at:
            return ()
        path = _existing(root, self.at)
        return path if path is not None and _walk(root, path).kind in _CLOSERS else None

    def _names(self, paths: Sequence[_Path]) -> list[str]:
        """Return the names of values: keys joined by dots, pointers where that is ambiguous."""
        dotted = [".".join(map(str, path)) for path in paths]
        count = Counter(dotted)
        return [
            pointer(path) if count[name] > 1 or "" in path or name.startswith("/") else name
            for path, name in zip(paths, dotted, strict=True)
        ]

    def _path(self, root: _Value, name: str) -> _Path:
        """Return the path on which a unit that is not there is to stand."""
        base = _path(root, self.at) if self.at else ()
        rest = name.removeprefix(".".join(map(str, base)) + ".") if base else name
        if rest.startswith("/"):
            return _path(root, rest)
        here: _Value | None = root
        for key in base:
            here = _child(here, key)
        return (*base, *_path(here, rest, flat=self.flat))

    @abstractmethod
    def _select(self, value: _Value) -> Iterator[tuple[_Path, _Value]]:
        """Yield the values below ``value`` that are units."""

    @abstractmethod
    def _text(self, text: str, value: _Value) -> str:
        """Return the text of a unit."""

    @abstractmethod
    def write_value(self, name: str, new: str, style: "_Style", indent: str) -> str:
        """Return what stands in the file for the text of a unit."""


class JsonStrings(_Json):
    """Every string of a JSON file is a unit: ``menu.open`` or, in a list, ``steps.0``.

    The text of a unit is the decoded string. Names are keys joined by dots; where two values of a
    file would share a name or a key is empty, they are JSON pointers (``/menu/open``).
    """

    def _select(self, value: _Value) -> Iterator[tuple[_Path, _Value]]:
        open_ = [((), value)] if value.kind in _CLOSERS else []
        stack: list[tuple[_Path, Iterator[_Member]]] = [(p, iter(v.members)) for p, v in open_]
        while stack:
            path, members = stack[-1]
            member = next(members, None)
            if member is None:
                stack.pop()
            elif member.value.kind == "string":
                yield (*path, member.key), member.value
            elif member.value.members:
                stack.append(((*path, member.key), iter(member.value.members)))

    def _text(self, text: str, value: _Value) -> str:  # decoded when it was read
        return value.string

    def write_value(self, name: str, new: str, style: "_Style", indent: str) -> str:
        """Return the text as a JSON string."""
        return style.string(new)


class JsonValues(_Json):
    """Every member of one object, or item of one list, is a unit: by default, of the root.

    The text of a unit is the JSON of its value, its lines without the indentation of its key.
    """

    def __init__(self, *, at: str = "") -> None:
        """Describe where units stand: ``at`` names their object or list, by default the root."""
        super().__init__(at=at, flat=True)

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts are the same JSON value, in whatever order keys come."""
        try:
            return old == new or _decode(old) == _decode(new)
        except RegionError:
            return False

    def _select(self, value: _Value) -> Iterator[tuple[_Path, _Value]]:
        for member in value.members:
            yield (member.key,), member.value

    def _text(self, text: str, value: _Value) -> str:
        source = text[value.start : value.end].replace("\r\n", "\n")
        indent = _indent_at(text, value.start)
        lines = source.split("\n")
        if indent and all(line.startswith(indent) for line in lines[1:] if line):
            return "\n".join((lines[0], *(line.removeprefix(indent) for line in lines[1:])))
        return source

    def write_value(self, name: str, new: str, style: "_Style", indent: str) -> str:
        """Return the JSON with its lines indented.

        Raises:
            RegionError: it is no JSON.
        """
        new = unix_line_ends(new).strip("\ufeff \t\n")
        if not new:
            raise RegionError(
                f"the text of {name!r} is empty",
                hint="write a JSON value: an object, a list, a string, a number, true or null",
            )
        try:
            _read(new)
        except RegionError as error:
            raise RegionError(
                f"the text of {name!r} is no JSON value: {error.what}",
                hint="write one JSON value and nothing else",
            ) from None
        lines = new.split("\n")
        lines[1:] = [indent + line if line else line for line in lines[1:]]
        return style.line_end.join(lines)


@dataclass(frozen=True, slots=True)
class _Style:
    """How a file is written, so that what is added looks like the rest of it."""

    line_end: str
    indent: str
    colon: str
    ascii_only: bool
    """Whether the file escapes every character beyond ASCII."""

    @classmethod
    def of(cls, text: str) -> "_Style":
        indent = re.search(r"\n([ \t]+)[\"\[{]", text)
        colon = re.search(r"\"([ \t]*:[ \t]*)(?=[\"\[{0-9a-z-])", text)
        escapes = text.isascii() and re.search(r"\\u(?!00[0-7])[0-9a-fA-F]{4}", text) is not None
        return cls(
            line_end="\r\n" if has_crlf(text) else "\n",
            indent=indent[1] if indent else "  ",
            colon=colon[1] if colon else ": ",
            ascii_only=escapes,
        )

    def string(self, text: str) -> str:
        """Return a string as JSON; lone surrogates are escaped, as no file can hold them."""
        written = json.dumps(text, ensure_ascii=self.ascii_only)
        return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", written)


@dataclass(slots=True)
class _New:
    """A member that is to be added: the value of a unit, or a group of members."""

    rank: int
    unit: tuple[str, str] | None = None
    """Name and text."""
    members: "dict[str | int, _New]" = field(default_factory=dict)


class _Additions:
    """Units that are to be added to a document, by the container that is there already."""

    def __init__(self, text: str, region: _Json) -> None:
        self._text = text
        self._region = region
        self._style = _Style.of(text)
        self._refilled: list[tuple[_Value, str, str]] = []
        self._added: dict[_Path, tuple[_Value, _New]] = {}

    def add(self, root: _Value, path: _Path, unit: tuple[str, str], rank: int) -> None:
        """Note that a unit is to stand at ``path``."""
        here, depth = root, 0
        while depth < len(path) and (member := here.by_key.get(path[depth])) is not None:
            here, depth = member.value, depth + 1
        if depth == len(path) and here.kind == "plain":
            self._refilled.append((here, *unit))
            return
        if depth == len(path) or here.kind not in _CLOSERS:
            raise RegionError(
                f"line {line_at(self._text, here.start)}: a value stands where {unit[0]!r} belongs",
                line=line_at(self._text, here.start),
                hint="take that value out, or name the unit otherwise; JsonStrings(flat=True) keeps"
                " dots in keys",
            )
        _, new = self._added.setdefault(path[:depth], (here, _New(rank)))
        for key in path[depth:-1]:
            new = new.members.setdefault(key, _New(rank))
        if new.unit is not None or path[-1] in new.members:
            raise RegionError(
                f"{unit[0]!r} and another unit would stand at the same place",
                hint="name units so that none is a group of others; JsonStrings(flat=True) keeps"
                " dots in keys",
            )
        new.members[path[-1]] = _New(rank, unit)

    def edits(self, ranks: Mapping[_Path, int], last: int) -> Iterator[tuple[int, int, str]]:
        """Yield the edits of the text.

        Args:
            ranks: where in the order of all units those stand that are there.
            last: the rank of units that have no place in that order.
        """
        for value, *unit in self._refilled:
            new = _New(0, (unit[0], unit[1]))
            yield value.start, value.end, self._write(new, _indent_at(self._text, value.start))
        places: defaultdict[_Path, list[tuple[int, int]]] = defaultdict(list)
        for path, rank in ranks.items():
            for depth in range(len(path)):
                if (added := self._added.get(path[:depth])) is not None:
                    number = added[0].by_key[path[depth]].number
                    places[path[:depth]].append((rank, number))
        for path, (container, new) in self._added.items():
            yield from self._insert(container, new, sorted(places[path]), last)

    def _insert(
        self, container: _Value, new: _New, places: Sequence[tuple[int, int]], last: int
    ) -> Iterator[tuple[int, int, str]]:
        """Yield the edits of one container; ``places`` are its members by their rank."""
        members, text, style = container.members, self._text, self._style
        outer = _indent_at(text, container.start)
        before = text[container.start + 1 : members[0].start] if members else style.line_end
        inner = before.rpartition("\n")[2] if members else outer + style.indent
        gap = style.line_end + inner if "\n" in before else _blanks_between(text, members)
        behind: defaultdict[int, list[str]] = defaultdict(list)
        if container.kind == "list":
            self._check_goes_on(container, new)
        for key, member in sorted(new.members.items(), key=lambda item: item[1].rank):
            place = bisect_left(places, (member.rank, 0))
            number = places[place - 1][1] if place else -1
            if member.rank >= last or container.kind == "list":
                number = len(members) - 1
            behind[number].append(self._member(container.kind, key, member, inner))
        for number, added in behind.items():
            joined = f",{gap}".join(added)
            if not members:
                closing = style.line_end + outer
                yield container.start + 1, container.end - 1, f"{gap}{joined}{closing}"
            elif number < 0:
                yield members[0].start, members[0].start, f"{joined},{gap}"
            else:
                end = members[number].value.end
                yield end, end, f",{gap}{joined}"

    def _check_goes_on(self, container: _Value, new: _New) -> None:
        """Refuse items of a list that leave a gap; put the others in order."""
        first = len(container.members)
        keys = sorted(new.members, key=int)
        if keys != list(range(first, first + len(keys))):
            line = line_at(self._text, container.start)
            raise RegionError(
                f"line {line}: an item {keys[-1]} would leave a gap in a list of {first}",
                line=line,
                hint=f"go on with the item {first}",
            )
        for rank, key in enumerate(keys):
            new.members[key].rank = rank

    def _member(self, kind: str, key: str | int, new: _New, indent: str) -> str:
        value = self._write(new, indent)
        return (
            value if kind == "list" else f"{self._style.string(str(key))}{self._style.colon}{value}"
        )

    def _write(self, new: _New, indent: str) -> str:
        """Return the JSON of what is added; its lines but the first begin with ``indent``."""
        if new.unit is not None:
            return self._region.write_value(*new.unit, self._style, indent)
        inner = indent + self._style.indent
        kind = "list" if all(isinstance(key, int) for key in new.members) else "object"
        opening, closing = ("[", "]") if kind == "list" else ("{", "}")
        gap = self._style.line_end + inner
        members = f",{gap}".join(
            self._member(kind, key, member, inner) for key, member in new.members.items()
        )
        return f"{opening}{gap}{members}{self._style.line_end}{indent}{closing}"


def _blanks_between(text: str, members: Sequence[_Member]) -> str:
    """Return what stands behind a comma between members on one line."""
    if len(members) < 2:
        return "" if _Style.of(text).colon == ":" else " "
    return text[members[0].value.end : members[1].start].partition(",")[2]


def _cuts(text: str, container: _Value, keys: set[str | int]) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that take members out of a container, with their commas."""
    members = container.members
    kept = [member for member in members if member.key not in keys]
    if container.kind == "list" and [member.number for member in kept] != list(range(len(kept))):
        line = line_at(text, members[0].start)
        raise RegionError(
            f"line {line}: an item cannot be taken out of a list that goes on behind it",
            line=line,
            why="the names of later items would change",
            hint="edit the list by hand, then run `pytest-regen adopt` on the file",
        )
    if not kept:
        yield container.start + 1, container.end - 1, ""
        return
    if kept[0].number:
        yield members[0].start, kept[0].start, ""
    for member, after in zip(kept, (*kept[1:], None), strict=True):
        end = members[after.number - 1 if after else -1].value.end
        if end > member.value.end:
            yield member.value.end, end, ""


def _read(text: str) -> _Value:
    """Return the root of a JSON document with the places of all its values."""
    at = _skip(text, int(text.startswith("\ufeff")))
    if at == len(text):
        return _Value("object", at, at)
    root = _value(text, at)
    open_, at = _begin(text, [], root)
    while open_:
        parent = open_[-1]
        key, start = _key(text, at) if parent.kind == "object" else (None, at)
        value = _value(text, start)
        _attach(text, parent, key, at, value)
        open_, at = _begin(text, open_, value)
    if at != len(text):
        raise _defect(text, at, "goes on behind the end of the JSON value")
    return root


def _begin(text: str, open_: list[_Value], value: _Value) -> tuple[list[_Value], int]:
    """Return which containers are open behind a value, and where the next value or key begins."""
    if value.kind in _CLOSERS:
        open_.append(value)
        if len(open_) > _MAX_DEPTH:
            raise _defect(text, value.start, f"nests values deeper than {_MAX_DEPTH} levels")
        at = _skip(text, value.start + 1)
        if not text.startswith(_CLOSERS[value.kind], at):
            return open_, at
    else:
        at = _skip(text, value.end)
    while open_:
        parent = open_[-1]
        if text.startswith(_CLOSERS[parent.kind], at):
            parent.end = at + 1
            open_.pop()
            at = _skip(text, at + 1)
        elif text.startswith(",", at):
            return open_, _skip(text, at + 1)
        else:
            raise _defect(text, at, f"lacks `,` or `{_CLOSERS[parent.kind]}`")
    return open_, at


def _key(text: str, at: int) -> tuple[str, int]:
    """Return the key at an index, and the index of its value."""
    if not text.startswith('"', at):
        raise _defect(text, at, "lacks a key in double quotes")
    key, end = _string(text, at)
    end = _skip(text, end)
    if not text.startswith(":", end):
        raise _defect(text, end, "lacks `:` behind a key")
    return key, _skip(text, end + 1)


def _value(text: str, at: int) -> _Value:
    """Return the value that begins at an index; of an object or a list, only its beginning."""
    match text[at : at + 1]:
        case "{":
            return _Value("object", at)
        case "[":
            return _Value("list", at)
        case '"':
            string, end = _string(text, at)
            return _Value("string", at, end, string)
        case _:
            plain = _PLAIN.match(text, at)
            if plain is None:
                raise _defect(text, at, "has no JSON value where one belongs")
            return _Value("plain", at, plain.end())


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        return _scan_string(text, at + 1, True)  # noqa: FBT003 - strict; C takes no keywords
    except json.JSONDecodeError as error:
        raise _defect(text, error.pos, f"has a broken string: {error.msg}") from None


def _attach(text: str, parent: _Value, key: str | None, start: int, value: _Value) -> None:
    number = len(parent.members)
    name: str | int = number if key is None else key
    member = _Member(name, start, number, value)
    if parent.by_key.setdefault(name, member) is not member:
        first = line_at(text, parent.by_key[name].start)
        problem = f"has the key {name!r} a second time (first: line {first})"
        raise _defect(text, start, problem, "take one of the two out; programs read the last")
    parent.members.append(member)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _defect(text: str, at: int, problem: str, hint: str = "") -> RegionError:
    line = line_at(text, at)
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    shown = " (is the file cut off?)" if at >= len(text) else ""
    return RegionError(
        f"line {line}, column {column}: the JSON {problem}{shown}",
        line=line,
        hint=hint or "correct that line, or take the file from version control",
    )


def _walk(root: _Value, path: _Path) -> _Value:
    for key in path:
        root = root.by_key[key].value
    return root


def _existing(root: _Value, name: str) -> _Path | None:
    """Return the path of the value that a name stands for, if there is one."""
    path = _path(root, name)
    for key in path:
        member = root.by_key.get(key)
        if member is None:
            return None
        root = member.value
    return path


def _path(root: _Value | None, name: str, *, flat: bool | None = None) -> _Path:
    """Return the path below a value that a name stands for, whether or not something is there.

    Dots divide keys as the document has it: objects that are there are entered, and a new key
    holds dots where keys beside it do. With ``flat``, dots divide no keys.
    """
    if is_pointer := name.startswith("/"):
        keys = [key.replace("~1", "/").replace("~0", "~") for key in name[1:].split("/")]
    else:
        keys = [name] if flat else name.split(".")
    path: list[str | int] = []
    here = root
    while keys:
        count = 1 if is_pointer or here is None else _keys_in_one(here, keys, flat=flat)
        key: str | int = ".".join(keys[:count])
        if here is not None and here.kind == "list":
            key = _index(here, str(key), name)
        here = _child(here, key)
        path.append(key)
        del keys[:count]
    return tuple(path)


def _child(here: _Value | None, key: str | int) -> _Value | None:
    member = None if here is None else here.by_key.get(key)
    return None if member is None else member.value


def _keys_in_one(here: _Value, keys: Sequence[str], *, flat: bool | None) -> int:
    """Return how many of ``keys``, which dots divide, are one key of a value."""
    if ".".join(keys) in here.by_key:
        return len(keys)
    for count in range(len(keys) - 1, 0, -1):
        member = here.by_key.get(".".join(keys[:count]))
        if member is not None and member.value.kind in _CLOSERS:
            return count
    is_flat = flat is None and any("." in str(member.key) for member in here.members)
    return len(keys) if is_flat or keys[0] in here.by_key else 1


def _index(container: _Value, key: str, name: str) -> int:
    if key.isascii() and key.isdecimal() and len(key) < 10:  # more items than fit
        return int(key)
    raise RegionError(
        f"{name!r} names no item of a list: {key!r} is no number",
        hint=f"name an item, from 0 to {len(container.members)}",
    )


def pointer(path: Sequence[str | int]) -> str:
    """Return the JSON pointer of a path (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _indent_at(text: str, index: int) -> str:
    """Return the indentation of the line on which ``index`` stands."""
    start = text.rfind("\n", 0, index) + 1
    match = re.compile(r"[ \t]*").match(text, start)
    return "" if match is None else match[0]


def _decode(text: str) -> Any:
    """Return a JSON value such that equal values are equal: numbers by value, true is not 1."""
    return _plain(text, _read(text))


def _plain(text: str, value: _Value) -> Any:
    match value.kind:
        case "object":
            return {member.key: _plain(text, member.value) for member in value.members}
        case "list":
            return [_plain(text, member.value) for member in value.members]
        case "string":
            return value.string
        case "plain":
            source = text[value.start : value.end]
            try:
                return Decimal(source)
            except ArithmeticError:  # true, false, null, or an exponent beyond all bounds
                return (source,)
