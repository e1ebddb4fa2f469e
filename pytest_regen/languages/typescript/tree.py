"""TypeScript text to a syntax tree, and the values of literals."""

import re
from collections.abc import Iterator
from typing import Final

from pytest_regen.extras import needs
from pytest_regen.languages.names import unescape
from pytest_regen.languages.trees import Grammar, Node, text_of

with needs("openapi", "stores of generated code"):
    import tree_sitter_typescript

GRAMMAR: Final = Grammar(
    "TypeScript",
    tree_sitter_typescript.language_typescript,
    chains=frozenset({"union_type", "intersection_type"}),
)
parse = GRAMMAR.parse

_DECLARING: Final = frozenset(
    """
    abstract_class_declaration ambient_declaration class_declaration comment empty_statement
    enum_declaration export_statement function_declaration hash_bang_line import_alias
    import_statement interface_declaration internal_module lexical_declaration module
    type_alias_declaration variable_declaration ERROR
    """.split()  # noqa: SIM905 - a list of so many words is no better to read
)
_ESCAPE: Final = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(\r\n|.))", re.DOTALL
)
_SIMPLE: Final = {
    "0": "\0",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\n": "",
    "\r": "",
    "\r\n": "",
    "\u2028": "",
    "\u2029": "",
}


class Nothing:
    """Stands for a value that is not plain: ``None`` is the value of ``null``."""


NOTHING: Final = Nothing()
Constant = str | int | float | bool | None | Nothing


def is_loose(node: Node) -> bool:
    """Return whether a node at the top level is no declaration: a statement, a loose property."""
    if node.type == "expression_statement":
        first = node.named_children[0] if node.named_children else None
        return first is None or first.type != "internal_module"
    return node.is_named and node.type not in _DECLARING


def child_of(node: Node, kind: str) -> Node | None:
    """Return the first child of a kind."""
    return next((child for child in node.children if child.type == kind), None)


def line_of(node: Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return node.start_point.row + 1


def options_of(node: Node, kind: str = "union_type") -> Iterator[Node]:
    """Yield what stands between the signs of a chain of unions, in source order."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.type == kind:
            waiting += reversed([each for each in found.named_children if each.type != "comment"])
        else:
            yield found


def constant(node: Node) -> Constant:
    """Return the value of a literal, of a type or an expression; else ``NOTHING``."""
    match node.type:
        case "string":
            return decode_string(text_of(node)[1:-1])
        case "template_string" | "template_literal_type":
            has_hole = any(child.type.startswith("template_") for child in node.named_children)
            return NOTHING if has_hole else decode_string(text_of(node)[1:-1])
        case "number":
            return _number(text_of(node))
        case "true" | "false":
            return node.type == "true"
        case "null":
            return None
        case "unary_expression":
            return _signed(node)
        case "literal_type" | "parenthesized_type" | "parenthesized_expression":
            inner = [child for child in node.named_children if child.type != "comment"]
            return constant(inner[0]) if len(inner) == 1 else NOTHING
        case "as_expression" | "satisfies_expression":
            return constant(node.named_children[0])
    return NOTHING


def _signed(node: Node) -> Constant:
    value = constant(node.named_children[-1]) if node.named_children else NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING
    sign = node.children[0].type
    return -value if sign == "-" else value if sign == "+" else NOTHING


def _number(text: str) -> Constant:
    digits = text.replace("_", "")
    try:
        return int(digits, 0) if not digits.isdigit() else int(digits)
    except ValueError:
        pass
    try:
        value = float(digits)
    except ValueError:
        return NOTHING
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def decode_string(inside: str) -> str:
    """Return what the text between two quotation marks stands for."""
    return unescape(inside, _ESCAPE, _SIMPLE)
