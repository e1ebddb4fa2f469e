"""The pages of a C# type joined into one declaration: by syntax tree, with every line accounted."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from pytest_regen.languages import trees
from pytest_regen.languages.base import PageFault, StitchedType
from pytest_regen.languages.csharp.pagetree import (
    HEADS,
    TAILS,
    TYPES,
    Container,
    PageTree,
    Shell,
    bare,
    first_byte,
    has_spanning_text,
    items,
    read_members,
    read_shell,
)
from pytest_regen.languages.csharp.reader import diagnose, read
from pytest_regen.languages.csharp.slips import cut_end
from pytest_regen.languages.csharp.tree import GRAMMAR, is_unreadable, parse
from pytest_regen.languages.lines import (
    Line,
    TextEdit,
    as_type,
    cut,
    is_blank,
    join_lines,
    line_start,
    plain_page,
    reindent,
    trim,
)
from pytest_regen.languages.oldpages import (
    Units,
    cannot_split,
    first_members,
    illegal_bytes,
    indent_at,
    text_of_lines,
)
from pytest_regen.languages.trees import Node
from pytest_regen.prompts.values import OutputMode

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
    worst = illegal_bytes(root, _is_loose)
    for container in _CONTAINERS:
        if not worst:
            break
        tree, inner = bare(data, container)
        worst = min(worst, 0 if inner is not None else illegal_bytes(tree, _is_loose) + 1)
    return worst


def has_only_members(code: str) -> bool:
    """Return whether ``code`` is legal members alone, and no type is declared among them."""
    data = code.encode("utf-8", "surrogatepass")
    if is_unreadable(data):
        return False
    for container in _CONTAINERS:
        _, inner = bare(data, container)
        if inner is not None:
            return not any(node.type in TYPES for node in inner.children)
    return False


def _is_loose(node: Node) -> bool:
    return node.type == "global_statement"


def leaves(code: str) -> tuple[str, ...]:
    """Return the tokens and comments of ``code``, without the white space between them."""
    return trees.leaves(GRAMMAR, code, _ATOMS)


_WORDS: Final = ("using", "namespace", "extern", "_FIELDS")
_SURROUNDED: Final = re.compile(
    r"^[ \t]*(?:global\s+)?(?:using|namespace|extern)\b|_FIELDS", re.MULTILINE
)
"""What a page must hold to have anything taken away; a page without it need not be parsed."""
_INDENT: Final = "    "


def stitch(outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
    """Return the pages of one type as one declaration.

    Page 1 declares the type; the members of the other pages go before its closing brace, or
    before the parenthesis of a positional record. Each page is parsed alone. One that is not
    legal alone is a fault and stands where it would, unchanged.

    A single page is only parsed if it may have usings or a namespace around it: whether the type
    is legal, its reader finds.

    Args:
        outputs: code of the pages, page 1 first; any line ends.
        name: of the type; a root may leave its suffix out.
        is_enum: whether the pages hold enum values. Page 1 is believed if it declares an enum.
    """
    codes = [_plain(output) for output in outputs]
    if len(codes) <= 1:
        return _only_page(codes[0] if codes else "", name)
    first = codes[0].encode("utf-8", "surrogatepass")
    root, edits, shell = read_shell(first, name)
    faults: list[PageFault] = []
    if shell is None:
        faults.append(_shell_fault(first, root, name))
    container: Container = "enum" if is_enum or (shell and shell.is_enum) else "body"
    is_positional = shell is not None and shell.parameters is not None
    pages = [
        read_members(
            code.encode("utf-8", "surrogatepass"),
            number,
            name=name,
            container=container,
            is_positional=is_positional,
        )
        for number, code in enumerate(codes[1:], 2)
    ]
    faults += [_page_fault(page) for page in pages if not page.is_legal]
    if shell is None:
        lines = trim(cut(first, edits, page=1))
        return as_type(join_lines(lines, _lines_of(pages, ""), is_apart=True), faults)
    return as_type(_fill_shell(first, edits, shell, pages), faults)


def unwrap_page(code: str, mode: OutputMode) -> str:
    """Return what a page contributes: its members, or its declaration without usings.

    Args:
        code: the page's text.
        mode: what the page was asked for.
    """
    text = _plain(code)
    if mode not in {"fields_only", "enum_values_only"}:
        return _only_page(text, None).text
    data = text.encode("utf-8", "surrogatepass")
    container: Container = "enum" if mode == "enum_values_only" else "body"
    page = read_members(data, 1, name=None, container=container, is_positional=True)
    lines = cut(data, page.edits, page=1)
    return "\n".join(line.text for line in trim(lines))


def _plain(output: str) -> str:
    """Return a page's text with LF line ends and without a byte order mark.

    A directive on the last line gets its line end: the grammar takes none without one.
    """
    text = plain_page(output)
    return text + "\n" if text.rpartition("\n")[2].lstrip().startswith("#") else text


def _only_page(code: str, name: str | None) -> StitchedType:
    """Return a page that is a whole declaration, without usings and namespace."""
    if any(word in code for word in _WORDS) and _SURROUNDED.search(code):
        data = code.encode("utf-8", "surrogatepass")
        _, edits, _ = read_shell(data, name)
        return as_type(trim(cut(data, edits, page=1)), [])
    lines = code.split("\n")
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return StitchedType(
        text="\n".join(lines[first:last]),
        line_pages=(1,) * (last - first),
        page_lines=tuple(range(first + 1, last + 1)),
    )


def _fill_shell(
    code: bytes, edits: list[TextEdit], shell: Shell, pages: Sequence[PageTree]
) -> list[Line]:
    """Return page 1 with the members of the other pages inside its declaration."""
    parameters = [page for page in pages if page.container == "parameters"]
    members = [page for page in pages if page.container != "parameters"]
    if shell.parameters is not None and parameters:
        _separate(shell.parameters, parameters, edits)
    if shell.is_enum and shell.body is not None:
        _separate(shell.body, members, edits)
    lines: list[Line] = []
    position = 0
    if shell.parameters is not None and parameters:
        closer = shell.parameters.children[-1]
        position = line_start(code, closer.start_byte)
        lines = cut(code, edits, page=1, end=position)
        indent = _member_indent(code, shell.parameters, shell.node)
        lines = join_lines(lines, _lines_of(parameters, indent), is_apart=False)
    if not members:
        return trim(lines + cut(code, edits, page=1, start=position))
    return trim(lines + _with_members(code, edits, shell, members, position))


def _with_members(
    code: bytes, edits: list[TextEdit], shell: Shell, members: Sequence[PageTree], start: int
) -> list[Line]:
    """Return page 1 from ``start`` on, with members before the end of its declaration."""
    closer = shell.closer
    if shell.body is None:
        outer = indent_at(code, shell.node)
        number = closer.start_point.row + 1
        head = cut(code, edits, page=1, start=start, end=closer.start_byte)
        head.append(Line(outer + "{", 1, number))
        tail = [Line(outer + "}", 1, number)]
        tail += cut(code, edits, page=1, start=closer.end_byte)
        inside = _lines_of(members, outer + _INDENT)
        return join_lines(head, inside, is_apart=True) + tail
    position = line_start(code, closer.start_byte)
    head = cut(code, edits, page=1, start=start, end=position)
    tail = cut(code, edits, page=1, start=position)
    if not tail[0].is_whole:
        tail[0] = Line(indent_at(code, shell.node) + tail[0].text, 1, tail[0].number)
    inside = _lines_of(members, _member_indent(code, shell.body, shell.node))
    is_apart = not shell.is_enum or any(map(is_blank, trim(head[1:])))
    return join_lines(head, inside, is_apart=is_apart) + tail


def _separate(inner: Node, pages: Sequence[PageTree], edits: list[TextEdit]) -> None:
    """Put a comma after the last item of each page that another item follows."""
    last, has_comma = items(inner)
    comma_at = None if last is None or has_comma else last.end_byte
    target = edits
    for page in pages:
        if not page.has_items:
            continue
        if comma_at is not None:
            target.append(TextEdit(comma_at, comma_at, b","))
        comma_at, target = page.comma_at, page.edits


def _lines_of(pages: Sequence[PageTree], indent: str) -> list[list[Line]]:
    """Return the lines of each continuation page, the second page's first."""
    return [_indent_page(page, indent) for page in pages]


def _indent_page(page: PageTree, indent: str) -> list[Line]:
    lines = trim(cut(page.code, page.edits, page=page.number))
    if not page.is_legal or has_spanning_text(page.code):
        return lines
    return reindent(lines, indent, directive="#")


def _member_indent(code: bytes, inner: Node, owner: Node) -> str:
    """Return the indentation of the members in ``inner``, or what would be usual there."""
    for node in inner.named_children:
        starts_line = line_start(code, node.start_byte) != node.start_byte
        if starts_line and not node.type.startswith("preproc"):
            return indent_at(code, node)
    return indent_at(code, owner) + _INDENT


def _shell_fault(code: bytes, root: Node, name: str) -> PageFault:
    if root.has_error:
        fault = diagnose(code).faults[0]
        return PageFault(1, fault.line, fault.code, fault.message, fault.in_member)
    message = f"the page declares no type called {name!r}"
    return PageFault(1, 1, "MISSING_CLASS", message, in_member=False)


def _page_fault(page: PageTree) -> PageFault:
    """Return why the members of a page cannot stand in their type."""
    if is_unreadable(page.code):
        fault = diagnose(page.code).faults[0]
        return PageFault(page.number, fault.line, fault.code, fault.message)
    root = parse(page.code).root_node
    if not root.has_error and page.container == "enum" and root.named_child_count:
        message = "the page declares another type instead of enum values"
        return PageFault(page.number, 1, "FOREIGN_TYPE", message, in_member=False)
    head = HEADS[page.container]
    whole = head + page.code + TAILS[page.container]
    tree = parse(whole)
    before, last = head.count(b"\n"), page.code.count(b"\n") + 1
    if tree.root_node.has_error:
        cut = cut_end(page.code, head=head, tail=TAILS[page.container])
        if cut is not None:
            return PageFault(page.number, cut.line, "SYNTAX", cut.message, in_member=False)
        fault = diagnose(whole).faults[0]
        line = min(max(fault.line - before, 1), last)
        return PageFault(page.number, line, fault.code, fault.message, fault.in_member)
    first = tree.root_node.children[0]
    if first.end_byte < len(whole):
        line = min(max(first.end_point.row + 1 - before, 1), last)
        message = "a closing brace more than the page opens: it ends the type too early"
        return PageFault(page.number, line, "SYNTAX", message, in_member=False)
    message = "the page cannot continue this type: one of them is a positional record"
    return PageFault(page.number, 1, "SYNTAX", message, in_member=False)


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
        raise cannot_split(name, "it is no legal declaration of that name")
    members = _members(_inner(shell))
    page_of = _pages_by_line(text, units)
    starts = first_members(name, [_page_of(node, page_of) for node in members], len(units))
    begins = [first_byte(members[at]) for at in starts]
    end = _inner(shell).children[-1].start_byte
    cuts = [line_start(data, at) for at in (*begins, end)]
    first = data[: cuts[0]].rstrip() + b"\n" + data[cuts[-1] :]
    slices = (data[start:stop] for start, stop in pairwise(cuts))
    pages = (first.decode("utf-8", "surrogatepass"), *map(text_of_lines, slices))
    joined = stitch(pages, name=name, is_enum=shell.is_enum).text
    if leaves(joined) != leaves(code):
        raise cannot_split(name, "its pages would not be the same when joined again")
    return pages


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


def _page_of(node: Node, page_of: dict[int, int]) -> int:
    rows = range(node.start_point.row + 1, node.end_point.row + 2)
    return next((page_of[row] for row in rows if row in page_of), -1)
