"""Constant expressions of C# as Python values: string literals of every form, numbers, nameof."""

import re
from collections.abc import Mapping
from typing import Final

from pytest_regen.languages.csharp.tree import Node, text_of

__all__ = ["constant", "decoded_string"]

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


def constant(  # noqa: PLR0911 - one line per kind of expression
    node: Node, names: Mapping[str, Constant] = _NOTHING
) -> Constant:
    """Return the value of a constant expression, or ``None`` where it is not plain.

    Args:
        node: the expression.
        names: the constants that the source declares, by simple name.
    """
    match node.type:
        case "string_literal" | "verbatim_string_literal" | "raw_string_literal":
            return decoded_string(text_of(node))
        case "interpolated_string_expression":
            has_hole = any(child.type == "interpolation" for child in node.named_children)
            return None if has_hole else _interpolated(text_of(node))
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


def decoded_string(literal: str) -> str:
    """Return what a literal without holes stands for: regular, verbatim or raw; ``u8`` allowed."""
    literal = literal.removesuffix("u8")
    if literal.startswith('"""'):
        return _raw(literal)
    if literal.startswith('@"'):
        return literal[2:-1].replace('""', '"')
    return _joined_surrogates(_ESCAPE.sub(_unescaped, literal[1:-1]))


def _joined_surrogates(text: str) -> str:
    r"""Return ``text`` with the two halves of a character, as ``\uD83D\uDE00`` has them, as one."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _interpolated(text: str) -> str:
    """Return the value of an interpolated literal without holes; doubled braces are single."""
    if _RAW_QUOTES.match(text):
        dollars = len(text) - len(text.lstrip("$"))
        value = _raw(text.lstrip("$"))
        return value if dollars > 1 else value.replace("{{", "{").replace("}}", "}")
    prefix, _, _ = text.partition('"')
    value = decoded_string(("@" if "@" in prefix else "") + text[len(prefix) :])
    return value.replace("{{", "{").replace("}}", "}")


def _unescaped(match: re.Match[str]) -> str:
    for digits in match.group(1, 2, 3):
        if digits:
            code = int(digits, 16)
            return chr(code) if code <= 0x10FFFF else "\ufffd"  # noqa: PLR2004 - Unicode's end
    return _SIMPLE.get(match[4], match[4])


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


def _operation(  # noqa: PLR0911 - one line per operator
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
        case "<<", [int(left), int(right)] if 0 <= right < 64:  # noqa: PLR2004 - bits of a long
            return left << right
    return None
