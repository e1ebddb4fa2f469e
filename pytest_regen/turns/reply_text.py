"""What a reply says: the JSON values in it, and one text of the pieces of a reply that was cut.

Values are found in the order in which they stand in the text, fenced or not, so that neither braces
in prose nor a fence around something else can hide them.

Models asked to go on sometimes open the fence again, begin the whole value again, or write what is
left as a value of its own. The last of these must not be taken for the whole. A piece that is said
twice makes the reply unusable, and it is asked for again.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_regen.strict_json import strict_loads
from pytest_regen.text import pieces_without_thinking, without_thinking

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>```+|~~~+)[ \t]*[\w+.-]*[ \t]*(?:\n|(?=[{\[\"]))"
    r"(?P<inside>.*?)(?:\n[ \t]*)?(?P=fence)",
    re.MULTILINE | re.DOTALL,
)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```+|~~~+)", re.MULTILINE)
_OPENING_FENCE = re.compile(r"\A\s*(?:```+|~~~+)[^\n]*\n")
_INTRODUCTION = re.compile(
    r"\A\s*[*_(]{0,3}(?=[^\n]{0,150}\b(?:continu|resum|rest\b|remain|left off|stopped|cut off))"
    r"(?:Sure|Certainly|Of course|Okay|Sorry|Apologies|Here|I|Let|Now|Continu|Resum|The )"
    r"[^\n{}\[\]\";=<>`]{0,150}?(?:[:\u2026][*_)]{0,3}[ \t]*\n?|[.!)*_]+[ \t]*\n)\n*(?=.)",
    re.IGNORECASE,
)
"""What models say before they go on: "Continuing from where I left off:". In a string of JSON it
would become a part of it, and nobody would see."""
_OPENER = re.compile(r"[{\[]")
_LOOKS_LIKE_JSON = re.compile(
    r"""(?:\{\s*(?:}|\w+\s*:)
         |\[\s*(?:[\[{\]\d-]|(?:true|false|null|NaN)\b)
         |[{\[]\s*(?:["'\u201c\u201d]|//|/\*|\#))""",
    re.VERBOSE,
)
"""An object with a key, or a list with a value; also with a comment or with quotes that JSON does
not have. ``{x}`` and ``[note]`` are prose."""
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)
_LIST_OF_OBJECTS = re.compile(r"\[(?=\s*\{)")
_NEXT_ITEM = re.compile(r"[\s,]*(?=\{)")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_WHOLE_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_CLOSES = {"{": "}", "[": "]"}
_MOST_STRAY = 20
"""Brackets in prose that nothing closes, for each of which the rest of the text is read. Where more
of them stand, the text is not worth the time."""


class JsonText(NamedTuple):
    """A JSON value as it stands in a text."""

    text: str
    """JSON that parses; commas before a closing bracket are left out."""
    value: Any


def load_json(text: str) -> Any:
    """Return the value of ``text``.

    Raises:
        ValueError: it is not JSON; ``NaN`` and infinities are not JSON either.
    """
    return strict_loads(text, unique_keys=False)


def json_texts(text: str) -> Iterator[JsonText]:
    """Yield the JSON values of ``text``: all of it; else scalars in fences, then the others."""
    # A broken value is passed over with everything inside it: a part of a reply that was cut, or
    # written wrongly, must not be taken for the reply. So are prose in brackets, and what a model
    # thinks aloud.
    for candidate in dict.fromkeys((text, without_thinking(text))):
        whole = _parse(candidate.strip().lstrip("\ufeff"))
        if whole is not None:
            yield whole
            return
    text = without_thinking(text)
    # A fence may hold a value without brackets: a number, a string.
    for fence in _FENCE.finditer(text):
        scalar = _parse(fence["inside"].strip())
        if scalar is not None and not isinstance(scalar.value, dict | list):
            yield scalar
    for place in _places(text):
        if place.json is not None:
            yield place.json


def complete_items(text: str, key: str) -> list[Any]:
    """Return the whole items of the list under ``key`` in a reply that was cut.

    Args:
        text: the reply, whose first list under ``key`` may lack its end.
        key: name of the list in the outermost object. A bare list is taken as well.
    """
    start = re.search(rf'"{re.escape(key)}"\s*:\s*\[', text) or _LIST_OF_OBJECTS.search(text)
    items: list[Any] = []
    position = start.end() if start else len(text)
    while opening := _NEXT_ITEM.match(text, position):
        end = _end_of(text, opening.end())
        if end is None:
            break
        item = _parse(text[opening.end() : end])
        position = end
        if item is not None:
            items.append(item.value)
    return items


class _Place(NamedTuple):
    start: int
    json: JsonText | None
    after: int
    """Where to look on."""
    is_cut: bool = False


def _places(text: str) -> Iterator[_Place]:
    """Yield what begins with a bracket, in order; what stands within it is passed over."""
    position = stray = 0
    while stray <= _MOST_STRAY and (opener := _OPENER.search(text, position)):
        start = opener.start()
        end = _end_of(text, start)
        is_json = _LOOKS_LIKE_JSON.match(text, start) is not None
        fence = _FENCE_LINE.search(text, start, len(text) if end is None else end)
        if is_json and end is not None:
            place = _Place(start, _parse(text[start:end]), end)
        elif is_json or (end is not None and fence):
            # Cut, or brackets that do not pair up: only a new fence begins afresh.
            place = _Place(start, None, fence.end() if fence else len(text), is_json)
        else:
            # A bracket of prose. In a pair of them may be a part of something badly written.
            place = _Place(start, None, start + 1 if end is None else end)
        yield place
        position = place.after
        stray += position == opener.end()


def _end_of(text: str, start: int) -> int | None:
    """Return the position after the bracket that closes the one at ``start``, if one does."""
    open_: list[str] = []
    for token in _TOKEN.finditer(text, start):
        if token[0] in _CLOSES:
            open_.append(_CLOSES[token[0]])
        elif token[0] in "}]":
            if open_.pop() != token[0]:
                return None
            if not open_:
                return token.end()
    return None


def _parse(text: str) -> JsonText | None:
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            return JsonText(candidate, load_json(candidate))
        except ValueError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class Joined:
    """The pieces of a JSON value as a reader may take them."""

    texts: tuple[str, ...]
    """First one after the other, then from where they begin again."""
    is_whole: bool
    """Whether the value that was cut has found its end in one of them."""
    pieces: tuple[str, ...]
    """The pieces without thinking and fences that were opened again."""


def join(pieces: Sequence[str]) -> Joined:
    """Return the ways to read the pieces of one reply that is to be JSON, at least one."""
    clean = _clean(pieces)
    # What came before a piece may be dropped only if the piece says all of it again: else the rest
    # of a list, which is a valid list itself, would be taken for the whole.
    readings = [
        _reading(clean[start:])
        for start in range(len(clean))
        if not start or _restarts_value("".join(clean[:start]), clean[start])
    ]
    texts, are_whole = zip(*readings, strict=True)
    return Joined(texts, any(are_whole), clean)


def join_text(pieces: Sequence[str]) -> str:
    """Return the pieces of one reply of any kind as one text."""
    return _append(_clean(pieces)) if len(pieces) > 1 else pieces[0]


def _clean(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces without thinking, and without a fence that is opened again."""
    first, *later = pieces_without_thinking(pieces)
    # Thinking leaves an empty line behind, which would stand in the middle of a word.
    later = [
        piece if piece == original else piece.lstrip("\n")
        for piece, original in zip(later, pieces[1:], strict=True)
    ]
    later = [_INTRODUCTION.sub("", piece) for piece in later]
    return (first, *(_OPENING_FENCE.sub("", piece) for piece in later))


def _append(pieces: Sequence[str]) -> str:
    """Return one text of pieces."""
    # What was sent back had no white space at its end, which the API refuses: white space at the
    # seam is said again. A line that ended there stays ended, though: a fence that is opened again,
    # and taken out, leaves the indentation of the next line alone.
    text = pieces[0]
    for piece in pieces[1:]:
        before = text.rstrip()
        if piece[:1].isspace():
            has_line_end = "\n" in piece[: len(piece) - len(piece.lstrip())]
            line_end = text[len(before) : text.rfind("\n", len(before)) + 1]
            text = before + ("" if has_line_end else line_end)
        text += piece
    return text


def _reading(pieces: Sequence[str]) -> tuple[str, bool]:
    """Return the joined pieces, and whether the value that was cut finds its end."""
    # Of the first cut: a later piece may begin values that the reply is not about.
    cuts = (_cut_value(_append(pieces[:count])) for count in range(1, len(pieces)))
    cut = next((cut for cut in cuts if cut is not None), None)
    text = _append(pieces)
    if cut is None:
        return text, _cut_value(text) is None
    end = _end_of(text, cut)
    is_whole = end is not None and next(json_texts(text[cut:end]), None) is not None
    if end is None:
        fence = _FENCE_LINE.search(text, cut)
        end = fence.start() if fence else len(text)
    # What stands after the value that was cut is a value of its own, and at best a part.
    is_more_behind = next(json_texts(text[end:]), None) is not None
    return text[:end] if is_more_behind else text, is_whole


def _cut_value(text: str) -> int | None:
    """Return where the object or list begins in which ``text`` ends, if it ends in one."""
    places = list(_places(text))
    return places[-1].start if places and places[-1].is_cut else None


def _restarts_value(earlier: str, later: str) -> bool:
    """Return whether ``later`` repeats, from its beginning, all of the value cut in ``earlier``."""
    cut, start = _cut_value(earlier), _LOOKS_LIKE_JSON.search(later)
    if cut is None or start is None:
        return cut is None
    before = _JSON_TOKEN.findall(earlier, cut)
    if not _WHOLE_TOKEN.fullmatch(before[-1]):
        before.pop()
    return _JSON_TOKEN.findall(later, start.start())[: len(before)] == before
