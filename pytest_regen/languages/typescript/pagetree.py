"""The syntax tree of one page: what is structure around its members, and where members go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pytest_regen.languages.lines import TextEdit
from pytest_regen.languages.oldpages import DELIMITER_LINE, delimiters, outside, spans
from pytest_regen.languages.trees import Node, text_of, walk
from pytest_regen.languages.typescript.schemas import base_call, returned
from pytest_regen.languages.typescript.tree import (
    GRAMMAR,
    NOTHING,
    child_of,
    constant,
    is_loose,
    options_of,
    parse,
)

Container = Literal["body", "object", "array", "enum", "union"]
"""What members stand in: the braces of an interface or a type, those of an object, the brackets of
an array, the braces of an enum, or a chain of literals."""

HEADS: Final[dict[Container, bytes]] = {
    "body": b"interface PageWrapper {\n",
    "object": b"const PageWrapper = ({\n",
    "array": b"const PageWrapper = [\n",
    "enum": b"enum PageWrapper {\n",
    "union": b"type PageWrapper =\n",
}
TAILS: Final[dict[Container, bytes]] = {
    "body": b"\n}",
    "object": b"\n});",
    "array": b"\n];",
    "enum": b"\n}",
    "union": b"\n;",
}
CONTAINERS: Final[tuple[Container, ...]] = ("body", "union", "object", "array", "enum")
_KINDS: Final[dict[str, Container]] = {
    "class_body": "body",
    "interface_body": "body",
    "object_type": "body",
    "object": "object",
    "array": "array",
    "enum_body": "enum",
}
_DECLARED: Final = {
    "abstract_class_declaration": "class_body",
    "class_declaration": "class_body",
    "enum_declaration": "enum_body",
    "interface_declaration": "interface_body",
}


@dataclass(slots=True)
class PageTree:
    """The members of a page: its text, and what to take away so that only they are left."""

    code: bytes
    number: int
    container: Container = "body"
    edits: list[TextEdit] = field(default_factory=list)
    items_end: int | None = None
    """Where the last member ends; ``None`` where there is none."""
    has_comma: bool = False
    """Whether a comma stands after it."""
    is_legal: bool = True


@dataclass(frozen=True, slots=True)
class Shell:
    """The declaration of page 1, which takes up the members of the other pages."""

    outer: Node
    """The whole statement, ``export`` included."""
    inner: Node
    """What its members stand in."""
    container: Container

    @property
    def end(self) -> int:
        """Where more members would go: before the closing bracket, or behind the last literal."""
        if self.container == "union":
            return self.inner.end_byte
        return self.inner.children[-1].start_byte


def members_in(inner: Node, container: Container) -> list[Node]:
    """Return the members in a container, in source order."""
    if container == "union":
        return [each for each in options_of(inner) if text_of(each) != "never"]
    return [each for each in inner.named_children if each.type != "comment" and not each.is_error]


def read_shell(code: bytes, name: str | None) -> tuple[Node, list[TextEdit], Shell | None]:
    """Return the tree of page 1, what to take away from it, and the declaration of ``name``.

    Imports are taken away: the header of the assembled source has them. In a page with errors
    nothing is, for what they contain is unclear.
    """
    root = parse(code).root_node
    if root.has_error:
        # The last brace of a declaration with an error inside need not be its own.
        return root, [], None
    edits = [
        TextEdit(node.start_byte, node.end_byte)
        for node in root.named_children
        if node.type == "import_statement"
    ]
    edits += delimiters(code, root, 0)
    return root, edits, _find_shell(root, name, is_lenient=True)


def _find_shell(root: Node, name: str | None, *, is_lenient: bool) -> Shell | None:
    """Return the declaration of ``name``; if lenient, the only one whatever it is called."""
    found = [
        (called, shell)
        for statement in root.named_children
        for called, shell in _shells(statement, statement)
    ]
    own = [shell for called, shell in found if called == name]
    names = {called for called, _ in found}
    is_clear = len(names) == 1 and (name is None or is_lenient)
    return own[0] if own else found[0][1] if is_clear else None


def _shells(outer: Node, node: Node) -> Iterator[tuple[str, Shell]]:
    """Yield what is declared by a statement, with the name of each."""
    if node.type in {"export_statement", "ambient_declaration"}:
        for each in node.named_children:
            yield from _shells(outer, each)
        return
    is_constant = node.type in {"lexical_declaration", "variable_declaration"}
    for each in node.named_children if is_constant else [node]:
        name, inner = each.child_by_field_name("name"), _inner_of(each)
        if name is not None and inner is not None:
            yield text_of(name), Shell(outer, inner, _KINDS.get(inner.type, "union"))


def _inner_of(node: Node) -> Node | None:
    """Return what the members of a declaration stand in."""
    value = node.child_by_field_name("value")
    if node.type == "variable_declarator":
        return None if value is None else _schema_inner(value)
    if node.type == "type_alias_declaration" and value is not None:
        return value if value.type == "object_type" or _are_literals(value) else None
    return child_of(node, _DECLARED.get(node.type, ""))


def _are_literals(value: Node) -> bool:
    return any(constant(each) is not NOTHING for each in options_of(value)) or (
        text_of(value) == "never"
    )


def _schema_inner(value: Node) -> Node | None:
    """Return the object or array literal that the members of a schema or constant stand in."""
    while value.type in {"as_expression", "satisfies_expression", "parenthesized_expression"}:
        value = value.named_children[0]
    if value.type in {"object", "array"}:
        return value
    call = base_call(value)
    if call is None or not call.arguments:
        return None
    if call.name == "lazy":
        body = returned(call.arguments[0])
        return None if body is None else _schema_inner(body)
    return call.arguments[0] if call.arguments[0].type in {"object", "array"} else None


def read_members(
    code: bytes, number: int, *, name: str | None, containers: Sequence[Container]
) -> PageTree:
    """Return the members of a continuation page, whatever was put around them.

    The page is read as bare members first, then as a source of its own that declares the type
    again; with delimiter lines, what stands between them is tried too. A page that is legal in no
    way keeps all of its text.

    Args:
        code: the page's text.
        number: of the page.
        name: of the type the members belong to; ``None`` accepts any only declaration.
        containers: what the members may stand in.
    """
    for start, end in () if GRAMMAR.is_unreadable(code) else spans(code):
        for container in containers:
            page = _as_members(code, number, start, end, container)
            if page is not None:
                page.edits += outside(code, start, end)
                return page
        page = _as_source(code, number, start, end, name)
        if page is not None and page.container in containers:
            page.edits += outside(code, start, end)
            return page
    return PageTree(code, number, containers[0], is_legal=False)


def bare(inside: bytes, container: Container) -> tuple[Node, Node | None]:
    """Return the tree of ``inside`` put into a synthetic ``container``, and the container in it.

    The container is ``None`` where ``inside`` is not legal there, or closes it and goes on.
    """
    whole = HEADS[container] + inside + TAILS[container]
    root = parse(whole).root_node
    if root.has_error or root.child_count != 1 or root.children[0].end_byte != len(whole):
        return root, None
    inner = next((shell.inner for _, shell in _shells(root, root.children[0])), None)
    if inner is None or not all(
        _is_member(each, container) for each in members_in(inner, container)
    ):
        return root, None
    return root, inner


def _is_member(node: Node, container: Container) -> bool:
    """Return whether a node is what a page of generated code has in its container."""
    match container:
        case "body":
            return node.type == "index_signature" or any(
                each.type == "type_annotation" for each in node.named_children
            )
        case "object":
            return node.type in {"pair", "method_definition"}
        case "enum":
            return node.type == "enum_assignment"
    if container == "union" and node.type == "predefined_type":
        return True  # What the reader refuses, it can tell better.
    return constant(node) is not NOTHING


def _as_members(
    code: bytes, number: int, start: int, end: int, container: Container
) -> PageTree | None:
    """Return a part of a page as bare members of ``container``, or ``None``."""
    inside, shift = code[start:end], start - len(HEADS[container])
    edits: list[TextEdit] = []
    if container == "union":
        inside, edits = _chain(inside, start)
    root, inner = bare(inside, container)
    if inner is None:
        return None
    page = PageTree(code, number, container, edits)
    page.edits += delimiters(code, root, shift)
    _note_items(page, inner, shift)
    return page


def _chain(inside: bytes, start: int) -> tuple[bytes, list[TextEdit]]:
    """Return literals without a semicolon at their end, and what to take away for it."""
    body = DELIMITER_LINE.sub(lambda match: b" " * len(match[0]), inside)
    last = body.rstrip()
    if not last.endswith(b";"):
        return inside, []
    at = len(last) - 1
    return inside[:at] + b" " + inside[at + 1 :], [TextEdit(start + at, start + at + 1)]


def _note_items(page: PageTree, inner: Node, shift: int) -> None:
    """Note where the last member ends, and whether a comma stands after it."""
    members = members_in(inner, page.container)
    if not members:
        return
    page.items_end = members[-1].end_byte + shift
    after = members[-1].next_sibling
    while after is not None and after.type == "comment":
        after = after.next_sibling
    page.has_comma = after is not None and after.type == ","
    first = members[0]
    if page.container == "union" and (first.prev_sibling is None or first.prev_sibling.type != "|"):
        page.edits.append(TextEdit(first.start_byte + shift, first.start_byte + shift, b"| "))


def _as_source(code: bytes, number: int, start: int, end: int, name: str | None) -> PageTree | None:
    """Return a part of a page as a source that declares the type again, or ``None``."""
    root = parse(code[start:end]).root_node
    if root.has_error or any(map(is_loose, root.named_children)):
        return None
    shell = _find_shell(root, name, is_lenient=False)
    if shell is None:
        return None
    page = PageTree(code, number, shell.container)
    opening = (
        shell.inner.start_byte if shell.container == "union" else shell.inner.children[0].end_byte
    )
    page.edits += [
        *(edit for edit in delimiters(code[start:end], root, start) if _within(edit, shell, start)),
        TextEdit(start, opening + start),
        TextEdit(shell.end + start, end),
    ]
    _note_items(page, shell.inner, start)
    return page


def _within(edit: TextEdit, shell: Shell, shift: int) -> bool:
    return shell.inner.start_byte + shift <= edit.start and edit.end <= shell.end + shift


def first_byte(node: Node) -> int:
    """Return where ``node`` begins: the comments above it and a sign before it included."""
    first, before = node, node.prev_sibling
    if before is None and node.parent is not None and node.parent.type == "union_type":
        before = node.parent.prev_sibling
    if before is not None and before.type == "|":
        return before.start_byte
    while before is not None and before.type == "comment":
        earlier = before.prev_sibling
        if earlier is not None and earlier.end_point.row == before.start_point.row:
            break
        first, before = before, earlier
    return first.start_byte


def has_spanning_text(code: bytes) -> bool:
    """Return whether a string in ``code`` goes over a line end, so that no line may be moved."""
    if b"`" not in code:
        return False
    root = parse(code).root_node
    return root.has_error or any(
        node.type in {"template_string", "template_literal_type"}
        and node.start_point.row != node.end_point.row
        for node in walk(root)
    )
