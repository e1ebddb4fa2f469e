"""JSON bodies as text: spread over lines without loss, changed at single places, named by path.

Parsing and writing JSON again would change numbers, escapes and white space, and an answer may be
signed over ``1.10``, ``1e400`` and the order of its keys.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, get_args

from pytest_regen.errors import CassetteError, UsageError
from pytest_regen.strict_json import json_bytes, json_or_none

Layout = Literal["compact", "spaced"]
"""How the wire wrote what a file shows line by line: ``{"a":1,"b":2}`` or ``{"a": 1, "b": 2}``."""

LAYOUTS: Final[tuple[Layout, ...]] = get_args(Layout)

# In characters. A longer body stays on one line, because nobody reads it.
_LARGEST = 1_000_000

# Levels, because each indents what is inside: a few kilobytes of brackets could fill the disk.
_DEEPEST = 50

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(
    rf'[ \t\r\n]*((?:{_STRING}|[^"{{}}\[\],: \t\r\n]+)?)[ \t\r\n]*([{{}}\[\],:]|\Z)'
)
_STRINGS = re.compile(_STRING)
_NAME = re.compile(rf"(\n *{_STRING}:) ")
_BREAK = re.compile(r"\n *")
_BREAK_BEHIND_COMMA = re.compile(r",\n *")


def spread_json(text: str) -> tuple[str, Layout] | None:
    """Return JSON with one member per line, and the layout in which it is ``text`` again.

    Its tokens are those of ``text``. ``None`` if it is not an object or array, already has line
    breaks, or is spaced in a way that no ``Layout`` describes.
    """
    body = text.rstrip("\n")
    if body[:1] not in {"{", "["} or "\n" in body or len(text) > _LARGEST:
        return None
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return None
    spread = _spread(body)
    if spread is None:
        return None
    laid_out = spread + text[len(body) :]
    for layout in LAYOUTS:
        if restore_wire(laid_out, layout) == text:
            return laid_out, layout
    return None


def restore_wire(text: str, layout: str) -> str:
    """Return the text as the wire had it, from its lines in a file."""
    laid_out = text.rstrip("\n")
    # JSON strings hold no raw line ends, so every line break here is one of the layout.
    is_spaced = layout == "spaced"
    joined = _BREAK_BEHIND_COMMA.sub(", ", laid_out) if is_spaced else _NAME.sub(r"\1", laid_out)
    return _BREAK.sub("", joined) + text[len(laid_out) :]


def _spread(text: str) -> str | None:
    """Return JSON with one line per member, or ``None`` if that would be far larger."""
    pieces: list[str] = []
    breaks = ["\n" + "  " * depth for depth in range(_DEEPEST)]
    depth, before = 0, ""
    for scalar, sign in _TOKEN.findall(text):
        behind = sign
        if sign == ":":
            behind = ": "
        elif sign == ",":
            behind = "," + breaks[depth]
        elif sign in {"{", "["}:
            depth += 1
            if depth == _DEEPEST:
                return None
            behind = sign + breaks[depth]
        elif sign:
            depth -= 1
            if not scalar and before in {"{", "["}:
                pieces[-1] = before
            else:
                behind = breaks[depth] + sign
        pieces += (scalar, behind) if scalar else (behind,)
        before = sign
    return "".join(pieces)


# Single texts changed


def rewrite_texts(body: bytes, value: Any, target: Any) -> bytes:
    """Return JSON that says ``wanted`` where it said ``value``; the rest keeps its bytes.

    Args:
        body: the JSON as it came.
        value: its value.
        target: the same with other texts and names.
    """
    if target == value:
        return body
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return json_bytes(target)
    # The n-th string of the text is the n-th of the value, because both keep the order of members.
    pairs = list(text_pairs(value, target))
    strings = list(_STRINGS.finditer(text))
    if len(pairs) != len(strings):
        return json_bytes(target)
    pieces, at = [], 0
    for (old, new), string in zip(pairs, strings, strict=True):
        if old != new:
            written = json.dumps(new, ensure_ascii=string[0].isascii())
            pieces += [text[at : string.start()], written]
            at = string.end()
    # Read once more, because a name that stands twice has two strings and one value.
    rewritten = "".join([*pieces, text[at:]]).encode("utf-8", "surrogatepass")
    return rewritten if json_or_none(rewritten) == target else json_bytes(target)


def change_body(
    body: bytes, change_json: Callable[[Any], Any], change_text: Callable[[str], str]
) -> bytes:
    """Return a body whose JSON is changed, else its text; raises UnicodeDecodeError if binary."""
    value = json_or_none(body)
    if value is None:
        return change_text(body.decode()).encode()
    return rewrite_texts(body, value, change_json(value))


def text_pairs(value: Any, target: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts and names of both, in the order they are written in."""
    if isinstance(value, str) and isinstance(target, str):
        yield value, target
    elif isinstance(value, Mapping) and isinstance(target, Mapping):
        for (name, item), (new_name, new_item) in zip(value.items(), target.items(), strict=False):
            yield name, new_name
            yield from text_pairs(item, new_item)
    elif isinstance(value, list) and isinstance(target, list):
        for item, new_item in zip(value, target, strict=False):
            yield from text_pairs(item, new_item)


_STEP = re.compile(
    r"""\.\.(?P<deep>\w+)|\.(?P<name>\w[\w-]*)|(?P<any>\.\*|\[\*\])|\[(?P<index>\d+)\]"""
    r"""|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
)

_PLAIN = re.compile(r"[^\W\d]\w*")
"""Names that need no quotes."""

_INDEX = re.compile(r'("(?:[^"\\]|\\.)*")|\[\d+\]')
"""A quoted name, which may hold anything, or the number of a list item."""


JsonPath = tuple[tuple[str, str | int], ...]
"""A parsed path: the steps from the outermost value to the places it names, each with its kind."""


def parse_path(text: str) -> JsonPath:
    """Return the parsed path.

    Understood are ``$``, ``.name``, ``["any name"]``, ``[0]``, ``[*]``, ``.*`` and ``..name``
    (at any depth).

    Raises: UsageError: the path cannot be parsed.
    """
    steps: list[tuple[str, str | int]] = []
    at = 1
    while text.startswith("$") and at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            break
        kind, value = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "quoted":
            kind, value = "name", json.loads(value)
        steps.append((kind, int(value) if kind == "index" else value))
        at = match.end()
    if not steps or at < len(text):
        raise UsageError(
            f"{text!r} is not a path into JSON",
            why='a path is $ and then .name, ["name"], [0], [*], .* or ..name',
            hint='for example ignore = ["$.metadata.user_id", "$.messages[*].content[*].id"]',
        )
    return tuple(steps)


def replace_at(value: Any, path: JsonPath, replacement: object) -> Any:
    """Return ``value`` with ``replacement`` at every place that ``path`` names.

    ``value`` itself is not changed, and missing members are not created.
    """
    if not path:
        return replacement
    if not isinstance(value, Mapping | list):
        return value
    kind, name = path[0]
    changed = dict(value.items() if isinstance(value, Mapping) else enumerate(value))
    for key, child in changed.items():
        # A name is no number, so that a step to a member leads nowhere in a list.
        if kind == "any" or key == name:
            changed[key] = replace_at(child, path[1:], replacement)
        elif kind == "deep":
            # The same step once more, because the name may stand at any depth.
            changed[key] = replace_at(child, path, replacement)
    return changed if isinstance(value, Mapping) else list(changed.values())


def leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Yield every value that is not an object or array, with its path."""
    if isinstance(value, Mapping | list) and value:
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(item, member_path(path, name))
    else:
        yield path, value


def member_path(path: str, name: str | int) -> str:
    """Return the path to a member or item of the value at ``path``; see ``parse_path``."""
    is_plain = isinstance(name, str) and _PLAIN.fullmatch(name) is not None
    return f"{path}.{name}" if is_plain else f"{path}[{json.dumps(name)}]"


def at_any_index(path: str) -> str:
    """Return a path without the numbers of list items: ``$.messages[*].content``."""
    return _INDEX.sub(lambda match: match[1] or "[*]", path)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value whose texts, names of members included, are changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): map_texts(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [map_texts(item, change) for item in value]
    return value


@contextmanager
def limited_depth() -> Iterator[None]:
    """Refuse JSON that is nested too deeply to be compared or written."""
    try:
        yield
    except RecursionError:
        raise CassetteError(
            "the JSON of a request or of its answer is nested too deeply for a cassette",
            why="hundreds of levels",
            hint="send the inner part as text, or leave this request outside the cassette",
        ) from None
