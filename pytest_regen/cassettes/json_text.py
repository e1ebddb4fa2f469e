"""JSON as text: spread over lines so that nothing is lost, and changed at single places.

Parsed and written again, numbers, escapes and white space would be others: ``1.10``, ``1e400`` and
key order are what an answer may be signed for.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from pytest_regen.cassettes.strict_json import json_bytes, json_or_none

__all__ = ["LAYOUTS", "LaidOut", "Layout", "laid_out", "restored", "rewritten"]

Layout = Literal["compact", "spaced"]
"""How the wire wrote what a file shows line by line: ``{"a":1,"b":2}`` or ``{"a": 1, "b": 2}``."""

LAYOUTS: Final[tuple[str, ...]] = get_args(Layout)

_LARGEST = 1_000_000
"""Characters: what nobody would read need not be spread over lines."""

_DEEPEST = 50
_TIMES = 10
"""Levels, and times its own length: indented, a body of a few kilobytes could fill the disk."""

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(
    rf'[ \t\r\n]*((?:{_STRING}|[^"{{}}\[\],: \t\r\n]+)?)[ \t\r\n]*([{{}}\[\],:]|\Z)'
)
_STRINGS = re.compile(_STRING)
_NAME = re.compile(rf"(\n *{_STRING}:) ")
_BREAK = re.compile(r"\n *")
_BREAK_BEHIND_COMMA = re.compile(r",\n *")
_CHARACTERS = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]",
    re.DOTALL,
)
"""The characters of a string as JSON writes them."""


class LaidOut(NamedTuple):
    """JSON spread over lines."""

    text: str
    layout: Layout


def laid_out(text: str) -> LaidOut | None:
    """Return JSON with each member on its line, if ``restored`` makes the same text of it.

    Its tokens are those of ``text``. ``None`` where it is no object or array, is spread over lines
    already, or is written in a way that could not be told in a word.
    """
    body = text.rstrip("\n")
    if body[:1] not in {"{", "["} or "\n" in body or len(text) > _LARGEST or not _is_json(body):
        return None
    spread = _spread(body)
    if spread is None:
        return None
    shown = spread + text[len(body) :]
    for layout in get_args(Layout):
        if restored(shown, layout) == text:
            return LaidOut(shown, layout)
    return None


def restored(text: str, layout: str) -> str:
    """Return the text of the wire from its lines in a file."""
    shown = text.rstrip("\n")
    # No string of JSON holds a line end.
    is_spaced = layout == "spaced"
    joined = _BREAK_BEHIND_COMMA.sub(", ", shown) if is_spaced else _NAME.sub(r"\1", shown)
    return _BREAK.sub("", joined) + text[len(shown) :]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _spread(text: str) -> str | None:
    """Return JSON with a line for each member; ``None`` where that would be far larger."""
    found: list[str] = []
    breaks = ["\n" + "  " * depth for depth in range(_DEEPEST)]
    depth, size, before = 0, 0, ""
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
                found[-1] = before
            else:
                behind = breaks[depth] + sign
        found += (scalar, behind) if scalar else (behind,)
        size += len(scalar) + len(behind)
        if size > _TIMES * len(text) + _LARGEST // 100:
            return None
        before = sign
    return "".join(found)


# Single texts changed


def rewritten(body: bytes, value: Any, wanted: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return JSON that says ``wanted`` where it said ``value``; the rest keeps its bytes.

    Args:
        body: the JSON as it came.
        value: what stands in it.
        wanted: the same with other texts and names.
    """
    if wanted == value:
        return body
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return json_bytes(wanted)
    pairs = list(_texts(value, wanted))
    strings = list(_STRINGS.finditer(text))
    if len(pairs) != len(strings):
        return json_bytes(wanted)
    pieces, at = [], 0
    for (old, new), string in zip(pairs, strings, strict=True):
        if old != new:
            pieces += [text[at : string.start()], _changed(string[0], old, new)]
            at = string.end()
    found = "".join([*pieces, text[at:]]).encode("utf-8", "surrogatepass")
    return found if json_or_none(found) == wanted else json_bytes(wanted)


def _texts(value: Any, wanted: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    """Yield the texts and names of both, in the order they are written in."""
    if isinstance(value, str) and isinstance(wanted, str):
        yield value, wanted
    elif isinstance(value, Mapping) and isinstance(wanted, Mapping):
        for (name, item), (new_name, new_item) in zip(value.items(), wanted.items(), strict=False):
            yield name, new_name
            yield from _texts(item, new_item)
    elif isinstance(value, list) and isinstance(wanted, list):
        for item, new_item in zip(value, wanted, strict=False):
            yield from _texts(item, new_item)


def _changed(string: str, old: str, new: str) -> str:
    """Return a string of JSON with a part of it changed; the rest keeps its escapes."""
    characters = _CHARACTERS.findall(string[1:-1])
    if len(characters) != len(old):
        return json.dumps(new, ensure_ascii=string.isascii())
    same, most = 0, min(len(old), len(new))
    while same < most and old[same] == new[same]:
        same += 1
    behind = 0
    while behind < most - same and old[-1 - behind] == new[-1 - behind]:
        behind += 1
    middle = json.dumps(new[same : len(new) - behind], ensure_ascii=string.isascii())[1:-1]
    end = "".join(characters[len(characters) - behind :])
    return f'"{"".join(characters[:same])}{middle}{end}"'
