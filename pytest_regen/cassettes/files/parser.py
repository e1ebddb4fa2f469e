"""A safe parser for the text of cassettes, whoever wrote them, which makes plain values only.

Cassettes travel: they are merged, fetched, downloaded. So no objects are constructed, nothing may
nest or refer to itself until memory is full, and no duplicate key is resolved silently.
"""

import base64
import codecs
import json
import re
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

from pytest_regen.cassettes.files.bodies import UndecodableBodyError
from pytest_regen.cassettes.files.storage import display_path
from pytest_regen.errors import CassetteUnreadableError
from pytest_regen.strict_json import strict_loads

# Levels of YAML, because the parser in C has no limit of its own and would crash the process.
_DEEPEST = 100

_EXPANDED = 1_000_000
_TIMES = 20
"""How large references may make a file: in characters, and in multiples of its length."""

_REFERENCE = re.compile(r"\*(?<=[\s\[,{:-]\*)[^\s*\[\]{},]")
_LFS = b"version https://git-lfs.github.com/spec/"


def check_content(path: Path, data: bytes) -> bytes:
    """Return the bytes of a cassette without a byte order mark and with LF line ends.

    Raises:
        CassetteUnreadableError: the file is empty or a Git LFS pointer.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data or data.isspace():
        raise unreadable(path, "the file is empty", line=1)
    if data.startswith(_LFS):
        why = "the file is a pointer of Git LFS: the cassette itself was not fetched"
        raise unreadable(path, why, line=1, hint="git lfs pull")
    return data.replace(b"\r\n", b"\n") if b"\r\n" in data else data


def text_of(path: Path, data: bytes | memoryview, line: int = 1) -> str:
    """Return bytes of a cassette, which start at ``line``, as text.

    Raises:
        CassetteUnreadableError: they are not UTF-8.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        at = line + error.object[: error.start].count(b"\n")
        raise unreadable(path, "the file is binary, not UTF-8 text", line=at) from None


def parse_yaml(text: str, path: Path, line: int = 1) -> tuple[object, list[int]]:
    """Parse YAML that may only be made of plain values.

    Args:
        text: the YAML.
        path: the cassette it stands in.
        line: the line it starts at.

    Returns:
        The value, and the lines that the interactions of a whole cassette start at.

    Raises:
        CassetteUnreadableError: it is broken, or asks for more than plain values.
    """
    import yaml

    value = None
    try:
        parser = loader()(text)
        # In two steps, because the nodes still know the lines that interactions start at.
        node = parser.get_single_node()
        if node is not None:
            value = parser.construct_document(node)
        if "&" in text and _REFERENCE.search(text):
            _refuse_expanding(value, len(text), path, line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # Because the parser in C counts the end of a text as a line of its own.
        at = line + (min(mark.line, text.count("\n")) if mark else 0)
        problem = str(error.problem)
        # Because PyYAML 6.0.4 counts by itself, and stops before ``descend_resolver`` can.
        if "maximum nesting depth" in problem:
            problem = f"it is nested more than {_DEEPEST} levels deep"
        raise unreadable(path, f"the YAML is broken: {problem}", line=at) from None
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        at = line + text.encode()[: error.position].count(b"\n")
        why = f"the YAML is broken: it holds the character U+{code:04X} as it is"
        raise unreadable(path, why, line=at) from None
    except (ValueError, ArithmeticError, LookupError, AttributeError) as error:
        # What PyYAML makes of a number with too many digits, or of a day that is none.
        raise unreadable(path, f"the YAML is broken: {error}", line=line) from None
    members = node.value if node is not None and node.id == "mapping" else ()
    lists = [v.value for k, v in members if k.value == "interactions" and v.id == "sequence"]
    return value, [line + item.start_mark.line for item in (lists[0] if lists else ())]


def parse_text(path: Path, text: str) -> tuple[Any, list[int]]:
    """Return the value of a file in YAML or JSON, and the lines that YAML's interactions start at.

    Raises:
        CassetteUnreadableError: it is broken, or asks for more than plain values.
    """
    if text.lstrip().startswith(("{", "[")):
        try:
            return strict_loads(text, constants=True), []
        except ValueError as error:
            # Else YAML, which may begin like this, too.
            if ".json" in path.suffixes:
                line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
                raise unreadable(path, f"the JSON is broken: {error}", line=line) from None
    return parse_yaml(text, path)


def interactions_with_lines(
    path: Path, text: str, data: object, lines: list[int]
) -> list[tuple[int, Any]]:
    """Return the interactions of a parsed cassette, each with the line it starts at.

    Raises:
        CassetteUnreadableError: it has no list of them, or is truncated inside its last line.
    """
    items = data.get("interactions") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(items, list):
        why = "the file is not a cassette: it has no list of interactions"
        raise unreadable(path, why, line=1)
    # The last line of vcrpy is the version.
    if not text.endswith(("\n", "}")) and "version" not in data:
        line = text.count("\n") + 1
        raise unreadable(path, "the file is cut: its last line does not end", line=line)
    return list(zip(lines or [1] * len(items), items, strict=True))


def _refuse_expanding(value: object, length: int, path: Path, line: int) -> None:
    """Refuse a value that is far larger than its text, or contains itself."""
    weights: dict[int, int] = {}

    def weigh(part: Any) -> int:
        if isinstance(part, str | bytes):
            return len(part) + 1
        if not isinstance(part, Mapping | list | tuple | set):
            return 1
        if id(part) not in weights:
            # Far too much until it is known, because what contains itself is refused, too.
            weights[id(part)] = 10**30
            inner = [*part, *part.values()] if isinstance(part, Mapping) else part
            weights[id(part)] = 1 + sum(map(weigh, inner))
        return weights[id(part)]

    if weigh(value) > _EXPANDED + _TIMES * length:
        why = "it refers to itself, so often that it would not fit into memory"
        raise unreadable(path, why, line=line, hint="delete the file and record it again")


def _file_body(loader: Any, node: Any) -> object:
    state = loader.construct_mapping(node, deep=True).get("state") or [b""]
    content = state[0] or b""
    return BytesIO(content.encode() if isinstance(content, str) else content)


_TAG = "tag:yaml.org,2002:"


@cache
def loader() -> Any:
    """Return the loader of cassettes: it makes plain values, within limits, and runs no code.

    It knows the tags that vcrpy wrote for text, tuples, and bodies from files or iterators, because
    before 8.2.1 vcrpy's own loader would run code for them.
    """
    import yaml

    class Guarded(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # known at run time
        """Safe, limited and exact."""

        _depth = 0

        def descend_resolver(self, current_node: Any, *_: Any) -> None:
            """Count how deep the node is; the parser calls this for each."""
            self._depth += 1
            if self._depth > _DEEPEST:
                _refuse(current_node, f"it is nested more than {_DEEPEST} levels deep")

        def ascend_resolver(self) -> None:
            self._depth -= 1

        def flatten_mapping(self, node: Any) -> None:
            """Refuse merges, because they could multiply without end."""
            if any(key.tag.endswith(":merge") for key, _ in node.value):
                _refuse(node, "'<<' merges mappings, which a cassette never needs")

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
            """Refuse duplicate keys, because readers differ in which of the values counts."""
            mapping, names = super().construct_mapping(node, deep), set[str]()
            for key, _ in node.value if len(mapping) < len(node.value) else ():
                if str(key.value) in names:
                    _refuse(key, f"the key {key.value!r} is there twice")
                names.add(str(key.value))
            return mapping

    theirs = yaml.constructor.FullConstructor
    Guarded.yaml_constructors = {
        **Guarded.yaml_constructors,
        # Strict, because PyYAML would drop unknown characters.
        f"{_TAG}binary": lambda loader, node: base64.b64decode(
            "".join(loader.construct_scalar(node).split()), validate=True
        ),
        f"{_TAG}python/str": theirs.construct_python_str,
        f"{_TAG}python/unicode": theirs.construct_python_unicode,
        f"{_TAG}python/tuple": theirs.construct_python_tuple,
        f"{_TAG}python/object/new:_io.BytesIO": _file_body,
        f"{_TAG}python/object/apply:builtins.iter": lambda loader, node: iter(
            (loader.construct_mapping(node, deep=True).get("args") or [[]])[0]
        ),
    }
    return Guarded


def _refuse(node: Any, why: str) -> NoReturn:
    from yaml.constructor import ConstructorError

    raise ConstructorError(None, None, why, node.start_mark)


def broken(path: Path, error: Exception, line: int) -> CassetteUnreadableError:
    """Return the error for an interaction that something is missing in, or of another type."""
    if isinstance(error, KeyError):
        why = f"this interaction is incomplete: {error.args[0]!r} is missing"
    elif isinstance(error, UndecodableBodyError):
        why = error.why
    else:
        why = f"this interaction is broken: {error}"
    return unreadable(path, why, line=line)


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
