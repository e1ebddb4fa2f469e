"""Regions of JSON files: each string, or each member of one object, is a unit.

A file is read into values that know their place, and changed by edits of its text: what is not
changed stays as it stood, so that a review shows the units that changed and nothing else.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from pytest_regen.errors import RegionError
from pytest_regen.regions import base
from pytest_regen.strict_json import strict_loads

# Keys, and indices of lists, from the root of a document to one value.
_Path = tuple[str | int, ...]

# New members of a container by key: the name of a unit, or a tree where members are new too.
_Tree = dict[str | int, Any]

# A string, a key with its colon, a bracket, or a plain value.
_TOKEN: Final = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?|[][{}]|[^][{}:,"\s]+')

_CLOSERS: Final = {"{": "}", "[": "]"}
_BLANKS: Final = "\ufeff \t\r\n"


@dataclass(eq=False, slots=True)
class _Value:
    """A value of a document, with its place."""

    opens: str
    """Its first character."""
    begin: int = 0
    """Where its key begins; in a list, where it does itself."""
    start: int = 0
    end: int = 0
    string: str = ""
    """What a string stands for."""
    members: "dict[str | int, _Value]" = field(default_factory=dict)


class JsonStrings:
    """Every string of a JSON file is a unit: ``menu.open`` or, in a list, ``steps.0``.

    The text of a unit is the decoded string. Names are keys joined by dots; where two values of a
    file would share a name or a key is empty, they are JSON pointers (``/menu/open``).
    """

    def find(self, text: str) -> dict[str, base.Span]:
        """Return the units of ``text`` by name, in the order of the file.

        Raises:
            RegionError: the text is no JSON, or an object has a key twice.
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
        edits = []
        for name, new in texts.items():
            _, value = units[name]
            # A value that is as it was keeps its escapes and its layout.
            if new != self._text(text, value):
                edits.append(self._edit(text, value, style, name, new))
        return base.splice(text, edits)

    def _edit(
        self, text: str, value: _Value, style: "_Style", name: str, new: str
    ) -> tuple[int, int, str]:
        written = self.write_value(name, new, style, _indent_at(text, value.start))
        return value.start, value.end, written

    def insert(self, text: str, texts: Mapping[str, str], order: Sequence[str] = ()) -> str:
        """Return ``text`` with units added, each behind its nearest predecessor in ``order``.

        Objects on the way to a unit are made where they are missing. A key that is there without a
        unit (``null`` among strings) gets the new value.

        Raises:
            RegionError: see ``find``; or something else stands where a unit would have to.
        """
        if texts and not text.strip(_BLANKS):
            text = text[: text.startswith("\ufeff")] + "{}\n"
        root, style = _read(text), _Style.of(text)
        units = self._units(root)
        # All paths are found first, because what is added would change how later names are read.
        paths = {name: self._path(root, name) for name in texts}
        paths |= {name: path for name, (path, _) in units.items()}
        edits: list[tuple[int, int, str]] = []
        trees: defaultdict[_Value, _Tree] = defaultdict(dict)
        behind: dict[tuple[_Value, str | int], _Value] = {}
        passed: dict[_Value, _Value] = {}  # Of each container the member that was passed last.
        for name in dict.fromkeys((*order, *units, *texts)):
            values = _walk(root, paths.get(name, ()))
            passed |= dict(pairwise(values))
            if name not in texts:
                continue
            value, keys = values[-1], paths[name][len(values) - 1 :]
            if keys and value.opens == _opener(keys[0]):
                # Not at the end, because two branches that add keys would then change the same
                # line.
                behind.setdefault((value, keys[0]), passed.get(value, value))
                _put(trees[value], keys, name)
            elif keys or value.opens in '{["':
                raise _obstacle(base.line_at(text, value.start), name)
            else:  # It may be null, which tools write for a text that is missing.
                edits.append(self._edit(text, value, style, name, texts[name]))
        for container, tree in trees.items():
            first, gap = _layout(text, container, style)
            members = {key: self._written(key, new, texts, style, gap) for key, new in tree.items()}
            if first is None:
                inside = gap + f",{gap}".join(members.values()) + gap.removesuffix(style.indent)
                edits.append((container.start + 1, container.end - 1, inside))
                continue
            for key, member in members.items():
                last = behind[container, key]
                if last is container:
                    edits.append((first.begin, first.begin, f"{member},{gap}"))
                else:
                    edits.append((last.end, last.end, f",{gap}{member}"))
        return base.splice(text, edits)

    def _written(
        self, key: str | int, new: str | _Tree, texts: Mapping[str, str], style: "_Style", gap: str
    ) -> str:
        """Return a new member, with all that is new in it; ``gap`` is what stands before it."""
        name = style.string(key) + style.colon if isinstance(key, str) else ""
        if isinstance(new, str):
            return name + self.write_value(new, texts[new], style, gap.rpartition("\n")[2])
        inner = gap + style.indent if "\n" in gap else gap
        members = [self._written(below, new[below], texts, style, inner) for below in new]
        opens = _opener(next(iter(new)))
        return f"{name}{opens}{inner}{f',{inner}'.join(members)}{gap}{_CLOSERS[opens]}"

    def remove(self, text: str, names: Iterable[str]) -> str:
        """Return ``text`` without these units.

        Raises:
            RegionError: see ``find``; or there is no such unit, or a list would close up.
        """
        names = tuple(names)
        root = _read(text)
        units = self._units(root)
        base.refuse_unknown(names, units)
        gone = {units[name][1] for name in names}
        edits: list[tuple[int, int, str]] = []
        # By container, because the commas of its members belong together.
        for container in {_walk(root, units[name][0])[-2] for name in names}:
            members = [*container.members.values()]
            stay = [member for member in members if member not in gone]
            if container.opens == "[" and stay != members[: len(stay)]:
                # The names of later items would change.
                problem = "an item cannot be taken out of a list that goes on behind it"
                hint = "edit the list by hand, then run `pytest-regen adopt` on the file"
                raise base.defect(base.line_at(text, container.start), problem, hint)
            if not stay:
                edits.append((container.start + 1, container.end - 1, ""))
                continue
            # The first that stays stands where the old first one did, on whatever line.
            edits.append((members[0].begin, stay[0].begin, ""))
            edits += [
                (before.end, member.end, "")
                for before, member in pairwise(members)
                if member in gone and member.start > stay[0].start
            ]
        return base.splice(text, edits)

    def _units(self, root: _Value) -> dict[str, tuple[_Path, _Value]]:
        """Return path and value of each unit by name."""
        named = [(".".join(map(str, path)), path, value) for path, value in self._select(root)]
        # All names are made at once, because one may be ambiguous through another.
        count = Counter(name for name, _, _ in named)
        units = {}
        for name, path, value in named:
            is_ambiguous = count[name] > 1 or "" in path or name.startswith("/")
            units[pointer(path) if is_ambiguous else name] = path, value
        return units

    def _path(self, root: _Value, name: str) -> _Path:
        """Return the path on which a unit that is not there is to stand.

        Dots divide keys as the document has it: objects that are there are entered, and a new key
        holds dots where keys beside it do, as in catalogues of i18next and ARB.
        """
        is_pointer = name.startswith("/")
        keys = name[1:].split("/") if is_pointer else name.split(".")
        path: list[str | int] = []
        value = root
        while keys:
            count = 1 if is_pointer else self._count(value, keys)
            key = ".".join(keys[:count])
            if is_pointer:
                key = key.replace("~1", "/").replace("~0", "~")
            path.append(int(key) if value.opens == "[" and key.isdecimal() else key)
            value = value.members.get(path[-1], _Value("{"))
            del keys[:count]
        return tuple(path)

    def _count(self, value: _Value, keys: Sequence[str]) -> int:
        """Return how many of ``keys``, which dots divide, are one key of a value."""
        for count in range(len(keys), 0, -1):
            member = value.members.get(".".join(keys[:count]))
            if member is not None and (count == len(keys) or member.opens in _CLOSERS):
                return count
        is_flat = any("." in str(key) for key in value.members)
        return len(keys) if is_flat or keys[0] in value.members else 1

    def _select(self, root: _Value) -> Iterator[tuple[_Path, _Value]]:
        """Yield the values below ``root`` that are units."""
        # Not by recursion, because a document may be nested more deeply than Python's stack.
        waiting: list[tuple[_Path, _Value]] = [((), root)]
        while waiting:
            path, value = waiting.pop()
            if path and value.opens == '"':
                yield path, value
            members = reversed(value.members.items())
            waiting += [((*path, key), member) for key, member in members]

    def _text(self, text: str, value: _Value) -> str:
        """Return the text of a unit: a string was decoded when it was read."""
        return value.string

    def write_value(self, name: str, new: str, style: "_Style", indent: str) -> str:
        """Return the text as a JSON string."""
        return style.string(new)


class JsonValues(JsonStrings):
    """Every member of one object, or item of one list, is a unit: by default, of the root.

    The text of a unit is the JSON of its value, its lines without the indentation of its key.
    """

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts are the same JSON value, in whatever order keys come."""
        try:
            one, other = (json.dumps(json.loads(text), sort_keys=True) for text in (old, new))
        except (ValueError, RecursionError):
            return old == new
        return one == other

    def _count(self, value: _Value, keys: Sequence[str]) -> int:  # dots divide nothing
        return len(keys)

    def _select(self, value: _Value) -> Iterator[tuple[_Path, _Value]]:
        return (((key,), member) for key, member in value.members.items())

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
            _parse(new)
        except RegionError as error:
            what = f"the text of {name!r} is not a JSON value: {error.what}"
            raise RegionError(what, hint="write one JSON value and nothing else") from None
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
        # Not by control characters, because every writer escapes those.
        escapes = text.isascii() and re.search(r"\\u(?!00[0-7])[0-9a-fA-F]{4}", text) is not None
        line_end = "\r\n" if base.has_crlf(text) else "\n"
        return cls(line_end, indent[1] if indent else "  ", colon[1] if colon else ": ", escapes)

    def string(self, text: str) -> str:
        """Return a string as JSON; lone surrogates are escaped, as no file can hold them."""
        # Files that Java's tools wrote are ASCII throughout, and stay so.
        written = json.dumps(text, ensure_ascii=self.ascii_only)
        return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", written)


def _read(text: str) -> _Value:
    """Return the root of a JSON document with the places of all its values; of none, ``{}``."""
    return _parse(text) if text.strip(_BLANKS) else _Value("{")


def _parse(text: str) -> _Value:
    """Return the value that a text holds, with the places of all values in it."""
    at = int(text.startswith("\ufeff"))
    try:
        strict_loads(text[at:], unique_keys=False)
    except ValueError as error:
        problem = f"the JSON is broken: {getattr(error, 'msg', error)}"
        raise _defect(text, at + getattr(error, "pos", 0), problem) from None
    # It is known to be JSON now, so that nothing but places is looked for.
    root = _Value("[")
    above = [root]
    key: str | int = 0
    for token in _TOKEN.finditer(text, at):
        parent, word = above[-1], token[0]
        string = json.loads(token["string"]) if token["string"] else ""
        if token["colon"]:
            key, at = string, token.start()
        elif word in _CLOSERS.values():
            above.pop().end = token.end()
        else:
            if parent.opens == "[":
                key, at = len(parent.members), token.start()
            value = _Value(word[0], at, token.start(), token.end(), string)
            first = parent.members.setdefault(key, value)
            if first is not value:
                # Programs read the last of two, people the first: neither can be the unit.
                line = base.line_at(text, first.start)
                problem = f"the JSON has the key {key!r} a second time (first: line {line})"
                raise _defect(text, at, problem)
            if word in _CLOSERS:
                above.append(value)
    return root.members[0]


def _defect(text: str, index: int, problem: str) -> RegionError:
    """Return the error that a text has a problem there."""
    column = index - text.rfind("\n", 0, index)
    hint = "correct that line, or take the file from version control"
    return base.defect(base.line_at(text, index), f"{problem} (column {column})", hint)


def pointer(path: Sequence[str | int]) -> str:
    """Return the JSON pointer of a path (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _walk(root: _Value, path: _Path) -> list[_Value]:
    """Return the values on a path, the root first, as far as they are there."""
    values = [root]
    for key in path:
        if key not in values[-1].members:
            break
        values.append(values[-1].members[key])
    return values


def _opener(key: str | int) -> str:
    """Return the bracket of a container that has members of such keys."""
    return "[" if isinstance(key, int) else "{"


def _indent_at(text: str, index: int) -> str:
    """Return the indentation of the line on which ``index`` stands."""
    start = text.rfind("\n", 0, index) + 1
    line = text[start:index]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _put(tree: _Tree, keys: _Path, name: str) -> None:
    """Put the name of a unit into a tree."""
    for key in keys[:-1]:
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            raise _obstacle(1, name)
        tree = below
    tree[keys[-1]] = name


def _obstacle(line: int, name: str) -> RegionError:
    hint = "take it out, or name the unit otherwise; where a key has a dot, other names keep theirs"
    return base.defect(line, f"a value stands where {name!r} belongs", hint)


def _layout(text: str, container: _Value, style: _Style) -> tuple[_Value | None, str]:
    """Return the first member of a container, and the blanks before any other."""
    members = [*container.members.values()]
    if not members:
        return None, style.line_end + _indent_at(text, container.start) + style.indent
    lead = text[container.start + 1 : members[0].begin]
    if "\n" not in lead and len(members) > 1:
        return members[0], text[members[0].end : members[1].begin].partition(",")[2]
    return members[0], lead if "\n" in lead else style.colon.partition(":")[2]
