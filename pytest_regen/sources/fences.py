"""Fenced code blocks of Markdown, closed where the code inside reads best."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice

__all__ = ["Fenced", "fence_lines", "fenced_blocks", "split_stuck_fences"]

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})[ \t]*(?P<info>.*?)[ \t]*")
_MOST_CLOSERS = 12
"""How many lines are tried as the end of one block."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """A fenced block."""

    tag: str
    """First word of the info string, in lower case."""
    code: str
    first_line: int
    """Line of the opening fence, counted from 1."""
    last_line: int
    """Line of the closing fence, or the last line of the text."""
    is_closed: bool
    weight: int
    """How far the code is from being legal; 0 is legal."""


def fenced_blocks(
    text: str, weigh: Callable[[str], int], clean: Callable[[str], str]
) -> list[Fenced]:
    """Return the fenced blocks of ``text`` in order.

    A block ends at the first line that could close it and leaves legal code; if no line does, at
    the one that leaves the least illegal code, or at the end of the text if nothing could close it.

    Args:
        text: Markdown with LF line ends.
        weigh: tells how far a code is from being legal; 0 is legal.
        clean: takes sentences off the end of a block that nothing closes.
    """
    lines = text.split("\n")
    found: list[Fenced] = []
    at = 0
    while at < len(lines):
        fence = _opening(lines[at])
        if fence is None:
            at += 1
            continue
        block = _block(lines, at, fence, weigh, clean)
        found.append(block)
        at = block.last_line
    return found


def fence_lines(text: str) -> list[int]:
    """Return the indexes of the lines of ``text`` that may open or close a block."""
    return [at for at, line in enumerate(text.split("\n")) if _opening(line) is not None]


def split_stuck_fences(text: str, tags: Collection[str]) -> str:
    """Return ``text`` with fences that stand at the end of other text on a line of their own."""
    words = "|".join(map(re.escape, sorted(tags)))
    pattern = rf"(?<=\S)[ \t]*(?<![`~])(`{{3,}}|~{{3,}})[ \t]*((?:{words})?)[ \t]*$"
    return re.sub(pattern, r"\n\1\2", text, flags=re.MULTILINE | re.IGNORECASE)


def _opening(line: str) -> re.Match[str] | None:
    match = _FENCE.fullmatch(line)
    if match is None or (match["run"][0] == "`" and "`" in match["info"]):
        return None
    return match


def _block(
    lines: Sequence[str],
    at: int,
    fence: re.Match[str],
    weigh: Callable[[str], int],
    clean: Callable[[str], str],
) -> Fenced:
    """Return the block that the fence on line index ``at`` opens."""
    tag = (fence["info"].split() or [""])[0].strip("{}.").lower()
    best: Fenced | None = None
    ends = (index for index in range(at + 1, len(lines)) if _ends(lines[index], fence))
    for end in [*islice(ends, _MOST_CLOSERS), len(lines)]:
        is_closed = end < len(lines)
        code = _dedented(lines[at + 1 : end], len(fence["indent"]))
        last = end + 1 if is_closed else len(lines)
        weight = weigh(code)
        if weight and not is_closed:
            code = clean(code)
            weight = weigh(code)
        block = Fenced(tag, code, at + 1, last, is_closed, weight)
        if not block.weight:
            return block
        if best is None or (is_closed and block.weight < best.weight):
            best = block
    assert best is not None  # noqa: S101 - the end of the text is always tried
    return best


def _ends(line: str, fence: re.Match[str]) -> bool:
    text = line.strip()
    return len(text) >= len(fence["run"]) and not text.strip(fence["run"][0])


def _dedented(lines: Sequence[str], indent: int) -> str:
    """Return the lines without as many leading blanks as the fence has, where they have them."""
    if not indent:
        return "\n".join(lines)
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
