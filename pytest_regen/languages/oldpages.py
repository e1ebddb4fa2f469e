"""The pages of a type, as far as languages treat them alike: taken from a reply, taken apart."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pytest_regen.errors import SourceError
from pytest_regen.languages.lines import TextEdit, cut, trim
from pytest_regen.languages.trees import Node, walk

Units = Sequence[Sequence[str | int]]
"""For each page, the JSON names or enum values it asks for."""

# Python reads its pages as lines and has a pattern of its own: its comments begin with "#".
_DELIMITER: Final = re.compile(rb"//[ \t]*(?:BEGIN|END)_FIELDS[ \t]*")
DELIMITER_LINE: Final = re.compile(rb"^[ \t]*//[ \t]*(BEGIN|END)_FIELDS[ \t]*$", re.MULTILINE)


def spans(code: bytes) -> Iterator[tuple[int, int]]:
    """Yield the parts of a page that may be its members: all of it, then between delimiters."""
    yield 0, len(code)
    lines = list(DELIMITER_LINE.finditer(code)) if b"_FIELDS" in code else []
    start = min((line.end() for line in lines if line[1] == b"BEGIN"), default=0)
    end = max((line.start() for line in lines if line[1] == b"END"), default=len(code))
    if lines and start < end:
        yield start, end


def outside(code: bytes, start: int, end: int) -> Iterator[TextEdit]:
    """Yield what takes away all of a page but the part from ``start`` to ``end``."""
    if start:
        yield TextEdit(0, start)
    if end < len(code):
        yield TextEdit(end, len(code))


def delimiters(code: bytes, root: Node, shift: int) -> Iterator[TextEdit]:
    """Yield what takes away the comments that only delimit a page.

    Args:
        code: the page.
        root: the tree of a part of it.
        shift: from positions in the tree to those in the page.
    """
    if b"_FIELDS" not in code:
        return
    for node in walk(root):
        if node.type == "comment" and _DELIMITER.fullmatch(node.text or b""):
            yield TextEdit(node.start_byte + shift, node.end_byte + shift)


def illegal_bytes(root: Node, is_loose: Callable[[Node], bool]) -> int:
    """Return how many bytes of a tree are errors or statements; a missing token counts as one.

    Args:
        root: of a source.
        is_loose: whether a node is a statement that stands in no declaration.
    """
    if root.is_error:
        # The grammar gave up on the whole: no node below need be an error of its own.
        return root.end_byte - root.start_byte + 1
    size = 0
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        if node.is_missing:
            size += 1
        elif node.is_error or is_loose(node):
            size += node.end_byte - node.start_byte
        elif node.has_error:
            waiting += node.children
    return size


def first_members(name: str, page_of: Sequence[int], total: int) -> list[int]:
    """Return the first member of page 2 and of those after it.

    Args:
        name: of the type.
        page_of: for each member in source order, the page that asks for it, counted from 0; -1 for
            one that no page asks for.
        total: how many pages there are.

    Raises:
        SourceError: a page would be left without any.
    """
    mixed = cannot_split(name, "its members are mixed so that one of its pages would have none")
    starts: list[int] = []
    for page in range(1, total):
        earlier = max((at for at, own in enumerate(page_of) if 0 <= own < page), default=-1)
        first = next((at for at, own in enumerate(page_of) if own >= page and at > earlier), None)
        if first is None:
            raise mixed
        starts.append(first)
    if starts != sorted(set(starts)):
        raise mixed
    return starts


def cannot_split(name: str, why: str) -> SourceError:
    """Return the error of a declaration that cannot be taken apart into its pages."""
    return SourceError(
        f"{name} cannot be taken apart into its pages",
        why=why,
        hint="put its members into the order of the stored pages, or drop the edit: "
        f"pytest-regen regenerate DIR --type {name} --discard-edits",
    )


def text_of_lines(piece: bytes) -> str:
    """Return a piece of a declaration as a page, without blank lines around it."""
    return "\n".join(line.text for line in trim(cut(piece, (), page=1)))


def indent_at(code: bytes, node: Node) -> str:
    """Return the white space at the start of the line that ``node`` begins on."""
    start = code.rfind(b"\n", 0, node.start_byte) + 1
    before = code[start : node.end_byte]
    return before[: len(before) - len(before.lstrip(b" \t"))].decode()
