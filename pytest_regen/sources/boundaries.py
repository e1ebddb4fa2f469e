"""Boundaries: the comment lines that mark which type a part of an assembled source belongs to.

``// [REGEN:BEGIN Name]`` opens a block and ``// [REGEN:END Name]`` closes it, behind the comment
sign of the language. Taking a text out again is exact for every text there is: see
``regions.markers``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_regen.errors import BoundaryError, MissingBlockError, UsageError
from pytest_regen.regions import markers
from pytest_regen.regions.markers import ANY_TAG, DEFAULT_TAG, Comment, Malformed, Marker

DEFAULT_COMMENT = Comment("//")

MARKER_BEGIN = "// [REGEN:BEGIN {name}]"
"""The line before a block, as C# has it."""

MARKER_END = "// [REGEN:END {name}]"
"""The line after a block, as C# has it."""

_READ_TAGS = (DEFAULT_TAG, "SCHMITH")
_HINT = (
    "put the boundary lines back as version control has them, or write the file from its stored"
    " pages with `pytest-regen rebuild DIR`"
)


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between the two boundaries of one type."""

    name: str
    text: str
    """Without the boundary lines; line ends as LF where the file's boundaries end in CRLF."""
    first_line: int
    """Line of the source, counted from 1, on which ``text`` begins; the boundary is before it."""
    last_line: int
    """Line on which ``text`` ends; one less than ``first_line`` if there is no line at all."""
    edges: tuple[Marker, Marker]
    """The boundary lines: characters ``edges[0].start`` to ``edges[1].end`` of the source."""


def wrap_type_block(
    type_name: str, code: str, *, tag: str = DEFAULT_TAG, comment: Comment = DEFAULT_COMMENT
) -> str:
    """Return ``code`` between the boundary lines of ``type_name``, without a final line end.

    Args:
        type_name: the name the source declares.
        code: any text; it is kept byte for byte.
        tag: the word before the colon.
        comment: the comment that the boundary lines are.

    Raises:
        UsageError: the name or the tag cannot stand in a boundary.
    """
    _check_word(type_name, r"[^\s\[\]]+", "type name")
    _check_word(tag, ANY_TAG, "boundary tag")
    mark = markers.free_mark(code, ANY_TAG)
    begin, end = (
        markers.write_marker(comment, edge, type_name, tag=tag, mark=mark)
        for edge in ("BEGIN", "END")
    )
    return f"{begin}\n{code}\n{end}"


def blocks(source: str, *, tag: str | None = None) -> tuple[Block, ...]:
    """Return the blocks of ``source`` in order, in one pass over the text.

    Args:
        source: an assembled source; line ends LF or CRLF, boundaries possibly indented.
        tag: a tag to read besides ``REGEN`` and ``SCHMITH``.

    Raises:
        BoundaryError: a boundary is not closed, not opened, stands inside another block, or a
            second block has the same name. The error names the line.
    """

    def error(problem: str, marker: Marker | Malformed, reason: str) -> BoundaryError:
        return BoundaryError(
            f"line {marker.line}: the boundary {marker.text.strip()!r} {reason}",
            problem=problem,
            line=marker.line,
            name=marker.name if isinstance(marker, Marker) else "",
            hint=_HINT,
        )

    tags = "|".join(map(re.escape, dict.fromkeys((*_READ_TAGS, tag or DEFAULT_TAG))))
    # Not the malformed ones, because a line that is only like a boundary is a comment.
    lines = (line for line in markers.read_markers(source, tags) if isinstance(line, Marker))
    read = []
    for begin, end in markers.pair_markers(lines, error):
        # The line end before the closing boundary is not the text's, because any text, one that
        # ends in a line end too, must come back byte for byte.
        start = source.index("\n", begin.end) + 1
        text = source[start : max(start, end.start - 1)]
        if source.startswith("\r", begin.end):
            text = source[start : end.start].replace("\r\n", "\n")[:-1]
        read.append(Block(begin.name, text, begin.line + 1, end.line - 1, (begin, end)))
    return tuple(read)


def list_type_names(source: str, *, tag: str | None = None) -> list[str]:
    """Return the names of the blocks of ``source`` in order.

    Raises:
        BoundaryError: see ``blocks``.
    """
    return [block.name for block in blocks(source, tag=tag)]


def extract_type_block(source: str, type_name: str, *, tag: str | None = None) -> str | None:
    """Return the text of the block of ``type_name``, or ``None`` if there is no such block.

    Exact: what ``wrap_type_block`` or ``assemble`` was given comes back byte for byte.

    Raises:
        BoundaryError: see ``blocks``.
    """
    return {block.name: block.text for block in blocks(source, tag=tag)}.get(type_name)


def replace_type_block(
    source: str, type_name: str, new_code: str, *, tag: str | None = None
) -> str:
    """Return ``source`` with another text in the block of ``type_name``.

    Everything outside the block stays as it is, byte for byte. In a block whose boundaries end
    in CRLF, the new text gets CRLF too.

    Raises:
        MissingBlockError: there is no such block.
        BoundaryError: see ``blocks``.
    """
    begin, end = _block(source, type_name, tag).edges
    mark = markers.free_mark(new_code, ANY_TAG)
    line_end = "\r\n" if source.startswith("\r", begin.end) else "\n"
    if line_end == "\r\n":
        new_code = new_code.replace("\r\n", "\n").replace("\n", "\r\n")
    lines = (markers.renumber(begin, mark), new_code, markers.renumber(end, mark))
    return f"{source[: begin.start]}{line_end.join(lines)}{source[end.end :]}"


def _block(source: str, type_name: str, tag: str | None = None) -> Block:
    # All are read, because a second block of the name must not go unnoticed.
    by_name = {block.name: block for block in blocks(source, tag=tag)}
    if type_name not in by_name:
        raise MissingBlockError(
            f"the source has no block for {type_name!r}",
            why=f"blocks it has: {', '.join(by_name) or 'none'}",
            hint="pass one of these names, or assemble the source again from its pages",
        )
    return by_name[type_name]


def _check_word(word: str, pattern: str, what: str) -> None:
    if re.fullmatch(pattern, word) is None:
        raise UsageError(
            f"{word!r} cannot be a {what}",
            why="a boundary is one line that holds the tag and the name",
            hint="use a word without white space and brackets",
        )


def insert_type_block(
    source: str,
    type_name: str,
    code: str,
    *,
    order: Sequence[str] = (),
    comment: Comment = DEFAULT_COMMENT,
) -> str:
    """Return ``source`` with a new block: after the nearest one that precedes it in ``order``.

    Without such a block it becomes the first; in a source without blocks it stands at the end.

    Args:
        source: an assembled source.
        type_name: the name the source declares; it must not have a block yet.
        code: the text of the block.
        order: all type names in the order of the source.
        comment: the comment that the boundary lines are.

    Raises:
        BoundaryError: the boundaries of ``source`` do not hold together.
    """
    present = blocks(source)
    tag = present[0].edges[0].tag if present else DEFAULT_TAG
    line_end = "\r\n" if "\r\n" in source else "\n"
    text = wrap_type_block(type_name, code, tag=tag, comment=comment)
    text = text.replace("\r\n", "\n").replace("\n", line_end)
    earlier = order[: order.index(type_name)] if type_name in order else [b.name for b in present]
    before = [block.edges[1].end for block in present if block.name in earlier]
    if present and not before:
        at = present[0].edges[0].start
        return f"{source[:at]}{text}{line_end * 2}{source[at:]}"
    at = before[-1] if before else len(source.rstrip())
    return f"{source[:at]}{line_end * 2}{text}{source[at:]}"


def remove_type_block(source: str, type_name: str) -> str:
    """Return ``source`` without a block and the blank line before it.

    Raises:
        MissingBlockError: there is no such block.
        BoundaryError: the boundaries of ``source`` do not hold together.
    """
    begin, end = _block(source, type_name).edges
    line_end = "\r\n" if source.startswith("\r\n", end.end) else "\n"
    # One blank line goes with the block, because each block was put in with one.
    before, after = source[: begin.start], source[end.end :].removeprefix(line_end)
    if before.endswith(line_end * 2) and (not after or after.startswith(line_end)):
        before = before.removesuffix(line_end)
    return before + after
