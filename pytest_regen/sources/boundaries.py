"""Boundaries: the comment lines that mark which type a part of an assembled source belongs to.

``// [REGEN:BEGIN Name]`` opens a block and ``// [REGEN:END Name]`` closes it. A text that itself
holds lines of that look gets numbered boundaries, ``// [REGEN:BEGIN Name #1]``, with a number none
of those lines has: like the quotes of a raw string, the closing line cannot occur in the text, so
the text is kept byte for byte and taking it out again is exact for every text there is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from pytest_regen.errors import BoundaryError, MissingBlockError, SourceError, UsageError
from pytest_regen.languages.base import Comment

__all__ = [
    "DEFAULT_TAG",
    "MARKER_BEGIN",
    "MARKER_END",
    "Block",
    "blocks",
    "extract_type_block",
    "insert_type_block",
    "list_type_names",
    "remove_type_block",
    "replace_type_block",
    "wrap_type_block",
]


DEFAULT_TAG = "REGEN"
"""The tag of boundaries that are written."""

DEFAULT_COMMENT = Comment("//")

MARKER_BEGIN = "// [REGEN:BEGIN {name}]"
"""The line before a block, as C# has it."""

MARKER_END = "// [REGEN:END {name}]"
"""The line after a block, as C# has it."""

_READ_TAGS = (DEFAULT_TAG, "SCHMITH")
_MAX_INDENT = 100
"""More blanks than that before ``//`` or ``[``, and the line is no boundary."""
_ANY_TAG = "[A-Za-z][A-Za-z0-9_-]{0,49}"
_WINDOW = 2 * _MAX_INDENT + 60
"""How far before its colon a boundary line may begin: the blanks, ``//``, ``[`` and the tag."""
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


class _Pair(NamedTuple):
    """Two boundary lines that belong together."""

    begin: re.Match[str]
    end: re.Match[str]
    begin_line: int
    end_line: int


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
    _check_word(tag, _ANY_TAG, "boundary tag")
    name = type_name + _mark(_free_number(code))
    begin, end = (comment.line(f"[{tag}:{kind} {name}]") for kind in ("BEGIN", "END"))
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
    return tuple(_block(source, pair) for pair in _pairs(source, tag))


def list_type_names(source: str, *, tag: str | None = None) -> list[str]:
    """Return the names of the blocks of ``source`` in order.

    Raises:
        BoundaryError: see ``blocks``.
    """
    return [pair.begin["name"] for pair in _pairs(source, tag)]


def extract_type_block(source: str, type_name: str, *, tag: str | None = None) -> str | None:
    """Return the text of the block of ``type_name``, or ``None`` if there is no such block.

    Exact: what ``wrap_type_block`` or ``assemble`` was given comes back byte for byte.

    Raises:
        BoundaryError: see ``blocks``.
    """
    pair = _find(source, type_name, tag)
    return None if pair is None else _text(source, pair)


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
    pair = _find(source, type_name, tag)
    if pair is None:
        names = ", ".join(list_type_names(source, tag=tag)) or "none"
        raise MissingBlockError(
            f"the source has no block for {type_name!r}",
            why=f"blocks it has: {names}",
            hint="pass one of these names, or assemble the source again from its pages",
        )
    mark = _mark(_free_number(new_code))
    line_end = "\r\n" if pair.begin["cr"] else "\n"
    if line_end == "\r\n":
        new_code = new_code.replace("\r\n", "\n").replace("\n", "\r\n")
    begin, end = _renumbered(pair.begin, mark), _renumbered(pair.end, mark)
    before, after = source[: pair.begin.start()], source[pair.end.end() :]
    return f"{before}{begin}\n{new_code}{line_end}{end}{after}"


def is_boundary_free(text: str) -> bool:
    """Return whether no line of ``text`` could be taken for a boundary, whatever its tag."""
    return next(_lines_of(text, _ANY_TAG), None) is None


def _check_word(word: str, pattern: str, what: str) -> None:
    if re.fullmatch(pattern, word) is None:
        raise UsageError(
            f"{word!r} cannot be a {what}",
            why="a boundary is one line that holds the tag and the name",
            hint="use a word without white space and brackets",
        )


@cache
def _pattern(tags: str) -> re.Pattern[str]:
    """Return what matches one whole boundary line with one of ``tags`` (a regular expression)."""
    return re.compile(
        rf"\ufeff?[ \t]{{0,{_MAX_INDENT}}}(?P<comment>//|\#)[ \t]{{0,{_MAX_INDENT}}}"
        rf"\[(?P<tag>{tags}):(?P<kind>BEGIN|END)[ \t]+(?P<name>[^\s\[\]]+)"
        rf"(?P<mark>(?:[ \t]+\#(?P<number>[0-9]{{1,9}}))?)\][ \t]*(?P<cr>\r?)(?=\n|\Z)"
    )


def _lines_of(text: str, tags: str) -> Iterator[re.Match[str]]:
    """Yield each whole line that looks like a boundary with one of ``tags``.

    Looks at the few places that hold a tag, not at each line: most of a source is none of it.
    """
    pattern, line_after = _pattern(tags), 0
    for hit in re.finditer(r":(?:BEGIN|END)[ \t]", text):
        window = max(0, hit.start() - _WINDOW)
        start = text.rfind("\n", window, hit.start()) + 1
        begins_line = (start or not window) and start >= line_after
        if begins_line and (match := pattern.match(text, start)):
            line_after = match.end()
            yield match


def _free_number(text: str) -> int:
    """Return 0 if no line of ``text`` looks like a boundary, else a number none of them has."""
    if is_boundary_free(text):
        return 0
    taken = {int(match["number"] or 0) for match in _lines_of(text, _ANY_TAG)}
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def _mark(number: int) -> str:
    return f" #{number}" if number else ""


def _renumbered(line: re.Match[str], mark: str) -> str:
    """Return a boundary line as it stands, with another number."""
    start, end = line.span("mark")
    text, offset = line[0], line.start()
    return text if line["mark"] == mark else text[: start - offset] + mark + text[end - offset :]


def _find(source: str, name: str, tag: str | None) -> _Pair | None:
    # All pairs are read even after a hit: a second block of the name must not go unnoticed.
    return next((pair for pair in list(_pairs(source, tag)) if pair.begin["name"] == name), None)


def _text(source: str, pair: _Pair) -> str:
    start, end = pair.begin.end() + 1, pair.end.start()
    if not pair.begin["cr"]:
        return source[start : max(start, end - 1)]
    return source[start:end].replace("\r\n", "\n")[:-1]


def _block(source: str, pair: _Pair) -> Block:
    return Block(
        name=pair.begin["name"],
        tag=pair.begin["tag"],
        text=_text(source, pair),
        first_line=pair.begin_line + 1,
        last_line=pair.end_line - 1,
        start=pair.begin.start(),
        end=pair.end.end() - len(pair.end["cr"]),
    )


def _boundary_lines(source: str, tag: str | None) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each line that looks like a boundary, with its number."""
    if tag is not None:
        _check_word(tag, _ANY_TAG, "boundary tag")
    tags = "|".join(re.escape(word) for word in dict.fromkeys((*_READ_TAGS, tag or DEFAULT_TAG)))
    line, seen = 1, 0
    for match in _lines_of(source, tags):
        line += source.count("\n", seen, match.start())
        seen = match.start()
        yield match, line


def _pairs(source: str, tag: str | None) -> Iterator[_Pair]:
    """Yield the pairs of boundary lines in order."""
    names: dict[str, int] = {}
    opened: tuple[re.Match[str], int] | None = None
    for match, line in _boundary_lines(source, tag):
        if opened is None:
            _check_opens(match, line, names)
            opened = match, line
        elif _closes(opened[0], match):
            yield _Pair(opened[0], match, opened[1], line)
            opened = None
        elif not opened[0]["number"]:
            raise _nested(opened, match, line)
    if opened is not None:
        raise _error("unclosed", *opened, "is never closed")


def _closes(begin: re.Match[str], line: re.Match[str]) -> bool:
    same = ("tag", "name", "comment")
    return line["kind"] == "END" and all(
        (begin["number"] == line["number"], *(begin[part] == line[part] for part in same))
    )


def _check_opens(match: re.Match[str], line: int, names: dict[str, int]) -> None:
    if match["kind"] == "END":
        raise _error("unopened", match, line, "closes a block that was not opened")
    first = names.setdefault(match["name"], line)
    if first != line:
        raise _error("duplicate", match, line, f"opens a block that line {first} opened already")


def _nested(opened: tuple[re.Match[str], int], match: re.Match[str], line: int) -> SourceError:
    begin, begin_line = opened
    reason = f"stands inside the block that line {begin_line} opens ({begin[0].strip()!r})"
    return _error("nested", match, line, reason)


def _error(problem: str, match: re.Match[str], line: int, reason: str) -> BoundaryError:
    text = match[0].strip().lstrip("\ufeff")
    return BoundaryError(
        f"line {line}: the boundary {text!r} {reason}",
        problem=problem,
        line=line,
        name=match["name"],
        hint=_HINT,
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
    found = {block.name: block for block in blocks(source)}
    tag = next((block.tag for block in found.values()), DEFAULT_TAG)
    line_end = "\r\n" if "\r\n" in source else "\n"
    text = wrap_type_block(type_name, code, tag=tag, comment=comment)
    text = text.replace("\r\n", "\n").replace("\n", line_end)
    before = _predecessor(found, type_name, order)
    if before is not None:
        return f"{source[: before.end]}{line_end * 2}{text}{source[before.end :]}"
    if found:
        start = min(block.start for block in found.values())
        return f"{source[:start]}{text}{line_end * 2}{source[start:]}"
    head = source.rstrip()
    return f"{head}{line_end * 2 if head else ''}{text}{line_end}"


def _predecessor(found: dict[str, Block], type_name: str, order: Sequence[str]) -> Block | None:
    names = list(order)
    earlier = names[: names.index(type_name)] if type_name in names else list(found)
    return next((found[name] for name in reversed(earlier) if name in found), None)


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
    before, after = source[: block.start], source[block.end :].removeprefix(line_end)
    if before.endswith(line_end * 2) and (not after or after.startswith(line_end)):
        before = before.removesuffix(line_end)
    return before + after
