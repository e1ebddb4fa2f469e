"""Schemas of zod as the source builds them: chains of calls, taken apart."""

from typing import NamedTuple

from pytest_regen.languages.trees import Node, text_of
from pytest_regen.languages.typescript.tree import inside

_PLAIN = frozenset({"as_expression", "parenthesized_expression", "satisfies_expression"})
"""What stands around a value and leaves it as it is."""


class Call(NamedTuple):
    """``z.name(arguments)``, or a name alone, with the methods called on it, innermost first."""

    name: str
    """The path behind ``z.``; "" for a reference."""
    arguments: tuple[Node, ...]
    methods: tuple[tuple[str, tuple[Node, ...]], ...]
    """Names and arguments."""
    reference: Node | None = None


def base_call(node: Node) -> Call | None:
    """Return a chain of calls taken apart; ``None`` for any other expression."""
    # From the outside in, because the last call of a chain is the root of its tree.
    methods: list[tuple[str, tuple[Node, ...]]] = []
    while True:
        if node.type in {"parenthesized_expression", "satisfies_expression"}:
            node = inside(node)[0]
        if node.type in {"identifier", "shorthand_property_identifier"}:
            return Call("", (), tuple(reversed(methods)), node)
        function, values = (node.child_by_field_name(name) for name in ("function", "arguments"))
        if node.type != "call_expression" or function is None or values is None:
            return None
        arguments = tuple(inside(values))
        path = "".join(text_of(function).split())
        if path.startswith("z.") and "(" not in path:
            return Call(path.removeprefix("z."), arguments, tuple(reversed(methods)))
        if function.type != "member_expression":
            return None
        inner, name = inside(function)[0], inside(function)[-1]
        methods.append((text_of(name), arguments))
        node = inner


def returned(function: Node) -> Node | None:
    """Return the expression that a function gives back, if it does nothing else."""
    body = function.child_by_field_name("body")
    if body is None or body.type != "statement_block":
        return body
    statements = inside(body)
    # A getter that does more may give anything back.
    if len(statements) != 1 or statements[0].type != "return_statement":
        return None
    return next(iter(inside(statements[0])), None)


def plain(node: Node) -> Node:
    """Return a value without ``as const`` and its like."""
    while node.type in _PLAIN:
        node = inside(node)[0]
    return node


def items_of(node: Node) -> list[Node] | None:
    """Return the items of an array literal; ``None`` for anything else."""
    return inside(plain(node)) if plain(node).type == "array" else None
