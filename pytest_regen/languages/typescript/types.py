"""Types as the source spells them, taken apart, and which hold the values of a document."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from pytest_regen.documents.ir import ArrayOf, MapOf, Ref, Scalar, TypeExpr, UnionOf
from pytest_regen.languages.base import TypeRef
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.languages.typescript.names import KNOWN_TYPES, literal
from pytest_regen.languages.typescript.tree import NOTHING, child_of, constant, line_of, options_of

_ARRAYS: Final = frozenset({"Array", "ReadonlyArray", "[]", "readonly []"})
_SIGNS: Final = frozenset({"|", "&", "[]", "readonly []", "{[]}", "[,]", "{}"})
_SCALARS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"string"}),
    "integer": frozenset({"number"}),
    "number": frozenset({"number"}),
    "boolean": frozenset({"boolean"}),
    "any": frozenset({"any", "unknown"}),
}
_SCHEMAS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"string"}),
    "integer": frozenset({"int"}),
    "number": frozenset({"float64", "number"}),
    "boolean": frozenset({"boolean"}),
    "any": frozenset({"any", "json", "unknown"}),
}
_FORMATS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "string": {
        "date": frozenset({"iso.date"}),
        "date-time": frozenset({"iso.datetime:offset"}),
        "uuid": frozenset({"guid"}),
    },
    "integer": {"int32": frozenset({"int32"}), "uint32": frozenset({"uint32"})},
    "number": {"float": frozenset({"float32"})},
}
"""What zod checks beyond the type, and refuses nothing by it that documents of a format allow."""


class SpelledType(NamedTuple):
    """A type, and whether ``undefined`` was among its options."""

    type: TypeRef
    has_undefined: bool = False


def spelled_type(node: Node) -> SpelledType:
    """Return a type of the source; ``node`` is what stands behind the colon."""
    found = [_ref(child) for each in options_of(node) for child in _flat(each)]
    kept = [each for each in found if each.name not in {"null", "undefined"}]
    nullable = any(each.name == "null" for each in found) or any(each.nullable for each in kept)
    has_undefined = any(each.name == "undefined" for each in found)
    line = line_of(node)
    if not kept:
        only = found[0] if found else TypeRef("never", line=line)
        return SpelledType(replace(only, line=line), has_undefined and only.name != "undefined")
    if len(kept) == 1:
        only = replace(kept[0], nullable=nullable, line=line)
        return SpelledType(only, has_undefined)
    options = tuple(replace(each, nullable=False) for each in kept)
    return SpelledType(TypeRef("|", options, nullable, line=line), has_undefined)


def _is_group(node: Node) -> bool:
    return node.type == "parenthesized_type"


def _flat(node: Node) -> list[Node]:
    """Return the options of a type in parentheses, which may be a union itself."""
    waiting, found = [node], []
    while waiting:
        each = waiting.pop(0)
        inner = [child for child in each.named_children if child.type != "comment"]
        if _is_group(each) and len(inner) == 1:
            waiting = [*options_of(inner[0]), *waiting]
        else:
            found.append(each)
    return found


def literal_ref(value: object, line: int, qualifier: str = "") -> TypeRef:
    """Return the type of one value."""
    return TypeRef(literal(value), line=line, qualifier=qualifier)


def is_literal(reference: TypeRef) -> bool:
    """Return whether a type is that of one value."""
    name = reference.name
    return name[:1] in {'"', "-"} or name[:1].isdigit() or name in {"true", "false"}


def _ref(node: Node) -> TypeRef:
    line = line_of(node)
    match node.type:
        case "predefined_type" | "type_identifier":
            return TypeRef(text_of(node), line=line)
        case "literal_type" | "template_literal_type":
            inner = node.named_children[0] if node.named_children else node
            if inner.type in {"null", "undefined"}:
                return TypeRef(inner.type, line=line)
            value = constant(node)
            return _opaque(node) if value is NOTHING else literal_ref(value, line)
        case "array_type":
            return TypeRef("[]", (spelled_type(node.named_children[0]).type,), line=line)
        case "readonly_type":
            plain = _ref(node.named_children[0])
            return replace(plain, name="readonly []") if plain.name == "[]" else _opaque(node)
        case "parenthesized_type":
            return spelled_type(node.named_children[0]).type
        case "generic_type":
            return _generic(node)
        case "nested_type_identifier":
            qualifier, _, name = text_of(node).rpartition(".")
            return TypeRef(name.strip(), qualifier=qualifier.strip(), line=line)
        case "object_type":
            return _object(node)
    return _opaque(node)


def _opaque(node: Node) -> TypeRef:
    """Return a type that is not taken apart, and holds no value of a document for certain."""
    text = " ".join(text_of(node).split())
    return TypeRef("{}" if text.isidentifier() else text[:200], line=line_of(node))


def _generic(node: Node) -> TypeRef:
    name = node.child_by_field_name("name") or node.named_children[0]
    arguments = child_of(node, "type_arguments")
    inner = [
        spelled_type(each).type
        for each in (arguments.named_children if arguments else ())
        if each.type != "comment"
    ]
    return replace(_ref(name), args=tuple(inner))


def _object(node: Node) -> TypeRef:
    """Return ``{ [key: string]: T }`` as a map, any other object type as what it is."""
    inner = [child for child in node.named_children if child.type != "comment"]
    if len(inner) == 1 and inner[0].type == "index_signature":
        parts = inner[0].named_children
        value = inner[0].child_by_field_name("type") or parts[-1]
        types = [part for part in parts if part.type == "predefined_type"]
        if types and value.type == "type_annotation" and child_of(inner[0], "[") is not None:
            key = spelled_type(types[0]).type
            held = spelled_type(value.named_children[0]).type
            return TypeRef("{[]}", (key, held), line=line_of(node))
    return TypeRef("{}", line=line_of(node))


def is_known(reference: TypeRef) -> bool:
    """Return whether a type of that name exists without being declared in the source."""
    name = reference.name
    if reference.qualifier:
        return reference.qualifier == "z"
    return name in KNOWN_TYPES or name in _SIGNS or not name.replace("$", "_").isidentifier()


def show_type(reference: TypeRef) -> str:
    """Return a type, or a schema, as the source spells it."""
    if reference.qualifier == "z" and reference.name not in {"infer", "input", "output"}:
        return _show_schema(reference)
    plain = replace(reference, nullable=False)
    if reference.nullable:
        is_any = reference.name in {"any", "unknown"}
        return show_type(plain) if is_any else f"{show_type(plain)} | null"
    args = [show_type(each) for each in reference.args]
    match reference.name:
        case "|":
            return " | ".join(args)
        case "[]" | "readonly []":
            inner = f"({args[0]})" if " | " in args[0] and args[0][0] != "(" else args[0]
            return f"{'readonly ' if reference.name != '[]' else ''}{inner}[]"
        case "{[]}":
            return f"{{ [key: {args[0]}]: {args[1]} }}"
        case "{}":
            return "{ … }"
    name = f"{reference.qualifier}.{reference.name}" if reference.qualifier else reference.name
    return f"{name}<{', '.join(args)}>" if args else name


def _show_schema(reference: TypeRef) -> str:
    name, args = reference.name, [show_type(each) for each in reference.args]
    if is_literal(reference):
        shown = f"z.literal({name})"
    elif name == "union":
        shown = f"z.union([{', '.join(args)}])"
    elif name == "discriminatedUnion":
        shown = f"z.discriminatedUnion({reference.args[0].name}, [{', '.join(args[1:])}])"
    elif name == "iso.datetime:offset":
        shown = "z.iso.datetime({ offset: true })"
    else:
        shown = f"z.{name}" if "(" in name else f"z.{name}({', '.join(args)})"
    return f"{shown}.nullable()" if reference.nullable else shown


# --- what holds which values ---------------------------------------------------------------------


def accepts(expression: TypeExpr, spelled: TypeRef) -> bool:
    """Return whether ``spelled`` holds the values of ``expression``, null aside, and no others.

    A literal is taken for the type of its value: which one it must be, the rules know.
    """
    is_schema = spelled.qualifier == "z"
    match expression:
        case Ref(name=name):
            return spelled.name == name and not spelled.args and not spelled.qualifier
        case ArrayOf(items=items):
            is_array = spelled.name == "array" if is_schema else spelled.name in _ARRAYS
            return is_array and len(spelled.args) == 1 and accepts(items, spelled.args[0])
        case MapOf(values=values):
            return _is_map(spelled) and accepts(values, spelled.args[1])
        case UnionOf():
            return _is_union(expression, spelled)
        case Scalar():
            return _holds_scalar(expression, spelled)


def _is_map(spelled: TypeRef) -> bool:
    if len(spelled.args) != 2 or spelled.args[0].nullable:  # key and value
        return False
    key = spelled.args[0]
    if spelled.qualifier == "z":
        return spelled.name == "record" and (key.name, key.qualifier) == ("string", "z")
    return spelled.name in {"Record", "{[]}"} and key.name == "string"


def _is_union(expression: UnionOf, spelled: TypeRef) -> bool:
    if any(isinstance(each, Scalar) and each.kind == "any" for each in expression.options):
        return accepts(Scalar(kind="any"), spelled)
    options = list(spelled.args)
    if spelled.name == "discriminatedUnion" and spelled.qualifier == "z":
        if expression.discriminator is None:
            return False
        if not options or options.pop(0).name != literal(expression.discriminator):
            return False
    elif (spelled.name, spelled.qualifier) not in {("|", ""), ("union", "z")}:
        return False
    return all(any(accepts(each, one) for one in options) for each in expression.options) and all(
        any(accepts(each, one) for each in expression.options) for one in options
    )


def _holds_scalar(scalar: Scalar, spelled: TypeRef) -> bool:
    if spelled.args:
        return False
    name, is_schema = spelled.name, spelled.qualifier == "z"
    if name in (_SCHEMAS if is_schema else _SCALARS)[scalar.kind]:
        return is_schema or not spelled.qualifier
    if is_schema:
        return name in _FORMATS.get(scalar.kind, {}).get(
            scalar.format_family, frozenset()
        ) or _is_literal(scalar, name)
    return not spelled.qualifier and _is_literal(scalar, name)


def _is_literal(scalar: Scalar, name: str) -> bool:
    match scalar.kind:
        case "string":
            return name[:1] == '"'
        case "integer" | "number":
            return name[:1].isdigit() or name[:1] == "-"
        case "boolean":
            return name in {"true", "false"}
    return False
