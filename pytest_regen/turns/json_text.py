"""JSON values in the midst of prose: where they begin, where they end, which of them are whole.

Standard library only. Values are found in the order in which they stand in the text, fenced or
not, so that neither braces in prose nor a fence around something else can hide them.
"""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from pytest_regen.thinking import without_thinking

__all__ = [
    "JsonText",
    "complete_items",
    "cut_value",
    "end_of_value",
    "first_value",
    "json_texts",
    "load_json",
]

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>```+|~~~+)[ \t]*[\w+.-]*[ \t]*(?:\n|(?=[{\[\"]))"
    r"(?P<inside>.*?)(?:\n[ \t]*)?(?P=fence)",
    re.MULTILINE | re.DOTALL,
)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```+|~~~+)", re.MULTILINE)
_OPENER = re.compile(r"[{\[]")
_LOOKS_LIKE_JSON = re.compile(
    r"""(?:\{\s*(?:}|\w+\s*:)
         |\[\s*(?:[\[{\]\d-]|(?:true|false|null|NaN)\b)
         |[{\[]\s*(?:["'\u201c\u201d]|//|/\*|\#))""",
    re.VERBOSE,
)
"""An object with a key, or a list with a value; also with a comment or with quotes that JSON does
not have. ``{x}`` and ``[note]`` are prose."""
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?:```+|~~~+)?[ \t]*$", re.MULTILINE)
_LINE = 400
"""Characters of a line that are looked at."""
_LIST_OF_OBJECTS = re.compile(r"\[(?=\s*\{)")
_NEXT_ITEM = re.compile(r"[\s,]*(?=\{)")
_CLOSES = {"{": "}", "[": "]"}
_MOST_STRAY = 20
"""Brackets in prose that nothing closes, for each of which the rest of the text is read. Where more
of them stand, the text is not worth the time."""


class JsonText(NamedTuple):
    """A JSON value as it stands in a text."""

    text: str
    """JSON that parses; commas before a closing bracket are left out."""
    value: Any
    stands_alone: bool = True
    """Whether it has its lines for itself, but for a fence or words that end in a colon."""


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
    written wrongly, must not be taken for the reply. So are prose in brackets, and what a model
    thinks aloud.
    """
    for candidate in dict.fromkeys((text, without_thinking(text))):
        whole = _parsed(candidate.strip().lstrip("\ufeff"))
        if whole is not None:
            yield whole
            return
    text = without_thinking(text)
    fences = {match.start("inside"): match for match in _FENCE.finditer(text)}
    starts = sorted(fences)
    for place in itertools.chain(_places(text), (None,)):
        # A fence may hold a value without brackets: a number, a string.
        while starts and (place is None or starts[0] <= place.start):
            found = _parsed(fences[starts.pop(0)]["inside"].strip())
            if found is not None and not isinstance(found.value, dict | list):
                yield found
        if place and place.found is not None:
            yield place.found


def first_value(text: str) -> int | None:
    """Return where the first object or list of ``text`` begins, whole or not."""
    found = _LOOKS_LIKE_JSON.search(text)
    return found.start() if found else None


def cut_value(text: str) -> int | None:
    """Return where the object or list begins that ``text`` ends in the midst of, if it does."""
    places = list(_places(text))
    return places[-1].start if places and places[-1].is_cut else None


def end_of_value(text: str, start: int) -> tuple[int, bool]:
    """Return where the object or list at ``start`` ends, and whether its bracket is closed there.

    One that is not closed goes on to the next fence, or to the end.
    """
    end = _end_of(text, start)
    if end is not None:
        return end, True
    fence = _FENCE_LINE.search(text, start)
    return (fence.start() if fence else len(text)), False


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


class _Place(NamedTuple):
    start: int
    found: JsonText | None
    after: int
    """Where to look on."""
    is_cut: bool = False


def _places(text: str) -> Iterator[_Place]:
    """Yield what begins with a bracket, in order; what stands within it is passed over."""
    position = stray = 0
    while stray <= _MOST_STRAY:
        opener = _OPENER.search(text, position)
        if opener is None:
            return
        place = _place_at(text, opener.start())
        yield place
        position = place.after
        stray += position == opener.end()


def _place_at(text: str, start: int) -> _Place:
    end = _end_of(text, start)
    is_json = _LOOKS_LIKE_JSON.match(text, start) is not None
    if is_json and end is not None:
        found = _parsed(text[start:end])
        if found is not None:
            found = found._replace(stands_alone=_stands_alone(text, start, end))
        return _Place(start, found, end)
    fence = _FENCE_LINE.search(text, start, len(text) if end is None else end)
    if is_json or (end is not None and fence):
        # Cut, or brackets that do not pair up: only a new fence begins afresh.
        return _Place(start, None, fence.end() if fence else len(text), is_json)
    # A bracket of prose. What stands in a pair of them may be a part of something badly written.
    return _Place(start, None, start + 1 if end is None else end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    line = text[max(text.rfind("\n", 0, start) + 1, start - _LINE) : start].strip()
    after = _REST_OF_LINE.match(text, end)
    return (not line or line.endswith(":") or _FENCE_LINE.match(line) is not None) and bool(after)


def _end_of(text: str, start: int) -> int | None:
    """Return the position after the bracket that closes the one at ``start``, if one does."""
    open_: list[str] = []
    for token in _TOKEN.finditer(text, start):
        found = token[0]
        if found in _CLOSES:
            open_.append(_CLOSES[found])
        elif found in "}]":
            if open_.pop() != found:
                return None
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
