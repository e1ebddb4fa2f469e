"""Schemas of zod as the source builds them: what they hold, check and change."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pytest_regen.languages.base import Attribute, TypeRef
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.languages.typescript.tree import NOTHING, constant, line_of
from pytest_regen.languages.typescript.types import literal_ref, show_type

CHECKS: Final = frozenset(
    {"gt", "gte", "length", "lt", "lte", "max", "min", "multipleOf", "negative", "nonempty"}
    | {"nonnegative", "nonpositive", "positive", "regex", "step"}
)
"""Methods that refuse values, and that a document may ask for."""
CHANGES: Final = frozenset(
    {"catch", "coerce", "codec", "decode", "default", "encode", "normalize", "overwrite", "pipe"}
    | {"prefault", "preprocess", "stringbool", "toLowerCase", "toUpperCase", "transform", "trim"}
)
"""What makes another value of the one that was parsed."""
_HARMLESS: Final = frozenset({"brand", "describe", "finite", "meta", "readonly", "safe"})
_UNSEEN: Final = frozenset({"check", "refine", "superRefine", "with"})
_WRAPPERS: Final = frozenset({"exactOptional", "nullable", "nullish", "optional"})


class Call(NamedTuple):
    """``z.name(arguments)``, or a name alone, with the methods called on it, innermost first."""

    name: str
    """The path behind ``z.``; "" for a reference."""
    arguments: tuple[Node, ...]
    methods: tuple[tuple[str, tuple[Node, ...], int], ...]
    """Name, arguments and line."""
    reference: Node | None = None


@dataclass(slots=True)
class Schema:
    """What was read from one expression."""

    type: TypeRef
    is_optional: bool = False
    checks: list[Attribute] = field(default_factory=list)
    """Checks, changes and other calls on the schema itself, as attributes."""
    eager: list[TypeRef] = field(default_factory=list)
    """Other schemas that are looked up as soon as the module is loaded."""

    def attributes(self) -> tuple[Attribute, ...]:
        """Return all that a member needs to know of it."""
        eager = [Attribute("eager", line=self.type.line, types=tuple(self.eager))]
        return (*self.checks, *(eager if self.eager else ()))


def base_call(node: Node) -> Call | None:
    """Return a chain of calls taken apart; ``None`` for any other expression."""
    methods: list[tuple[str, tuple[Node, ...], int]] = []
    while True:
        if node.type == "parenthesized_expression" and node.named_children:
            node = node.named_children[0]
        if node.type == "identifier":
            return Call("", (), tuple(reversed(methods)), node)
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is None or function.type != "member_expression":
            return None
        arguments = _arguments(node)
        path = _path(function)
        if path is not None:
            return Call(path, arguments, tuple(reversed(methods)))
        inner = function.child_by_field_name("object")
        name = function.child_by_field_name("property")
        if inner is None or name is None:
            return None
        methods.append((text_of(name), arguments, line_of(name)))
        node = inner


def _arguments(call: Node) -> tuple[Node, ...]:
    found = call.child_by_field_name("arguments")
    return tuple(each for each in found.named_children if each.type != "comment") if found else ()


def _path(function: Node) -> str | None:
    """Return ``iso.date`` for ``z.iso.date``."""
    parts: list[str] = []
    node = function
    while node.type == "member_expression":
        name, inner = node.child_by_field_name("property"), node.child_by_field_name("object")
        if name is None or inner is None:
            return None
        parts.append(text_of(name))
        node = inner
    is_zod = node.type == "identifier" and text_of(node) == "z"
    return ".".join(reversed(parts)) if is_zod else None


def read_schema(node: Node, *, is_lazy: bool = False) -> Schema:
    """Return what a schema holds.

    Args:
        node: the expression.
        is_lazy: whether it is looked at later than the module is loaded.
    """
    call = base_call(node)
    if call is None:
        return Schema(_opaque(node))
    if call.reference is not None:
        found = Schema(TypeRef(text_of(call.reference), line=line_of(node)))
        if not is_lazy:
            found.eager.append(found.type)
    else:
        found = _base(node, call, is_lazy=is_lazy)
    for name, arguments, line in call.methods:
        _apply(found, name, arguments, line, is_lazy=is_lazy)
    return found


def _opaque(node: Node) -> TypeRef:
    """Return a schema that is not taken apart, and holds no value of a document for certain."""
    text = " ".join(text_of(node).split()).removeprefix("z.")
    return TypeRef(
        text[:200] if "(" in text else f"({text[:200]})", (), qualifier="z", line=line_of(node)
    )


def _base(node: Node, call: Call, *, is_lazy: bool) -> Schema:
    name, arguments, line = call.name, call.arguments, line_of(node)
    inner = [_inside(each, is_lazy=is_lazy) for each in _operands(name, arguments)]
    eager = [each for schema in inner for each in schema.eager]
    head, _, rest = name.partition(".")
    if head == "coerce" and rest:
        found = Schema(TypeRef(rest, qualifier="z", line=line))
        found.checks.append(Attribute("coerce", line=line))
        return found
    if name == "lazy":
        body = returned(arguments[0]) if arguments else None
        return read_schema(body, is_lazy=True) if body is not None else Schema(_opaque(node))
    if name in {*_WRAPPERS, "readonly"} and arguments:
        found = read_schema(arguments[0], is_lazy=is_lazy)
        _apply(found, name, (), line, is_lazy=is_lazy)
        return found
    if name == "literal":
        value = constant(arguments[0]) if len(arguments) == 1 else NOTHING
        return Schema(_opaque(node) if value is NOTHING else literal_ref(value, line, "z"))
    if name in {"array", "record", "union", "discriminatedUnion"}:
        return _compound(node, name, arguments, inner, eager)
    if name == "iso.datetime" and arguments and _has_offset(arguments[0]):
        name = "iso.datetime:offset"
    if name in {"object", "strictObject", "looseObject", "enum", "tuple", "intersection"}:
        return Schema(_opaque(node))
    found = Schema(TypeRef(name, qualifier="z", line=line))
    if name in CHANGES:
        found.checks.append(Attribute(name, line=line))
    return found


def _operands(name: str, arguments: tuple[Node, ...]) -> Iterator[Node]:
    """Yield the schemas among the arguments of a function."""
    if name in {"array", "record"}:
        yield from arguments[:2]
    elif name in {"union", "discriminatedUnion"} and arguments:
        last = arguments[1] if name == "discriminatedUnion" and len(arguments) > 1 else arguments[0]
        if last.type == "array":
            yield from (each for each in last.named_children if each.type != "comment")


def _inside(node: Node, *, is_lazy: bool) -> Schema:
    """Return a schema inside another one: what is called on it is part of what it holds."""
    found = read_schema(node, is_lazy=is_lazy)
    shown_checks = [each for each in found.checks if each.name not in _HARMLESS]
    if shown_checks or (found.is_optional and found.type.name != "undefined"):
        shown = "".join(f".{each.name}(…)" for each in shown_checks) or ".optional()"
        name = f"{show_type(replace(found.type, nullable=False)).removeprefix('z.')}{shown}"
        found.type = replace(found.type, name=name, args=(), qualifier="z")
    return found


def _compound(
    node: Node,
    name: str,
    arguments: tuple[Node, ...],
    inner: list[Schema],
    eager: list[TypeRef],
) -> Schema:
    line = line_of(node)
    types = [each.type for each in inner]
    if name in {"array", "record"}:
        return Schema(TypeRef(name, tuple(types), qualifier="z", line=line), eager=eager)
    if not types:
        return Schema(_opaque(node))
    if name == "discriminatedUnion":
        tag = literal_ref(constant(arguments[0]), line) if arguments else TypeRef('""')
        return Schema(TypeRef(name, (tag, *types), qualifier="z", line=line), eager=eager)
    return _union(types, eager, line)


def _union(types: list[TypeRef], eager: list[TypeRef], line: int) -> Schema:
    """Return a union; null and undefined among its options are what it may be beside the others."""
    kept = [each for each in types if (each.qualifier, each.name) not in _ABSENT]
    nullable = any((each.qualifier, each.name) == ("z", "null") for each in types)
    nullable = nullable or any(each.nullable for each in kept)
    is_optional = any((each.qualifier, each.name) == ("z", "undefined") for each in types)
    if len(kept) == 1:
        return Schema(replace(kept[0], nullable=nullable), is_optional, eager=eager)
    options = tuple(replace(each, nullable=False) for each in kept)
    found = TypeRef("union", options, nullable, qualifier="z", line=line)
    return Schema(found, is_optional, eager=eager)


_ABSENT: Final = frozenset({("z", "null"), ("z", "undefined")})


def _has_offset(node: Node) -> bool:
    pairs = {text_of(each).replace(" ", "") for each in node.named_children}
    return "offset:true" in pairs and pairs <= {"offset:true", "local:true"}


def _apply(
    found: Schema, name: str, arguments: tuple[Node, ...], line: int, *, is_lazy: bool
) -> None:
    """Take account of a method that is called on a schema."""
    if name in _WRAPPERS:
        found.is_optional = found.is_optional or name != "nullable"
        if name in {"nullable", "nullish"}:
            found.type = replace(found.type, nullable=True)
    elif name == "array":
        inner = found.type if not found.checks else replace(found.type, name="(…)")
        found.type = TypeRef("array", (inner,), qualifier="z", line=line)
        found.checks = []
    elif name == "or" and arguments:
        other = read_schema(arguments[0], is_lazy=is_lazy)
        joined = _union([found.type, other.type], [*found.eager, *other.eager], line)
        found.type, found.eager = joined.type, joined.eager
        found.is_optional = found.is_optional or joined.is_optional
    elif name == "int" and found.type.name == "number":
        found.type = replace(found.type, name="int")
    elif name in CHECKS and (found.is_optional or found.type.nullable):
        found.checks.append(Attribute("misplaced", (name,), line))
    elif name in CHECKS | CHANGES | _UNSEEN:
        found.checks.append(Attribute(name, tuple(map(_argument, arguments[:1])), line))
    elif name not in _HARMLESS:
        shown = f"{show_type(found.type).removeprefix('z.')}.{name}()"
        found.type = replace(found.type, name=shown, args=(), qualifier="z")


def _argument(node: Node) -> str | int | bool | None:
    if node.type == "regex":
        return text_of(node)
    value = constant(node)
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str | int) else None


def returned(function: Node) -> Node | None:
    """Return the expression that a function gives back, if it does nothing else."""
    body = function.child_by_field_name("body")
    if body is None or body.type != "statement_block":
        return body
    inside = [each for each in body.named_children if each.type != "comment"]
    if len(inside) != 1 or inside[0].type != "return_statement":
        return None
    values = [each for each in inside[0].named_children if each.type != "comment"]
    return values[0] if values else None


def plain_array(node: Node) -> list[Node] | None:
    """Return the items of an array literal; ``None`` for anything else."""
    while node.type in {"as_expression", "satisfies_expression", "parenthesized_expression"}:
        node = node.named_children[0]
    if node.type != "array":
        return None
    return [each for each in node.named_children if each.type != "comment"]


def plain_object(node: Node) -> Node | None:
    """Return an object literal; ``None`` for anything else."""
    while node.type in {"as_expression", "satisfies_expression", "parenthesized_expression"}:
        node = node.named_children[0]
    return node if node.type == "object" else None
