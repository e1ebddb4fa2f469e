"""The one door to tree-sitter: C# text to a syntax tree."""

from functools import cache

import tree_sitter_c_sharp
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

__all__ = ["Node", "Query", "QueryCursor", "Tree", "grammar", "parse", "text_of"]


@cache
def grammar() -> Language:
    """Return the C# grammar."""
    return Language(tree_sitter_c_sharp.language())


def parse(code: bytes) -> Tree:
    """Return the syntax tree of ``code`` (UTF-8). Never fails: errors are nodes of the tree."""
    return Parser(grammar()).parse(code)


def text_of(node: Node) -> str:
    """Return the source text of ``node``."""
    return (node.text or b"").decode("utf-8", "replace")
