"""A reply that a limit cut: asked for its rest, and made whole of its pieces.

Models asked to go on sometimes say so first, open the fence again, repeat the last words, begin the
whole reply again, or write what is left as a value of its own. The last of these must not be taken
for the whole.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_regen.errors import RefusedError
from pytest_regen.thinking import pieces_without_thinking
from pytest_regen.turns.driving import Progress, Steps
from pytest_regen.turns.json_text import cut_value, end_of_value, first_value, json_texts
from pytest_regen.turns.values import CacheTtl, Message, Reply, TurnRequest, Usage

__all__ = [
    "CONTINUATIONS",
    "CONTINUE",
    "Joined",
    "Whole",
    "extended",
    "join",
    "join_text",
    "whole_reply",
]

CONTINUATIONS = 3
"""Calls spent on the rest of a reply that a limit cut."""

CONTINUE = (
    "Your reply was cut off by a length limit. Continue exactly where it stopped, in the middle of "
    "a word if need be. Repeat nothing and add no introduction."
)
_NOTHING = "(no text)"
"""Stands for an empty reply that is shown to the model; the API refuses empty messages."""

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
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_WHOLE_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Whole:
    """A reply and what was asked for it."""

    pieces: tuple[str, ...]
    """The reply's text as it came, and that of each continuation."""
    is_truncated: bool
    """Whether the last piece was cut as well."""
    usage: Usage
    request: TurnRequest
    """The last request made for it."""
    reply: Reply
    """What was said to that."""


def whole_reply(
    request: TurnRequest, *, larger_limit: int = 0, progress: Progress | None = None
) -> Steps[Whole]:
    """Ask, and have a reply that a limit cut continued.

    The conversation only grows, so that each call reads the one before it from the cache.

    Args:
        request: what is asked.
        larger_limit: output tokens with which a reply is asked for again that the limit of the
            request cut; where that limit is as large, the reply is continued at once.
        progress: called with one line per further call.

    Raises:
        RefusedError: the model declined.
    """
    tell = progress or (lambda _: None)
    reply = yield request
    usage = reply.usage
    if reply.stop_reason == "max_tokens" and request.max_tokens < larger_limit:
        tell("The reply was cut; asking again with more room...")
        request = replace(request, max_tokens=larger_limit)
        reply = yield request
        usage += reply.usage
    pieces = [_said(reply)]
    for number in range(1, CONTINUATIONS + 1):
        # A full context window has no room for a continuation either.
        if reply.stop_reason != "max_tokens" or not "".join(pieces).strip():
            break
        tell(f"The reply was cut; asking for its rest ({number}/{CONTINUATIONS})...")
        request = extended(request, reply.text, CONTINUE)
        reply = yield request
        usage += reply.usage
        pieces.append(_said(reply))
    return Whole(tuple(pieces), reply.is_truncated, usage, request, reply)


def extended(request: TurnRequest, said: str, ask: str) -> TurnRequest:
    """Return ``request`` with a reply and a further message; the breakpoint moves to the end."""
    cache: CacheTtl | None = request.messages[-1].cache
    before = [replace(message, cache=None) for message in request.messages]
    said = said.rstrip() or _NOTHING
    messages = (*before, Message("assistant", said), Message("user", ask, cache))
    return replace(request, messages=messages)


def _said(reply: Reply) -> str:
    if reply.is_refusal:
        raise RefusedError(
            f"the model {reply.model} declined to answer".replace("  ", " "),
            why="the API ended the reply with stop_reason 'refusal'",
            hint="read the prompt that was sent, or try another model",
        )
    return reply.text


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
    clean = _cleaned(pieces)
    readings: dict[str, bool] = {}
    for start in range(len(clean)):
        if start and not _begins_value_again("".join(clean[:start]), clean[start]):
            continue
        # One piece overlaps with nothing.
        for is_overlapping in (False, True)[: len(clean) - start]:
            text, is_whole = _reading(clean[start:], is_overlapping=is_overlapping)
            readings[text] = is_whole
    if clean[1:] != tuple(pieces[1:]):
        text, is_whole = _reading(pieces_without_thinking(pieces), is_overlapping=False)
        readings.setdefault(text, is_whole)
    return Joined(tuple(readings), any(readings.values()), clean)


def join_text(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the ways to read the pieces of one reply of any kind, the likeliest first."""
    if len(pieces) == 1:
        return (pieces[0],)
    clean = _cleaned(pieces)
    one_by_one = _folded(clean, _appended)
    overlapping = _folded(clean, _overlapped)
    found = [one_by_one, overlapping]
    if len(one_by_one) - len(overlapping) >= _SURE_OVERLAP:
        found.reverse()
    found += [
        _folded(clean[start:], _appended)
        for start in range(1, len(clean))
        if _begins_text_again(clean[0], clean[start])
    ]
    found.append(_folded(pieces, _appended))
    return tuple(dict.fromkeys(found))


def _cleaned(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces without thinking, and without what stands before a continuation."""
    first, *rest = pieces_without_thinking(pieces)
    return (first, *map(_continuation, rest, pieces[1:]))


def _continuation(piece: str, said: str) -> str:
    """Return a piece, as it was ``said`` but for its thinking, without what introduces it."""
    if piece != said:
        piece = piece.lstrip("\n")
    introduction = _INTRODUCTION.match(piece)
    if introduction and _GOES_ON.search(introduction[0]) and introduction.end() < len(piece):
        piece = piece[introduction.end() :]
    return _OPENING_FENCE.sub("", piece)


def _folded(pieces: Sequence[str], add: Callable[[str, str], str]) -> str:
    text = pieces[0]
    for piece in pieces[1:]:
        text = add(text, piece)
    return text


def _appended(text: str, piece: str) -> str:
    """Return ``text`` with ``piece`` behind it.

    What was sent back had no white space at its end, which the API refuses: white space at the seam
    is said again.
    """
    return (text.rstrip() if piece[:1].isspace() else text) + piece


def _overlapped(text: str, piece: str) -> str:
    """Return ``text`` with what ``piece`` does not repeat of it."""
    seen = text.rstrip()
    size = _overlap(seen, piece)
    return _appended(seen, piece[size:]) if size else _appended(text, piece)


def _reading(pieces: Sequence[str], *, is_overlapping: bool) -> tuple[str, bool]:
    """Return the joined pieces, and whether the value that was cut finds its end."""
    text, cut = pieces[0], None
    for piece in pieces[1:]:
        if cut is None:
            cut = cut_value(text)
        text = (_overlapped if is_overlapping else _appended)(text, piece)
    if cut is None:
        return text, cut_value(text) is None
    end, is_closed = end_of_value(text, cut)
    is_whole = is_closed and next(json_texts(text[cut:end]), None) is not None
    # What stands after the value that was cut is a value of its own, and at best a part.
    is_more_behind = next(json_texts(text[end:]), None) is not None
    return text[:end] if is_more_behind else text, is_whole


def _begins_value_again(earlier: str, later: str) -> bool:
    """Return whether ``later`` repeats, from its beginning, all of the value cut in ``earlier``."""
    cut = cut_value(earlier)
    if cut is None:
        return True
    start = first_value(later)
    if start is None:
        return False
    before = _TOKEN.findall(earlier, cut)
    if not _WHOLE_TOKEN.fullmatch(before[-1]):
        before.pop()
    return _TOKEN.findall(later, start)[: len(before)] == before


def _begins_text_again(first: str, later: str) -> bool:
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
