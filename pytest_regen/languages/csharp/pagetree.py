"""The syntax tree of one page: what is structure around its members, and where members go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pytest_regen.languages.csharp.names import ROOT_SUFFIX
from pytest_regen.languages.csharp.tree import is_unreadable, parse
from pytest_regen.languages.lines import TextEdit
from pytest_regen.languages.oldpages import delimiters, outside, spans
from pytest_regen.languages.trees import Node, walk

Container = Literal["body", "enum", "parameters"]
"""What members stand in: the braces of a type, those of an enum, a record's parentheses."""

HEADS: Final[dict[Container, bytes]] = {
    "body": b"class PageWrapper\n{\n",
    "enum": b"enum PageWrapper\n{\n",
    "parameters": b"record PageWrapper(\n",
}
TAILS: Final[dict[Container, bytes]] = {
    "body": b"\n}",
    "enum": b"\n}",
    "parameters": b"\n);",
}
TYPES: Final = frozenset(
    {
        "class_declaration",
        "record_declaration",
        "struct_declaration",
        "interface_declaration",
        "enum_declaration",
    }
)
_DIRECTIVES: Final = frozenset({"using_directive", "extern_alias_directive"})
_ITEMS: Final = frozenset({"enum_member_declaration", "parameter"})
_LITERALS: Final = frozenset(
    {"verbatim_string_literal", "raw_string_literal", "interpolated_string_expression"}
)


@dataclass(slots=True)
class PageTree:
    """The members of a page: its text, and what to take away so that only they are left."""

    code: bytes
    number: int
    container: Container = "body"
    edits: list[TextEdit] = field(default_factory=list)
    comma_at: int | None = None
    """Where a comma goes if more items follow; ``None`` if one stands there, or no item does."""
    has_items: bool = False
    is_legal: bool = True


@dataclass(frozen=True, slots=True)
class Shell:
    """The declaration of page 1, which takes up the members of the other pages."""

    node: Node
    parameters: Node | None
    body: Node | None

    @property
    def is_enum(self) -> bool:
        """Whether it is an enum."""
        return self.node.type == "enum_declaration"

    @property
    def closer(self) -> Node:
        """The closing brace, or the semicolon of a declaration without a body."""
        return (self.body or self.node).children[-1]

    @classmethod
    def of(cls, node: Node) -> "Shell | None":
        """Return the declaration ``node``, or ``None`` where its end is unclear."""
        parameters = next((part for part in node.children if part.type == "parameter_list"), None)
        shell = cls(node, parameters, node.child_by_field_name("body"))
        closer = shell.closer
        return shell if closer.type in {"}", ";"} and not closer.is_missing else None


def read_shell(code: bytes, name: str | None) -> tuple[Node, list[TextEdit], Shell | None]:
    """Return the tree of page 1, what to take away from it, and the declaration of ``name``.

    Usings and namespaces are taken away: the header of the assembled source has them. In a page
    with errors nothing is, for what they contain is unclear.
    """
    root = parse(code).root_node
    types: list[Node] = []
    edits = list(_surroundings(root.children, types, 0))
    target = _find_type(types, name) or (types[0] if len(types) == 1 else None)
    if root.has_error:
        # The last brace of a declaration with an error inside need not be its own.
        return root, [], None
    edits += delimiters(code, root, 0)
    return root, edits, Shell.of(target) if target else None


def read_members(
    code: bytes,
    number: int,
    *,
    name: str | None,
    container: Container,
    is_positional: bool = False,
) -> PageTree:
    """Return the members of a continuation page, whatever was put around them.

    The page is read as bare members first, then as a source of its own that declares the type
    again, each time alone; with delimiter lines, what stands between them is tried too. A page
    that is legal in no way keeps all of its text.

    Args:
        code: the page's text.
        number: of the page.
        name: of the type the members belong to; ``None`` accepts any only declaration.
        container: what the members stand in.
        is_positional: whether they may be parameters instead.
    """
    for start, end in () if is_unreadable(code) else spans(code):
        read = _Reading(code, number, start, end, name)
        page = read.as_members(container) or read.as_source(container)
        if page is None and is_positional:
            page = read.as_members("parameters")
        if page is not None and (page.container == container or is_positional):
            page.edits += outside(code, start, end)
            return page
    # An item is assumed in it, so that the page before ends as it must.
    return PageTree(code, number, container, has_items=True, is_legal=False)


def bare(inside: bytes, container: Container) -> tuple[Node, Node | None]:
    """Return the tree of ``inside`` put into a synthetic ``container``, and the container in it.

    The container is ``None`` where ``inside`` is not legal there, or closes it and goes on.
    """
    whole = HEADS[container] + inside + TAILS[container]
    root = parse(whole).root_node
    if root.has_error or root.child_count != 1 or root.children[0].end_byte != len(whole):
        return root, None
    shell = Shell.of(root.children[0])
    if shell is None:
        return root, None
    return root, shell.parameters if container == "parameters" else shell.body


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to see a page: its part from ``start`` to ``end``."""

    code: bytes
    number: int
    start: int
    end: int
    name: str | None

    def as_members(self, container: Container) -> PageTree | None:
        """Return the part as bare members of ``container``, or ``None``."""
        inside = self.code[self.start : self.end]
        page = PageTree(self.code, self.number, container)
        if container == "parameters" and inside.rstrip().endswith(b","):
            inside = inside.rstrip()[:-1]
            comma = self.start + len(inside)
            page.edits.append(TextEdit(comma, comma + 1))
        root, inner = bare(inside, container)
        if inner is None:
            return None
        shift = self.start - len(HEADS[container])
        page.edits += delimiters(self.code, root, shift)
        if container != "body":
            _read_items(page, inner, shift)
            return page if page.has_items or container == "enum" else None
        types: list[Node] = []
        nodes = inner.children[1:-1]
        edits = list(_surroundings(nodes, types, shift))
        owner = _owner(nodes, types, self.name)
        if owner is None:
            return page
        page.edits += edits
        return _strip_owner(page, owner, shift)

    def as_source(self, container: Container) -> PageTree | None:
        """Return the part as a source that declares the type again, or ``None``."""
        root = parse(self.code[self.start : self.end]).root_node
        if root.has_error:
            return None
        types: list[Node] = []
        edits = list(_surroundings(root.children, types, self.start))
        owner = _find_type(types, self.name)
        if self.name is None and len(types) == 1:
            owner = types[0]
        if owner is None or (owner.type == "enum_declaration") != (container == "enum"):
            return None
        if container == "enum" and len(types) > 1:
            return None
        edits += delimiters(self.code, root, self.start)
        return _strip_owner(PageTree(self.code, self.number, container, edits), owner, self.start)


def _owner(nodes: Sequence[Node], types: Sequence[Node], name: str | None) -> Node | None:
    """Return the declaration among members that is their own type, written again."""
    if name is not None:
        owner = _find_type(types, name)
    else:
        is_only = sum(node.type != "comment" for node in nodes) == len(types) == 1
        owner = types[0] if is_only else None
    return owner if owner is not None and owner.type != "enum_declaration" else None


def _strip_owner(page: PageTree, owner: Node, shift: int) -> PageTree | None:
    """Return the page without what the declaration ``owner`` puts around its members."""
    shell = Shell.of(owner)
    if shell is None:
        return None
    inner = shell.body
    if shell.parameters is not None and shell.parameters.named_child_count:
        if inner is not None and inner.named_child_count:
            return None
        inner, page.container = shell.parameters, "parameters"
    if inner is None:
        return page if page.container != "enum" else None
    opening, closing = inner.children[0], inner.children[-1]
    page.edits += [
        TextEdit(first_byte(owner) + shift, opening.end_byte + shift),
        TextEdit(closing.start_byte + shift, owner.end_byte + shift),
    ]
    if page.container != "body":
        _read_items(page, inner, shift)
    return page


def _read_items(page: PageTree, inner: Node, shift: int) -> None:
    """Note where the last item of a list ends, and whether a comma stands after it."""
    last, has_comma = items(inner)
    page.has_items = last is not None
    page.comma_at = None if last is None or has_comma else last.end_byte + shift


def items(inner: Node) -> tuple[Node | None, bool]:
    """Return the last enum member or parameter in ``inner``, and whether a comma follows it."""
    last: Node | None = None
    has_comma = False
    for node in inner.children:
        if node.type in _ITEMS:
            last, has_comma = node, False
        elif node.type == ",":
            has_comma = True
        elif node.is_named and node.type not in {"comment", "attribute_list"}:
            # A ``params`` array is no node of its own: its parts are children of the list.
            last, has_comma = node, False
    return last, has_comma


def _surroundings(nodes: Sequence[Node], types: list[Node], shift: int) -> Iterator[TextEdit]:
    """Yield what stands around types and is not theirs; collect the types."""
    for node in nodes:
        if node.type in TYPES:
            types.append(node)
        elif node.type in _DIRECTIVES or node.type == "file_scoped_namespace_declaration":
            yield TextEdit(node.start_byte + shift, node.end_byte + shift)
        elif node.type == "namespace_declaration" and node.children[-1].type != ";":
            body = node.child_by_field_name("body")
            if body is not None:
                inner = body.children
                yield TextEdit(node.start_byte + shift, inner[0].end_byte + shift)
                yield from _surroundings(inner[1:-1], types, shift)
                yield TextEdit(inner[-1].start_byte + shift, node.end_byte + shift)


def _find_type(types: Sequence[Node], name: str | None) -> Node | None:
    """Return the type called ``name``, else the one called so but for the root's suffix."""
    if name is None:
        return None
    other = name.removesuffix(ROOT_SUFFIX) if name.endswith(ROOT_SUFFIX) else name + ROOT_SUFFIX
    for wanted in (name, other):
        for node in types:
            if _name_of(node) == wanted:
                return node
    return None


def _name_of(node: Node) -> str:
    name = node.child_by_field_name("name")
    return ((name.text if name is not None else None) or b"").decode("utf-8", "replace").lstrip("@")


def first_byte(node: Node) -> int:
    """Return where ``node`` begins, the comments right before it included."""
    first, before = node, node.prev_sibling
    while before is not None and before.type == "comment":
        earlier = before.prev_sibling
        if earlier is not None and earlier.end_point.row == before.start_point.row:
            break
        first, before = before, earlier
    return first.start_byte


def has_spanning_text(code: bytes) -> bool:
    """Return whether a string in ``code`` goes over a line end, so that no line may be moved."""
    if b'"""' not in code and b'@"' not in code and b'$"' not in code and b'@$"' not in code:
        return False
    root = parse(code).root_node
    return root.has_error or any(
        node.type in _LITERALS and node.start_point.row != node.end_point.row for node in walk(root)
    )
