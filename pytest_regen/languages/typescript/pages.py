"""What pages of TypeScript are made of, by its grammar: what members and literals stand in."""

import json
import re
from collections.abc import Iterator
from typing import ClassVar, Final

from pytest_regen.languages import trees
from pytest_regen.languages.pages import END_OF_LINE, Frame, Pages, Slot, Source
from pytest_regen.languages.trees import Node, child_of
from pytest_regen.languages.typescript import tree
from pytest_regen.languages.typescript.reader import read
from pytest_regen.languages.typescript.schemas import base_call, plain, returned
from pytest_regen.languages.typescript.tree import NOTHING, constant, inside, is_loose, options_of

_KINDS: Final = {
    "interface_body": "body",
    "object_type": "body",
    "object": "object",
    "array": "array",
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
            mark=";",
            sign="| ",
            indent="  ",
            is_enum=True,
        ),
        "object": Frame("const PageWrapper = ({", "});", "properties and getters alone", mark=","),
        "array": Frame(
            "const PageWrapper = [", "];", "literals and commas alone", mark=",", is_enum=True
        ),
    }
    indent: ClassVar = "  "
    around: ClassVar = re.compile(r"^[ \t]*import\b", re.MULTILINE)
    open_text: ClassVar = re.compile(r"^[^`\n]*`(?:[^`\n]*`[^`\n]*`)*[^`\n]*$", re.MULTILINE)

    read = staticmethod(read)

    def source(self, code: str) -> Source | None:
        """Return what a source declares; ``None`` where it is illegal."""
        root = tree.parse(code.encode("utf-8", "surrogatepass")).root_node
        if root.has_error:
            return None
        nodes = root.named_children
        outside = [
            (node.start_point, node.end_point) for node in nodes if node.type == "import_statement"
        ]
        slots = [slot for node in nodes for slot in _slots(node, node)]
        return Source(tuple(slots), tuple(outside), has_strays=any(map(is_loose, nodes)))

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of code, without what a formatter is free about.

        Quotation marks are all double. Semicolons are left out, and so are a comma before a bracket
        and the sign before the first literal of a union.
        """
        tokens: list[str] = []
        for leaf in trees.leaves(tree.GRAMMAR, code, _ATOMS):
            before = tokens[-1] if tokens else ""
            # Formatters add and take away a comma here, so that it is no edit.
            if leaf in _CLOSING and before == ",":
                tokens.pop()
            if leaf[:1] in {'"', "'"} and leaf[1:] and leaf.endswith(leaf[0]):
                tokens.append(json.dumps(tree.decode_string(leaf[1:-1])))
            elif leaf != ";" and not (leaf == "|" and before in _OPENING):
                tokens.append(leaf)
        return tuple(tokens)


def _slots(outer: Node, node: Node) -> Iterator[Slot]:
    """Yield what the members of what a statement declares stand in."""
    if node.type in {"export_statement", "ambient_declaration"}:
        for child in node.named_children:
            yield from _slots(outer, child)
        return
    is_constant = node.type in {"lexical_declaration", "variable_declaration"}
    for entry in inside(node) if is_constant else [node]:
        name, value = entry.child_by_field_name("name"), entry.child_by_field_name("value")
        inner = entry.child_by_field_name("body") if value is None else value
        if is_constant and value is not None:
            inner = _schema_inner(value)
        if name is not None and inner is not None:
            called, row = trees.text_of(name), outer.start_point.row
            is_braced = inner.type in _KINDS
            yield from [_slot(called, row, inner)] if is_braced else _unions(called, row, inner)


def _schema_inner(value: Node) -> Node | None:
    """Return the object or array literal that the members of a schema or constant stand in."""
    value = plain(value)
    call = base_call(value)
    if value.type in {"object", "array"} or call is None or not call.arguments:
        return value if value.type in {"object", "array"} else None
    inner = returned(call.arguments[0]) if call.name == "lazy" else call.arguments[0]
    return None if inner is None else _schema_inner(inner)


def _slot(name: str, row: int, inner: Node) -> Slot:
    """Return what members in brackets stand in."""
    kind, nodes = _KINDS[inner.type], inside(inner)
    is_member = {
        "body": lambda node: node.type == "index_signature" or child_of(node, "type_annotation"),
        "object": lambda node: node.type in {"pair", "method_definition"},
        "array": lambda node: constant(node) is not NOTHING,
    }[kind]
    start, end = inner.children[0].end_point, inner.children[-1].start_point
    members = tuple((node.start_point, node.end_point) for node in nodes)
    return Slot(name, row, kind, start, end, members, all(map(is_member, nodes)))


def _unions(name: str, row: int, inner: Node) -> Iterator[Slot]:
    """Yield what literals of a union stand in, if a type is one."""
    options = [node for node in options_of(inner) if trees.text_of(node) != "never"]
    is_literal = [constant(node) is not NOTHING for node in options]
    # A name of a type among literals the reader can tell better.
    is_plain = all(
        is_value or node.type == "predefined_type"
        for node, is_value in zip(options, is_literal, strict=True)
    )
    # The end of the line, because a semicolon and a comment may stand behind the last literal.
    end = (inner.end_point.row, END_OF_LINE)
    members = []
    for node in options:
        before = node.prev_sibling
        # The sign before the first literal stands beside the union that the literal begins.
        if before is None and node.parent is not None and node.parent.type == "union_type":
            before = node.parent.prev_sibling
        has_sign = before is not None and before.type == "|"
        first = before if before is not None and has_sign else node
        members.append((first.start_point, node.end_point))
    if any(is_literal) or not options:
        yield Slot(name, row, "union", inner.start_point, end, tuple(members), is_plain)


PAGES: Final = TypeScriptPages()
illegality, leaves = PAGES.illegality, PAGES.leaves
split, stitch, unwrap_page = PAGES.split, PAGES.stitch, PAGES.unwrap_page
