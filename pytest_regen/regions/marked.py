"""Marked regions: blocks between two comment lines, ``# [REGEN:BEGIN name]`` and its END."""

import re
from collections.abc import Mapping
from typing import Final

from pytest_regen.errors import RegionError
from pytest_regen.regions.base import Span, defect, refuse_unknown, splice, unix_line_ends
from pytest_regen.regions.markers import (
    Malformed,
    Marker,
    free_mark,
    pair_markers,
    read_markers,
    renumber,
)

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
            f"{marker.text[:200]!r} is no marker",
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
    line, counted = 0, 0
    for match in re.finditer(pattern, text) if pattern else ():
        ends = match[0].count("\n")
        if ends and not match[0].startswith(("#", "//", "/*")):
            line += text.count("\n", counted, match.start())
            numbers.update(range(line + 1, line + ends + 1))
            line, counted = line + ends, match.end()
    return numbers
