"""What languages share to tell by what code is tested less than the code that it replaces."""

from collections.abc import Iterator

from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.suppressions import directive_in
from pytest_regen.validation.issues import Weakness

__all__ = ["AS_ASKED", "found_at", "silenced"]

AS_ASKED = "write the type as the request says, and nothing that lets more pass"
"""What to do about code that takes more than it should."""


def found_at(node: Node, key: str, message: str, advice: str = AS_ASKED) -> Weakness:
    """Return a weakness that is known by its words, on the line of a node."""
    return Weakness((key, message), message, node.start_point.row + 1, advice)


def silenced(root: Node) -> Iterator[Weakness]:
    """Yield the comments of a tree that tell a checker to look away."""
    for node in walk(root):
        if "comment" in node.type and (said := directive_in(text_of(node))):
            yield Weakness.of_directive(said, node.start_point.row + 1)
