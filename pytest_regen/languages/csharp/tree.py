"""The one door to tree-sitter: C# text to a syntax tree."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import tree_sitter_c_sharp
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

__all__ = [
    "DEEPEST",
    "Node",
    "Query",
    "QueryCursor",
    "Tree",
    "deep_rows",
    "grammar",
    "parse",
    "text_of",
]

DEEPEST: Final = 200
"""Levels of a tree at most, so that whoever walks one may recurse. A page has about 15."""
_CUT: Final = DEEPEST // 2
"""The level at which too deep a branch is cut off."""
_CUTS: Final = 4
"""How often a text is cut before nothing of it is left to be read."""
_VISIBLE = re.compile(rb"[^\r\n]")
_STRAY: Final = b"\x01"
"""What no C# has outside of strings and comments."""


@cache
def grammar() -> Language:
    """Return the C# grammar."""
    return Language(tree_sitter_c_sharp.language())


def parse(code: bytes) -> Tree:
    """Return the syntax tree of ``code`` (UTF-8). Never fails: errors are nodes of the tree.

    What is nested more than ``DEEPEST`` levels deep is an error, too: the tree has a stray
    character and blanks in its place. Positions and lines are those of ``code``.
    """
    tree = Parser(grammar()).parse(code)
    for _ in range(_CUTS):
        deep = _deep_branches(tree)
        if not deep:
            return tree
        shallow = bytearray(code)
        for node in deep:
            shallow[node.start_byte : node.end_byte] = _blanked(
                code[node.start_byte : node.end_byte]
            )
        code = bytes(shallow)
        tree = Parser(grammar()).parse(code)
    return Parser(grammar()).parse(_blanked(code))


def deep_rows(code: bytes) -> tuple[int, ...]:
    """Return the rows, counted from 0, in which ``parse`` meets what is nested too deep for it."""
    tree = Parser(grammar()).parse(code)
    return tuple(dict.fromkeys(node.start_point.row for node in _deep_branches(tree)))


def _deep_branches(tree: Tree) -> list[Node]:
    """Return the nodes at the level of the cut that have nodes below the deepest level."""
    return [
        node for node in _reaching(tree.root_node, _CUT) if any(_reaching(node, DEEPEST - _CUT))
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
