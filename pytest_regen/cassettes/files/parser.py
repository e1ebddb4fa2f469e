"""A safe parser for the text of cassettes, whoever wrote them, which makes plain values only.

Cassettes travel: they are merged, fetched, downloaded. So no objects are constructed, nothing may
nest or refer to itself until memory is full, and no duplicate key is resolved silently.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pytest_regen.cassettes.files.storage import display_path
from pytest_regen.errors import CassetteUnreadableError
from pytest_regen.strict_json import DuplicateKeyError, TooDeepError, strict_loads

_DEEPEST = 100
"""Levels of YAML; the parser in C has no limit of its own and would crash the process."""

_EXPANDED = 1_000_000
_TIMES = 20
"""How large references may make a file: in characters, and in multiples of its length."""

_FEW = 1 << 15
"""In characters: a shorter file is parsed as a whole."""

_SHORT = 100
"""In characters: shorter scalars, as in most headers, are resolved once and cached."""

_TAGS = "tag:yaml.org,2002:"
_TEXT, _MAPPING, _SEQUENCE = f"{_TAGS}str", f"{_TAGS}map", f"{_TAGS}seq"

_OBJECT_TAG = re.compile(r"(?:!!|tag:yaml\.org,2002:)python/[^\s>]*")
_REFERENCE = re.compile(r"\*(?<=[\s\[,{:-]\*)[^\s*\[\]{},]")
_HEAD = re.compile(r"(?:\A|\n)interactions:[ \t]*\n(?=( *)- )")
_TAIL = re.compile(r"\n[^\s#-]")
_NEXT_ITEM = re.compile(r"[\s,]*(?=\{)")
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_CONFLICTS = (b"<<<<<<< ", b">>>>>>> ")
_LFS = b"version https://git-lfs.github.com/spec/"


def check_content(path: Path, data: bytes) -> bytes:
    """Return the bytes of a cassette without a byte order mark and with LF line ends.

    Raises:
        CassetteUnreadableError: the bytes are not text, or the file is empty, a Git LFS pointer
            or an unresolved merge.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data or data.isspace():
        raise unreadable(path, "the file is empty", line=1)
    if data.startswith(_LFS):
        why = "the file is a pointer of Git LFS: the cassette itself was not fetched"
        raise unreadable(path, why, line=1, hint="git lfs pull")
    data = data.replace(b"\r\n", b"\n") if b"\r\n" in data else data
    for mark in _CONFLICTS:
        # Bodies are indented, so nothing else in a cassette begins a line with these.
        at = 0 if data.startswith(mark) else data.find(b"\n" + mark) + 1
        if at or data.startswith(mark):
            why = f"a merge left a conflict in it: {mark.decode().strip()}"
            hint = "resolve the conflict; keep one side, and record again what is missing"
            raise unreadable(path, why, line=data.count(b"\n", 0, at) + 1, hint=hint)
    return data


def text_of(path: Path, data: bytes | memoryview, line: int = 1) -> str:
    """Return bytes of a cassette as text.

    Args:
        path: the cassette.
        data: its bytes, or some of them.
        line: the line they start at.

    Raises:
        CassetteUnreadableError: they are not UTF-8.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        at = line + error.object[: error.start].count(b"\n")
        raise unreadable(path, "the file is binary, not UTF-8 text", line=at) from None


def parse_yaml(
    text: str,
    path: Path,
    line: int = 1,
    *,
    loader: Any = None,
) -> tuple[object, list[int]]:
    """Parse YAML that may only be made of plain values.

    Args:
        text: the YAML.
        path: the cassette it stands in.
        line: the line it starts at.
        loader: a result of ``guarded_loader``; by default one for plain values only.

    Returns:
        The value, and the lines that the interactions of a whole cassette start at.

    Raises:
        CassetteUnreadableError: it is broken, or asks for more than plain values.
    """
    node, value = _compose(text, path, line, loader)
    if _may_refer(text):
        _refuse_expanding(value, len(text), path, line)
    return value, [line + item.start_mark.line for item in _items(node)]


def parse_cassette(
    text: str,
    path: Path,
    *,
    loader: Any = None,
) -> tuple[object, list[int]]:
    """Parse the YAML of a whole cassette; takes, returns and raises as ``parse_yaml`` does.

    Recordings listed as vcrpy writes them are parsed one by one: PyYAML keeps some thirty objects
    for each until it reaches the end of its input.
    """
    try:
        found = _parse_one_by_one(text, path, loader) if len(text) > _FEW else None
    except CassetteUnreadableError:
        # For a good message the error has to come from a parser that saw everything before it.
        found = None
    return parse_yaml(text, path, loader=loader) if found is None else found[:2]


def room_behind(text: str, path: Path) -> tuple[int, str] | None:
    """Return where a foreign cassette has room for another recording, and its indentation.

    Args:
        text: the whole cassette, with recordings listed as vcrpy writes them.
        path: its path.

    Returns:
        The place after the last recording; ``None`` if there is none, or if a recording has a key,
        as ours do.
    """
    try:
        found = _parse_one_by_one(text, path, None)
    except CassetteUnreadableError:
        found = None
    if found is None or not text[: found.end].endswith("\n"):
        return None
    ours = [
        item for item in found.data["interactions"] if isinstance(item, Mapping) and "key" in item
    ]
    return None if ours else (found.end, found.indent)


class _SplitCassette(NamedTuple):
    """A cassette whose recordings were parsed one by one."""

    data: dict[str, Any]
    lines: list[int]
    end: int
    """Where the last recording ends."""
    indent: str


def _parse_one_by_one(
    text: str,
    path: Path,
    loader: Any,
) -> _SplitCassette | None:
    """Return a cassette parsed recording by recording; ``None`` if it is not laid out for that.

    A piece that is complete YAML leaves the parser in the state it began in, so the pieces give
    what the whole would give. A piece that ends inside a text or a list is not, and is refused.
    """
    head = _HEAD.search(text)
    if head is None:
        return None
    tail = _TAIL.search(text, head.end() - 1)
    first, end = head.end(), tail.start() + 1 if tail else len(text)
    line = text.count("\n", 0, first) + 1
    frame = f"{text[: first - 1]} []\n{text[end:]}"
    node, data = _compose(frame, path, 1, loader)
    if not isinstance(data, dict) or not _is_empty_at(node, "interactions", line - 2):
        return None
    items: list[object] = []
    lines: list[int] = []
    referring: list[object] = [data] if _may_refer(frame) else []
    while first < end:
        stop = text.find(f"\n{head[1]}- ", first, end) + 1 or end
        piece, first = text[first:stop], stop
        node, found = _compose(piece, path, line, loader)
        if not isinstance(found, list):
            return None
        items += found
        lines += [line + item.start_mark.line for item in node.value]
        referring += found if _may_refer(piece) else []
        line += piece.count("\n")
    if referring:
        _refuse_expanding(referring, len(text), path, 1)
    data["interactions"] = items
    return _SplitCassette(data, lines, end, head[1])


def _is_empty_at(node: Any, name: str, line: int) -> bool:
    """Whether a mapping has this key with an empty list, in this line."""
    return any(
        key.value == name and key.start_mark.line == line and value.value == []
        for key, value in node.value
    )


def _may_refer(text: str) -> bool:
    return "&" in text and _REFERENCE.search(text) is not None


def _compose(
    text: str,
    path: Path,
    line: int,
    loader: Any,
) -> tuple[Any, object]:
    """Return the outermost node of YAML, and the value it stands for; raises as ``parse_yaml``."""
    import yaml

    parser = None
    try:
        parser = (loader or _plain_loader())(text)
        node = parser.get_single_node()
        if node is None:
            return None, None
        # Without references it is a tree, which is built in a fraction of the time.
        is_tree = not _may_refer(text)
        return node, _tree(parser, node) if is_tree else parser.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The parser in C counts the end of a text as a line of its own.
        at = min(mark.line, text.count("\n")) if mark else 0
        raise _problem(path, str(error.problem), line + at) from None
    except RecursionError:
        raise unreadable(path, "the YAML is nested too deeply", line=line) from None
    except (yaml.YAMLError, ValueError) as error:
        found = _UNPRINTABLE.search(text)
        if found is None:
            raise unreadable(path, f"the YAML is broken: {error}", line=line) from None
        at = line + text.count("\n", 0, found.start())
        why = f"the YAML is broken: it holds the character U+{ord(found[0]):04X} as it is"
        raise unreadable(path, why, line=at) from None
    finally:
        if parser is not None:
            parser.dispose()


def _problem(path: Path, problem: str, line: int) -> CassetteUnreadableError:
    """Return the error for what PyYAML stumbled over."""
    # PyYAML 6.0.4 counts by itself, and stops before ``descend_resolver`` can.
    if "maximum nesting depth" in problem:
        problem = f"it is nested more than {_DEEPEST} levels deep"
    tag = _OBJECT_TAG.search(problem)
    if not tag:
        return unreadable(path, f"the YAML is broken: {problem}", line=line)
    return unreadable(
        path,
        f"the file asks for a Python object ({tag[0].rstrip(chr(39))})",
        line=line,
        hint="do not load it: a cassette never needs that tag, and loading it could run code; "
        "delete the file and record it again",
    )


def _items(node: Any) -> list[Any]:
    """Return the nodes of the interactions of a cassette."""
    pairs = node.value if node is not None and node.id == "mapping" else []
    found = {k.value: v.value for k, v in pairs if k.id == "scalar" and v.id == "sequence"}
    return list(found.get("interactions", []))


def parse_json(text: str, path: Path) -> tuple[object, list[int]]:
    """Parse a cassette that is JSON; returns and raises as ``parse_yaml`` does."""
    try:
        value = strict_loads(text, constants=True)
    except json.JSONDecodeError as error:
        raise unreadable(path, f"the JSON is broken: {error.msg}", line=error.lineno) from None
    except DuplicateKeyError as error:
        problem = f"the key {error.key!r} stands twice"
        line = _line_of(problem, text, path)
        raise unreadable(path, f"the JSON is broken: {problem}", line=line) from None
    except TooDeepError:
        raise unreadable(path, "the JSON is nested too deeply", line=1) from None
    except ValueError as error:
        raise unreadable(path, f"the JSON is broken: {error}", line=1) from None
    return value, list(_item_lines(text)) if isinstance(value, Mapping) else []


def _line_of(problem: str, text: str, path: Path) -> int:
    """Return the line of a problem in JSON: JSON is YAML, and that parser knows lines."""
    try:
        parse_yaml(text, path)
    except CassetteUnreadableError as error:
        return (problem in error.why and error.line) or 1
    return 1


def _item_lines(text: str) -> Iterator[int]:
    """Yield the lines that the interactions of a JSON cassette start at."""
    start = re.search(r'"interactions"\s*:\s*\[', text)
    at, decoder = start.end() if start else len(text), json.JSONDecoder()
    line, counted = 1, 0
    while found := _NEXT_ITEM.match(text, at):
        line, counted = line + text.count("\n", counted, found.end()), found.end()
        yield line
        _, at = decoder.raw_decode(text, found.end())


def interactions_with_lines(data: object, lines: list[int], path: Path) -> list[tuple[int, Any]]:
    """Return the interactions of a parsed cassette, each with the line it starts at.

    Args:
        data: the parsed cassette.
        lines: the lines that came with it.
        path: the cassette.

    Raises:
        CassetteUnreadableError: it has no list of them.
    """
    items = data.get("interactions") if isinstance(data, Mapping) else None
    if not isinstance(items, list):
        why = "the file is no cassette: it has no list of interactions"
        raise unreadable(path, why, line=1)
    return [(lines[n] if n < len(lines) else 1, item) for n, item in enumerate(items)]


def refuse_cut(data: Mapping[str, Any], text: str, path: Path) -> None:
    """Refuse a foreign cassette that is truncated inside its last line.

    vcrpy writes the version last.

    Raises:
        CassetteUnreadableError: it is truncated.
    """
    if not text.endswith(("\n", "}")) and "version" not in data:
        line = text.count("\n") + 1
        raise unreadable(path, "the file is cut: its last line does not end", line=line)


def _refuse_expanding(value: object, length: int, path: Path, line: int) -> None:
    """Refuse a value that is far larger than its text, or contains itself."""
    try:
        weight = _weight(value, {})
    except RecursionError:
        weight = None
    if weight is None or weight > _EXPANDED + _TIMES * length:
        why = "it refers to itself, so often that it would not fit into memory"
        raise unreadable(path, why, line=line, hint="delete the file and record it again")


def _weight(value: Any, known: dict[int, int]) -> int:
    """Return how many characters a value has after expanding all references."""
    if isinstance(value, str | bytes):
        return len(value) + 1
    if not isinstance(value, Mapping | list | tuple | set):
        return 1
    if id(value) not in known:
        # Far too much until it is known, so that a value that contains itself is refused.
        known[id(value)] = 10**30
        inner = [*value, *value.values()] if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_weight(item, known) for item in inner)
    return known[id(value)]


@cache
def _plain_loader() -> Any:
    import yaml

    return guarded_loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def guarded_loader(base: Any) -> Any:
    """Return a loader that limits its work and refuses duplicate keys.

    Args:
        base: one of PyYAML's safe loaders, or a class made from one.
    """

    class Guarded(base):  # type: ignore[misc]  # known at run time
        """Safe, limited and exact."""

        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self._depth = 0

        def descend_resolver(self, current_node: Any, *_: Any) -> None:
            """Count how deep the node is; the parser calls this for each."""
            self._depth += 1
            if self._depth > _DEEPEST:
                _refuse(current_node, f"it is nested more than {_DEEPEST} levels deep")

        def ascend_resolver(self) -> None:
            self._depth -= 1

        def flatten_mapping(self, node: Any) -> None:
            """Refuse duplicate keys, and merges, which could multiply without end."""
            _refuse_twice(node)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
            """Say where a broken value is."""
            try:
                return super().construct_object(node, deep)
            except (ValueError, ArithmeticError, LookupError, AttributeError):
                kind = node.tag.rpartition(":")[2]
                _refuse(node, f"{str(node.value)[:40]!r} is no {kind}")

        resolve = _resolver(base.yaml_implicit_resolvers)

    Guarded.add_constructor(f"{_TAGS}binary", _exact_binary)
    return Guarded


def _resolver(patterns: Mapping[Any, Any]) -> Any:
    """Return a loader's method that resolves the tag of a node without an explicit one.

    Args:
        patterns: patterns for plain scalars, by the first character they match.
    """
    from yaml import MappingNode, ScalarNode

    def tag_of(value: str) -> str:
        for tag, pattern in (*patterns.get(value[:1], ()), *patterns.get(None, ())):
            if pattern.match(value):
                return str(tag)
        return _TEXT

    known = lru_cache(maxsize=4096)(tag_of)

    def resolve(_: Any, kind: Any, value: Any, implicit: Any) -> str:
        if kind is not ScalarNode:
            return _MAPPING if kind is MappingNode else _SEQUENCE
        if not implicit[0]:
            # Quoted, or in a block: always text.
            return _TEXT
        return known(value) if len(value) < _SHORT else tag_of(value)

    return resolve


def _tree(parser: Any, node: Any) -> Any:
    """Return what ``construct_document`` would, for nodes without references."""
    if node.tag == _TEXT and node.id == "scalar":
        return node.value
    if node.tag == _SEQUENCE and node.id == "sequence":
        return [_tree(parser, item) for item in node.value]
    is_plain = node.tag == _MAPPING and node.id == "mapping"
    if is_plain and all(key.tag == _TEXT and key.id == "scalar" for key, _ in node.value):
        found = {key.value: _tree(parser, value) for key, value in node.value}
        if len(found) < len(node.value):
            _refuse_twice(node)
        return found
    return parser.construct_object(node, deep=True)


def _refuse(node: Any, why: str) -> NoReturn:
    from yaml.constructor import ConstructorError

    raise ConstructorError(None, None, why, node.start_mark)


def _refuse_twice(node: Any) -> None:
    """Refuse a mapping that names a key twice, or merges another.

    The same plain value twice is accepted: every parser reads it alike.
    """
    seen: dict[tuple[str, str], Any] = {}
    for key, value in node.value:
        if key.id == "scalar":
            other = seen.setdefault((key.tag, key.value), value)
            is_same = other.id == value.id == "scalar" and other.value == value.value
            if other is not value and not (is_same and other.tag == value.tag):
                _refuse(key, f"the key {key.value!r} stands twice")
        if key.tag.endswith(":merge"):
            _refuse(key, "'<<' merges mappings, which a cassette never needs")


def _exact_binary(loader: Any, node: Any) -> bytes:
    """Return binary data; PyYAML would drop unknown characters."""
    import base64

    return base64.b64decode("".join(loader.construct_scalar(node).split()), validate=True)


def unreadable(
    path: Path, why: str, *, line: int | None = None, hint: str = "", is_edited: bool = False
) -> CassetteUnreadableError:
    """Return the error for a file that is not a cassette or must not be loaded."""
    place = f"{display_path(path)}:{line}" if line else display_path(path)
    return CassetteUnreadableError(
        f"{place}: the cassette cannot be read",
        why=why,
        hint=hint or "restore the file from version control, or delete it and record it again",
        line=line,
        is_edited=is_edited,
    )
