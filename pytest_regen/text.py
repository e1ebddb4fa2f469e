"""Numbers with their nouns, and lists of names, as messages say them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

_LINES_AROUND: Final = 2
_MAX_NAMES: Final = 8
_FIRST_NAMES: Final = 6
_MAX_LENGTH: Final = 60


def plural(number: int, noun: str) -> str:
    """Return ``1 repair``, ``2 repairs``, ``1,200 repairs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def join_names(names: Iterable[str], word: str) -> str:
    """Return names as a list in words, ``Cat, Dog and Fish``; of many the first, and a count.

    Args:
        names: at least one; a long one is cut.
        word: what stands before the last, ``and`` or ``or``.
    """
    shown = [f"{name:.{_MAX_LENGTH}}" for name in names]
    if len(shown) > _MAX_NAMES:
        shown = [*shown[: _MAX_NAMES - 1], f"{len(shown) - _MAX_NAMES + 1:,} more"]
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def shorten(names: Sequence[str]) -> str:
    """Return the first of many names, and how many more there are."""
    if len(names) <= _FIRST_NAMES + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_FIRST_NAMES])} and {len(names) - _FIRST_NAMES:,} more"


# Fixed ranges, not categories: those change with the Unicode version of the interpreter, and a
# prompt must be the same on every machine. Everything here is invisible, reorders text, ends a
# line, is half a character (a surrogate) or is not a character at all.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U0002fffe\U0002ffff"
    "\U0003fffe-\U0010ffff]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def quoted(value: Any) -> str:
    """Return ``value`` as JSON on one line, every character that could mislead escaped.

    Keys keep their order. A value that JSON does not know (a date read from YAML) is quoted as its
    text. The result can be read by any JSON reader.
    """
    return flatten(json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str))


def flatten(text: str) -> str:
    """Return ``text`` on one line, invisible and unsafe characters written as JSON escapes."""
    return _UNSAFE.sub(_escape, text)


_TRICKS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def visible(text: object) -> str:
    """Return a text in which nothing hides, moves a cursor or recolours a screen; lines stay."""
    return _TRICKS.sub(lambda found: repr(found[0])[1:-1], str(text))


def in_quotes(value: str | int) -> str:
    r"""Return a name or a piece of code in quotes, on one line, as it is.

    Nothing is doubled or escaped that can be seen: code that holds ``\*`` is shown with one
    backslash, as its writer wrote it. A number stands without quotes.
    """
    if isinstance(value, int):
        return str(value)
    mark = '"' if "'" in value else "'"
    return f"{mark}{flatten(value)}{mark}"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x10000:  # the end of the basic plane
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


_MARK = re.compile(
    r"(?P<opens><think(?:ing)?>)|(?P<closes></think(?:ing)?>)"
    r"|^[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>(?:(?!</think(?:ing)?>)[^\n])*)",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSES = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_REST = re.compile(r"[ \t]*\S")
_QUOTED = re.compile(r'["`]|//|/\*|^\s*\*')
"""What before a tag on its line makes it part of a string, of a comment or of a quotation."""


def without_blank_ends(text: str) -> str:
    """Return a text without the blank lines above it, and the blanks below."""
    return re.sub(r"\A\s*\n", "", text.rstrip())


def without_thinking(text: str) -> str:
    """Return ``text`` without what is between think tags, in any case, closed or not.

    A byte order mark before it is left out, too. A tag inside a fence, or behind a quotation mark
    or the beginning of a comment, is text like any other. Of a reply without the first tag, all is
    left out up to the last one.
    """
    return _strip_thinking(text.removeprefix("\ufeff"), is_open=False)[0]


def pieces_without_thinking(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces of one reply without the thinking in them, also where it was cut within.

    A piece after such a cut that does not say where the thinking ends is the answer.
    """
    found, is_open = [], False
    for piece in pieces:
        if is_open and not _CLOSES.search(piece):
            is_open = False
        kept, is_open = _strip_thinking(piece, is_open=is_open)
        found.append(kept)
    return tuple(found)


def _strip_thinking(text: str, *, is_open: bool) -> tuple[str, bool]:
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
            # Closed but never opened, at the start or end of a line: all before it was thinking,
            # unless nothing comes after it.
            kept = [] if text[mark.end() :].strip() else [text[position : mark.start()]]
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


_FENCE: Final = re.compile(r"[ \t]*(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")


def fenced_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the fenced blocks of a reply: info string, and code; the last may not be closed."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        at += 1
        if opening is None or (opening["run"][0] == "`" and "`" in opening["info"]):
            continue
        closing = re.compile(rf"\s*{opening['run'][0]}{{{len(opening['run'])},}}\s*")
        end = next((n for n in range(at, len(lines)) if closing.fullmatch(lines[n])), len(lines))
        yield opening["info"].strip(), "\n".join(lines[at:end])
        at = end + 1


def excerpt(
    source: Sequence[str],
    number: int,
    *,
    mark: Callable[[str], tuple[int, int]] | None = None,
) -> list[str]:
    """Return a line with its number and its neighbours; nothing for a line that is not there.

    Args:
        source: all lines.
        number: of the line meant, from 1.
        mark: returns where in that line carets go below it, and how many.
    """
    if not 1 <= number <= len(source):
        return []
    first, last = max(1, number - _LINES_AROUND), min(len(source), number + _LINES_AROUND)
    width = len(str(last))
    shown = []
    for at in range(first, last + 1):
        text = source[at - 1].expandtabs(4).rstrip()
        shown.append(f"  {'>' if at == number else ' '} {at:>{width}} | {text}".rstrip())
        if mark and at == number and text.strip():
            start, length = mark(text)
            shown.append(f"    {' ' * width} | {' ' * start}{'^' * length}")
    return shown
