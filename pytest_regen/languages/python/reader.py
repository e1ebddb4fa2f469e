"""Python source to facts: what it declares, and where it is illegal. Nothing of it is ever run."""

from collections.abc import Iterator
from dataclasses import replace

from pytest_regen.languages.base import Declaration, SourceFacts, SyntaxFault
from pytest_regen.languages.python.diagnosis import Diagnosis, diagnose
from pytest_regen.languages.python.members import Reading, declarations
from pytest_regen.languages.python.slips import LEFTOVERS
from pytest_regen.languages.python.tree import parse
from pytest_regen.languages.trees import text_of
from pytest_regen.text import in_quotes


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares and where it is illegal.

    Illegal code is read as far as it can be made out; ``unread`` then holds every word and string
    of the lines that could not be, so that a caller does not call missing what may stand there.

    Args:
        code: Python source; a byte order mark and any line ends are allowed.
    """
    found = diagnose(code.removeprefix("\ufeff"))
    root = parse(found.code).root_node
    reading = declarations(root)
    data = found.code.encode("utf-8", "replace")
    faults = [*found.faults, *LEFTOVERS.comment_faults(data, root), *_stray_faults(reading)]
    return SourceFacts(
        tuple(_restored(entry, found) for entry in reading.declarations),
        tuple(sorted(faults, key=lambda fault: fault.line)),
        tuple(node.start_point.row + 1 for node in reading.strays),
        found.unread,
        frozenset(reading.aliases),
    )


def _stray_faults(reading: Reading) -> Iterator[SyntaxFault]:
    for node in reading.strays:
        line, shown = node.start_point.row + 1, text_of(node).split("\n", 1)[0][:80]
        message = LEFTOVERS.leftover(shown)
        if message:
            yield SyntaxFault(line, message, "ARTIFACT")
        else:
            yield SyntaxFault(line, f"this stands outside of every class: {in_quotes(shown)}")


def _restored(declaration: Declaration, found: Diagnosis) -> Declaration:
    """Return the declaration with the names that the source has, illegal as they are."""
    if not found.renamed:
        return declaration
    members = tuple(
        replace(member, name=found.renamed.get(member.name, member.name))
        for member in declaration.members
    )
    name = found.renamed.get(declaration.name, declaration.name)
    return replace(declaration, name=name, members=members)
