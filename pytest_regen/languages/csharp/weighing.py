"""Comparing pieces of C#: how far a text is from being code, and what its tokens are."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.languages.csharp.pagetree import Container, bare
from pytest_regen.languages.csharp.tree import Node, is_unreadable, parse

__all__ = ["illegality", "leaves"]

_CONTAINERS: Final[tuple[Container, ...]] = ("body", "enum", "parameters")
_ATOMS: Final = frozenset(
    {"verbatim_string_literal", "raw_string_literal", "character_literal", "preproc_arg"}
)


def illegality(code: str) -> int:
    """Return how far ``code`` is from a page: 0 is legal, more is worse.

    Legal are declarations, bare members, enum values and parameters; statements are not.

    Args:
        code: any text, with LF line ends.
    """
    data = code.encode("utf-8", "surrogatepass")
    if is_unreadable(data):
        return len(data) + 1
    root = parse(data).root_node
    if not any(node.type != "comment" for node in root.children):
        return len(data) + 1
    worst = _illegal(root)
    for container in _CONTAINERS:
        if not worst:
            break
        tree, inner = bare(data, container)
        worst = min(worst, 0 if inner is not None else _illegal(tree) + 1)
    return worst


def _illegal(root: Node) -> int:
    """Return how many bytes of a tree are errors or statements; a missing token counts as one."""
    if root.is_error:
        # The grammar gave up on the whole: no node below need be an error of its own.
        return root.end_byte - root.start_byte + 1
    return sum(
        1 if node.is_missing else node.end_byte - node.start_byte for node in _offenders(root)
    )


def _offenders(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.is_error or child.is_missing or child.type == "global_statement":
            yield child
        elif child.has_error:
            yield from _offenders(child)


def leaves(code: str) -> tuple[str, ...]:
    """Return the tokens and comments of ``code``, without the white space between them.

    White space inside comments is levelled, inside strings it is kept. Text that the grammar
    skips counts too, so that nothing but white space can change unseen.

    Args:
        code: any text; line ends do not count.
    """
    plain = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    data = plain.encode("utf-8", "surrogatepass")
    found: list[str] = []
    position = 0
    for node in _tokens(parse(data).root_node):
        found += _words(data[position : node.start_byte])
        text = data[node.start_byte : node.end_byte]
        if node.type == "comment":
            found.append(" ".join(_words(text)))
        elif text:
            found.append(text.decode("utf-8", "surrogatepass"))
        position = max(position, node.end_byte)
    found += _words(data[position:])
    return tuple(found)


def _words(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogatepass").split()


def _tokens(node: Node) -> Iterator[Node]:
    if node.child_count == 0 or node.type in _ATOMS:
        yield node
        return
    for child in node.children:
        yield from _tokens(child)
