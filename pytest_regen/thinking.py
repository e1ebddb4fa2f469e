"""What a model thinks aloud: text between ``<think>`` tags is no part of its answer.

Models that reason write it before the answer, with or without the first tag, sometimes several
times; a reply that a limit cut may end in the midst of it. Code and JSON may hold the same words:
in a fence, in a string, in a comment.
"""

import re
from collections.abc import Sequence

__all__ = ["pieces_without_thinking", "without_thinking"]

_MARK = re.compile(
    r"(?P<opens><think(?:ing)?>)|(?P<closes></think(?:ing)?>)"
    r"|^[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSES = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_LINE = 400
"""Characters before a tag that are looked at: what matters stands near it."""
_QUOTED = re.compile(r'["`]|//|/\*|^\s*\*')
"""What before a tag on its line makes it part of a string, of a comment or of a quotation."""


def without_thinking(text: str) -> str:
    """Return ``text`` without what is between think tags, in any case, closed or not.

    A tag inside a fence, or behind a quotation mark or the beginning of a comment, is text like any
    other. Of a reply without the first tag, all is left out up to the last one.
    """
    return _read(text, is_open=False)[0]


def pieces_without_thinking(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces of one reply without the thinking in them, also where it was cut within.

    A piece after such a cut that does not say where the thinking ends is the answer.
    """
    found, is_open = [], False
    for piece in pieces:
        if is_open and not _CLOSES.search(piece):
            is_open = False
        kept, is_open = _read(piece, is_open=is_open)
        found.append(kept)
    return tuple(found)


def _read(text: str, *, is_open: bool) -> tuple[str, bool]:
    """Return what is not thinking, and whether the text ends in the midst of some."""
    if not is_open and "think" not in text.lower():
        return text, False
    kept: list[str] = []
    position = 0
    fence = ""
    last_close = max((mark.start() for mark in _CLOSES.finditer(text)), default=-1)
    for mark in _MARK.finditer(text):
        if is_open:
            if mark["closes"]:
                position, is_open = mark.end(), False
        elif mark["fence"]:
            fence = _fence_after(fence, mark)
        elif fence:
            continue
        elif mark["opens"] and _opens(_line_before(text, mark, position), mark, last_close):
            kept.append(text[position : mark.start()])
            position, is_open = mark.end(), True
        elif mark["closes"] and _is_alone(text, mark):
            kept.clear()
            position = mark.end()
    rest = "" if is_open else text[position:]
    return "".join((*kept, rest)), is_open


def _fence_after(fence: str, mark: re.Match[str]) -> str:
    """Return the fence that is open after a line that may open or close one; "" for none."""
    run = mark["fence"]
    if not fence:
        return run if run[0] == "~" or "`" not in mark["info"] else ""
    is_end = run[0] == fence[0] and len(run) >= len(fence) and not mark["info"].strip()
    return "" if is_end else fence


def _opens(before: str, mark: re.Match[str], last_close: int) -> bool:
    """Return whether a tag begins thinking: at the start of a line, or amid prose and closed."""
    if not before.strip():
        return True
    return mark.end() <= last_close and not _QUOTED.search(before)


def _is_alone(text: str, mark: re.Match[str]) -> bool:
    """Return whether a closing tag begins or ends its line, as after thinking nobody opened."""
    before = _line_before(text, mark)
    end = text.find("\n", mark.end(), mark.end() + _LINE)
    after = text[mark.end() : end if end >= 0 else mark.end() + _LINE]
    return not _QUOTED.search(before) and not (before.strip() and after.strip())


def _line_before(text: str, mark: re.Match[str], position: int = 0) -> str:
    """Return what stands before a tag on its line, from ``position`` on."""
    start = max(mark.start() - _LINE, position)
    return text[max(text.rfind("\n", start, mark.start()) + 1, start) : mark.start()]
