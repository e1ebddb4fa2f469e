"""What pages of TypeScript are made of, by its grammar: what members and literals stand in."""

import json
import re
from collections.abc import Iterator
from typing import ClassVar, Final

from pytest_regen.languages import trees
from pytest_regen.languages.base import SourceFacts
from pytest_regen.languages.pages import Frame, Pages, Shell, Slot, Source, end_of_lines
from pytest_regen.languages.trees import Node
from pytest_regen.languages.typescript.reader import read
from pytest_regen.languages.typescript.schemas import base_call, plain, returned
from pytest_regen.languages.typescript.tree import (
    GRAMMAR,
    NOTHING,
    child_of,
    constant,
    decode_string,
    inside,
    is_loose,
    options_of,
    parse,
)

_KINDS: Final = {
    "class_body": "body",
    "interface_body": "body",
    "object_type": "body",
    "object": "object",
    "array": "array",
    "enum_body": "enum",
}
_MEMBERS: Final = {
    "object": frozenset({"pair", "method_definition"}),
    "enum": frozenset({"enum_assignment"}),
}
_ATOMS: Final = frozenset({"regex", "string", "template_literal_type", "template_string"})
_CLOSING: Final = frozenset({")", "]", "}"})
_OPENING: Final = frozenset({"", "=", "(", "<", ":", "[", ","})


class TypeScriptPages(Pages):
    """Interfaces, object types and unions of literals; schemas of zod; arrays and enums."""

    frames: ClassVar = {
        "body": Frame("interface PageWrapper {", "}", "properties with their types alone"),
        "union": Frame(
            "type PageWrapper =",
            "",
            "literals after | alone",
            mark=b";",
            sign=b"| ",
            indent="  ",
            is_enum=True,
        ),
        "object": Frame("const PageWrapper = ({", "});", "properties and getters alone", mark=b","),
        "array": Frame(
            "const PageWrapper = [", "];", "literals and commas alone", mark=b",", is_enum=True
        ),
        "enum": Frame(
            "enum PageWrapper {", "}", "members with their values alone", mark=b",", is_enum=True
        ),
    }
    indent: ClassVar = "  "
    around: ClassVar = re.compile(r"^[ \t]*import\b|_FIELDS", re.MULTILINE)
    open_text: ClassVar = re.compile(r"^[^`\n]*`(?:[^`\n]*`[^`\n]*`)*[^`\n]*$", re.MULTILINE)

    def source(self, code: bytes) -> Source | None:
        """Return what a source declares; ``None`` where it is illegal."""
        root = parse(code).root_node
        if root.has_error:
            return None
        shells = [shell for node in root.named_children for shell in _shells(code, node, node)]
        outside = [
            (node.start_byte, node.end_byte)
            for node in root.named_children
            if node.type == "import_statement"
        ]
        has_strays = any(map(is_loose, root.named_children))
        return Source(tuple(shells), tuple(outside), has_strays=has_strays)

    def read(self, code: str) -> SourceFacts:
        """Return the facts of a source."""
        return read(code)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of code, without what a formatter is free about.

        Quotation marks are all double. Semicolons are left out, and so are a comma before a bracket
        and the sign before the first literal of a union.
        """
        found: list[str] = []
        for leaf in trees.leaves(GRAMMAR, code, _ATOMS):
            before = found[-1] if found else ""
            if leaf in _CLOSING and before == ",":
                found.pop()
            if leaf[:1] in {'"', "'"} and leaf[1:] and leaf.endswith(leaf[0]):
                found.append(json.dumps(decode_string(leaf[1:-1])))
            elif leaf != ";" and not (leaf == "|" and before in _OPENING):
                found.append(leaf)
        return tuple(found)


def _shells(code: bytes, outer: Node, node: Node) -> Iterator[Shell]:
    """Yield what a statement declares."""
    if node.type in {"export_statement", "ambient_declaration"}:
        for each in node.named_children:
            yield from _shells(code, outer, each)
        return
    is_constant = node.type in {"lexical_declaration", "variable_declaration"}
    for each in inside(node) if is_constant else [node]:
        name, value = each.child_by_field_name("name"), each.child_by_field_name("value")
        inner = each.child_by_field_name("body")
        if value is not None:
            inner = _schema_inner(value) if is_constant else value
        kind = "" if inner is None else _kind_of(inner)
        if name is not None and inner is not None and kind:
            slot = _union(code, inner) if kind == "union" else _slot(kind, inner)
            yield Shell(trees.text_of(name), outer.start_byte, (slot,))


def _kind_of(inner: Node) -> str:
    """Return what members stand in; nothing where they stand in nothing of the kind."""
    is_union = trees.text_of(inner) == "never" or any(
        constant(option) is not NOTHING for option in options_of(inner)
    )
    return _KINDS.get(inner.type, "union" if is_union else "")


def _schema_inner(value: Node) -> Node | None:
    """Return the object or array literal that the members of a schema or constant stand in."""
    value = plain(value)
    call = base_call(value)
    if value.type in {"object", "array"} or call is None or not call.arguments:
        return value if value.type in {"object", "array"} else None
    inner = returned(call.arguments[0]) if call.name == "lazy" else call.arguments[0]
    return None if inner is None else _schema_inner(inner)


def _slot(kind: str, inner: Node) -> Slot:
    nodes = inside(inner)
    is_plain = all(_is_plain(kind, node) for node in nodes)
    start, end = inner.children[0].end_byte, inner.children[-1].start_byte
    members = tuple((trees.commented_start(node), node.end_byte) for node in nodes)
    return Slot(kind, start, end, members, is_plain)


def _is_plain(kind: str, node: Node) -> bool:
    """Return whether a page of generated code may hold such a member."""
    if kind == "body":
        return node.type == "index_signature" or child_of(node, "type_annotation") is not None
    return node.type in _MEMBERS[kind] if kind in _MEMBERS else constant(node) is not NOTHING


def _union(code: bytes, inner: Node) -> Slot:
    options = [node for node in options_of(inner) if trees.text_of(node) != "never"]
    members = tuple((_sign_before(node), node.end_byte) for node in options)
    # A name of a type among literals the reader can tell better.
    is_plain = all(
        constant(node) is not NOTHING or node.type == "predefined_type" for node in options
    )
    return Slot("union", inner.start_byte, end_of_lines(code, inner.end_byte), members, is_plain)


def _sign_before(node: Node) -> int:
    """Return where a literal begins: the sign before it, or the comments."""
    before = node.prev_sibling
    if before is None and node.parent is not None and node.parent.type == "union_type":
        before = node.parent.prev_sibling
    if before is not None and before.type == "|":
        return before.start_byte
    return trees.commented_start(node)


PAGES: Final = TypeScriptPages()
illegality, leaves = PAGES.illegality, PAGES.leaves
split, stitch, unwrap_page = PAGES.split, PAGES.stitch, PAGES.unwrap_page
