"""Pages as lines: what is cut from them, how they are indented, and which page each came from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_regen.languages.base import PageFault, StitchedType


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a stitched type."""

    text: str
    page: int
    number: int
    """Of the line in the page's own output, counted from 1."""
    is_whole: bool = True
    """Whether the line stands as the page has it, from its first character on."""


@dataclass(frozen=True, slots=True, order=True)
class TextEdit:
    """A change of a page's text: the bytes from ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: bytes = b""


def cut(
    code: bytes, edits: Iterable[TextEdit], *, page: int, start: int = 0, end: int | None = None
) -> list[Line]:
    """Return the lines of ``code[start:end]`` with the edits applied.

    A line that an edit leaves blank is left out. Edits do not overlap.

    Args:
        code: UTF-8 text of a page, with LF line ends.
        edits: positions are those of ``code``.
        page: the page's number.
        start: where to begin.
        end: where to stop; ``None`` for the end of the text.
    """
    stop = len(code) if end is None else end
    ordered = sorted(edit for edit in edits if start <= edit.start and edit.end <= stop)
    lines: list[Line] = []
    position = start
    number = code.count(b"\n", 0, start) + 1
    for text in code[start:stop].split(b"\n"):
        line_end = position + len(text)
        while ordered and _is_over(ordered[0], position):
            ordered.pop(0)
        line = _apply_edits(text, position, ordered) if ordered else text
        if line is text:
            begins = position != start or not start or code[start - 1 : start] == b"\n"
            lines.append(Line(_text(line), page, number, begins))
        elif line.strip():
            begins = ordered[0].start > position
            lines.append(Line(_text(line).rstrip(), page, number, begins))
        position = line_end + 1
        number += 1
    return lines


def _is_over(edit: TextEdit, position: int) -> bool:
    return edit.end < position or (edit.end == position and edit.start < position)


def _apply_edits(text: bytes, position: int, edits: Sequence[TextEdit]) -> bytes:
    """Return one line, which begins at ``position``, with the edits that touch it."""
    end, at, parts = position + len(text), position, []
    for edit in edits:
        if edit.start > end:
            break
        parts.append(text[max(at - position, 0) : max(edit.start - position, 0)])
        # A replacement stands where the edit begins, not on each line that it crosses.
        if edit.start >= position:
            parts.append(edit.text)
        at = max(at, edit.end)
    if not parts:
        return text
    return b"".join((*parts, text[max(at - position, 0) :]))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogatepass")


def is_blank(line: Line) -> bool:
    """Return whether the line holds nothing but white space."""
    return not line.text.strip()


def trim(lines: list[Line]) -> list[Line]:
    """Return the lines without blank ones at either end."""
    first, last = 0, len(lines)
    while first < last and is_blank(lines[first]):
        first += 1
    while last > first and is_blank(lines[last - 1]):
        last -= 1
    return lines[first:last]


def reindent(lines: Sequence[Line], indent: str, *, directive: str = "") -> list[Line]:
    """Return the lines with their common indentation replaced by ``indent``.

    Args:
        lines: of one page.
        indent: white space.
        directive: what lines of a preprocessor begin with. They do not count, and are moved only if
            they share the indentation.
    """
    shown = [line for line in lines if not is_blank(line) and line.is_whole]
    code = [line for line in shown if not _is_directive(line.text, directive)] or shown
    own = _common([_indent(line.text) for line in code])
    return [_indent_line(line, own, indent, directive) for line in lines]


def _is_directive(text: str, directive: str) -> bool:
    return bool(directive) and text.lstrip().startswith(directive)


def _indent_line(line: Line, own: str, indent: str, directive: str) -> Line:
    if is_blank(line):
        return Line("", line.page, line.number)
    if not line.is_whole:
        return Line(indent + line.text.lstrip(), line.page, line.number)
    if not line.text.startswith(own) or (not own and _is_directive(line.text, directive)):
        return line
    return Line(indent + line.text[len(own) :], line.page, line.number)


def _common(texts: Sequence[str]) -> str:
    """Return the longest beginning that all ``texts`` share."""
    first, last = min(texts, default=""), max(texts, default="")
    for index, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:index]
    return first


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def plain_page(output: str) -> str:
    """Return a page's text with LF line ends and without a byte order mark."""
    return output.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def join_lines(head: list[Line], pieces: Sequence[list[Line]], *, is_apart: bool) -> list[Line]:
    """Return ``head`` and the pieces below one another, with a blank line between them or none."""
    lines = list(head)
    while lines and is_blank(lines[-1]):
        lines.pop()
    if lines:
        lines[-1] = replace(lines[-1], text=lines[-1].text.rstrip())
    for piece in pieces:
        if piece and is_apart and lines and not lines[-1].text.endswith("{"):
            lines.append(Line("", piece[0].page, piece[0].number))
        lines += piece
    return lines


def line_start(code: bytes, at: int) -> int:
    """Return where the line of ``at`` begins if only white space is before it, else ``at``."""
    start = code.rfind(b"\n", 0, at) + 1
    return at if code[start:at].strip() else start


def as_type(lines: Sequence[Line], faults: Sequence[PageFault] = ()) -> StitchedType:
    """Return the lines as the declaration that they make."""
    return StitchedType(
        text="\n".join([line.text for line in lines]),
        line_pages=tuple([line.page for line in lines]),
        faults=tuple(faults),
        page_lines=tuple([line.number for line in lines]),
    )
