"""What languages share to tell by what code is tested less than the code that it replaces."""

from collections.abc import Iterable, Iterator

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.base import Declaration, Member
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.suppressions import directive_in
from pytest_regen.validation.issues import Weakness

AS_ASKED = "write the type as the request says, and nothing that lets more pass"
"""What to do about code that takes more than it should."""


def found_at(node: Node, key: str, message: str, advice: str = AS_ASKED) -> Weakness:
    """Return a weakness that is known by its words, on the line of a node."""
    return Weakness((key, message), message, node.start_point.row + 1, advice)


def members_of(declarations: Iterable[Declaration], type_: TypeIR) -> dict[str | int, Member]:
    """Return the members of a type by their names in JSON."""
    return {
        member.name if member.wire_name is None else member.wire_name: member
        for entry in declarations
        if entry.name == type_.name
        for member in entry.members
    }


def silenced(root: Node) -> Iterator[Weakness]:
    """Yield the comments of a tree that tell a checker to look away."""
    for node in walk(root):
        if "comment" in node.type and (said := directive_in(text_of(node))):
            yield Weakness.of_directive(said, node.start_point.row + 1)
