"""Marked regions: blocks between two comment lines, ``# [REGEN:BEGIN name]`` and its END."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pytest_regen.errors import RegionError
from pytest_regen.regions.base import Span, refuse_unknown, splice, unix_line_ends
from pytest_regen.regions.markers import (
    Malformed,
    Marker,
    free_mark,
    pair_markers,
    read_markers,
    renumber,
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
            for begin, end in _pairs(text)
        }

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other blocks; everything outside of them stays, byte for byte.

        Raises:
            RegionError: see ``find``; or there is no such block.
        """
        pairs = {begin.name: (begin, end) for begin, end in _pairs(text)}
        refuse_unknown(texts, pairs)
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


def _pairs(text: str) -> Iterator[tuple[Marker, Marker]]:
    """Yield the markers that belong together, in order."""
    return pair_markers(read_markers(text), _error)


def _error(problem: str, marker: Marker | Malformed, reason: str) -> RegionError:
    if isinstance(marker, Malformed):
        line = marker.comment.line("[REGEN:BEGIN name]")
        return RegionError(
            f"line {marker.line}: {marker.text[:200]!r} is no marker",
            line=marker.line,
            hint=f"write it as `{line}`, a line of its own and a name without blanks and brackets",
        )
    del problem
    return RegionError(
        f"line {marker.line}: the marker {marker.text.strip()!r} {reason}",
        line=marker.line,
        hint=_HINT,
    )


def _body(text: str, begin: Marker, end: Marker) -> str:
    """Return what stands between two markers, without the indentation of the first."""
    body = (
        text[text.index("\n", begin.end) + 1 : end.start].replace("\r\n", "\n").removesuffix("\n")
    )
    return _dedent(body, begin)


def _block(text: str, begin: Marker, end: Marker, new: str) -> str:
    """Return a block with another text, from its first marker to its last."""
    new = unix_line_ends(new)
    mark = free_mark(new)
    body = (_indent(new, begin),) if new else ()
    lines = (renumber(begin, mark), *body, renumber(end, mark))
    block = "\n".join(lines)
    return block.replace("\n", "\r\n") if text.startswith("\r", begin.end) else block


def _indent(text: str, begin: Marker) -> str:
    """Return ``text`` with the indentation of a marker, lines inside of strings left alone."""
    if not begin.indent:
        return text
    kept, lines = _lines_in_strings(text, begin.sign), text.split("\n")
    if text.lstrip("\n").startswith(begin.indent) and any(
        line.strip() and number not in kept and not line.startswith(begin.indent)
        for number, line in enumerate(lines)
    ):
        return text  # as `_dedent` took it out: a label or an #ifdef stands farther left
    return "\n".join(
        line if not line or number in kept else begin.indent + line
        for number, line in enumerate(lines)
    )


def _dedent(text: str, begin: Marker) -> str:
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
