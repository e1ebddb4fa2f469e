"""What a reply says: the JSON values in it, and one text of the pieces of a reply that was cut.

Values are found in the order in which they stand in the text, fenced or not, so that neither braces
in prose nor a fence around something else can hide them.

Models asked to go on sometimes say so first, open the fence again, repeat the last words, begin the
whole reply again, or write what is left as a value of its own. The last of these must not be taken
for the whole.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
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


def load_json(text: str) -> Any:
    """Return the value of ``text``.

    Raises:
        ValueError: it is not JSON; ``NaN`` and infinities are not JSON either.
    """
    return strict_loads(text, unique_keys=False)


def json_texts(text: str) -> Iterator[JsonText]:
    """Yield the JSON values of ``text`` in order: the whole text, then objects, lists and fences.

    A broken value is passed over with everything inside it: a part of a reply that was cut, or
    written wrongly, must not be taken for the reply. So are prose in brackets, and what a model
    thinks aloud.
    """
    for candidate in dict.fromkeys((text, without_thinking(text))):
        whole = _parse(candidate.strip().lstrip("\ufeff"))
        if whole is not None:
            yield whole
            return
    text = without_thinking(text)
    fences = {match.start("inside"): match for match in _FENCE.finditer(text)}
    starts = sorted(fences)
    for place in itertools.chain(_places(text), (None,)):
        # A fence may hold a value without brackets: a number, a string.
        while starts and (place is None or starts[0] <= place.start):
            found = _parse(fences[starts.pop(0)]["inside"].strip())
            if found is not None and not isinstance(found.value, dict | list):
                yield found
        if place and place.found is not None:
            yield place.found


def first_value(text: str) -> int | None:
    """Return where the first object or list of ``text`` begins, whole or not."""
    found = _LOOKS_LIKE_JSON.search(text)
    return found.start() if found else None


def cut_value(text: str) -> int | None:
    """Return where the object or list begins in which ``text`` ends, if it ends in one."""
    places = list(_places(text))
    return places[-1].start if places and places[-1].is_cut else None


def end_of_value(text: str, start: int) -> tuple[int, bool]:
    """Return where the object or list at ``start`` ends, and whether its bracket is closed there.

    One that is not closed extends to the next fence, or to the end.
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
        found = _parse(text[opening.end() : end]) if end is not None else None
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
        found = _parse(text[start:end])
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


def _parse(text: str) -> JsonText | None:
    for candidate in (text, _TRAILING_COMMA.sub(_without_comma, text)):
        try:
            return JsonText(candidate, load_json(candidate))
        except ValueError:
            continue
    return None


def _without_comma(match: re.Match[str]) -> str:
    return "" if match[0] == "," else match[0]


_OPENING_FENCE = re.compile(r"\A\s*(?:```+|~~~+)[^\n]*\n")
_ANY_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[^\n]*\n", re.MULTILINE)
_INTRODUCTION = re.compile(
    r"\A\s*[*_(]{0,3}"
    r"(?:Sure|Certainly|Of course|Okay|OK|Understood|Right|Sorry|Apologies|My apologies|Here|I|Let"
    r"|Now|Yes|Continu\w+|continued(?=\))|Resuming|Picking|Carrying"
    r"|The (?:rest|remainder|remaining))\b"
    r"(?P<said>[^\n{}\[\]\";=<>`]{0,150}?)"
    r"(?:[:\u2026][*_)]{0,3}[ \t]*\n?|[.!)*_]+[ \t]*\n)\n*"
)
"""What models say before they go on: "Continuing from where I left off:"."""
_GOES_ON = re.compile(
    r"\b(?:continu\w*|resum\w*|rest|remain\w*|left off|stopped|cut off|pick\w* up)\b", re.IGNORECASE
)
_LEAST_OVERLAP = 8
_SURE_OVERLAP = 24
"""Characters that no code has twice in a row."""
_LONGEST_OVERLAP = 400
_LEAST_AGAIN = 5
_MOST_AGAIN = 60
"""Words compared to see whether a reply begins again."""
_WORD = re.compile(r"\w+|[^\w\s]")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_WHOLE_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Joined:
    """The pieces of a JSON value as a reader may take them."""

    texts: tuple[str, ...]
    """First one after the other, then without what was said twice, then from where they begin
    again; all without thinking and introductions, and at last just as they came."""
    is_whole: bool
    """Whether the value that was cut has found its end in one of them."""
    pieces: tuple[str, ...]
    """The pieces without thinking and introductions."""


def join(pieces: Sequence[str]) -> Joined:
    """Return the ways to read the pieces of one reply that is to be JSON, at least one."""
    clean = _clean(pieces)
    # A dict as an ordered set: the first reading that fits is taken, so the likeliest stands first.
    readings: dict[str, bool] = {}
    for start in range(len(clean)):
        # What came before a piece may be dropped only if the piece says all of it again: else the
        # rest of a list, which is a valid list itself, would be taken for the whole.
        if start and not _restarts_value("".join(clean[:start]), clean[start]):
            continue
        # One piece overlaps with nothing.
        for is_overlapping in (False, True)[: len(clean) - start]:
            text, is_whole = _reading(clean[start:], is_overlapping=is_overlapping)
            readings[text] = is_whole
    if clean[1:] != tuple(pieces[1:]):
        # What was taken for an introduction may have been the value going on.
        text, is_whole = _reading(pieces_without_thinking(pieces), is_overlapping=False)
        readings.setdefault(text, is_whole)
    return Joined(tuple(readings), any(readings.values()), clean)


def join_text(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the ways to read the pieces of one reply of any kind, the likeliest first."""
    if len(pieces) == 1:
        return (pieces[0],)
    clean = _clean(pieces)
    one_by_one = _fold(clean, _append)
    overlapping = _fold(clean, _append_new)
    found = [one_by_one, overlapping]
    if len(one_by_one) - len(overlapping) >= _SURE_OVERLAP:
        found.reverse()
    found += [
        _fold(clean[start:], _append)
        for start in range(1, len(clean))
        if _restarts_text(clean[0], clean[start])
    ]
    found.append(_fold(pieces, _append))
    return tuple(dict.fromkeys(found))


def _clean(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces without thinking, and without what stands before a continuation."""
    first, *rest = pieces_without_thinking(pieces)
    return (first, *map(_continuation, rest, pieces[1:]))


def _continuation(piece: str, original: str) -> str:
    """Return ``piece``, which is ``original`` without thinking, without its introduction."""
    if piece != original:
        piece = piece.lstrip("\n")
    introduction = _INTRODUCTION.match(piece)
    if introduction and _GOES_ON.search(introduction[0]) and introduction.end() < len(piece):
        piece = piece[introduction.end() :]
    return _OPENING_FENCE.sub("", piece)


def _fold(pieces: Sequence[str], add: Callable[[str, str], str]) -> str:
    text = pieces[0]
    for piece in pieces[1:]:
        text = add(text, piece)
    return text


def _append(text: str, piece: str) -> str:
    """Return ``text`` with ``piece`` behind it.

    What was sent back had no white space at its end, which the API refuses: white space at the seam
    is said again. A line that ended there stays ended, though: a fence that is opened again, and
    taken out, leaves the indentation of the next line alone.
    """
    if not piece[:1].isspace():
        return text + piece
    before = text.rstrip()
    has_line_end = "\n" in piece[: len(piece) - len(piece.lstrip())]
    line_end = "" if has_line_end else text[len(before) : text.rfind("\n", len(before)) + 1]
    return before + line_end + piece


def _append_new(text: str, piece: str) -> str:
    """Return ``text`` and what ``piece`` adds to it."""
    seen = text.rstrip()
    size = _overlap(seen, piece)
    return _append(seen, piece[size:]) if size else _append(text, piece)


def _reading(pieces: Sequence[str], *, is_overlapping: bool) -> tuple[str, bool]:
    """Return the joined pieces, and whether the value that was cut finds its end."""
    text, cut = pieces[0], None
    for piece in pieces[1:]:
        # Of the first cut: a later piece may begin values that the reply is not about.
        if cut is None:
            cut = cut_value(text)
        text = (_append_new if is_overlapping else _append)(text, piece)
    if cut is None:
        return text, cut_value(text) is None
    end, is_closed = end_of_value(text, cut)
    is_whole = is_closed and next(json_texts(text[cut:end]), None) is not None
    # What stands after the value that was cut is a value of its own, and at best a part.
    is_more_behind = next(json_texts(text[end:]), None) is not None
    return text[:end] if is_more_behind else text, is_whole


def _restarts_value(earlier: str, later: str) -> bool:
    """Return whether ``later`` repeats, from its beginning, all of the value cut in ``earlier``."""
    cut = cut_value(earlier)
    if cut is None:
        return True
    start = first_value(later)
    if start is None:
        return False
    before = _JSON_TOKEN.findall(earlier, cut)
    if not _WHOLE_TOKEN.fullmatch(before[-1]):
        before.pop()
    return _JSON_TOKEN.findall(later, start)[: len(before)] == before


def _restarts_text(first: str, later: str) -> bool:
    """Return whether ``later`` begins with the words that ``first`` begins with in its fence."""
    fence = _ANY_FENCE.search(first)
    before = [*_words(first[fence.end() :] if fence else first)][:-1]
    return len(before) >= _LEAST_AGAIN and [*_words(later)][: len(before)] == before


def _words(text: str) -> Iterator[str]:
    for found, _ in zip(_WORD.finditer(text), range(_MOST_AGAIN), strict=False):
        yield found[0]


def _overlap(text: str, more: str) -> int:
    """Return how many characters at the start of ``more`` repeat the end of ``text``."""
    longest = min(len(text), len(more), _LONGEST_OVERLAP)
    sizes = range(longest, _LEAST_OVERLAP - 1, -1)
    return next((size for size in sizes if text.endswith(more[:size])), 0)
