"""A C# declaration taken apart into its pages: the way back from ``stitch``."""

from collections.abc import Sequence
from itertools import pairwise

from pytest_regen.errors import SourceError
from pytest_regen.languages.csharp.lines import cut, trimmed
from pytest_regen.languages.csharp.pages import line_start, stitch
from pytest_regen.languages.csharp.pagetree import Shell, first_byte, read_shell
from pytest_regen.languages.csharp.reader import read
from pytest_regen.languages.csharp.tree import Node
from pytest_regen.languages.csharp.weighing import leaves

__all__ = ["split"]

Units = Sequence[Sequence[str | int]]


def split(code: str, *, name: str, units: Units) -> tuple[str, ...]:
    """Return the pages of a declaration; joined again, they are the same but for white space.

    A member goes to the page that asks for its JSON name or value. Members stay in their order: one
    that stands before another page's members stays on the page of those.

    Args:
        code: the whole declaration.
        name: of the type.
        units: for each page, the JSON names or enum values it asks for.

    Raises:
        SourceError: the declaration is illegal, or its members are so mixed that a page would be
            left without any.
    """
    if len(units) <= 1:
        return (code,)
    text = code.replace("\r\n", "\n")
    data = text.encode("utf-8", "surrogatepass")
    _, _, shell = read_shell(data, name)
    if shell is None:
        raise _cannot(name, "it is no legal declaration of that name")
    starts = _starts(shell, _pages_by_line(text, units), len(units))
    if starts is None:
        raise _cannot(name, "its members are mixed so that one of its pages would have none")
    cuts = [line_start(data, at) for at in (*starts, _inner(shell).children[-1].start_byte)]
    first = data[: cuts[0]].rstrip() + b"\n" + data[cuts[-1] :]
    slices = (data[start:stop] for start, stop in pairwise(cuts))
    pages = (first.decode("utf-8", "surrogatepass"), *map(_text, slices))
    joined = stitch(pages, name=name, is_enum=shell.is_enum).text
    if leaves(joined) != leaves(code):
        raise _cannot(name, "its pages would not be the same when joined again")
    return pages


def _cannot(name: str, why: str) -> SourceError:
    return SourceError(
        f"{name} cannot be taken apart into its pages",
        why=why,
        hint="put its members into the order of the stored pages, or drop the edit: "
        f"pytest-regen regenerate DIR --type {name} --discard-edits",
    )


def _inner(shell: Shell) -> Node:
    """Return the node whose children are the members of later pages.

    Those of a positional record stand in its body where it has one, else in its parentheses.
    """
    if shell.body is not None and (_members(shell.body) or shell.parameters is None):
        return shell.body
    return shell.parameters or shell.node


def _members(inner: Node) -> list[Node]:
    return [node for node in inner.named_children if node.type not in {"comment", "attribute_list"}]


def _pages_by_line(code: str, units: Units) -> dict[int, int]:
    """Return, for each line on which a member begins, the page that asks for it."""
    page_of = {str(unit): page for page, own in enumerate(units) for unit in own}
    return {
        member.line: page_of.get(str(member.wire_name), -1)
        for declaration in read(code).declarations
        for member in declaration.members
        if declaration.outer is None
    }


def _starts(shell: Shell, page_of: dict[int, int], total: int) -> list[int] | None:
    """Return where page 2 and those after it begin; ``None`` if one of them would be empty."""
    members = [
        (node, next((page_of[row] for row in _rows(node) if row in page_of), -1))
        for node in _members(_inner(shell))
    ]
    starts: list[int] = []
    for page in range(1, total):
        later = [i for i, (_, own) in enumerate(members) if 0 <= own < page]
        first = next(
            (i for i, (_, own) in enumerate(members) if own >= page and i > max(later, default=-1)),
            None,
        )
        if first is None:
            return None
        starts.append(first_byte(members[first][0]))
    return starts if starts == sorted(set(starts)) else None


def _rows(node: Node) -> range:
    return range(node.start_point.row + 1, node.end_point.row + 2)


def _text(piece: bytes) -> str:
    return "\n".join(line.text for line in trimmed(cut(piece, (), page=1)))
