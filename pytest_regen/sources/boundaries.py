"""Boundaries: the comment lines that mark which type a part of an assembled source belongs to.

``// [REGEN:BEGIN Name]`` opens a block and ``// [REGEN:END Name]`` closes it, behind the comment
sign of the language. Taking a text out again is exact for every text there is: see
``regions.markers``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_regen.errors import BoundaryError, MissingBlockError, UsageError
from pytest_regen.regions.markers import (
    ANY_TAG,
    DEFAULT_TAG,
    Comment,
    Malformed,
    Marker,
    free_mark,
    is_comment,
    pair_markers,
    read_markers,
    renumber,
    write_marker,
)

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
    tag: str
    text: str
    """Without the boundary lines; line ends as LF where the file's boundaries end in CRLF."""
    first_line: int
    """Line of the source, counted from 1, on which ``text`` begins; the boundary is before it."""
    last_line: int
    """Line on which ``text`` ends; one less than ``first_line`` if there is no line at all."""
    start: int
    """Index of the first character of the opening boundary line in the source."""
    end: int
    """Index after the last character of the closing boundary line, line end not included."""


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
    if not is_comment(comment):
        raise UsageError(
            f"{comment.line('…')!r} is no comment that boundaries can be read from again",
            hint="use a comment of a language that is known, such as // or # or <!-- -->",
        )
    mark = free_mark(code, ANY_TAG)
    begin, end = (
        write_marker(comment, edge, type_name, tag=tag, mark=mark) for edge in ("BEGIN", "END")
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
    read = []
    for begin, end in _pairs(source, tag):
        # The line end before the closing boundary is not the text's, because any text, one that
        # ends in a line end too, must come back byte for byte.
        start = source.index("\n", begin.end) + 1
        text = source[start : max(start, end.start - 1)]
        if source.startswith("\r", begin.end):
            text = source[start : end.start].replace("\r\n", "\n")[:-1]
        place = (begin.line + 1, end.line - 1, begin.start, end.end)
        read.append(Block(begin.name, begin.tag, text, *place))
    return tuple(read)


def list_type_names(source: str, *, tag: str | None = None) -> list[str]:
    """Return the names of the blocks of ``source`` in order.

    Raises:
        BoundaryError: see ``blocks``.
    """
    return [begin.name for begin, _ in _pairs(source, tag)]


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
    # All pairs are read, because a second block of the name must not go unnoticed.
    pairs = {begin.name: (begin, end) for begin, end in _pairs(source, tag)}
    if type_name not in pairs:
        names = ", ".join(pairs) or "none"
        raise MissingBlockError(
            f"the source has no block for {type_name!r}",
            why=f"blocks it has: {names}",
            hint="pass one of these names, or assemble the source again from its pages",
        )
    begin, end = pairs[type_name]
    mark = free_mark(new_code, ANY_TAG)
    line_end = "\r\n" if source.startswith("\r", begin.end) else "\n"
    if line_end == "\r\n":
        new_code = new_code.replace("\r\n", "\n").replace("\n", "\r\n")
    lines = (renumber(begin, mark), new_code, renumber(end, mark))
    return f"{source[: begin.start]}{line_end.join(lines)}{source[end.end :]}"


def is_boundary_free(text: str) -> bool:
    """Return whether no line of ``text`` could be taken for a boundary, whatever its tag."""
    return next(read_markers(text, ANY_TAG), None) is None


def _check_word(word: str, pattern: str, what: str) -> None:
    if re.fullmatch(pattern, word) is None:
        raise UsageError(
            f"{word!r} cannot be a {what}",
            why="a boundary is one line that holds the tag and the name",
            hint="use a word without white space and brackets",
        )


def _pairs(source: str, tag: str | None) -> Iterator[tuple[Marker, Marker]]:
    """Yield the pairs of boundary lines in order; a line that is only like one is a comment."""

    def error(problem: str, marker: Marker | Malformed, reason: str) -> BoundaryError:
        return BoundaryError(
            f"line {marker.line}: the boundary {marker.text.strip()!r} {reason}",
            problem=problem,
            line=marker.line,
            name=marker.name if isinstance(marker, Marker) else "",
            hint=_HINT,
        )

    if tag is not None:
        _check_word(tag, ANY_TAG, "boundary tag")
    tags = "|".join(map(re.escape, dict.fromkeys((*_READ_TAGS, tag or DEFAULT_TAG))))
    markers = (line for line in read_markers(source, tags) if isinstance(line, Marker))
    return pair_markers(markers, error)


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
    present = {block.name: block for block in blocks(source)}
    tag = next((block.tag for block in present.values()), DEFAULT_TAG)
    line_end = "\r\n" if "\r\n" in source else "\n"
    text = wrap_type_block(type_name, code, tag=tag, comment=comment)
    text = text.replace("\r\n", "\n").replace("\n", line_end)
    names = list(order)
    earlier = names[: names.index(type_name)] if type_name in names else list(present)
    for name in reversed(earlier):
        if name in present:
            at = present[name].end
            return f"{source[:at]}{line_end * 2}{text}{source[at:]}"
    if present:
        at = min(block.start for block in present.values())
        return f"{source[:at]}{text}{line_end * 2}{source[at:]}"
    head = source.rstrip()  # because a file ends in one line end, however many it had
    return f"{head}{line_end * 2 if head else ''}{text}{line_end}"


def remove_type_block(source: str, type_name: str) -> str:
    """Return ``source`` without a block and the blank line before it.

    Raises:
        MissingBlockError: there is no such block.
        BoundaryError: the boundaries of ``source`` do not hold together.
    """
    block = next((block for block in blocks(source) if block.name == type_name), None)
    if block is None:
        raise MissingBlockError(
            f"the source has no block for {type_name!r}", hint="list them with list_type_names"
        )
    line_end = "\r\n" if source.startswith("\r\n", block.end) else "\n"
    # One blank line goes with the block, because each block was put in with one.
    before, after = source[: block.start], source[block.end :].removeprefix(line_end)
    if before.endswith(line_end * 2) and (not after or after.startswith(line_end)):
        before = before.removesuffix(line_end)
    return before + after
