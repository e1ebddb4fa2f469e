"""The one door to tree-sitter: C# text to a syntax tree."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from time import thread_time
from typing import Final

from pytest_regen.extras import needs

with needs("openapi", "stores of generated code"):
    import tree_sitter_c_sharp
    from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

__all__ = [
    "Node",
    "Query",
    "QueryCursor",
    "Tree",
    "grammar",
    "is_unreadable",
    "parse",
    "text_of",
    "unreadable_rows",
]

_DEEPEST: Final = 200
"""Levels of a tree at most, so that whoever walks one may recurse. A page has about 15."""
_CUT: Final = _DEEPEST // 2
"""The level at which too deep a branch is cut off."""
_CUTS: Final = 4
"""How often a text is cut before nothing of it is left to be read."""
_SHORT: Final = 2_000
"""Bytes that are parsed at once, whatever they are."""
_SECONDS: Final = 0.25
_SECONDS_PER_BYTE: Final = 1e-6
"""Processor time for a longer text. Code takes a tenth of it or less; from some errors the grammar
recovers in time that grows with the square of the text: from ``A<A<A<...``, for one."""
_CHUNK: Final = 65_536
_MANY: Final = 1_000
_VISIBLE = re.compile(rb"[^\r\n]")
_STRAY: Final = b"\x01"
"""What no C# has outside of strings and comments."""
_too_slow: set[int] = set()
"""Hashes of texts that took too long."""


@cache
def grammar() -> Language:
    """Return the C# grammar."""
    return Language(tree_sitter_c_sharp.language())


def parse(code: bytes) -> Tree:
    """Return the syntax tree of ``code`` (UTF-8). Never fails: errors are nodes of the tree.

    What is nested more than 200 levels deep is an error, too, and so is a text that takes too long:
    the tree has a stray character and blanks in its place. Positions and lines are those of
    ``code``.
    """
    whole = code
    for _ in range(_CUTS):
        tree = _parsed(code)
        deep = _deep_branches(tree) if tree else []
        if tree and not deep:
            return tree
        if tree is None:
            break
        shallow = bytearray(code)
        for node in deep:
            shallow[node.start_byte : node.end_byte] = _blanked(
                code[node.start_byte : node.end_byte]
            )
        code = bytes(shallow)
    return Parser(grammar()).parse(_blanked(whole))


def is_unreadable(code: bytes) -> bool:
    """Return whether ``parse`` gives up on all of ``code``, because it takes too long."""
    return len(code) > _SHORT and _parsed(code) is None


def unreadable_rows(code: bytes) -> dict[int, str]:
    """Return what ``parse`` leaves out: rows, counted from 0, and why."""
    tree = _parsed(code)
    if tree is None:
        return {0: "this cannot be read: it is far from being C#"}
    why = f"this is nested more than {_DEEPEST} levels deep"
    return dict.fromkeys((node.start_point.row for node in _deep_branches(tree)), why)


def _parsed(code: bytes) -> Tree | None:
    """Return the tree as the grammar gives it, or ``None`` where that takes too long."""
    parser = Parser(grammar())
    if len(code) <= _SHORT:
        return parser.parse(code)
    if hash(code) in _too_slow:
        return None
    end = thread_time() + _SECONDS + _SECONDS_PER_BYTE * len(code)
    tree: Tree | None = None
    with suppress(ValueError):
        tree = parser.parse(
            lambda start, _: code[start : start + _CHUNK],
            progress_callback=lambda *_: thread_time() > end,
        )
    if tree is None:
        if len(_too_slow) >= _MANY:
            _too_slow.clear()
        _too_slow.add(hash(code))
    return tree


def _deep_branches(tree: Tree) -> list[Node]:
    """Return the nodes at the level of the cut that have nodes below the deepest level."""
    return [
        node for node in _reaching(tree.root_node, _CUT) if any(_reaching(node, _DEEPEST - _CUT))
    ]


def _reaching(top: Node, level: int) -> Iterator[Node]:
    """Yield the nodes ``level`` levels below ``top`` that have nodes below them."""
    waiting = [(top, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth == level:
            yield node
        # A branch has no more levels than nodes: nearly all of a source is passed over at once.
        elif node.descendant_count > level - depth:
            waiting += [(child, depth + 1) for child in node.children if child.child_count]


def _blanked(text: bytes) -> bytes:
    """Return a stray character and blanks in place of ``text``, its lines kept."""
    return _STRAY + _VISIBLE.sub(b" ", text[1:])


def text_of(node: Node) -> str:
    """Return the source text of ``node``."""
    return (node.text or b"").decode("utf-8", "replace")
