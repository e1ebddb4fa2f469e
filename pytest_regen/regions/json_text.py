"""Regions of JSON files: each string, or each member of one object, is a unit.

A file is read into values that know their place. What is not changed is written as it stood, so
that a review shows the units that changed and nothing else.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from pytest_regen.errors import RegionError
from pytest_regen.regions import base

_Path = tuple[str | int, ...]
"""Keys, and indices of lists, from the root of a document to one value."""

_MAX_DEPTH: Final = 200
"""Deeper documents are refused: the names of their units would outgrow the document itself."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"[ \t]*")
_PLAIN: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])|(?:true|false|null)(?!\w)"
)
_CLOSERS: Final = {"{": "}", "[": "]"}
_FLAT_HINT: Final = "JsonStrings(flat=True) keeps dots in keys"


@dataclass(eq=False, slots=True)
class _Value:
    """A value of a document, with its place; a container may be changed and written again."""

    opens: str
    """The first character of a container or a string; empty for a number and the like."""
    start: int = 0
    end: int = 0
    """Where it ends in the file; 0 of what is new."""
    string: str = ""
    members: "list[_Member]" = field(default_factory=list)
    by_key: "dict[str | int, _Member]" = field(default_factory=dict)
    tail: str = ""
    """The blanks before the closing bracket."""
    unit: tuple[str, str] | None = None
    """Name and text, where the value is to be another one."""
    is_changed: bool = False
    """Whether something in the container is new, or gone."""


@dataclass(eq=False, slots=True)
class _Member:
    """A member of an object, or an item of a list."""

    key: str | int
    value: _Value
    lead: str = ""
    """The blanks before it."""
    name: str = ""
    """The key and the colon, as they are written."""
    ranks: list[float] = field(default_factory=list)
    """Where in the order of all units its own units stand."""


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

    def find(self, text: str) -> dict[str, base.Span]:
        """Return the units of ``text`` by name, in the order of the file.

        Raises:
            RegionError: the text is no JSON, an object has a key twice, or values are nested
                deeper than any catalogue is.
        """
        spans: dict[str, base.Span] = {}
        line, counted = 1, 0
        for name, (_, value) in self._units(_read(text)).items():
            # Lines are counted from the last unit on: a catalogue may have 5,000 of them.
            line += text.count("\n", counted, value.start)
            counted = value.start
            spans[name] = base.Span(self._text(text, value), line, value.start, value.end)
        return spans

    def find_paths(self, text: str) -> dict[str, tuple[_Path, str]]:
        """Return the path and the text of each unit by name; a path has indices of lists as int.

        Raises:
            RegionError: see ``find``.
        """
        units = self._units(_read(text))
        return {name: (path, self._text(text, value)) for name, (path, value) in units.items()}

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other values; no other byte changes.

        Raises:
            RegionError: see ``find``; or there is no such unit, or the new text cannot stand there.
        """
        units = self._units(_read(text))
        base.refuse_unknown(texts, units)
        style = _Style.of(text)
        # Ranges of the text are replaced, not the document written anew: a value that is as it was
        # keeps its escapes and its layout.
        edits = []
        for name, new in texts.items():
            _, value = units[name]
            if new != self._text(text, value):
                indent = _indent_at(text, value.start)
                edits.append((value.start, value.end, self.write_value(name, new, style, indent)))
        return base.splice(text, edits)

    def insert(self, text: str, texts: Mapping[str, str], order: Sequence[str] = ()) -> str:
        """Return ``text`` with units added, each behind its nearest predecessor in ``order``.

        Objects on the way to a unit are made where they are missing. A key that is there without a
        unit (``null`` among strings) gets the new value.

        Raises:
            RegionError: see ``find``; or something else stands where a unit would have to.
        """
        if not texts:
            return text
        if not text.strip("\ufeff \t\r\n"):
            text = text[: text.startswith("\ufeff")] + "{}\n"
        root = _read(text)
        units = self._units(root)
        ranks = {name: number for number, name in enumerate(order)}
        # A group of keys is a predecessor wherever one of its units is.
        for name, (path, _) in units.items():
            container = root
            for key in path:
                member = container.by_key[key]
                member.ranks.append(ranks.get(name, math.inf))
                container = member.value
        # All paths are found first, because what is added would change how later names are read.
        paths = {name: self._path(root, name) for name in texts}
        for name, new in texts.items():
            if name in units:
                raise _obstacle(text, units[name][1], name)
            _add(text, root, paths[name], (name, new), ranks.get(name, math.inf))
        return _Writer(text, self).document(root)

    def remove(self, text: str, names: Iterable[str]) -> str:
        """Return ``text`` without these units.

        Raises:
            RegionError: see ``find``; or there is no such unit, or a list would close up.
        """
        names = tuple(names)
        root = _read(text)
        units = self._units(root)
        base.refuse_unknown(names, units)
        gone = {units[name][0] for name in names}
        # By container, because the commas of its members belong together.
        for path in {path[:-1] for path in gone}:
            for container in _walk(root, path):
                container.is_changed = True
            first = container.members[0]
            container.members = [m for m in container.members if (*path, m.key) not in gone]
            keys = [member.key for member in container.members]
            if container.opens == "[" and keys != list(range(len(keys))):
                line = base.line_at(text, container.start)
                raise RegionError(
                    f"line {line}: an item cannot be taken out of a list that goes on behind it",
                    line=line,
                    why="the names of later items would change",
                    hint="edit the list by hand, then run `pytest-regen adopt` on the file",
                )
            for member in container.members[:1]:
                # It stands where the old first member did: on the line of the bracket, or below.
                member.lead = first.lead
        return _Writer(text, self).document(root)

    def _units(self, root: _Value) -> dict[str, tuple[_Path, _Value]]:
        """Return path and value of each unit by name."""
        path = _path(root, self.at) if self.at else ()
        above = list(_walk(root, path))
        if len(above) <= len(path) or above[-1].opens not in _CLOSERS:
            return {}
        # All names are made at once, because one may be ambiguous through another.
        values = {(*path, *below): value for below, value in self._select(above[-1])}
        return dict(zip(self._names(tuple(values)), values.items(), strict=True))

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
        start = _path(root, self.at) if self.at else ()
        # Units are named from the root, so that `at` may change without renaming them.
        below = name.removeprefix(".".join(map(str, start)) + ".") if start else name
        if below.startswith("/"):
            return _path(root, below)
        above = list(_walk(root, start))
        container = above[-1] if len(above) > len(start) else None
        return (*start, *_path(container, below, flat=self.flat))

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
        for member in value.members:
            if member.value.opens == '"':
                yield (member.key,), member.value
            for path, string in self._select(member.value):
                yield (member.key, *path), string

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
        except (ValueError, ArithmeticError, RecursionError):
            return False

    def _select(self, value: _Value) -> Iterator[tuple[_Path, _Value]]:
        for member in value.members:
            yield (member.key,), member.value

    def _text(self, text: str, value: _Value) -> str:
        # Its lines begin at the first column, so that moving a value deeper is no drift.
        source = text[value.start : value.end].replace("\r\n", "\n")
        indent = _indent_at(text, value.start)
        first, *lines = source.split("\n")
        if any(line and not line.startswith(indent) for line in lines):
            return source
        return "\n".join((first, *(line.removeprefix(indent) for line in lines)))

    def write_value(self, name: str, new: str, style: "_Style", indent: str) -> str:
        """Return the JSON with its lines indented.

        Raises:
            RegionError: it is no JSON.
        """
        new = base.unix_line_ends(new).strip("\ufeff \t\n")
        # Read before it is put in, because a broken reply would break the file around it.
        try:
            _Reader(new).document()
        except RegionError as error:
            raise RegionError(
                f"the text of {name!r} is no JSON value: {error.what}",
                hint="write one JSON value and nothing else",
            ) from None
        first, *lines = new.split("\n")
        return style.line_end.join((first, *(indent + line if line else line for line in lines)))


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
            line_end="\r\n" if base.has_crlf(text) else "\n",
            indent=indent[1] if indent else "  ",
            colon=colon[1] if colon else ": ",
            ascii_only=escapes,
        )

    def string(self, text: str) -> str:
        """Return a string as JSON; lone surrogates are escaped, as no file can hold them."""
        # Files that Java's tools wrote are ASCII throughout, and stay so.
        written = json.dumps(text, ensure_ascii=self.ascii_only)
        return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", written)


# Reading


class _Reader:
    """Reads JSON into values that know their place; ``at`` is where it has come to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._decoder = json.JSONDecoder()

    def skip(self, count: int = 0) -> None:
        """Go on behind some characters, and the blanks there."""
        blanks = _SPACE.match(self.text, self.at + count)
        assert blanks is not None  # as it matches nothing, too
        self.at = blanks.end()

    def document(self) -> _Value:
        """Return the value that the text ends with."""
        root = self.value()
        self.skip()
        if self.at != len(self.text):
            raise self.defect("goes on behind the end of the JSON value")
        return root

    def value(self, depth: int = 0) -> _Value:
        """Return the value that begins here."""
        start, opens = self.at, self.text[self.at : self.at + 1]
        if opens in _CLOSERS:
            # This function calls itself: the limit keeps a hostile file from exhausting the stack.
            if depth == _MAX_DEPTH:
                raise self.defect(f"nests values deeper than {_MAX_DEPTH} levels")
            return self._container(_Value(opens, start), depth + 1)
        if opens == '"':
            return _Value(opens, start, string=self._string(), end=self.at)
        plain = _PLAIN.match(self.text, start)
        if plain is None:
            raise self.defect("has no JSON value where one belongs")
        self.at = plain.end()
        return _Value("", start, self.at)

    def _container(self, value: _Value, depth: int) -> _Value:
        closer = _CLOSERS[value.opens]
        behind = self.at + 1
        self.skip(1)
        while value.members or not self.text.startswith(closer, self.at):
            start = self.at
            key = len(value.members) if closer == "]" else self._key()
            lead, name = self.text[behind:start], self.text[start : self.at]
            member = _Member(key, self.value(depth), lead, name)
            # Programs read the last of two, people the first: neither can be the unit.
            first = value.by_key.setdefault(key, member)
            if first is not member:
                line = base.line_at(self.text, first.value.start)
                self.at = start
                raise self.defect(
                    f"has the key {key!r} a second time (first: line {line})",
                    "take one of the two out; programs read the last",
                )
            value.members.append(member)
            behind = self.at
            self.skip()
            if not self.text.startswith(",", self.at):
                break
            behind = self.at + 1
            self.skip(1)
        if not self.text.startswith(closer, self.at):
            raise self.defect(f"lacks `,` or `{closer}`")
        value.tail = self.text[behind : self.at]
        self.at += 1
        value.end = self.at
        return value

    def _key(self) -> str:
        """Return the key that begins here, and go on to its value."""
        if not self.text.startswith('"', self.at):
            raise self.defect("lacks a key in double quotes")
        key = self._string()
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.defect("lacks `:` behind a key")
        self.skip(1)
        return key

    def _string(self) -> str:
        try:
            string, self.at = self._decoder.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = error.pos
            raise self.defect(f"has a broken string: {error.msg}") from None
        return str(string)

    def defect(self, problem: str, hint: str = "") -> RegionError:
        """Return the error that the JSON has a problem here."""
        line = base.line_at(self.text, self.at)
        column = self.at - self.text.rfind("\n", 0, self.at)
        cut_off = " (is the file cut off?)" if self.at >= len(self.text) else ""
        return RegionError(
            f"line {line}, column {column}: the JSON {problem}{cut_off}",
            line=line,
            hint=hint or "correct that line, or take the file from version control",
        )


def _read(text: str) -> _Value:
    """Return the root of a JSON document with the places of all its values; of none, ``{}``."""
    reader = _Reader(text)
    reader.skip(int(text.startswith("\ufeff")))
    return reader.document() if reader.at < len(text) else _Value("{", reader.at, reader.at)


def _decode(text: str) -> object:
    """Return a JSON value such that equal values are equal: numbers by value, true is not 1."""

    def number(digits: str) -> tuple[str, Decimal]:
        return "number", Decimal(digits)

    value: object = json.loads(text, parse_int=number, parse_float=number)
    return value


# Names


def pointer(path: Sequence[str | int]) -> str:
    """Return the JSON pointer of a path (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _path(root: _Value | None, name: str, *, flat: bool | None = None) -> _Path:
    """Return the path below a value that a name stands for, whether or not something is there.

    Dots divide keys as the document has it: objects that are there are entered, and a new key
    holds dots where keys beside it do. With ``flat``, dots divide no keys.
    """
    is_pointer = name.startswith("/")
    if is_pointer:
        keys = [key.replace("~1", "/").replace("~0", "~") for key in name[1:].split("/")]
    else:
        keys = [name] if flat else name.split(".")
    path: list[str | int] = []
    value = root
    while keys:
        count = 1 if is_pointer or value is None else _keys_in_one(value, keys, flat=flat)
        key: str | int = ".".join(keys[:count])
        if value is not None and value.opens == "[":
            if not re.fullmatch("[0-9]{1,9}", str(key)):
                raise RegionError(
                    f"{name!r} names no item of a list: {key!r} is no number",
                    hint=f"name an item, from 0 to {len(value.members)}",
                )
            key = int(key)
        member = None if value is None else value.by_key.get(key)
        value = None if member is None else member.value
        path.append(key)
        del keys[:count]
    return tuple(path)


def _keys_in_one(value: _Value, keys: Sequence[str], *, flat: bool | None) -> int:
    """Return how many of ``keys``, which dots divide, are one key of a value."""
    for count in range(len(keys), 0, -1):
        member = value.by_key.get(".".join(keys[:count]))
        if member is not None and (count == len(keys) or member.value.opens in _CLOSERS):
            return count
    # i18next and ARB keep dots in keys; most other catalogues nest.
    is_flat = flat is None and any("." in str(member.key) for member in value.members)
    return len(keys) if is_flat or keys[0] in value.by_key else 1


def _walk(root: _Value, path: _Path) -> Iterator[_Value]:
    """Yield the values on a path, the root first, as far as they are there."""
    yield root
    for key in path:
        if key not in root.by_key:
            return
        root = root.by_key[key].value
        yield root


def _indent_at(text: str, index: int) -> str:
    """Return the indentation of the line on which ``index`` stands."""
    blanks = _INDENT.match(text, text.rfind("\n", 0, index) + 1)
    return blanks[0] if blanks else ""


# Changes


def _add(text: str, root: _Value, path: _Path, unit: tuple[str, str], rank: float) -> None:
    """Put a unit at ``path``, with the containers on the way there."""
    value = root
    for depth, key in enumerate(path):
        if value.opens not in _CLOSERS or value.unit is not None:
            raise _obstacle(text, value, unit[0])
        value.is_changed = True
        if key not in value.by_key:
            below = path[depth + 1 : depth + 2]
            opens = "[" if below and isinstance(below[0], int) else "{"
            value.by_key[key] = _Member(key, _Value(opens), ranks=[rank])
            value.members.append(value.by_key[key])
        value = value.by_key[key].value
    # What stands there may be null, which tools write for a text that is missing.
    is_free = not value.opens or (value.end == 0 and not value.members)
    if not is_free or value.unit is not None:
        raise _obstacle(text, value, unit[0])
    value.unit = unit


def _obstacle(text: str, value: _Value, name: str) -> RegionError:
    line = base.line_at(text, value.start)
    return RegionError(
        f"line {line}: a value stands where {name!r} belongs",
        line=line,
        hint="take that value out, or name the unit otherwise; JsonStrings(flat=True) keeps dots"
        " in keys",
    )


class _Writer:
    """Writes a document with what was added to it and taken out of it."""

    def __init__(self, text: str, region: _Json) -> None:
        self._text = text
        self._region = region
        self._style = _Style.of(text)

    def document(self, root: _Value) -> str:
        """Return the file with another root; what stands around it stays."""
        return self._text[: root.start] + self._write(root, "") + self._text[root.end :]

    def _write(self, value: _Value, indent: str) -> str:
        """Return the JSON of a value: as it stands in the file, but for what has changed.

        Args:
            value: of the document, or new.
            indent: of the line on which the value begins, where it is new.
        """
        # What the file has is indented as it is there; only what is new follows its parent.
        if value.end:
            indent = _indent_at(self._text, value.start)
        if value.unit is not None:
            return self._region.write_value(*value.unit, self._style, indent)
        if value.end and not value.is_changed:
            return self._text[value.start : value.end]
        present = [member for member in value.members if member.value.end]
        lead = present[0].lead if present else f"{self._style.line_end}{indent}{self._style.indent}"
        inner, gap = indent, self._style.colon.partition(":")[2]
        if "\n" in lead:
            inner = lead.rpartition("\n")[2]
            gap = self._style.line_end + inner
        elif len(present) > 1:
            gap = present[1].lead
        if len(present) < len(value.members):
            value.members = self._ordered(value, present)
            # Who was the first may now stand behind what is new.
            new = [member for member in value.members if not member.value.end]
            for member in (*present[:1], *new):
                member.lead = gap
            for member in new if value.opens == "{" else ():
                member.name = self._style.string(str(member.key)) + self._style.colon
            value.members[0].lead = lead
        tail = value.tail if present else self._style.line_end + indent
        parts = [m.lead + m.name + self._write(m.value, inner) for m in value.members]
        return value.opens + ",".join(parts) + tail * bool(parts) + _CLOSERS[value.opens]

    def _ordered(self, value: _Value, present: Sequence[_Member]) -> list[_Member]:
        """Return the members of a container, each new one behind its nearest predecessor."""
        if value.opens == "[":
            members = sorted(value.members, key=lambda member: int(member.key))
            last = members[-1].key
            if last != len(members) - 1:
                line = base.line_at(self._text, value.start)
                raise RegionError(
                    f"line {line}: an item {last} would leave a gap in a list of {len(present)}",
                    line=line,
                    hint=f"go on with the item {len(present)}",
                )
            return members
        behind: defaultdict[int, list[_Member]] = defaultdict(list)
        new = [member for member in value.members if not member.value.end]
        placed = [(rank, number) for number, m in enumerate(present) for rank in m.ranks]
        for member in sorted(new, key=lambda member: member.ranks[0]):
            ranks = [place for place in placed if place[0] < member.ranks[0]]
            # Not at the end, because two branches that add keys would then change the same line.
            number = max(ranks, default=(0, -1))[1]
            if member.ranks == [math.inf]:
                number = len(present) - 1
            behind[number].append(member)
        members = behind[-1]
        for number, member in enumerate(present):
            members += (member, *behind[number])
        return members
