"""JSON values in the midst of prose: where they begin, where they end, which of them are whole.

Standard library only. Values are found in the order in which they stand in the text, fenced or
not, so that neither braces in prose nor a fence around something else can hide them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

__all__ = ["JsonText", "complete_items", "json_texts", "load_json"]

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>```+|~~~+)[ \t]*[\w+.-]*[ \t]*(?:\n|(?=[{\[\"]))"
    r"(?P<inside>.*?)(?:\n[ \t]*)?(?P=fence)",
    re.MULTILINE | re.DOTALL,
)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```+|~~~+)", re.MULTILINE)
_OPENER = re.compile(r"[{\[]")
_LOOKS_LIKE_JSON = re.compile(
    r"""\{\s*(?:["}']|[A-Za-z_]\w*\s*:)|\[\s*(?:[\[{"\]\d-]|(?:true|false|null|NaN)\b)"""
)
"""An object with a key, or a list with a value. ``{x}`` and ``[note]`` are prose."""
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)
_LIST_OF_OBJECTS = re.compile(r"\[(?=\s*\{)")
_NEXT_ITEM = re.compile(r"[\s,]*(?=\{)")
_CLOSES = {"{": "}", "[": "]"}


class JsonText(NamedTuple):
    """A JSON value as it stands in a text."""

    text: str
    """JSON that parses; commas before a closing bracket are left out."""
    value: Any


def load_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of ``text``.

    Raises:
        ValueError: it is no JSON; ``NaN`` and infinities are none either.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("the value is nested too deeply") from error


def json_texts(text: str) -> Iterator[JsonText]:
    """Yield the JSON values of ``text`` in order: the whole text, then objects, lists and fences.

    A broken value is passed over with everything inside it: a part of a reply that was cut, or
    written wrongly, must not be taken for the reply.
    """
    whole = _parsed(text.strip().lstrip("\ufeff"))
    if whole is not None:
        yield whole
        return
    fences = {match.start("inside"): match for match in _FENCE.finditer(text)}
    starts = sorted(fences)
    position = 0
    while True:
        opener = _OPENER.search(text, position)
        # A fence may hold a value without brackets: a number, a string.
        while starts and (opener is None or starts[0] <= opener.start()):
            found = _parsed(fences[starts.pop(0)]["inside"].strip())
            if found is not None and not isinstance(found.value, dict | list):
                yield found
        if opener is None:
            return
        found, position = _value_at(text, opener.start())
        if found is not None:
            yield found


def complete_items(text: str, key: str) -> list[Any]:
    """Return the whole items of the list under ``key`` in a reply that was cut.

    Args:
        text: the reply, whose first list under ``key`` may lack its end.
        key: name of the list in the outermost object. A bare list is taken as well.
    """
    start = re.search(rf'"{re.escape(key)}"\s*:\s*\[', text) or _LIST_OF_OBJECTS.search(text)
    if start is None:
        return []
    items: list[Any] = []
    position = start.end()
    while opening := _NEXT_ITEM.match(text, position):
        end = _end_of(text, opening.end())
        found = _parsed(text[opening.end() : end]) if end is not None else None
        if end is None:
            break
        position = end
        if found is not None:
            items.append(found.value)
    return items


def _value_at(text: str, start: int) -> tuple[JsonText | None, int]:
    """Return the value that begins at ``start``, if it is one, and where to look on."""
    if not _LOOKS_LIKE_JSON.match(text, start):
        return None, start + 1
    end = _end_of(text, start)
    if end is None:
        # Cut, or a bracket of prose that nothing closes: only a new fence begins afresh.
        fence = _FENCE_LINE.search(text, start)
        return None, fence.end() if fence else len(text)
    return _parsed(text[start:end]), end


def _end_of(text: str, start: int) -> int | None:
    """Return the position after the bracket that closes the one at ``start``."""
    open_: list[str] = []
    for token in _TOKEN.finditer(text, start):
        found = token[0]
        if found in _CLOSES:
            open_.append(_CLOSES[found])
        elif found in "}]":
            if open_.pop() != found:
                return token.end()  # Crossed brackets: no JSON, and it ends here.
            if not open_:
                return token.end()
    return None


def _parsed(text: str) -> JsonText | None:
    for candidate in (text, _TRAILING_COMMA.sub(_without_comma, text)):
        try:
            return JsonText(candidate, load_json(candidate))
        except ValueError:
            continue
    return None


def _without_comma(match: re.Match[str]) -> str:
    return "" if match[0] == "," else match[0]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
