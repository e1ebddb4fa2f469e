"""What pages of C# are made of, by its grammar: types, and what their members stand in."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from pytest_regen.languages import trees
from pytest_regen.languages.csharp.names import ROOT_SUFFIX
from pytest_regen.languages.csharp.reader import read
from pytest_regen.languages.csharp.tree import GRAMMAR, parse
from pytest_regen.languages.names import word_set
from pytest_regen.languages.pages import Frame, Pages, Slot, Source, Span
from pytest_regen.languages.trees import Node

_TYPES: Final = word_set(
    """
    class_declaration enum_declaration interface_declaration record_declaration struct_declaration
    """
)
_OUTSIDE: Final = word_set(
    """
    extern_alias_directive file_scoped_namespace_declaration namespace_declaration using_directive
    """
)
_ATOMS: Final = word_set("character_literal preproc_arg raw_string_literal verbatim_string_literal")
_NO_MEMBERS: Final = ("comment", "attribute_list", "preproc")


class CSharpPages(Pages):
    """Classes, records with properties or parameters, and enums."""

    frames: ClassVar = {
        "body": Frame("class PageWrapper\n{", "}", "properties of a class alone", is_apart=True),
        "enum": Frame(
            "enum PageWrapper\n{", "}", "values of an enum alone", mark=",", is_enum=True
        ),
    }
    around: ClassVar = re.compile(
        r"^[ \t]*(?:global\s+)?(?:using|namespace|extern)\b", re.MULTILINE
    )
    open_text: ClassVar = re.compile(r'"""[ \t]*$|@\$?"(?:[^"\n]|"")*$', re.MULTILINE)

    def names(self, name: str) -> Sequence[str]:
        """Return a type's name, and the same with the suffix of roots or without it."""
        # Because models forget the suffix, or add it, on pages that declare the type again.
        plain = name.removesuffix(ROOT_SUFFIX)
        return (name, plain if plain != name else name + ROOT_SUFFIX)

    read = staticmethod(read)

    def source(self, code: str) -> Source | None:
        """Return what a source declares; ``None`` where it is illegal."""
        # A directive needs the end of its line.
        root = parse(code.encode("utf-8", "surrogatepass") + b"\n").root_node
        if root.has_error:
            return None
        types: list[Node] = []
        outside = tuple(_outside(root.children, types))
        has_strays = any(node.type == "global_statement" for node in root.children)
        return Source(tuple(map(_slot, types)), outside, has_strays=has_strays)

    def leaves(self, code: str) -> tuple[str, ...]:
        """Return the tokens and comments of code, without the white space between them."""
        return trees.leaves(GRAMMAR, code, _ATOMS)


def _outside(nodes: Sequence[Node], types: list[Node]) -> Iterator[Span]:
    """Yield what stands around types and is not theirs; collect the types."""
    for node in nodes:
        if node.type in _TYPES:
            types.append(node)
        elif node.type == "namespace_declaration" and node.children[-1].type != ";":
            body = node.child_by_field_name("body") or node
            yield node.start_point, body.children[0].end_point
            yield from _outside(body.children[1:-1], types)
            yield body.children[-1].start_point, node.end_point
        elif node.type in _OUTSIDE:
            yield node.start_point, node.end_point


def _slot(node: Node) -> Slot:
    name, row = node.child_by_field_name("name"), node.start_point.row
    called = "" if name is None else trees.text_of(name).lstrip("@")
    body = node.child_by_field_name("body")
    if body is None:
        # Before the semicolon, in whose place members of other pages stand.
        end = node.children[-1].start_point
        return Slot(called, row, "body", end, end, is_absent=True)
    members = [
        part
        for part in body.named_children
        # Members may stand in an #if, unlike in other directives.
        if part.type == "preproc_if" or not part.type.startswith(_NO_MEMBERS)
    ]
    return Slot(
        called,
        row,
        "enum" if node.type == "enum_declaration" else "body",
        body.children[0].end_point,
        body.children[-1].start_point,
        tuple((part.start_point, part.end_point) for part in members),
        # The type itself may be nested, written once more.
        not any(part.type in _OUTSIDE for part in members)
        and not all(part.type in _TYPES for part in members),
    )


PAGES: Final = CSharpPages()
illegality, leaves = PAGES.illegality, PAGES.leaves
split, stitch, unwrap_page = PAGES.split, PAGES.stitch, PAGES.unwrap_page
