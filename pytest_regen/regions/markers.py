"""Marker lines, ``# [REGEN:BEGIN name]``, and the region of what stands between two of them.

They stand behind the comment sign of any language. A text that itself holds lines of that look
gets numbered markers, ``# [REGEN:BEGIN name #1]``, with a number none of those lines has: like the
quotes of a raw string, the closing line cannot occur in the text, so that any text comes back as
it was put in.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from pytest_regen.errors import RegionError
from pytest_regen.regions.base import Span, defect, line_at, refuse_unknown, splice, unix_line_ends

DEFAULT_TAG: Final = "REGEN"
ANY_TAG: Final = "[A-Za-z][A-Za-z0-9_-]{0,49}"
"""What a tag may look like, as a regular expression."""

# Comments that have to be closed, and how.
_CLOSERS: Final = {"<!--": "-->", "/*": "*/", "/**": "*/", "{/*": "*/}", "{#": "#}"}

# HTML, JSX, Jinja, C, Rust, Python, SQL, Lisp, TeX, Basic and what writes comments like these.
_SIGNS: Final = (
    r"<!--|\{/\*|\{\#|/\*\*?|/{2,3}!?|\#{1,4}|-{2,3}|;{1,4}|%{1,3}|@?[Rr][Ee][Mm](?=[ \t])"
)

# What follows the first word of a marker.
_INSIDE: Final = re.compile(
    r"[ \t]+(?P<name>[^\s\[\]]+)(?P<mark>(?:[ \t]+\#[0-9]{1,9})?)[ \t]*\]"
    r"[ \t]*(?P<close>[^\s\w]*)[ \t]*"
)


class Comment(NamedTuple):
    """What a comment that takes a whole line begins and ends with."""

    open: str
    close: str = ""

    def line(self, text: str) -> str:
        """Return ``text`` as a comment."""
        return " ".join(filter(None, (self.open, text, self.close)))


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker line."""

    line: int
    start: int
    """Index of the first character of the line."""
    end: int
    """Index after the last character of the line, line end not included."""
    text: str
    indent: str
    sign: str
    tag: str
    name: str
    is_begin: bool
    mark: str
    """`` #1`` in a numbered marker."""

    @property
    def key(self) -> tuple[str, ...]:
        """What both markers of a block have alike."""
        return self.tag, self.name, self.sign, self.mark.strip()


class Malformed(NamedTuple):
    """A line that looks like a marker but is not one."""

    line: int
    text: str
    comment: Comment
    """The comment that it is."""


def read_markers(text: str, tags: str = DEFAULT_TAG) -> Iterator[Marker | Malformed]:
    """Yield each marker line, and each line that looks like one but is not.

    Args:
        text: of a file; a byte order mark is no part of its first line.
        tags: the words before the colon, as a regular expression.
    """
    if ":BEGIN" not in text and ":END" not in text:
        return  # Because most files of thousands of lines have none.
    for match in _lines(tags).finditer(text):
        start = match.start("indent")
        line = line_at(text, start)
        sign = match["sign"]
        closer = _CLOSERS.get(sign, "")
        parts = _INSIDE.fullmatch(match["inside"])
        if parts is None or parts["close"] != closer:
            yield Malformed(line, text[start : match.end()].strip(), Comment(sign, closer))
            continue
        edge, whole = match["edge"] == "BEGIN", text[start : match.end()]
        place = (line, start, match.end(), whole, match["indent"], sign)
        yield Marker(*place, match["tag"], parts["name"], edge, parts["mark"])


@cache
def _lines(tags: str) -> re.Pattern[str]:
    """Return what matches a line that begins as a marker, without its end."""
    return re.compile(
        rf"^\ufeff?(?P<indent>[ \t]*)(?P<sign>{_SIGNS})[ \t]*"
        rf"\[(?P<tag>{tags}):(?P<edge>BEGIN|END)(?![A-Za-z0-9_])(?P<inside>[^\n]*?)(?=\r?$)",
        re.MULTILINE,
    )


def pair_markers(
    markers: Iterable[Marker | Malformed],
    error: Callable[[str, Marker | Malformed, str], Exception],
) -> Iterator[tuple[Marker, Marker]]:
    """Yield the markers that belong together, in order.

    Args:
        markers: as ``read_markers`` yields them.
        error: makes what is raised where they do not pair up, of the problem (``unclosed``,
            ``unopened``, ``nested``, ``duplicate``, ``malformed``), the marker at fault and what
            is wrong with it, in words that follow it.
    """
    lines: dict[str, int] = {}
    begin: Marker | None = None
    for marker in markers:
        if begin is not None:
            if isinstance(marker, Marker) and not marker.is_begin and marker.key == begin.key:
                yield begin, marker
                begin = None
                continue
            if begin.mark:
                continue  # A numbered block may hold what it likes.
        if isinstance(marker, Malformed):
            raise error("malformed", marker, "is not written as markers are")
        if begin is not None:
            reason = f"stands inside the block that line {begin.line} opens"
            raise error("nested", marker, f"{reason} ({begin.text.strip()!r})")
        if not marker.is_begin:
            raise error("unopened", marker, "closes a block that was not opened")
        # Two blocks of one name would share an entry of the ledger.
        first = lines.setdefault(marker.name, marker.line)
        if first != marker.line:
            raise error("duplicate", marker, f"opens a block that line {first} opened already")
        begin = marker
    if begin is not None:
        raise error("unclosed", begin, "is never closed")


def write_marker(
    comment: Comment, edge: str, name: str, *, tag: str = DEFAULT_TAG, mark: str = ""
) -> str:
    """Return a marker line; ``edge`` is ``BEGIN`` or ``END``."""
    return comment.line(f"[{tag}:{edge} {name}{mark}]")


def free_mark(text: str, tags: str = DEFAULT_TAG) -> str:
    """Return the number that markers around ``text`` need: none, if no line looks like one."""
    markers = list(read_markers(text, tags))
    numbers = {marker.mark.strip() for marker in markers if isinstance(marker, Marker)}
    free = next(number for number in range(1, len(markers) + 2) if f"#{number}" not in numbers)
    return f" #{free}" if markers else ""


def renumber(marker: Marker, mark: str) -> str:
    """Return the line of a marker as it stands, with another number."""
    if marker.mark.strip() == mark.strip():
        return marker.text
    inside, bracket, close = marker.text.rpartition("]")
    return inside.rstrip().removesuffix(marker.mark) + mark + bracket + close


# Strings that may hold line ends, by what the comment signs of a language hold. Their lines are
# part of a value, so indentation is neither added to them nor taken from them. Comments and strings
# of one line are matched as well, so that a quote in them opens nothing; what is not closed goes to
# the end.
_COMMENTS: Final = {"#": r"\#[^\n]*", "/": r"//[^\n]*|/\*.*?(?:\*/|\Z)"}
_STRINGS: Final = (
    r"(?P<quotes>\"\"\"|'''|`)(?:\\.|(?!(?P=quotes))[^\\])*(?:(?P=quotes)|\Z)"
    r"|\"(?:\\.|[^\\\"\n])*\"?|'(?:\\.|[^\\'\n])*'?"
)
_HINT: Final = "put the marker lines back as version control has them"


class Marked:
    """Blocks between the lines ``[REGEN:BEGIN name]`` and ``[REGEN:END name]``.

    The lines stand behind a comment sign of any language: ``#``, ``//``, ``--``, ``;``, ``%``,
    ``<!-- -->``, ``/* */`` and others. A block is taken out without the indentation of its first
    marker and put back with it; lines inside multi-line strings stay as they are. A block in
    which a line is indented less than its marker is taken out, and put back, as it stands.
    """

    def find(self, text: str) -> dict[str, Span]:
        """Return the blocks of ``text`` by name.

        Raises:
            RegionError: a marker is not closed, not opened, stands inside another block, names a
                block that the file has already, or is not written as markers are.
        """
        return {
            begin.name: Span(_body(text, begin, end), begin.line + 1, begin.start, end.end)
            for begin, end in pair_markers(read_markers(text), _error)
        }

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other blocks; everything outside of them stays, byte for byte.

        Raises:
            RegionError: see ``find``; or there is no such block.
        """
        pairs = {
            begin.name: (begin, end) for begin, end in pair_markers(read_markers(text), _error)
        }
        refuse_unknown(texts, pairs)
        edits = []
        for name, body in texts.items():
            begin, end = pairs[name]
            if body == _body(text, begin, end):
                continue
            new = unix_line_ends(body)
            in_strings, lines = _lines_in_strings(new, begin.sign), new.split("\n")
            outside = [line for n, line in enumerate(lines) if n not in in_strings and line.strip()]
            # A text that `_body` took out as it stood is put back so.
            is_indented = new.lstrip("\n").startswith(begin.indent)
            if not is_indented or all(line.startswith(begin.indent) for line in outside):
                for number, line in enumerate(lines):
                    if line and number not in in_strings:
                        lines[number] = begin.indent + line
            # A text that itself shows marker lines gets numbered ones around it.
            mark = free_mark(new)
            parts = (renumber(begin, mark), *(lines if new else ()), renumber(end, mark))
            # As its begin marker ends, because files may have line ends of both sorts.
            line_end = "\r\n" if text.startswith("\r", begin.end) else "\n"
            edits.append((begin.start, end.end, "\n".join(parts).replace("\n", line_end)))
        return splice(text, edits)

    def describe(self, name: str) -> str:
        """Return which lines a file needs so that there is a block of that name."""
        return (
            f"write the two lines `[REGEN:BEGIN {name}]` and `[REGEN:END {name}]`, each behind the"
            " comment sign of the language, where the text is to stand"
        )


def _error(_: str, marker: Marker | Malformed, reason: str) -> RegionError:
    if isinstance(marker, Malformed):
        form = marker.comment.line("[REGEN:BEGIN name]")
        return defect(
            marker.line,
            f"{marker.text[:200]!r} is not a marker",
            f"write it as `{form}`, a line of its own and a name without blanks and brackets",
        )
    return defect(marker.line, f"the marker {marker.text.strip()!r} {reason}", _HINT)


def _body(text: str, begin: Marker, end: Marker) -> str:
    """Return what stands between two markers, without the indentation of the first."""
    start = text.index("\n", begin.end) + 1
    body = text[start : end.start].replace("\r\n", "\n").removesuffix("\n")
    # Indentation inside of a multi-line string is part of its value.
    in_strings, lines = _lines_in_strings(body, begin.sign), body.split("\n")
    for number, line in enumerate(lines):
        if number in in_strings:
            continue
        if line.strip() and not line.startswith(begin.indent):
            return body  # A label or an #ifdef stands farther left.
        lines[number] = line.removeprefix(begin.indent) if line.startswith(begin.indent) else ""
    return "\n".join(lines)


def _lines_in_strings(text: str, sign: str) -> set[int]:
    """Return the numbers of the lines, from 0, that begin inside a string.

    Indentation at the start of other lines does not change the result, so ``_body`` and ``_block``
    agree on it.
    """
    comment = next((pattern for mark, pattern in _COMMENTS.items() if mark in sign), None)
    pattern = comment and re.compile(f"{comment}|{_STRINGS}", re.DOTALL)
    numbers: set[int] = set()
    for match in re.finditer(pattern, text) if pattern else ():
        ends = match[0].count("\n")
        if ends and not match[0].startswith(("#", "//", "/*")):
            line = line_at(text, match.start())
            numbers.update(range(line, line + ends))
    return numbers
