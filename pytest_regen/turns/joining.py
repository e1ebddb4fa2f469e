"""A reply that a limit cut and that was asked for its rest: how its pieces make a whole.

Models asked to go on sometimes repeat the last words, begin the whole value again, or write what is
left as a value of its own. The last of these must not be taken for the whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_regen.turns.json_text import cut_value, end_of_value, first_value, json_texts

__all__ = ["Joined", "join"]

_LEAST_OVERLAP = 8
_LONGEST_OVERLAP = 400
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_WHOLE_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Joined:
    """The pieces as a reader may take them."""

    texts: tuple[str, ...]
    """First as they came, then without what was said twice, then from where they begin again."""
    is_whole: bool
    """Whether the value that was cut has found its end in one of them."""


def join(pieces: Sequence[str]) -> Joined:
    """Return the ways to read the pieces of one reply, at least one."""
    readings: dict[str, bool] = {}
    for start in range(len(pieces)):
        if start and not _begins_again("".join(pieces[:start]), pieces[start]):
            continue
        # One piece overlaps with nothing.
        for is_overlapping in (False, True)[: len(pieces) - start]:
            text, is_whole = _reading(pieces[start:], is_overlapping=is_overlapping)
            readings[text] = is_whole
    return Joined(tuple(readings), any(readings.values()))


def _reading(pieces: Sequence[str], *, is_overlapping: bool) -> tuple[str, bool]:
    """Return the joined pieces, and whether the value that was cut finds its end."""
    text, cut = pieces[0], None
    for piece in pieces[1:]:
        if cut is None:
            cut = cut_value(text)
        text += piece[_overlap(text, piece) if is_overlapping else 0 :]
    if cut is None:
        return text, cut_value(text) is None
    end, is_closed = end_of_value(text, cut)
    is_whole = is_closed and next(json_texts(text[cut:end]), None) is not None
    # What stands after the value that was cut is a value of its own, and at best a part.
    is_more_behind = next(json_texts(text[end:]), None) is not None
    return text[:end] if is_more_behind else text, is_whole


def _begins_again(earlier: str, later: str) -> bool:
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


def _overlap(text: str, more: str) -> int:
    """Return how many characters at the start of ``more`` repeat the end of ``text``."""
    longest = min(len(text), len(more), _LONGEST_OVERLAP)
    sizes = range(longest, _LEAST_OVERLAP - 1, -1)
    return next((size for size in sizes if text.endswith(more[:size])), 0)
