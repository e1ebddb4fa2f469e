"""Marker lines: the comments between which a piece of a file stands, ``# [REGEN:BEGIN name]``.

They stand behind the comment sign of any language. A text that itself holds lines of that look
gets numbered markers, ``# [REGEN:BEGIN name #1]``, with a number none of those lines has: like the
quotes of a raw string, the closing line cannot occur in the text, so that any text comes back as
it was put in.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

DEFAULT_TAG: Final = "REGEN"
ANY_TAG: Final = "[A-Za-z][A-Za-z0-9_-]{0,49}"
"""What a tag may look like, as a regular expression."""

_CLOSERS: Final = {
    "<!--": "-->",
    "/*": "*/",
    "/**": "*/",
    "{/*": "*/}",
    "{{!--": "--}}",
    "{#": "#}",
    "{-": "-}",
    "(*": "*)",
    "<%--": "--%>",
    "<#": "#>",
}
"""Comments that have to be closed, and how."""

_OPENERS: Final = "|".join(
    (
        *(re.escape(opener) for opener in sorted(_CLOSERS, key=len, reverse=True)),
        r"/{2,3}!?",  # C, JavaScript, C#, Rust
        r"\#{1,4}",  # Python, shell, YAML
        r"-{2,3}",  # SQL, Lua, Haskell
        r";{1,4}",  # Lisp, INI, assembler
        r"%{1,3}",  # TeX, Erlang
        r"!|'|@?[Rr][Ee][Mm](?=[ \t])|dnl(?=[ \t])|\.\.(?=[ \t])",  # Fortran, Basic, m4, reST
    )
)
_REST: Final = re.compile(
    rf"\[(?P<tag>{ANY_TAG}):(?P<edge>BEGIN|END)[ \t]+(?P<name>[^\s\[\]]+)"
    r"(?P<mark>(?:[ \t]+\#(?P<number>[0-9]{1,9}))?)[ \t]*\][ \t]*(?P<close>[^\s\w]*)[ \t]*\r?"
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
    mark_at: int
    """Where in ``text`` the number stands, or would."""
    has_cr: bool
    """Whether the line ends in CRLF."""

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

    Looks at the few lines that hold a tag, and at each of them once.

    Args:
        text: of a file; a byte order mark is no part of its first line.
        tags: the words before the colon, as a regular expression.
    """
    hits, opening = _patterns(tags)
    line, counted, read = 1, 0, int(text.startswith("\ufeff"))
    for hit in hits.finditer(text):
        if hit.start() < read:
            continue
        # Searching for the tag first keeps a file of 10,000 lines without markers cheap.
        start = text.rfind("\n", read, hit.start()) + 1 or read
        read = text.find("\n", hit.end()) + 1 or len(text) + 1
        opens = opening.match(text, start)
        if opens is None or opens.end() != hit.start():
            continue
        line += text.count("\n", counted, start)
        counted = start
        yield _marker(text, start, min(read - 1, len(text)), line, opens)


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
    end = marker.mark_at + len(marker.mark)
    return marker.text[: marker.mark_at] + mark + marker.text[end:]


def is_comment(comment: Comment) -> bool:
    """Return whether markers that are written as such comments can be read again."""
    line = write_marker(comment, "BEGIN", "name")
    return [type(marker) for marker in read_markers(line)] == [Marker]


@cache
def _patterns(tags: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds the tag of a marker, and what matches the line before it."""
    return (
        re.compile(rf"\[(?:{tags}):(?:BEGIN|END)(?![A-Za-z0-9_])"),
        re.compile(rf"(?P<indent>[ \t]*)(?P<sign>{_OPENERS})[ \t]*(?=\[)"),
    )


def _marker(text: str, start: int, end: int, line: int, opens: re.Match[str]) -> Marker | Malformed:
    parts = _REST.fullmatch(text, opens.end(), end)
    sign = opens["sign"]
    closer = _CLOSERS.get(sign, "")
    if parts is None or parts["close"] != closer:
        return Malformed(line, text[start:end].strip(), Comment(sign, closer))
    whole = text[start:end].removesuffix("\r")
    return Marker(
        line=line,
        start=start,
        end=start + len(whole),
        text=whole,
        indent=opens["indent"],
        sign=sign,
        tag=parts["tag"],
        name=parts["name"],
        is_begin=parts["edge"] == "BEGIN",
        mark=parts["mark"],
        mark_at=parts.start("mark") - start,
        has_cr=text.startswith("\r", start + len(whole)),
    )
