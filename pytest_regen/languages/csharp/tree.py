"""C# text to a syntax tree, and the values of constants."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pytest_regen.extras import needs
from pytest_regen.languages.names import unescape
from pytest_regen.languages.trees import Grammar, Node, text_of

with needs("openapi", "stores of generated code"):
    import tree_sitter_c_sharp

GRAMMAR: Final = Grammar("C#", tree_sitter_c_sharp.language)
parse = GRAMMAR.parse
is_unreadable = GRAMMAR.is_unreadable
unreadable_rows = GRAMMAR.unreadable_rows


Constant = str | int | bool | None

_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{1,4})|(.))", re.DOTALL
)
_SIMPLE: Final[Mapping[str, str]] = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_RAW_QUOTES = re.compile(r'\$*("{3,})')
_NOTHING: Final[Mapping[str, Constant]] = {}


def constant(  # one line per kind of expression
    node: Node, names: Mapping[str, Constant] = _NOTHING
) -> Constant:
    """Return the value of a constant expression, or ``None`` where it is not plain.

    Args:
        node: the expression.
        names: the constants that the source declares, by simple name.
    """
    match node.type:
        case "string_literal" | "verbatim_string_literal" | "raw_string_literal":
            return decode_string(text_of(node))
        case "interpolated_string_expression":
            has_hole = any(child.type == "interpolation" for child in node.named_children)
            return None if has_hole else _interpolate(text_of(node))
        case "integer_literal":
            return _integer(text_of(node))
        case "boolean_literal":
            return text_of(node) == "true"
        case "identifier":
            return names.get(text_of(node).removeprefix("@"))
        case "member_access_expression":
            return names.get(text_of(node).rsplit(".", 1)[-1].strip())
        case "invocation_expression":
            return _nameof(node)
        case "prefix_unary_expression" | "binary_expression":
            return _operation(node, names)
        case "parenthesized_expression" | "checked_expression" | "cast_expression":
            inner = node.named_children
            return constant(inner[-1], names) if inner else None
    return None


def decode_string(literal: str) -> str:
    """Return what a literal without holes stands for: regular, verbatim or raw; ``u8`` allowed."""
    literal = literal.removesuffix("u8")
    if literal.startswith('"""'):
        return _raw(literal)
    if literal.startswith('@"'):
        return literal[2:-1].replace('""', '"')
    return unescape(literal[1:-1], _ESCAPE, _SIMPLE)


def _interpolate(text: str) -> str:
    """Return the value of an interpolated literal without holes; doubled braces are single."""
    if _RAW_QUOTES.match(text):
        dollars = len(text) - len(text.lstrip("$"))
        value = _raw(text.lstrip("$"))
        return value if dollars > 1 else value.replace("{{", "{").replace("}}", "}")
    prefix, _, _ = text.partition('"')
    value = decode_string(("@" if "@" in prefix else "") + text[len(prefix) :])
    return value.replace("{{", "{").replace("}}", "}")


def _raw(literal: str) -> str:
    """Return the value of a raw literal; the indentation of its last line is cut from all."""
    quotes = len(literal) - len(literal.lstrip('"'))
    body = literal[quotes:-quotes]
    if "\n" not in body:
        return body
    lines = body.replace("\r\n", "\n").split("\n")
    indent = lines[-1]
    return "\n".join(line.removeprefix(indent) for line in lines[1:-1])


def _integer(text: str) -> int | None:
    digits = text.rstrip("uUlL").replace("_", "")
    try:
        return int(digits, 10) if digits.isdigit() else int(digits, 0)
    except ValueError:
        return None


def _nameof(node: Node) -> str | None:
    function = node.child_by_field_name("function")
    arguments = node.child_by_field_name("arguments")
    if function is None or arguments is None or text_of(function) != "nameof":
        return None
    return text_of(arguments).strip("() \t\r\n").rsplit(".", 1)[-1]


def _operation(  # one line per operator
    node: Node, names: Mapping[str, Constant]
) -> Constant:
    operands = [constant(child, names) for child in node.named_children if child.type != "comment"]
    operator = next((child.type for child in node.children if not child.is_named), "")
    match operator, operands:
        case "-", [int(value)]:
            return -value
        case "~", [int(value)]:
            return ~value
        case "+", [str(left), str(right)]:
            return left + right
        case "+", [int(left), int(right)]:
            return left + right
        case "-", [int(left), int(right)]:
            return left - right
        case "|", [int(left), int(right)]:
            return left | right
        case "<<", [int(left), int(right)] if 0 <= right < 64:  # bits of a long
            return left << right
    return None


_NET: Final = re.compile(r"NET(\d+)_0_OR_GREATER")
_CURRENT: Final = 9
"""The version of .NET that prompts name."""
_DEFINED: Final = frozenset({"NET", "NETCOREAPP", "NET9_0"})
_UNDEFINED: Final = frozenset({"NETFRAMEWORK", "NETSTANDARD"})


def branches(node: Node) -> Iterator[tuple[tuple[Node, ...], str | None]]:
    """Yield what stands in each branch of an ``#if`` that may be compiled.

    With each come the words of its directive, or ``None`` where it is compiled for certain. The
    symbols of a project are not known: ``#if DEBUG`` is never certain.

    Args:
        node: a ``preproc_if`` node; any other ``preproc_`` node is one branch that is certain.
    """
    at, is_certain, before = node, True, ""
    while True:
        condition = at.child_by_field_name("condition")
        otherwise = at.child_by_field_name("alternative")
        inside = tuple(child for child in at.named_children if child not in (condition, otherwise))
        if condition is None:
            yield inside, None if is_certain else f"the #else of {before}"
            return
        is_compiled = _is_true(condition)
        before = f"#if {' '.join(text_of(condition).split())}"
        if is_compiled is not False:
            yield inside, None if is_compiled and is_certain else before
        if is_compiled or otherwise is None:
            return
        is_certain = is_certain and is_compiled is False
        at = otherwise


def _is_true(
    node: Node,
) -> bool | None:
    """Return the value of a condition; ``None`` where it depends on the project."""
    match node.type:
        case "boolean_literal":
            return text_of(node) == "true"
        case "identifier":
            return _is_defined(text_of(node))
        case "parenthesized_expression":
            return _is_true(node.named_children[0]) if node.named_children else None
        case "unary_expression" | "prefix_unary_expression":
            value = _is_true(node.named_children[-1]) if node.named_children else None
            return None if value is None else not value
        case "binary_expression":
            return _combine(node)
    return None


def _combine(node: Node) -> bool | None:
    operator = next((child.type for child in node.children if not child.is_named), "")
    values = [_is_true(child) for child in node.named_children if child.type != "comment"]
    decides = {"&&": False, "||": True}.get(operator)
    if decides is not None:
        if decides in values:
            return decides
        return None if None in values else not decides
    if None in values or operator not in {"==", "!="}:
        return None
    return (len(set(values)) == 1) == (operator == "==")


def _is_defined(symbol: str) -> bool | None:
    if version := _NET.fullmatch(symbol):
        return True if int(version[1]) <= _CURRENT else None
    if symbol in _DEFINED:
        return True
    return False if symbol in _UNDEFINED or symbol == "false" else (symbol == "true" or None)
