"""What languages share to tell by what code is tested less than the code that it replaces."""

from collections.abc import Iterator

from pytest_regen.documents.ir import FieldIR, TypeIR
from pytest_regen.languages.base import Member, SourceFacts
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.suppressions import directive_in
from pytest_regen.validation.issues import Weakness

AS_ASKED = "write the type as the request says, and nothing that lets more pass"
"""What to do about code that takes more than it should."""


def found_at(node: Node, key: str, message: str, advice: str = AS_ASKED) -> Weakness:
    """Return a weakness that is known by its words, on the line of a node."""
    return Weakness((key, message), message, node.start_point.row + 1, advice)


def in_both(
    type_: TypeIR, old: SourceFacts, new: SourceFacts
) -> Iterator[tuple[FieldIR, Member, Member]]:
    """Yield the fields that old and new code of a type have, with the member in each."""
    before, after = (
        {
            member.name if member.wire_name is None else member.wire_name: member
            for entry in facts.declarations
            if entry.name == type_.name
            for member in entry.members
        }
        for facts in (old, new)
    )
    for field in type_.fields:
        # Of others nothing, because validation tells of a field that is missing.
        if field.json_name in before and field.json_name in after:
            yield field, before[field.json_name], after[field.json_name]


def silenced(root: Node) -> Iterator[Weakness]:
    """Yield the comments of a tree that tell a checker to look away."""
    for node in walk(root):
        # Found in it, because grammars know several kinds of comments.
        if "comment" in node.type and (said := directive_in(text_of(node))):
            yield Weakness.of_directive(said, node.start_point.row + 1)
