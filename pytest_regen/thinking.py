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
_REST = re.compile(r"[ \t]*\S")
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
    line = _Line(text)
    position = 0
    fence = ""
    last_close = max((mark.start() for mark in _CLOSES.finditer(text)), default=-1)
    for mark in _MARK.finditer(text):
        line.go_to(mark)
        if is_open:
            if mark["closes"]:
                position, is_open = mark.end(), False
                line.begin()
        elif mark["fence"]:
            fence = _fence_after(fence, mark)
        elif fence or line.is_quoted:
            continue
        elif mark["opens"] and not (line.has_text and mark.end() > last_close):
            # Thinking begins at the start of a line; amid prose only where it is also closed.
            kept.append(text[position : mark.start()])
            position, is_open = mark.end(), True
        elif mark["closes"] and not (line.has_text and _REST.match(text, mark.end())):
            # Nobody opened it, and it begins or ends its line: all before it was thinking.
            kept.clear()
            position = mark.end()
            line.begin()
    rest = "" if is_open else text[position:]
    return "".join((*kept, rest)), is_open


class _Line:
    """What stands before a place on its line; places only go forward, so that all is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.begin()

    def begin(self) -> None:
        """Forget what stood before."""
        self.has_text = self.is_quoted = False

    def go_to(self, mark: re.Match[str]) -> None:
        """Look at what stands between the last tag and this one."""
        newline = self._text.rfind("\n", self._at, mark.start())
        if newline >= 0:
            self.begin()
        between = self._text[max(newline + 1, self._at) : mark.start()]
        self.has_text = self.has_text or bool(between.strip())
        self.is_quoted = self.is_quoted or _QUOTED.search(between) is not None
        self._at = mark.end()


def _fence_after(fence: str, mark: re.Match[str]) -> str:
    """Return the fence that is open after a line that may open or close one; "" for none."""
    run = mark["fence"]
    if not fence:
        return run if run[0] == "~" or "`" not in mark["info"] else ""
    is_end = run[0] == fence[0] and len(run) >= len(fence) and not mark["info"].strip()
    return "" if is_end else fence
