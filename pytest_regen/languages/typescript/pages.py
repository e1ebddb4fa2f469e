"""The pages of a type joined into one declaration: by syntax tree, with every line accounted."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from pytest_regen.languages import trees
from pytest_regen.languages.base import PageFault, StitchedType
from pytest_regen.languages.lines import (
    Line,
    TextEdit,
    as_type,
    cut,
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
from pytest_regen.languages.typescript.pagetree import (
    CONTAINERS,
    HEADS,
    TAILS,
    Container,
    PageTree,
    Shell,
    bare,
    first_byte,
    has_spanning_text,
    members_in,
    read_members,
    read_shell,
)
from pytest_regen.languages.typescript.reader import fault_of, read
from pytest_regen.languages.typescript.tree import (
    GRAMMAR,
    NOTHING,
    constant,
    decode_string,
    is_loose,
    parse,
)
from pytest_regen.prompts.values import OutputMode

_ATOMS: Final = frozenset({"regex", "string", "template_literal_type", "template_string"})
_CLOSING: Final = frozenset({")", "]", "}"})
_OPENING: Final = frozenset({"=", "(", "<", ":", "[", ","})
_IMPORT: Final = re.compile(r"^[ \t]*import\b|_FIELDS", re.MULTILINE)
"""What a page must hold to have anything taken away; a page without it need not be parsed."""
_INDENT: Final = "  "
_OF_ENUMS: Final[tuple[Container, ...]] = ("union", "array", "object", "enum")
_OF_OBJECTS: Final[tuple[Container, ...]] = ("body", "object")


def illegality(code: str) -> int:
    """Return how far ``code`` is from a page: 0 is legal, more is worse.

    Legal are declarations, bare members and literals; statements are not.

    Args:
        code: any text, with LF line ends.
    """
    data = code.encode("utf-8", "surrogatepass")
    if GRAMMAR.is_unreadable(data):
        return len(data) + 1
    root = parse(data).root_node
    if not any(node.type != "comment" for node in root.children):
        return len(data) + 1
    worst = illegal_bytes(root, _is_statement)
    for container in CONTAINERS:
        if not worst:
            break
        tree, inner = bare(data, container)
        is_page = inner is not None and bool(members_in(inner, container))
        worst = min(worst, 0 if is_page else illegal_bytes(tree, _is_statement) + 1)
    return worst


def has_only_members(code: str) -> bool:
    """Return whether ``code`` is legal members alone; no type can be declared among them."""
    data = code.encode("utf-8", "surrogatepass")
    if GRAMMAR.is_unreadable(data):
        return False
    readings = ((bare(data, container)[1], container) for container in CONTAINERS)
    return any(inner is not None and bool(members_in(inner, into)) for inner, into in readings)


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "program" and is_loose(node)


def leaves(code: str) -> tuple[str, ...]:
    """Return the tokens and comments of ``code``, without what a formatter is free about.

    Quotation marks are all double. Semicolons are left out, and so are a comma before a bracket and
    the sign before the first literal of a union.
    """
    found: list[str] = []
    for leaf in trees.leaves(GRAMMAR, code, _ATOMS):
        before = found[-1] if found else ""
        if leaf in _CLOSING and before == ",":
            found.pop()
        if leaf != ";" and not (leaf == "|" and before in _OPENING):
            found.append(_plain_leaf(leaf))
    return tuple(found)


def _plain_leaf(leaf: str) -> str:
    if leaf[:1] not in {'"', "'"} or leaf[-1:] != leaf[:1] or len(leaf) == 1:
        return leaf
    return json.dumps(decode_string(leaf[1:-1]))


def stitch(outputs: Sequence[str], *, name: str, is_enum: bool) -> StitchedType:
    """Return the pages of one type as one declaration.

    Page 1 declares the type; the members of the other pages go before what closes it. Each page is
    parsed alone. One that is not legal alone is a fault and stands where it would, unchanged.

    Args:
        outputs: code of the pages, page 1 first; any line ends.
        name: of the type.
        is_enum: whether the pages hold enum values. Page 1 is believed if it declares an enum.
    """
    codes = [plain_page(output) for output in outputs]
    if len(codes) <= 1:
        return _only_page(codes[0] if codes else "", name)
    first = codes[0].encode("utf-8", "surrogatepass")
    root, edits, shell = read_shell(first, name)
    faults: list[PageFault] = []
    if shell is None:
        faults.append(_shell_fault(first, root, name))
        containers = _OF_ENUMS if is_enum else _OF_OBJECTS
    else:
        containers = (shell.container,)
    pages = [
        read_members(
            code.encode("utf-8", "surrogatepass"), number, name=name, containers=containers
        )
        for number, code in enumerate(codes[1:], 2)
    ]
    faults += [_page_fault(page) for page in pages if not page.is_legal]
    if shell is None:
        lines = trim(cut(first, edits, page=1))
        pieces = [_indent_page(page, "") for page in pages]
        return as_type(join_lines(lines, pieces, is_apart=True), faults)
    return as_type(_fill_shell(first, edits, shell, pages), faults)


def unwrap_page(code: str, mode: OutputMode) -> str:
    """Return what a page contributes: its members, or its declaration without imports.

    Args:
        code: the page's text.
        mode: what the page was asked for.
    """
    text = plain_page(code)
    if mode not in {"fields_only", "enum_values_only"}:
        return _only_page(text, None).text
    data = text.encode("utf-8", "surrogatepass")
    containers = _OF_ENUMS if mode == "enum_values_only" else _OF_OBJECTS
    page = read_members(data, 1, name=None, containers=containers)
    lines = cut(data, page.edits, page=1)
    return "\n".join(line.text for line in trim(lines))


def _only_page(code: str, name: str | None) -> StitchedType:
    """Return a page that is a whole declaration, without imports."""
    data = code.encode("utf-8", "surrogatepass")
    edits: list[TextEdit] = []
    if _IMPORT.search(code):
        _, edits, _ = read_shell(data, name)
    return as_type(trim(cut(data, edits, page=1)))


def _fill_shell(
    code: bytes, edits: list[TextEdit], shell: Shell, pages: Sequence[PageTree]
) -> list[Line]:
    """Return page 1 with the members of the other pages inside its declaration."""
    if shell.container == "union":
        return _with_literals(code, edits, shell, pages)
    _separate(shell, pages, edits)
    closer = shell.inner.children[-1]
    position = line_start(code, closer.start_byte)
    head = cut(code, edits, page=1, end=position)
    tail = cut(code, edits, page=1, start=position)
    outer = indent_at(code, shell.outer)
    if tail and not tail[0].is_whole:
        tail[0] = Line(outer + tail[0].text, 1, tail[0].number)
    pieces = [_indent_page(page, outer + _INDENT) for page in pages]
    return trim(join_lines(head, pieces, is_apart=False) + tail)


def _with_literals(
    code: bytes, edits: list[TextEdit], shell: Shell, pages: Sequence[PageTree]
) -> list[Line]:
    """Return page 1 with more literals behind its own."""
    semicolon = code.find(b";", shell.end)
    between = code[shell.end : semicolon] if semicolon >= 0 else b"x"
    filled = [page for page in pages if page.items_end is not None and page.is_legal]
    if filled and not between.strip():
        edits.append(TextEdit(semicolon, semicolon + 1))
        last = filled[-1]
        last.edits.append(TextEdit(last.items_end or 0, last.items_end or 0, b";"))
    at = code.find(b"\n", shell.end)
    position = len(code) if at < 0 else at + 1
    head = cut(code, edits, page=1, end=position)
    tail = cut(code, edits, page=1, start=position) if at >= 0 else []
    indent = indent_at(code, shell.outer) + _INDENT
    pieces = [_indent_page(page, indent) for page in pages]
    return trim(join_lines(head, pieces, is_apart=False) + tail)


def _separate(shell: Shell, pages: Sequence[PageTree], edits: list[TextEdit]) -> None:
    """Put a comma after the last member of each page that another one follows."""
    own = PageTree(b"", 1, shell.container, edits)
    members = members_in(shell.inner, shell.container)
    if members:
        own.items_end = members[-1].end_byte
        after = members[-1].next_sibling
        while after is not None and after.type == "comment":
            after = after.next_sibling
        own.has_comma = after is not None and after.type in {",", ";"}
    before = own
    for page in pages:
        if page.items_end is None:
            continue
        if before.items_end is not None and not before.has_comma and shell.container != "body":
            before.edits.append(TextEdit(before.items_end, before.items_end, b","))
        before = page


def _indent_page(page: PageTree, indent: str) -> list[Line]:
    lines = trim(cut(page.code, page.edits, page=page.number))
    if not page.is_legal or has_spanning_text(page.code):
        return lines
    return reindent(lines, indent)


def _shell_fault(code: bytes, root: Node, name: str) -> PageFault:
    if root.has_error or any(map(is_loose, root.named_children)):
        fault = fault_of(code)
        if fault is not None:
            return PageFault(1, fault.line, fault.code, fault.message, fault.in_member)
    message = f"the page declares no type called {name!r}"
    return PageFault(1, 1, "MISSING_CLASS", message, in_member=False)


def _page_fault(page: PageTree) -> PageFault:
    """Return why the members of a page cannot stand in their type."""
    if GRAMMAR.is_unreadable(page.code):
        why = GRAMMAR.unreadable_rows(page.code)[0]
        return PageFault(page.number, 1, "SYNTAX", why)
    facts = read(page.code.decode("utf-8", "surrogatepass"))
    if facts.declarations and not facts.faults:
        entry = facts.declarations[0]
        message = f"the page declares {entry.name!r} instead of members alone"
        return PageFault(page.number, entry.name_line, "FOREIGN_TYPE", message, in_member=False)
    head, tail = HEADS[page.container], TAILS[page.container]
    whole = head + page.code + tail
    before, last = head.count(b"\n"), page.code.count(b"\n") + 1
    if parse(whole).root_node.has_error:
        fault = fault_of(whole)
        if fault is not None:
            line = min(max(fault.line - before, 1), last)
            return PageFault(page.number, line, fault.code, fault.message, fault.in_member)
    message = _WRONG_MEMBERS[page.container]
    return PageFault(page.number, 1, "SYNTAX", message, in_member=False)


_WRONG_MEMBERS: Final[dict[Container, str]] = {
    "body": "the page cannot continue this type: it must hold properties with their types alone",
    "object": "the page cannot continue this schema: it must hold properties and getters alone",
    "array": "the page cannot continue this list: it must hold literals and commas alone",
    "enum": "the page cannot continue this enum: it must hold members with their values alone",
    "union": "the page cannot continue this union: it must hold literals after | alone",
}


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
    members = members_in(shell.inner, shell.container)
    page_of = {_key(unit): page for page, own in enumerate(units) for unit in own}
    pages_of = [next((page_of[key] for key in _keys(n) if key in page_of), -1) for n in members]
    starts = first_members(name, pages_of, len(units))
    begins = [first_byte(members[at]) for at in starts]
    end = shell.end
    cuts = [line_start(data, at) for at in (*begins, end)]
    first = data[: cuts[0]].rstrip()
    first += data[end:] if shell.container == "union" else b"\n" + data[cuts[-1] :]
    slices = (data[start:stop] for start, stop in pairwise(cuts))
    pages = (first.decode("utf-8", "surrogatepass"), *map(text_of_lines, slices))
    joined = stitch(pages, name=name, is_enum=shell.container != "body").text
    if leaves(joined) != leaves(code):
        raise cannot_split(name, "its pages would not be the same when joined again")
    return pages


def _key(unit: object) -> str:
    """Return a unit as a member may show it: a literal of that value."""
    return json.dumps(unit)


def _keys(node: Node) -> Iterator[str]:
    """Yield what a member may be known by: its name, or its value."""
    own = constant(node)
    if own is not NOTHING:
        yield _key(own)
        return
    value = node.child_by_field_name("value")
    found = constant(value) if value is not None else NOTHING
    if found is not NOTHING:
        yield _key(found)
    name = node.child_by_field_name("name") or node.child_by_field_name("key")
    if name is not None:
        plain = constant(name)
        yield _key((name.text or b"").decode("utf-8", "replace") if plain is NOTHING else plain)
