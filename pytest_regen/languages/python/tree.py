"""Python text to a syntax tree, and whether the interpreter would take it."""

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pytest_regen.extras import needs
from pytest_regen.languages.trees import Grammar, Node, Tree, text_of

with needs("openapi", "stores of generated code"):
    import tree_sitter_python

GRAMMAR: Final = Grammar("Python", tree_sitter_python.language)

NOTHING: Final = object()
"""What ``constant`` returns for an expression that is no literal."""

_VERSION: Final = (3, 11)
"""The Python that code is written for, whatever runs this."""

_LITERALS: Final = frozenset(
    {"concatenated_string", "false", "float", "integer", "none", "string", "true"}
)


def parse(code: str) -> Tree:
    """Return the syntax tree of ``code``. Never fails: errors are nodes of the tree."""
    return GRAMMAR.parse(code.encode("utf-8", "replace"))


def dedent(text: str) -> str:
    """Return ``text`` without the indentation that its lines of code share; comments do not count.

    A comment may stand further left than the code around it.
    """
    lines = text.split("\n")
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    shared = min((len(line) - len(line.lstrip(" \t")) for line in code or lines), default=0)
    return "\n".join(
        line[min(shared, len(line) - len(line.lstrip(" \t"))) :] if line.strip() else ""
        for line in lines
    )


def is_legal(code: str) -> bool:
    """Return whether ``code`` is a legal module; the grammar alone takes more than that."""
    return why_illegal(code) is None


@lru_cache(maxsize=2048)
def why_illegal(code: str) -> tuple[int, str] | None:
    """Return the line, counted from 1, and the reason for which the interpreter refuses ``code``.

    Nothing is run, or even compiled: the text is only parsed. The interpreter bounds the depth of
    what it parses, and so does the grammar.
    """
    data = code.encode("utf-8", "replace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that a later Python will refuse
            ast.parse(data, feature_version=_VERSION)
    except SyntaxError as error:
        return error.lineno or 1, error.msg.partition(" (detected at")[0]
    except (ValueError, MemoryError, RecursionError) as error:
        return 1, str(error) or type(error).__name__
    for row, why in GRAMMAR.unreadable_rows(data).items():
        return row + 1, why
    if GRAMMAR.parse(data).root_node.has_error:
        return 1, "this cannot be read"
    return None


def constant(node: Node | None) -> object:
    """Return the value of a literal, or ``NOTHING``."""
    if node is None:
        return NOTHING
    if node.type in {"type", "parenthesized_expression"} and node.named_child_count == 1:
        return constant(node.named_children[0])
    is_negative = node.type == "unary_operator" and node.named_child_count == 1
    if node.type not in _LITERALS and not (
        is_negative and node.named_children[0].type in {"integer", "float"}
    ):
        return NOTHING
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(f"({text_of(node)})")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return NOTHING


def dotted(node: Node | None) -> str:
    """Return ``a.b`` for a name or an attribute of names, else nothing."""
    if node is None:
        return ""
    if node.type == "type" and node.named_child_count == 1:
        return dotted(node.named_children[0])
    if node.type == "identifier":
        return text_of(node)
    if node.type in {"attribute", "member_type"}:
        parts = [dotted(child) for child in node.named_children]
        return ".".join(parts) if all(parts) else ""
    return ""


def last_name(node: Node | None) -> str:
    """Return the simple name of what is called, subscribed or named."""
    if node is not None and node.type in {"call", "decorator", "generic_type", "subscript"}:
        return last_name(node.named_children[0]) if node.named_children else ""
    return dotted(node).rpartition(".")[2]


def arguments(call: Node) -> Iterator[tuple[str, Node]]:
    """Yield the arguments of a call: name, "" for a positional one, and value."""
    inner = call.child_by_field_name("arguments")
    for node in inner.named_children if inner is not None else ():
        if node.type == "keyword_argument":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if value is not None:
                yield text_of(name) if name is not None else "", value
        elif node.type != "comment":
            yield "", node
