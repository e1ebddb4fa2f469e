"""Conditional compilation: which branches of ``#if`` are compiled for .NET 9."""

import re
from collections.abc import Iterator
from typing import Final

from pytest_regen.languages.csharp.tree import Node, text_of

__all__ = ["branches"]

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
            return _combined(node)
    return None


def _combined(node: Node) -> bool | None:
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
