"""Marked regions: blocks between two comment lines, ``# [REGEN:BEGIN name]`` and its END.

A text that itself holds lines of that look gets numbered markers, ``# [REGEN:BEGIN name #1]``,
with a number none of those lines has: like the quotes of a raw string, the closing line cannot
occur in the text, so that any text comes back as it was put in.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pytest_regen.errors import RegionError
from pytest_regen.regions.base import Span, splice, unix_line_ends, unknown_names

__all__ = ["Marked"]

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
_HIT: Final = re.compile(r"\[REGEN:(?:BEGIN|END)(?![A-Za-z0-9_])")
_OPENS: Final = re.compile(rf"(?P<indent>[ \t]*)(?P<sign>{_OPENERS})[ \t]*(?=\[REGEN:)")
_REST: Final = re.compile(
    r"\[REGEN:(?P<edge>BEGIN|END)[ \t]+(?P<name>[^\s\[\]]+)"
    r"(?P<mark>(?:[ \t]+\#(?P<number>[0-9]{1,9}))?)[ \t]*\][ \t]*(?P<close>[^\s\w]*)[ \t]*\r?"
)

# Strings that may hold line ends, by the comment sign of the language. Their lines are part of a
# value, so indentation is neither added to them nor taken from them. Comments and strings of one
# line are matched first, so that a quote in them opens nothing; what is not closed goes to the end.
_ONE_LINE: Final = r"\"(?:\\.|[^\\\"\n])*\"?|'(?:\\.|[^\\'\n])*'?"
_PYTHON: Final = re.compile(
    r"\#[^\n]*"
    r"|(?P<quotes>\"\"\"|''')(?:\\.|(?!(?P=quotes))[^\\])*(?:(?P=quotes)|\Z)"
    rf"|{_ONE_LINE}",
    re.DOTALL,
)
_BRACES: Final = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|\"{3,}(?:\\.|(?!\"\"\")[^\\])*(?:\"{3,}|\Z)|`(?:\\.|[^\\`])*(?:`|\Z)"
    rf"|{_ONE_LINE}",
    re.DOTALL,
)
_SQL: Final = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|(?<!\w)'[^']*(?:'|\Z)|\"[^\"\n]*\"?", re.DOTALL
)
_HINT: Final = "put the marker lines back as version control has them"


@dataclass(frozen=True, slots=True)
class _Marker:
    """One marker line."""

    line: int
    start: int
    """Index of the first character of the line."""
    end: int
    """Index after the last character of the line, line end not included."""
    text: str
    indent: str
    sign: str
    name: str
    is_begin: bool
    mark: str
    """`` #1`` in a numbered marker."""
    mark_at: int
    """Where in ``text`` the number stands, or would."""


class Marked:
    """Blocks between the lines ``[REGEN:BEGIN name]`` and ``[REGEN:END name]``.

    The lines stand behind a comment sign of any language: ``#``, ``//``, ``--``, ``;``, ``%``,
    ``<!-- -->``, ``/* */`` and others. A block is taken out without the indentation of its first
    marker and put back with it; lines inside multi-line strings stay as they are. A block in
    which a line is indented less than its marker is taken out as it stands.
    """

    def find(self, text: str) -> dict[str, Span]:
        """Return the blocks of ``text`` by name.

        Raises:
            RegionError: a marker is not closed, not opened, stands inside another block, names a
                block that the file has already, or is not written as markers are.
        """
        return {
            begin.name: Span(_body(text, begin, end), begin.line + 1, begin.start, end.end)
            for begin, end in _pairs(text)
        }

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other blocks; everything outside of them stays, byte for byte.

        Raises:
            RegionError: see ``find``; or there is no such block.
        """
        pairs = {begin.name: (begin, end) for begin, end in _pairs(text)}
        unknown_names(texts, pairs)
        return splice(
            text,
            (
                (pairs[name][0].start, pairs[name][1].end, _block(text, *pairs[name], new))
                for name, new in texts.items()
                if new != _body(text, *pairs[name])
            ),
        )

    def describe(self, name: str) -> str:
        """Return which lines a file needs so that there is a block of that name."""
        return (
            f"write the two lines `[REGEN:BEGIN {name}]` and `[REGEN:END {name}]`, each behind the"
            " comment sign of the language, where the text is to stand"
        )


def _pairs(text: str) -> Iterator[tuple[_Marker, _Marker]]:
    """Yield the markers that belong together, in order."""
    lines: dict[str, int] = {}
    begin: _Marker | None = None
    for marker in _markers(text):
        if begin is None:
            if isinstance(marker, RegionError):
                raise marker
            if not marker.is_begin:
                raise _error(marker, "closes a block that was not opened")
            first = lines.setdefault(marker.name, marker.line)
            if first != marker.line:
                raise _error(marker, f"opens a block that line {first} opened already")
            begin = marker
        elif isinstance(marker, _Marker) and _closes(begin, marker):
            yield begin, marker
            begin = None
        elif not begin.mark:
            if isinstance(marker, RegionError):
                raise marker
            reason = f"stands inside the block that line {begin.line} opens ({begin.text.strip()})"
            raise _error(marker, reason)
    if begin is not None:
        raise _error(begin, "is never closed")


def _closes(begin: _Marker, marker: _Marker) -> bool:
    return not marker.is_begin and (
        (marker.name, marker.sign, marker.mark.strip())
        == (begin.name, begin.sign, begin.mark.strip())
    )


def _markers(text: str) -> Iterator[_Marker | RegionError]:
    """Yield each marker line, or the error of a line that looks like one and is none.

    Looks at the few lines that hold a tag, and at each of them once.
    """
    line, counted, done = 1, 0, int(text.startswith("\ufeff"))
    for hit in _HIT.finditer(text):
        if hit.start() < done:
            continue
        start = text.rfind("\n", done, hit.start()) + 1 or done
        done = text.find("\n", hit.end()) + 1 or len(text) + 1
        opens = _OPENS.match(text, start)
        if opens is None or opens.end() != hit.start():
            continue
        line += text.count("\n", counted, start)
        counted = start
        yield _marker(text, start, min(done - 1, len(text)), line, opens)


def _marker(
    text: str, start: int, end: int, line: int, opens: re.Match[str]
) -> _Marker | RegionError:
    rest = _REST.fullmatch(text, opens.end(), end)
    sign = opens["sign"]
    if rest is None or rest["close"] != _CLOSERS.get(sign, ""):
        closer = f" {_CLOSERS[sign]}" if sign in _CLOSERS else ""
        return RegionError(
            f"line {line}: {text[start:end].strip()[:200]!r} is no marker",
            line=line,
            hint=f"write it as `{sign} [REGEN:BEGIN name]{closer}`, a line of its own and a name"
            " without blanks and brackets",
        )
    whole = text[start:end].removesuffix("\r")
    return _Marker(
        line=line,
        start=start,
        end=start + len(whole),
        text=whole,
        indent=opens["indent"],
        sign=sign,
        name=rest["name"],
        is_begin=rest["edge"] == "BEGIN",
        mark=rest["mark"],
        mark_at=rest.start("mark") - start,
    )


def _error(marker: _Marker, reason: str) -> RegionError:
    return RegionError(
        f"line {marker.line}: the marker {marker.text.strip()!r} {reason}",
        line=marker.line,
        hint=_HINT,
    )


def _body(text: str, begin: _Marker, end: _Marker) -> str:
    """Return what stands between two markers, without the indentation of the first."""
    body = (
        text[text.index("\n", begin.end) + 1 : end.start].replace("\r\n", "\n").removesuffix("\n")
    )
    return _dedent(body, begin)


def _block(text: str, begin: _Marker, end: _Marker, new: str) -> str:
    """Return a block with another text, from its first marker to its last."""
    new = unix_line_ends(new)
    mark = _free_mark(new)
    body = (_indent(new, begin),) if new else ()
    lines = (_renumbered(begin, mark), *body, _renumbered(end, mark))
    block = "\n".join(lines)
    return block.replace("\n", "\r\n") if text.startswith("\r", begin.end) else block


def _free_mark(text: str) -> str:
    """Return the number that markers around ``text`` need: none, if no line looks like one."""
    markers = list(_markers(text))
    numbers = {marker.mark.strip() for marker in markers if isinstance(marker, _Marker)}
    free = next(number for number in range(1, len(markers) + 2) if f"#{number}" not in numbers)
    return f" #{free}" if markers else ""


def _renumbered(marker: _Marker, mark: str) -> str:
    if marker.mark.strip() == mark.strip():
        return marker.text
    rest = marker.text[marker.mark_at + len(marker.mark) :]
    return marker.text[: marker.mark_at] + mark + rest


def _indent(text: str, begin: _Marker) -> str:
    """Return ``text`` with the indentation of a marker, lines inside of strings left alone."""
    if not begin.indent:
        return text
    kept = _lines_in_strings(text, begin.sign)
    return "\n".join(
        line if not line or number in kept else begin.indent + line
        for number, line in enumerate(text.split("\n"))
    )


def _dedent(text: str, begin: _Marker) -> str:
    """Return ``text`` without the indentation of a marker; the inverse of ``_indent``."""
    if not begin.indent:
        return text
    kept, lines = _lines_in_strings(text, begin.sign), text.split("\n")
    for number, line in enumerate(lines):
        if number in kept:
            continue
        if line.startswith(begin.indent):
            lines[number] = line.removeprefix(begin.indent)
        elif line.strip():
            return text
        else:
            lines[number] = ""
    return "\n".join(lines)


def _lines_in_strings(text: str, sign: str) -> set[int]:
    """Return the numbers of the lines, from 0, that begin inside a string.

    Indentation at the start of other lines does not change the result, so ``_indent`` and
    ``_dedent`` agree on it.
    """
    if sign.startswith("#"):
        pattern = _PYTHON
    elif sign.startswith(("//", "/*", "{/*")):
        pattern = _BRACES
    elif sign.startswith("--"):
        pattern = _SQL
    else:
        return set()
    found: set[int] = set()
    line, counted = 0, 0
    for match in pattern.finditer(text):
        ends = match[0].count("\n")
        if not ends or match[0].startswith(("#", "//", "/*", "--")):
            continue
        line += text.count("\n", counted, match.start())
        found.update(range(line + 1, line + ends + 1))
        line, counted = line + ends, match.end()
    return found
