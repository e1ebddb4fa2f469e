"""Type nodes of the syntax tree as ``TypeRef`` values."""

from dataclasses import replace

from pytest_regen.languages.csharp.tree import Node, text_of
from pytest_regen.languages.csharp.types import is_reference
from pytest_regen.languages.facts import TypeRef

__all__ = ["type_ref"]

_seen: dict[bytes, TypeRef] = {}
_MANY = 4096


def type_ref(node: Node) -> TypeRef:
    """Return the type that ``node`` spells. Equal texts are taken apart once."""
    text = node.text or b""
    known = _seen.get(text)
    if known is None:
        known = _read(node)
        if len(_seen) >= _MANY:
            _seen.clear()
        _seen[text] = known
    return replace(known, line=node.start_point.row + 1)


def _read(node: Node) -> TypeRef:  # noqa: PLR0911 - one line per kind of node
    match node.type:
        case "nullable_type":
            return replace(_inner(node), nullable=True)
        case "array_type":
            rank = node.child_by_field_name("rank")
            commas = text_of(rank).count(",") if rank else 0
            return TypeRef(f"[{',' * commas}]", (_inner(node),))
        case "generic_name":
            return _generic(node)
        case "qualified_name" | "alias_qualified_name":
            return _qualified(node)
        case "tuple_type":
            elements = [child.child_by_field_name("type") for child in node.named_children]
            return TypeRef("()", tuple(_read(element) for element in elements if element))
        case "pointer_type":
            return TypeRef("*", (_inner(node),))
        case "ref_type":
            return TypeRef("ref", (_inner(node),))
        case "scoped_type":
            return _inner(node)
    return TypeRef(text_of(node).strip().removeprefix("@"))


def _inner(node: Node) -> TypeRef:
    inner = node.child_by_field_name("type")
    if inner is None and node.named_children:
        inner = node.named_children[0]
    return TypeRef("") if inner is None else _read(inner)


def _generic(node: Node) -> TypeRef:
    name = ""
    arguments: tuple[TypeRef, ...] = ()
    for child in node.named_children:
        if child.type == "identifier":
            name = text_of(child).removeprefix("@")
        elif child.type == "type_argument_list":
            arguments = tuple(
                _read(argument)
                for argument in child.named_children
                if argument.type not in ("comment", "ERROR")
            )
            if not arguments:
                name += "<>"  # of no use but to ask the type itself
    if name == "Nullable" and len(arguments) == 1 and not _is_nullable(arguments[0]):
        return replace(arguments[0], nullable=True, is_wrapped=True)
    return TypeRef(name, arguments)


def _is_nullable(reference: TypeRef) -> bool:
    """Return whether a type is known to be null without ``Nullable``, which does not take it."""
    return reference.nullable or is_reference(reference)


def _qualified(node: Node) -> TypeRef:
    name = node.child_by_field_name("name")
    before = node.child_by_field_name("qualifier") or node.child_by_field_name("alias")
    if name is None or before is None:
        return TypeRef(text_of(node))
    simple = _read(name)
    if simple.nullable and name.type == "generic_name":
        return simple
    return replace(simple, qualifier="".join(text_of(before).split()))
