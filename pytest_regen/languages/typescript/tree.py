"""TypeScript text to a syntax tree, and the values of literals."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pytest_regen.extras import needs
from pytest_regen.languages.names import unescape, word_set
from pytest_regen.languages.trees import Grammar, Node, text_of

with needs("openapi", "stores of generated code"):
    import tree_sitter_typescript

GRAMMAR: Final = Grammar(
    "TypeScript",
    tree_sitter_typescript.language_typescript,
    chains=frozenset({"union_type", "intersection_type"}),
)
parse = GRAMMAR.parse

_DECLARING: Final = word_set(
    "comment empty_statement export_statement hash_bang_line import_alias import_statement"
    " internal_module module ERROR"
)
_ESCAPE: Final = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(\r\n|.))", re.DOTALL
)
_SIMPLE: Final = {
    **dict(zip("0bfnrtv", "\0\b\f\n\r\t\v", strict=True)),
    **dict.fromkeys(("\n", "\r", "\r\n", "\u2028", "\u2029"), ""),  # the line goes on
}
_EXACT: Final = 2**53
"""Below it a number of JavaScript is exact."""


NOTHING: Final = object()
"""Stands for a value that is not plain: ``None`` is the value of ``null``."""


def is_loose(node: Node) -> bool:
    """Return whether a node at the top level is no declaration: a statement, a loose property."""
    if node.type == "expression_statement":
        first = node.named_children[0] if node.named_children else None
        return first is None or first.type != "internal_module"
    is_declaration = node.type.endswith("_declaration") or node.type in _DECLARING
    return node.is_named and not is_declaration


def line_of(node: Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return node.start_point.row + 1


def inside(node: Node) -> list[Node]:
    """Return the named children of a node, comments aside."""
    return [child for child in node.named_children if child.type != "comment"]


def options_of(node: Node, kind: str = "union_type") -> Iterator[Node]:
    """Yield what stands between the signs of a chain of unions, parentheses aside, in order."""
    # No recursion, because a union of many values is as deep as it has values.
    waiting = [node]
    while waiting:
        option = waiting.pop()
        if option.type in {kind, "parenthesized_type"}:
            waiting += reversed(inside(option))
        else:
            yield option


def constant(node: Node) -> object:
    """Return the value of a literal, of a type or an expression; else ``NOTHING``."""
    parts = inside(node)
    match node.type:
        case "string":
            return decode_string(text_of(node)[1:-1])
        case "template_string" | "template_literal_type":
            has_hole = any(part.type.startswith("template_") for part in parts)
            return NOTHING if has_hole else decode_string(text_of(node)[1:-1])
        case "number":
            with suppress(SyntaxError):  # what JavaScript alone writes so, like 1n
                value = ast.literal_eval(text_of(node))
                is_whole = isinstance(value, float) and value.is_integer()
                return int(value) if is_whole and abs(value) < _EXACT else value
        case "true" | "false":
            return node.type == "true"
        case "null":
            return None
        case "unary_expression":
            value, sign = constant(parts[-1]), node.children[0].type
            if isinstance(value, int | float) and sign in {"-", "+"}:
                return -value if sign == "-" else value
        case "literal_type" | "parenthesized_type" | "parenthesized_expression" if len(parts) == 1:
            return constant(parts[0])
        case "as_expression" | "satisfies_expression":
            return constant(parts[0])
    return NOTHING


def decode_string(text: str) -> str:
    """Return what the text between two quotation marks stands for."""
    return unescape(text, _ESCAPE, _SIMPLE)
