"""TypeScript source to facts: what it declares, and where it is illegal. By syntax tree only."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_regen.languages.base import (
    Attribute,
    Declaration,
    Member,
    SourceFacts,
    SyntaxFault,
    TypeRef,
)
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, comment_faults, first_fault, text_of, walk
from pytest_regen.languages.typescript.names import literal, property_name
from pytest_regen.languages.typescript.schemas import base_call, plain, returned
from pytest_regen.languages.typescript.tree import (
    GRAMMAR,
    child_of,
    constant,
    inside,
    is_loose,
    line_of,
    options_of,
    parse,
)
from pytest_regen.languages.typescript.types import (
    is_optional,
    schema_type,
    spelled_type,
    without_undefined,
)

SCHEMA: Final = Attribute("schema")
"""On what is declared by a schema of zod."""
_INFERS: Final = word_set("z.infer z.output z.input z.TypeOf")
_OBJECTS: Final = word_set("object strictObject looseObject interface")
_ENUMS: Final = word_set("enum literal nativeEnum never union")
_JOINS: Final = word_set("and extend merge safeExtend")
_KEEPS: Final = _JOINS | word_set(
    "brand catchall describe loose meta or passthrough readonly strict strip"
)
"""Methods of a schema whose properties or values can be read all the same."""
_KINDS: Final = {
    "abstract_class_declaration": "class",
    "class_declaration": "class",
    "enum_declaration": "enum",
    "function_declaration": "function",
    "interface_declaration": "interface",
    "internal_module": "namespace",
    "module": "module",
}
_CONSTANTS: Final = word_set("lexical_declaration variable_declaration")
_WIDE: Final = re.compile(
    r"\b(?:any|unknown|ZodAny|ZodTypeAny|ZodUnknown)\b|\bZod(?:Object|Schema|Type)\b(?!<)"
)
"""Types of schemas that say nothing of what is inferred."""


@dataclass(slots=True)
class _Source:
    """What the declarations of one source may refer to."""

    exported: set[str] = field(default_factory=set)
    """Names that are exported in any way, those of types and constants alike."""
    imported: set[str] = field(default_factory=set)
    constants: dict[str, Node] = field(default_factory=dict)
    """Values of constants by name."""
    inferred: dict[str, Node] = field(default_factory=dict)
    """Schemas to the declarations of the types that are inferred from them."""


def fault_of(code: bytes) -> SyntaxFault | None:
    """Return the first place where a source is not legal; ``None`` where all of it is."""
    root = parse(code).root_node
    is_legal = not root.has_error and not any(map(is_loose, root.named_children))
    return None if is_legal else first_fault(GRAMMAR, code, is_loose)


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares; of illegal code only the first fault.

    Args:
        code: TypeScript source; a byte order mark and any line ends are allowed.
    """
    data = code.removeprefix("\ufeff").encode("utf-8", "replace")
    fault = fault_of(data)
    if fault is not None:
        return SourceFacts(faults=(fault,))
    root = parse(data).root_node
    source = _Source()
    statements = [*_statements(root, is_exported=False)]
    for node, is_exported in statements:
        _note(source, node, is_exported=is_exported)
    declarations = [entry for node, _ in statements for entry in _declared(source, node)]
    return SourceFacts(
        tuple(sorted(declarations, key=lambda entry: entry.name_line)),
        tuple(comment_faults(root, lambda text: text.startswith("/**"))),
        aliases=frozenset(source.imported),
    )


def _statements(parent: Node, *, is_exported: bool) -> Iterator[tuple[Node, bool]]:
    """Yield the statements at the top level, and whether each is exported by its name."""
    for node in parent.named_children:
        if node.type in {"ambient_declaration", "export_statement"} and node.named_child_count:
            is_named = node.type == "export_statement" and child_of(node, "default") is None
            yield from _statements(node, is_exported=is_exported or is_named)
        else:
            yield node, is_exported


def _note(source: _Source, node: Node, *, is_exported: bool) -> None:
    """Note what other declarations may refer to."""
    match node.type:
        case "export_clause":
            source.exported.update(text_of(inside(each)[-1]) for each in inside(node))
        case "import_statement":
            names = (each for each in walk(node) if each.type == "identifier")
            source.imported.update(map(text_of, names))
        case _:
            schema = _inferred_from(node)
            if schema is not None:
                source.inferred[schema] = node
            for each in inside(node) if node.type in _CONSTANTS else [node]:
                name, value = each.child_by_field_name("name"), each.child_by_field_name("value")
                if name is not None and is_exported:
                    # A constant and a type of one name are told apart: each is exported itself.
                    source.exported.add(f"{node.type} {text_of(name)}")
                if name is not None and value is not None and node.type in _CONSTANTS:
                    source.constants[text_of(name)] = value


def _inferred_from(node: Node) -> str | None:
    """Return the schema of ``type T = z.infer<typeof T>`` or ``interface T extends … {}``."""
    value = node.child_by_field_name("value")
    if node.type == "interface_declaration":
        body, clause = node.child_by_field_name("body"), child_of(node, "extends_type_clause")
        value = inside(clause)[0] if clause is not None and body and not inside(body) else None
    if value is None or value.type != "generic_type":
        return None
    name, arguments = inside(value)[:2]
    query = inside(arguments)[0]
    is_inferred = "".join(text_of(name).split()) in _INFERS and query.type == "type_query"
    return text_of(inside(query)[0]) if is_inferred else None


def _declared(source: _Source, node: Node) -> Iterator[Declaration]:
    """Yield what a statement declares."""
    if node.type in _CONSTANTS:
        for each in inside(node):
            yield from _constant(source, node, each)
        return
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    kind = _KINDS.get(node.type, "")
    members: list[Member] = []
    if node.type == "type_alias_declaration":
        kind, members = _alias(source, node)
    elif body is not None and kind in {"enum", "interface"}:
        members = [*(_enum_members if kind == "enum" else _properties)(body)]
    # A type that is inferred is told of with its schema.
    if kind and name is not None and _inferred_from(node) not in source.constants:
        yield _declaration(source, node, name, kind, members)


def _declaration(
    source: _Source, node: Node, name: Node, kind: str, members: list[Member]
) -> Declaration:
    clause = child_of(node, "extends_type_clause")
    if child_of(node, "type_parameters") is not None:
        kind += " with type parameters"  # Nothing in JSON says what they are.
    is_exported = _is_exported(source, node, name)
    message = f"{text_of(name)!r} is not exported; write export before it"
    return Declaration(
        name=text_of(name),
        kind=kind,
        line=_first_line(node),
        end_line=node.end_point.row + 1,
        members=tuple(members),
        bases=tuple(map(spelled_type, inside(clause))) if clause is not None else (),
        name_line=line_of(name),
        faults=() if is_exported else (SyntaxFault(line_of(name), message, "MISSING_CLASS"),),
    )


def _is_exported(source: _Source, node: Node, name: Node) -> bool:
    return bool({text_of(name), f"{node.type} {text_of(name)}"} & source.exported)


def _first_line(node: Node) -> int:
    """Return the first line of a declaration with the comment right above it."""
    while node.parent is not None and node.parent.parent is not None:
        node = node.parent
    before = node.prev_sibling
    if before is None or before.type != "comment":
        return line_of(node)
    return line_of(before if before.end_point.row + 1 == node.start_point.row else node)


# --- types ---------------------------------------------------------------------------------------


def _properties(body: Node) -> Iterator[Member]:
    """Yield the properties of an interface or an object type; JSON has no methods."""
    for node in inside(body):
        if node.type == "property_signature":
            annotation, name = child_of(node, "type_annotation"), node.child_by_field_name("name")
            # What has no type is any.
            type_ = spelled_type(inside(annotation)[-1]) if annotation else TypeRef("any")
            is_required = child_of(node, "?") is None
            type_ = type_ if is_required else without_undefined(type_)
            yield _member(node, name or node, type_, "property", is_required=is_required)
        elif node.type == "index_signature" and len(inside(body)) > 1:
            # Alone it makes a map. Beside properties it takes any other one, misspelt ones too.
            member = _member(node, node, TypeRef("any"), "property", is_required=True)
            yield replace(member, name=text_of(node))


def _member(node: Node, name: Node, type_: TypeRef, kind: str, *, is_required: bool) -> Member:
    key = inside(name)[0] if name.type == "computed_property_name" else name
    value = constant(key)
    wire = str(value) if _is_value(value) else " ".join(text_of(name).split())
    return Member(
        name=property_name(wire),
        kind=kind,
        line=line_of(name),
        end_line=node.end_point.row + 1,
        wire_name=wire,
        type=type_,
        is_required=is_required,
    )


def _alias(source: _Source, node: Node) -> tuple[str, list[Member]]:
    """Return what ``type T = …`` declares: kind and members."""
    value = node.child_by_field_name("value")
    if value is None or text_of(value) == "never":
        return "enum", []
    objects = [
        each for each in options_of(value, "intersection_type") if each.type == "object_type"
    ]
    if objects:
        return "object type", [member for each in objects for member in _properties(each)]
    values: list[Member] = []
    for each in options_of(value):
        if each.type == "lookup_type":  # (typeof VALUES)[number]
            values += _literals(inside(each)[0], source.constants)
        else:
            values.append(_value(constant(each), each))
    is_enum = any(each.wire_name is not None for each in values)
    return ("enum", values) if is_enum else ("type alias", [])


def _is_value(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _value(value: object, node: Node) -> Member:
    """Return a member of an enum; one that is no literal has no value, but its text as its name."""
    wire = value if isinstance(value, str | int) and not isinstance(value, bool) else None
    return Member(
        name=text_of(node)[:100] if wire is None else literal(wire),
        kind="literal",
        line=line_of(node),
        end_line=node.end_point.row + 1,
        wire_name=wire,
        number=wire if isinstance(wire, int) else None,
    )


def _literals(node: Node, constants: Mapping[str, Node]) -> Iterator[Member]:
    """Yield the literals in an array, an object or a schema, keys aside; those of constants too."""
    value = constant(node)
    name = text_of(node)
    if _is_value(value):
        yield _value(value, node)
    elif node.type == "identifier" and name in constants:
        others = {key: each for key, each in constants.items() if key != name}
        yield from _literals(constants[name], others)
    else:
        key = node.child_by_field_name("key")
        for each in inside(node):
            if each != key:
                yield from _literals(each, constants)


def _enum_members(body: Node) -> Iterator[Member]:
    """Yield the members of an enum; one without a value counts on from the one before."""
    following: object = 0
    for node in inside(body):
        written = node.child_by_field_name("value")
        value = following if written is None else constant(written)
        yield _value(value, node)
        following = value + 1 if isinstance(value, int) else None


# --- schemas -------------------------------------------------------------------------------------


def _constant(source: _Source, node: Node, declarator: Node) -> Iterator[Declaration]:
    """Yield a constant that is a schema, or of no use; of arrays and objects types are taken."""
    name, value = (declarator.child_by_field_name(each) for each in ("name", "value"))
    if name is None or value is None or plain(value).type in {"array", "object"}:
        return
    call = base_call(value)
    members = _shape(value, source.constants)
    kind = "constant" if members is None else "schema"
    changed = next((each for each, _ in call.methods if each not in _KEEPS), None) if call else None
    if changed is not None:
        kind = f"schema that .{changed}() changes"
    elif call is not None and call.name in _ENUMS:
        first = [*call.arguments[:1], *(each for _, given in call.methods for each in given)]
        members = [value for each in first for value in _literals(each, source.constants)]
        kind = "enum" if members or call.name == "never" else kind
    entry = _declaration(source, node, name, kind, members or [])
    if kind != "constant":
        faults = (*entry.faults, *_typing_faults(source, declarator, name))
        entry = replace(entry, faults=faults, attributes=(SCHEMA,))
    yield entry


def _shape(node: Node, constants: Mapping[str, Node]) -> list[Member] | None:
    """Return the properties of an object schema; ``None`` for any other expression."""
    if plain(node).type == "object":
        return [*_entries(plain(node))]
    call = base_call(node)
    if call is None:
        return None
    first = next(iter(call.arguments), None)
    if call.reference is not None:
        name = text_of(call.reference)
        first = constants.get(name)
        constants = {key: each for key, each in constants.items() if key != name}
    elif call.name == "lazy" and first is not None:
        first = returned(first)
    elif call.name not in _OBJECTS:
        return None
    members = None if first is None else _shape(first, constants)
    for method, arguments in call.methods:
        if method in _JOINS and arguments:
            more = _shape(arguments[0], constants)
            if members is None or more is None:
                return None
            names = {each.wire_name for each in more}
            members = [*(each for each in members if each.wire_name not in names), *more]
    return members


def _typing_faults(source: _Source, declarator: Node, name: Node) -> Iterator[SyntaxFault]:
    """Yield what is wrong with the type of a schema: it is missing, not exported, or anything."""
    line, called = line_of(name), text_of(name)
    annotation = child_of(declarator, "type_annotation")
    inferred = source.inferred.get(called)
    of_type = inferred.child_by_field_name("name") if inferred is not None else None
    if annotation is not None and _is_wide(annotation):
        shown = text_of(annotation).removeprefix(":").strip()
        message = f"{called!r} is annotated as {shown}, which hides what its type is"
        yield SyntaxFault(line, f"{message}; write export const {called} = z.…", "MISSING_CLASS")
    # A schema with a suffix is named wrongly, which is reported already; its type need not be.
    if inferred is None or of_type is None or not called.startswith(text_of(of_type)):
        message = f"{called!r} has no type; write export type {called} = z.infer<typeof {called}>;"
        yield SyntaxFault(line, message, "MISSING_CLASS")
    elif not _is_exported(source, inferred, of_type):
        message = f"the type {called!r} is not exported; write export before it"
        yield SyntaxFault(line_of(of_type), message, "MISSING_CLASS")


def _is_wide(annotation: Node) -> bool:
    """Return whether an annotation says less than the schema; one with a shape says as much."""
    text = text_of(annotation)
    return "{" not in text and bool(_WIDE.search(text))


def _entries(shape: Node) -> Iterator[Member]:
    """Yield the properties of an object schema; a method that is no getter is none."""
    for node in inside(shape):
        name = node.child_by_field_name("key") or node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if node.type == "method_definition" and child_of(node, "get") is not None:
            value = returned(node)
        elif node.type == "shorthand_property_identifier":
            name = value = node
        if name is None or value is None:
            continue
        type_ = schema_type(value)
        annotation = node.child_by_field_name("return_type")
        if annotation is not None and _is_wide(annotation) and type_.name != "unknown":
            type_ = TypeRef(text_of(annotation).removeprefix(":").strip())
        is_required = not is_optional(type_)
        yield _member(node, name, without_undefined(type_), "key", is_required=is_required)
