"""Declarations and their members from the syntax tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_regen.languages.base import Attribute, Declaration, Member, SyntaxFault, TypeRef
from pytest_regen.languages.trees import Node, text_of
from pytest_regen.languages.typescript.names import literal, property_name
from pytest_regen.languages.typescript.schemas import (
    Call,
    Schema,
    base_call,
    plain_array,
    plain_object,
    read_schema,
    returned,
)
from pytest_regen.languages.typescript.tree import (
    NOTHING,
    child_of,
    constant,
    is_loose,
    line_of,
    options_of,
)
from pytest_regen.languages.typescript.types import spelled_type

SCHEMA: Final = Attribute("schema")
"""On what is declared by a schema of zod."""
_WRAPPED: Final = frozenset({"ambient_declaration", "export_statement", "ERROR"})
_INFERS: Final = frozenset({"z.infer", "z.output", "z.input", "z.TypeOf"})
_OBJECTS: Final = frozenset({"object", "strictObject", "looseObject", "interface"})
_ENUMS: Final = frozenset({"enum", "literal", "nativeEnum"})
_KEEPS_SHAPE: Final = frozenset(
    {"brand", "catchall", "describe", "loose", "meta", "passthrough", "readonly", "strict", "strip"}
)
_OPEN: Final = "is {} beside its literals, so that any such value passes; take it away"


@dataclass(slots=True)
class Reading:
    """What has been collected while a tree is read."""

    declarations: list[Declaration] = field(default_factory=list)
    strays: list[Node] = field(default_factory=list)
    """Top-level nodes that are no declaration."""
    aliases: set[str] = field(default_factory=set)
    """Names that are imported."""


@dataclass(slots=True)
class _Source:
    """One source while it is read."""

    reading: Reading
    exported: set[str] = field(default_factory=set)
    """Names in ``export { ... }``."""
    exported_types: set[str] = field(default_factory=set)
    """Names in ``export type { ... }``."""
    constants: dict[str, Node] = field(default_factory=dict)
    """Values of constants by name."""
    inferred: dict[str, Node] = field(default_factory=dict)
    """Schemas to the types that are inferred from them."""


def declarations(root: Node) -> Reading:
    """Return what a source declares."""
    source = _Source(Reading())
    nodes = list(_top_level(root, is_exported=False))
    for node, _ in nodes:
        _collect(source, node)
    for node, is_exported in nodes:
        _declare(source, node, is_exported=is_exported)
    source.reading.declarations.sort(key=lambda entry: entry.name_line)
    return source.reading


def _top_level(parent: Node, *, is_exported: bool) -> Iterator[tuple[Node, bool]]:
    """Yield the nodes at the top level, and whether each is exported."""
    for node in parent.named_children:
        if node.type in _WRAPPED and node.named_child_count:
            is_named = node.type == "export_statement" and child_of(node, "default") is None
            yield from _top_level(node, is_exported=is_exported or is_named)
        else:
            yield node, is_exported


def _collect(source: _Source, node: Node) -> None:
    """Note what other declarations may refer to."""
    match node.type:
        case "export_clause":
            for each in node.named_children:
                name = each.child_by_field_name("alias") or each.child_by_field_name("name")
                if name is not None:
                    source.exported.add(text_of(name))
                    if _is_type_export(node, each):
                        source.exported_types.add(text_of(name))
        case "import_statement":
            source.reading.aliases.update(_imported(node))
        case "lexical_declaration" | "variable_declaration":
            for name, value in _constants(node):
                source.constants[text_of(name)] = value
        case "type_alias_declaration":
            inferred = node.child_by_field_name("value")
            schema = None if inferred is None else _inferred_from(inferred)
            if schema is not None:
                source.inferred.setdefault(schema, node)


def _is_type_export(clause: Node, specifier: Node) -> bool:
    """Return whether a name is exported as a type, which alone takes interfaces for certain."""
    statement = clause.parent
    words = (*(statement.children if statement is not None else ()), *specifier.children)
    return any(each.type == "type" for each in words)


def _imported(node: Node) -> Iterator[str]:
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.type == "import_specifier":
            name = found.child_by_field_name("alias") or found.child_by_field_name("name")
            if name is not None:
                yield text_of(name)
        elif found.type == "identifier":
            yield text_of(found)
        else:
            waiting += found.named_children


def _constants(node: Node) -> Iterator[tuple[Node, Node]]:
    for each in node.named_children:
        name, value = each.child_by_field_name("name"), each.child_by_field_name("value")
        if each.type == "variable_declarator" and name is not None and value is not None:
            yield name, value


def _inferred_from(value: Node) -> str | None:
    """Return the schema of which ``z.infer<typeof Schema>`` is the type."""
    if value.type != "generic_type" or "".join(text_of(value.named_children[0]).split()) not in (
        _INFERS
    ):
        return None
    query = _find(value, "type_query")
    return text_of(query.named_children[0]) if query and query.named_children else None


def _find(node: Node, kind: str) -> Node | None:
    waiting = [node]
    while waiting:
        found = waiting.pop(0)
        if found.type == kind:
            return found
        waiting += found.named_children
    return None


def _declare(source: _Source, node: Node, *, is_exported: bool) -> None:
    match node.type:
        case "interface_declaration":
            body = node.child_by_field_name("body") or child_of(node, "interface_body")
            _add(source, node, "interface", _properties(body), is_exported=is_exported)
        case "type_alias_declaration":
            _alias(source, node, is_exported=is_exported)
        case "enum_declaration":
            _add(source, node, "enum", tuple(_enum_members(node)), is_exported=is_exported)
        case "class_declaration" | "abstract_class_declaration":
            _add(source, node, "class", (), is_exported=is_exported)
        case "lexical_declaration" | "variable_declaration":
            for name, value in _constants(node):
                _constant(source, node, name, value, is_exported=is_exported)
        case "function_declaration" | "internal_module" | "module" | "import_alias":
            source.reading.strays.append(node)
        case _ if is_loose(node) and node.parent is not None and _is_at_top(node):
            source.reading.strays.append(node)


def _is_at_top(node: Node) -> bool:
    """Return whether a statement is no part of an export or of what could not be read."""
    return node.parent is not None and node.parent.type == "program"


def _add(
    source: _Source,
    node: Node,
    kind: str,
    members: Sequence[Member],
    *,
    is_exported: bool,
    name: Node | None = None,
    attributes: tuple[Attribute, ...] = (),
    faults: tuple[SyntaxFault, ...] = (),
) -> None:
    """Note a declaration."""
    named = name or node.child_by_field_name("name")
    if named is None:
        return
    called = text_of(named)
    line = line_of(named)
    is_type = node.type in {"interface_declaration", "type_alias_declaration"}
    listed = source.exported_types if is_type else source.exported
    if not is_exported and called not in listed and not named.is_missing:
        message = f"{called!r} is not exported; write export before it"
        faults = (*faults, SyntaxFault(line, message, "MISSING_CLASS"))
    parameters = node.child_by_field_name("type_parameters")
    if parameters is not None and kind in {"interface", "object type"}:
        message = f"{called!r} has type parameters, and nothing says what they are; take them away"
        faults = (*faults, SyntaxFault(line, message, "MISSING_CLASS"))
    source.reading.declarations.append(
        Declaration(
            name=called,
            kind=kind,
            line=_first_line(node),
            end_line=node.end_point.row + 1,
            members=tuple(members),
            attributes=attributes,
            type_parameters=_parameters(parameters),
            bases=tuple(_bases(node)),
            name_line=line,
            faults=faults,
        )
    )


def _first_line(node: Node) -> int:
    """Return the first line of a declaration with the comment right above it."""
    outer = node
    while outer.parent is not None and outer.parent.type in {
        "export_statement",
        "ambient_declaration",
    }:
        outer = outer.parent
    before = outer.prev_sibling
    if before is None or before.type != "comment":
        return line_of(outer)
    is_above = before.end_point.row + 1 == outer.start_point.row
    return line_of(before if is_above else outer)


def _parameters(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    names = (each.child_by_field_name("name") for each in node.named_children)
    return tuple(text_of(name) for name in names if name is not None)


def _bases(node: Node) -> Iterator[TypeRef]:
    clause = child_of(node, "extends_type_clause")
    for each in clause.named_children if clause is not None else ():
        if each.type != "comment":
            yield spelled_type(each).type


# --- interfaces and other types ------------------------------------------------------------------


def _properties(body: Node | None) -> tuple[Member, ...]:
    if body is None:
        return ()
    return tuple(filter(None, (_property(each) for each in body.named_children)))


def _property(node: Node) -> Member | None:
    name = node.child_by_field_name("name")
    wire = None if name is None else _wire_name(name)
    if wire is None or node.type not in {"property_signature", "method_signature"}:
        return None
    plain = _named(wire, "property", name or node, node)
    plain = replace(plain, is_required=child_of(node, "?") is None)
    if node.type == "method_signature":
        return replace(plain, unread="is a method, which no JSON has; write a property")
    modifier = child_of(node, "accessibility_modifier") or child_of(node, "override_modifier")
    if modifier is not None:
        message = f"{text_of(modifier)!r} is no modifier of a property here: take it away"
        plain = replace(plain, faults=(SyntaxFault(plain.line, message),))
    annotation = child_of(node, "type_annotation")
    if annotation is None or not annotation.named_children:
        return replace(plain, faults=(SyntaxFault(plain.line, f"{plain.name!r} has no type"),))
    found = spelled_type(annotation.named_children[-1])
    attributes = (Attribute("undefined", line=plain.line),) if found.has_undefined else ()
    return replace(plain, type=found.type, attributes=attributes)


def _named(wire: str, kind: str, name: Node, node: Node) -> Member:
    """Return a member of which only the name is known."""
    return Member(
        name=property_name(wire),
        kind=kind,
        line=line_of(name),
        end_line=node.end_point.row + 1,
        wire_name=wire,
    )


def _wire_name(name: Node) -> str | None:
    """Return the name that a property has on the wire."""
    match name.type:
        case "property_identifier" | "shorthand_property_identifier":
            return text_of(name)
        case "computed_property_name":
            value = constant(name.named_children[0]) if name.named_children else NOTHING
        case _:
            value = constant(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def _alias(source: _Source, node: Node, *, is_exported: bool) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None:
        return
    called = text_of(name)
    if _inferred_from(value) in source.constants:
        return  # It is reported with its schema.
    if value.type == "object_type":
        _add(source, node, "object type", _properties(value), is_exported=is_exported)
        return
    parts = [each for each in options_of(value, "intersection_type") if each.type == "object_type"]
    if value.type == "intersection_type" and parts:
        members = [member for part in parts for member in _properties(part)]
        _add(source, node, "object type", members, is_exported=is_exported)
        return
    looked_up = _looked_up(source, value)
    if looked_up is not None:
        _add(source, node, "enum", looked_up, is_exported=is_exported)
        return
    members, open_ends = _literals(value)
    if members or text_of(value) == "never":
        faults = tuple(
            SyntaxFault(
                line_of(each), f"{called!r} {_OPEN.format(text_of(each)[:60])}", "ENUM_MEMBER"
            )
            for each in open_ends
        )
        _add(source, node, "enum", members, is_exported=is_exported, faults=faults)
        return
    _add(source, node, "type alias", (), is_exported=is_exported)


def _literals(value: Node) -> tuple[list[Member], list[Node]]:
    """Return the literals of a union, and what else it holds."""
    members: list[Member] = []
    others: list[Node] = []
    for each in options_of(value):
        inner = each
        while inner.type == "parenthesized_type" and inner.named_children:
            inner = inner.named_children[0]
        found = constant(inner)
        if isinstance(found, bool) or not isinstance(found, str | int):
            others.append(each)
        else:
            members.append(_value(found, each))
    return members, others


def _value(value: str | int, node: Node, name: str = "") -> Member:
    """Return a literal as a member of an enum."""
    return Member(
        name=name or literal(value),
        kind="literal",
        line=line_of(node),
        end_line=node.end_point.row + 1,
        wire_name=value,
        number=value if isinstance(value, int) else None,
    )


def _looked_up(source: _Source, value: Node) -> list[Member] | None:
    """Return the values of a constant that a type is taken from, as ``(typeof C)[number]`` is."""
    if value.type not in {"lookup_type", "index_type_query"}:
        return None
    query = _find(value, "type_query")
    if query is None:
        return None
    found = source.constants.get(text_of(query.named_children[0]) if query.named_children else "")
    if found is None:
        return None
    is_keys = value.type == "index_type_query"
    return _values_of(found, keys=is_keys)


def _values_of(node: Node, *, keys: bool = False) -> list[Member] | None:
    """Return the values of an array or an object as members of an enum."""
    items = plain_array(node)
    if items is not None:
        values = [(constant(each), each, "") for each in items]
    else:
        inner = plain_object(node)
        if inner is None:
            return None
        values = []
        for pair in inner.named_children:
            key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
            if pair.type == "pair" and key is not None and value is not None:
                named = _wire_name(key) or ""
                values.append((named, pair, "") if keys else (constant(value), pair, named))
    if any(isinstance(value, bool) or not isinstance(value, str | int) for value, _, _ in values):
        return None
    return [_value(value, each, name) for value, each, name in values]  # type: ignore[arg-type]


def _enum_members(node: Node) -> Iterator[Member]:
    """Yield the members of an enum; one without a value counts on from the one before."""
    body = node.child_by_field_name("body") or child_of(node, "enum_body")
    following: int | None = 0
    for each in body.named_children if body is not None else ():
        name, value = (each, None)
        if each.type == "enum_assignment":
            name = each.child_by_field_name("name") or each.named_children[0]
            value = each.child_by_field_name("value")
        called = _wire_name(name) if each.type != "comment" else None
        if called is None:
            continue
        found = following if value is None else constant(value)
        wire = None if isinstance(found, bool) or not isinstance(found, str | int) else found
        following = found + 1 if isinstance(found, int) else None
        member = _value(wire, each, called) if wire is not None else None
        yield member or Member(
            name=called,
            kind="literal",
            line=line_of(each),
            end_line=each.end_point.row + 1,
            wire_name=None,
        )


# --- schemas -------------------------------------------------------------------------------------


def _constant(source: _Source, node: Node, name: Node, value: Node, *, is_exported: bool) -> None:
    """Note a constant that is a schema; what types are taken from is no declaration of its own."""
    called = text_of(name)
    call = base_call(value)
    if call is None or call.reference is not None:
        # Of an array or an object, a type may be taken.
        if plain_array(value) is None and plain_object(value) is None:
            source.reading.strays.append(node)
        return
    if call.name == "lazy" and call.arguments:
        body = returned(call.arguments[0])
        call = base_call(body) if body is not None else None
    found = _schema_members(source, call) if call is not None else None
    kind, members, faults = found or ("constant", (), ())
    if kind != "constant":
        faults = (*faults, *_type_faults(source, called, line_of(name)))
    _add(
        source,
        node,
        kind,
        members,
        is_exported=is_exported,
        name=name,
        attributes=(SCHEMA,) if kind != "constant" else (),
        faults=tuple(faults),
    )


def _type_faults(source: _Source, name: str, line: int) -> Iterator[SyntaxFault]:
    """Yield what is wrong with the type of a schema: it is missing, or not exported."""
    inferred = source.inferred.get(name)
    called = inferred.child_by_field_name("name") if inferred is not None else None
    # A schema with a suffix is named wrongly, which is reported already; its type need not be.
    if inferred is None or called is None or not name.startswith(text_of(called)):
        message = f"{name!r} has no type; write export type {name} = z.infer<typeof {name}>;"
        yield SyntaxFault(line, message, "MISSING_CLASS")
        return
    parent = inferred.parent
    is_exported = parent is not None and parent.type == "export_statement"
    if not is_exported and name not in source.exported:
        message = f"the type {name!r} is not exported; write export before it"
        yield SyntaxFault(line_of(inferred), message, "MISSING_CLASS")


def _schema_members(
    source: _Source, call: Call
) -> tuple[str, Sequence[Member], Sequence[SyntaxFault]] | None:
    """Return what a schema declares: kind, members and faults; ``None`` for another schema."""
    if call.name in _OBJECTS and call.arguments:
        shape = plain_object(call.arguments[0])
        if shape is None:
            return None
        wrong = [each for each in call.methods if each[0] not in _KEEPS_SHAPE]
        faults = [
            SyntaxFault(
                line, f".{name}() makes another schema of this one; take it away", "MISSING_CLASS"
            )
            for name, _, line in wrong
        ]
        return "schema", tuple(filter(None, map(_entry, shape.named_children))), faults
    values = _schema_values(source, call)
    if values is None:
        return None
    wrong = [each for each in call.methods if each[0] not in _KEEPS_SHAPE]
    faults = [
        SyntaxFault(
            line, f".{name}() makes another schema of this one; take it away", "ENUM_MEMBER"
        )
        for name, _, line in wrong
    ]
    return "enum", values, faults


def _schema_values(source: _Source, call: Call) -> list[Member] | None:
    if call.name == "never":
        return []
    if call.name in _ENUMS and call.arguments:
        first = call.arguments[0]
        if first.type == "identifier":
            first = source.constants.get(text_of(first), first)
        if call.name == "literal" and plain_array(first) is None:
            found = constant(first)
            is_value = isinstance(found, str | int) and not isinstance(found, bool)
            return [_value(found, first)] if is_value else None  # type: ignore[arg-type]
        return _values_of(first)
    if call.name == "union" and call.arguments:
        options = plain_array(call.arguments[0]) or []
        found_values: list[Member] = []
        for each in options:
            inner = base_call(each)
            if inner is None or inner.name != "literal" or inner.methods or not inner.arguments:
                return None
            more = _schema_values(source, inner)
            if more is None:
                return None
            found_values += more
        return found_values or None
    return None


def _entry(node: Node) -> Member | None:
    """Return a property of an object schema."""
    is_getter = node.type == "method_definition"
    name = node.child_by_field_name("name" if is_getter else "key")
    if node.type == "shorthand_property_identifier":
        name = node
    wire = None if name is None else _wire_name(name)
    if wire is None or name is None:
        return None
    plain = _named(wire, "key", name, node)
    if node.type == "shorthand_property_identifier":
        found = Schema(TypeRef(wire, line=plain.line))
        found.eager.append(found.type)
    else:
        value = returned(node) if is_getter else node.child_by_field_name("value")
        if is_getter and child_of(node, "get") is None:
            return replace(plain, unread="is a method; write a getter: put get before it")
        if value is None:
            return replace(plain, unread="gives back no schema")
        found = read_schema(value, is_lazy=is_getter)
    return replace(
        plain,
        type=found.type,
        is_required=not found.is_optional,
        attributes=found.attributes(),
    )
