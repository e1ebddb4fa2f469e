"""Annotations of the source as references to types, and what ``Field`` says about a value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_regen.languages.base import TypeRef
from pytest_regen.languages.python.acceptance import LITERAL, UNION
from pytest_regen.languages.python.tree import (
    NOTHING,
    arguments,
    constant,
    dotted,
    last_name,
    parse,
)
from pytest_regen.languages.trees import Node, text_of, walk

_QUALIFIERS: Final = frozenset({"ClassVar", "Final", "InitVar", "NotRequired", "ReadOnly"}) | {
    "Required"
}
_UNIONS: Final = frozenset({"binary_operator", "union_type"})
_FIELD_CALLS: Final = frozenset({"Field", "attrib", "field", "ib"})
_UNSET: Final = "Unset"


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``Field(...)`` or ``dataclasses.field(...)`` says."""

    values: dict[str, object] = field(default_factory=dict)
    """Arguments that are literals."""
    others: frozenset[str] = frozenset()
    """Names of arguments that are other expressions."""
    default: str | None = None
    """The text of the default, of a factory too; ``None`` where there is none."""

    def joined(self, other: "Settings") -> "Settings":
        """Return both, ``other`` being the stronger."""
        default = self.default if other.default is None else other.default
        return Settings(self.values | other.values, self.others | other.others, default)


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation taken apart."""

    type: TypeRef
    settings: Settings = Settings()
    """From ``Annotated``."""
    qualifiers: frozenset[str] = frozenset()
    """``Required``, ``NotRequired``, ``ClassVar``, …"""


def read_annotation(node: Node) -> Annotation:
    """Return the type of an annotation, with what stands around it."""
    found = Settings()
    qualifiers: set[str] = set()
    node, line = _unquoted(_bare(node), None)
    while node.type in {"generic_type", "subscript"}:
        name, inner = last_name(node), _parameters(node)
        if name == "Annotated" and inner:
            for extra in inner[1:]:
                settings = settings_of(_bare(extra))
                found = found.joined(settings) if settings is not None else found
        elif not (name in _QUALIFIERS and inner):
            break
        else:
            qualifiers.add(name)
        if name == "Annotated" and any("Serializer" in last_name(_bare(e)) for e in inner[1:]):
            break
        node, line = _unquoted(_bare(inner[0]), line)
    for settings in _inner_settings(node):
        found = settings.joined(found)
    return Annotation(read_type(node, line), found, frozenset(qualifiers))


def _inner_settings(node: Node) -> Iterator[Settings]:
    """Yield what ``Field`` says inside of a type: of a union's parts all, deeper only the tag."""
    parts = [_bare(part) for part in node.named_children] if node.type in _UNIONS else []
    direct = {part.start_byte for part in parts}
    for inner in walk(node):
        if inner.type in {"generic_type", "subscript"} and last_name(inner) == "Annotated":
            for extra in _parameters(inner)[1:]:
                said = settings_of(_bare(extra))
                if said is not None and inner.start_byte in direct:
                    yield Settings(said.values, said.others)
                elif said is not None and "discriminator" in said.values:
                    yield Settings({"discriminator": said.values["discriminator"]})


def settings_of(node: Node | None) -> Settings | None:
    """Return what a call of ``Field`` or ``field`` says; ``None`` for any other expression."""
    if node is None or node.type != "call" or last_name(node) not in _FIELD_CALLS:
        return None
    values: dict[str, object] = {}
    others: set[str] = set()
    default: str | None = None
    for name, value in arguments(node):
        if name in {"", "default", "default_factory"}:
            is_required = value.type == "ellipsis" or dotted(value) in {"...", "MISSING"}
            default = default if is_required else text_of(value)
        elif name == "metadata" and value.type == "dictionary":
            values |= dict(_entries(value))
        elif (said := constant(value)) is not NOTHING:
            values[name] = said
        else:
            others.add(name)
    return Settings(values, frozenset(others), default)


def _entries(node: Node) -> Iterator[tuple[str, object]]:
    for pair in node.named_children:
        if pair.type == "pair":
            key = constant(pair.child_by_field_name("key"))
            value = constant(pair.child_by_field_name("value"))
            if isinstance(key, str) and value is not NOTHING:
                yield key, value


def read_type(node: Node, line: int | None = None) -> TypeRef:
    """Return the type that an expression names.

    ``Optional`` and ``None`` become ``nullable``, ``Annotated`` what it is about, quoted names what
    they quote.

    Args:
        node: of an annotation.
        line: where it stands, if it was read from a string.
    """
    node = _bare(node)
    at = node.start_point.row + 1 if line is None else line
    if node.type == "string":
        inner = _quoted(node)
        return read_type(inner, at) if inner is not None else TypeRef(text_of(node), line=at)
    if node.type in _UNIONS and b"//" not in (node.text or b""):
        return _union([read_type(part, line) for part in node.named_children], at)
    if node.type in {"generic_type", "subscript"}:
        return _generic(node, at, line)
    name = dotted(node)
    if node.type == "none" or name == "None":
        return TypeRef("None", nullable=True, line=at)
    if not name:
        return TypeRef(text_of(node)[:80], line=at)
    qualifier, _, simple = name.rpartition(".")
    return TypeRef(simple, qualifier=qualifier, line=at)


def _generic(node: Node, at: int, line: int | None) -> TypeRef:
    name, inner = last_name(node), _parameters(node)
    if name == "Literal":
        values = [part for part in inner if _bare(part).type != "none"]
        refs = tuple(TypeRef(text_of(_bare(part)), line=at) for part in values)
        return TypeRef(LITERAL, refs, nullable=len(values) < len(inner), line=at)
    args = tuple(read_type(part, line) for part in inner)
    if name == "Annotated" and args:
        is_written = any("Serializer" in last_name(_bare(extra)) for extra in inner[1:])
        return replace(args[0], is_wrapped=is_written or args[0].is_wrapped)
    if name in _QUALIFIERS and len(args) == 1:
        return args[0]
    if name == "Optional" and len(args) == 1:
        return replace(args[0], nullable=True)
    if name == "Union":
        return _union(args, at)
    qualifier = dotted(node.named_children[0]).rpartition(".")[0]
    return TypeRef(name, args, qualifier=qualifier, line=at)


def _union(parts: Sequence[TypeRef], at: int) -> TypeRef:
    """Return one of several types; ``None`` and ``Unset`` among them are marks of the whole."""
    flat: list[TypeRef] = []
    for part in parts:
        flat += part.args if part.name == UNION else [replace(part, nullable=False)]
    nullable = any(part.nullable for part in parts)
    wrapped = any(part.name == _UNSET or part.is_wrapped for part in flat + list(parts))
    kept = [part for part in flat if part.name not in {"None", _UNSET}]
    different = tuple(dict.fromkeys(kept))
    if not different:
        return TypeRef("None", nullable=nullable, line=at, is_wrapped=wrapped)
    if len(different) == 1:
        return replace(different[0], nullable=nullable, is_wrapped=wrapped)
    return TypeRef(UNION, different, nullable=nullable, line=at, is_wrapped=wrapped)


def _bare(node: Node) -> Node:
    """Return an expression without what only stands around it."""
    while node.type in {"type", "parenthesized_expression"} and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def _unquoted(node: Node, line: int | None) -> tuple[Node, int | None]:
    """Return what a quoted type quotes, and the line on which it does."""
    inner = _quoted(node) if node.type == "string" else None
    if inner is None:
        return node, line
    return inner, node.start_point.row + 1 if line is None else line


def _quoted(node: Node) -> Node | None:
    """Return the type that a string quotes; ``None`` where it is no expression."""
    said = constant(node)
    if not isinstance(said, str) or "\n" in said:
        return None
    root = parse(f"_: {said.strip()}").root_node
    if root.has_error or root.named_child_count != 1:
        return None
    inner = root.named_children[0].named_children
    found = inner[0].child_by_field_name("type") if inner else None
    return None if found is None else _bare(found)


def _parameters(node: Node) -> list[Node]:
    """Return what stands between the brackets of a generic type."""
    rest = node.named_children[1:]
    if node.type == "generic_type" and rest:
        rest = rest[0].named_children
    found: list[Node] = []
    for part in rest:
        if part.type == "tuple":
            found += part.named_children
        elif part.type != "comment":
            found.append(part)
    return found
