"""TypeScript source to facts: what it declares, and where it is illegal. By syntax tree only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pytest_regen.languages import trees
from pytest_regen.languages.base import (
    Attribute,
    Declaration,
    Member,
    SourceFacts,
    SyntaxFault,
    TypeRef,
)
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, child_of, text_of
from pytest_regen.languages.typescript import schemas, tree, types
from pytest_regen.languages.typescript.names import property_name
from pytest_regen.languages.typescript.tree import constant, inside, line_of, options_of
from pytest_regen.text import quoted

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
_WRAPPERS: Final = word_set("ambient_declaration export_statement")
_CONSTANTS: Final = word_set("lexical_declaration variable_declaration")
_WIDE: Final = re.compile(
    r"\b(?:any|unknown|ZodAny|ZodTypeAny|ZodUnknown)\b|\bZod(?:Object|Schema|Type)\b(?!<)"
)
"""Types of schemas that say nothing of what is inferred."""


class _Statement(NamedTuple):
    """A statement at the top level."""

    top: Node
    node: Node
    """What it exports or declares; else the same."""
    is_exported: bool
    """By its own name."""

    @classmethod
    def of(cls, top: Node) -> "_Statement":
        """Return a statement with what ``export`` and ``declare`` stand before."""
        node, is_exported = top, False
        while node.type in _WRAPPERS and inside(node):
            is_named = node.type == "export_statement" and child_of(node, "default") is None
            node, is_exported = inside(node)[-1], is_exported or is_named
        return cls(top, node, is_exported)


@dataclass(slots=True)
class _Source:
    """What the declarations of one source may refer to."""

    exported: set[str] = field(default_factory=set)
    """Names in lists of exports."""
    constants: dict[str, Node] = field(default_factory=dict)
    """Values of constants by name."""
    inferred: dict[str, _Statement] = field(default_factory=dict)
    """Schemas to the declarations of the types that are inferred from them."""

    def without(self, name: str) -> "_Source":
        """Return the source without a constant, so that none is looked up in itself."""
        constants = {key: value for key, value in self.constants.items() if key != name}
        return replace(self, constants=constants)


def read(code: str) -> SourceFacts:
    """Return what ``code`` declares; of illegal code only the first fault.

    Args:
        code: TypeScript source; a byte order mark and any line ends are allowed.
    """
    data = code.removeprefix("\ufeff").encode("utf-8", "replace")
    fault = trees.first_fault(tree.GRAMMAR, data, tree.is_loose)
    if fault is not None:
        return SourceFacts(faults=(fault,))
    root = tree.parse(data).root_node
    source, imported = _Source(), set[str]()
    statements = [*map(_Statement.of, root.named_children)]
    for statement in statements:
        node = statement.node
        if node.type == "export_clause":
            source.exported.update(text_of(inside(name)[-1]) for name in inside(node))
        elif node.type == "import_statement":
            imported.update(text_of(leaf) for leaf in trees.walk(node) if leaf.type == "identifier")
        for entry in inside(node) if node.type in _CONSTANTS else ():
            name, value = _fields(entry, "name", "value")
            if name is not None and value is not None:
                source.constants[text_of(name)] = value
        schema = _inferred_from(node)
        if schema is not None:
            source.inferred[schema] = statement
    declarations = [entry for part in statements for entry in _declared(source, part)]
    return SourceFacts(
        tuple(sorted(declarations, key=lambda entry: entry.name_line)),
        tuple(trees.comment_faults(root, lambda text: text.startswith("/**"))),
        aliases=frozenset(imported),
    )


def _fields(node: Node, *names: str) -> Iterator[Node | None]:
    return map(node.child_by_field_name, names)


def _inferred_from(node: Node) -> str | None:
    """Return the schema of ``type T = z.infer<typeof T>`` or ``interface T extends … {}``."""
    body, value = _fields(node, "body", "value")
    clause = child_of(node, "extends_type_clause")
    if clause is not None and body is not None and not inside(body):
        value = inside(clause)[0]
    if value is None or value.type != "generic_type":
        return None
    name, arguments = inside(value)
    query = child_of(arguments, "type_query")
    is_inferred = "".join(text_of(name).split()) in _INFERS
    return text_of(inside(query)[0]) if is_inferred and query is not None else None


def _declared(source: _Source, statement: _Statement) -> Iterator[Declaration]:
    """Yield what a statement declares."""
    node = statement.node
    name, body = _fields(node, "name", "body")
    if node.type in _CONSTANTS:
        for entry in inside(node):
            yield from _constant(source, statement, entry)
    # A type that is inferred is told of with its schema.
    elif name is not None and _inferred_from(node) not in source.constants:
        kind = node.type.replace("internal_module", "namespace").removesuffix("_declaration")
        members: list[Member] = []
        if kind == "type_alias":
            kind, members = _alias(source, node)
        elif body is not None and kind in {"enum", "interface"}:
            members = [*(_enum_members if kind == "enum" else _properties)(body)]
        yield _declaration(source, statement, name, kind, members)


def _declaration(
    source: _Source, statement: _Statement, name: Node, kind: str, members: list[Member]
) -> Declaration:
    top, node, _ = statement
    clause, (value,) = child_of(node, "extends_type_clause"), _fields(node, "value")
    bases = [] if clause is None else inside(clause)
    if kind == "object type" and value is not None:  # type T = Base & {…}
        parts = options_of(value, "intersection_type")
        bases = [part for part in parts if part.type == "type_identifier"]
    if child_of(node, "type_parameters") is not None:
        kind += " with type parameters"  # Nothing in JSON says what they are.
    return Declaration(
        name=text_of(name),
        kind=kind,
        line=line_of(top),
        end_line=node.end_point.row + 1,
        members=tuple(members),
        bases=tuple(map(types.spelled_type, bases)),
        name_line=line_of(name),
        faults=tuple(_export_faults(source, statement, name)),
    )


def _export_faults(source: _Source, statement: _Statement, name: Node) -> Iterator[SyntaxFault]:
    if not statement.is_exported and text_of(name) not in source.exported:
        message = f"{text_of(name)!r} is not exported; write export before it"
        yield SyntaxFault(line_of(name), message, "MISSING_CLASS")


# --- types ---------------------------------------------------------------------------------------


def _properties(body: Node) -> Iterator[Member]:
    """Yield the properties of an interface or an object type; JSON has no methods."""
    for node in inside(body):
        (name,) = _fields(node, "name")
        if node.type == "property_signature" and name is not None:
            annotation = child_of(node, "type_annotation")
            # What has no type is any.
            type_ = types.spelled_type(inside(annotation)[-1]) if annotation else TypeRef("any")
            is_required = child_of(node, "?") is None
            type_ = type_ if is_required else types.without_undefined(type_)
            yield _property(name, "property", type_, is_required=is_required)
        elif node.type == "index_signature" and len(inside(body)) > 1:
            # Alone it makes a map. Beside properties it takes any other one, misspelt ones too.
            yield _member(text_of(node), "property", node, text_of(node))


def _property(name: Node, kind: str, type_: TypeRef, *, is_required: bool) -> Member:
    value = constant(inside(name)[0] if name.type == "computed_property_name" else name)
    is_literal = isinstance(value, str | int | float)
    wire = str(value) if is_literal else " ".join(text_of(name).split())
    member = _member(property_name(wire), kind, name, wire)
    return replace(member, type=type_, is_required=is_required)


def _member(name: str, kind: str, node: Node, wire: str | int | None) -> Member:
    row = (node.parent or node).end_point.row
    return Member(name, kind, line_of(node), row + 1, wire)


def _alias(source: _Source, node: Node) -> tuple[str, list[Member]]:
    """Return what ``type T = …`` declares: kind and members."""
    (value,) = _fields(node, "value")
    if value is None or text_of(value) == "never":
        return "enum", []
    if value.type == "generic_type" and text_of(inside(value)[0]) == "Readonly":
        (value,) = inside(inside(value)[1])
    parts, type_ = options_of(value, "intersection_type"), types.spelled_type(value)
    # An index signature alone makes a map.
    objects = [part for part in parts if part.type == "object_type" and type_.name != "{}"]
    if objects:
        return "object type", [member for part in objects for member in _properties(part)]
    values: list[Member] = []
    for option in options_of(value):
        if option.type == "lookup_type":  # (typeof VALUES)[number]
            values += _literals(source, inside(option)[0])
        else:
            values.append(_value(constant(option), option))
    is_enum = any(member.wire_name is not None for member in values)
    return ("enum", values) if is_enum else ("alias", [_stands_for(value, type_)])


def _stands_for(value: Node, type_: TypeRef) -> Member:
    """Return the only member of an alias: what it is another name for."""
    (name,) = _fields(value.parent or value, "name")
    member = _member("" if name is None else text_of(name), "alias", value, "")
    return replace(member, type=type_, is_required=True)


def _value(value: object, node: Node) -> Member:
    """Return a member of an enum; one that is no literal has no value, but its text as its name."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        member = _member(quoted(value), "literal", node, value)
        return replace(member, number=value) if isinstance(value, int) else member
    return _member(text_of(node)[:100], "literal", node, None)


def _literals(source: _Source, node: Node) -> Iterator[Member]:
    """Yield the literals in an array, an object or a schema, keys aside; those of constants too."""
    member, name = _value(constant(node), node), text_of(node)
    if member.wire_name is not None:
        yield member
    elif node.type == "identifier" and name in source.constants:
        yield from _literals(source.without(name), source.constants[name])
    else:
        (key,) = _fields(node, "key")
        for part in inside(node):
            yield from _literals(source, part) if part != key else ()


def _enum_members(body: Node) -> Iterator[Member]:
    """Yield the members of an enum; one without a value counts on from the one before."""
    following: object = 0
    for node in inside(body):
        (written,) = _fields(node, "value")
        value = following if written is None else constant(written)
        yield _value(value, node)
        following = value + 1 if isinstance(value, int) else None


# --- schemas -------------------------------------------------------------------------------------


def _constant(source: _Source, statement: _Statement, declarator: Node) -> Iterator[Declaration]:
    """Yield a constant that is a schema, or of no use; of arrays and objects types are taken."""
    name, value = _fields(declarator, "name", "value")
    if name is None or value is None or schemas.plain(value).type in {"array", "object"}:
        return
    bases: list[TypeRef] = []
    call, members = schemas.base_call(value), _shape(source, value, bases)
    kind = "constant" if members is None else "schema"
    methods = call.methods if call is not None else ()
    changed = next((method for method, _ in methods if method not in _KEEPS), None)
    if changed is not None:
        kind = f"schema that .{changed}() changes"
    elif call is not None and call.name in _ENUMS:
        added = [node for name, arguments in methods if name == "or" for node in arguments]
        nodes = [*call.arguments[:1], *added]
        members = [value for node in nodes for value in _literals(source, node)]
        kind = "enum" if members or call.name == "never" else kind
    if kind == "constant" and call is not None:
        kind, members = "alias", [_stands_for(value, types.schema_type(value))]
    entry = _declaration(source, statement, name, kind, members or [])
    if kind != "constant":
        # A constant of no use is told as missing, whatever its type is.
        faults = (*entry.faults, *_typing_faults(source, declarator, name))
        entry = replace(entry, faults=faults, attributes=(SCHEMA,), bases=tuple(bases))
    yield entry


def _shape(source: _Source, node: Node, bases: list[TypeRef]) -> list[Member] | None:
    """Return the properties of an object schema; ``None`` for any other expression.

    Schemas of other blocks that it extends are put in ``bases``.
    """
    if schemas.plain(node).type == "object":
        entries = schemas.plain(node)
        spread = [text_of(part) for part in inside(entries) if part.type == "spread_element"]
        # Zod's documentation prefers ``...Base.shape`` to ``Base.extend``.
        bases += [TypeRef(text[3:-6]) for text in spread if text.endswith(".shape")]
        return [*_entries(entries)]
    call = schemas.base_call(node)
    if call is None:
        return None
    inner = next(iter(call.arguments), None)
    members: list[Member] | None = None
    if call.reference is not None:
        name = text_of(call.reference)
        inner = source.constants.get(name)
        source = source.without(name)
        if inner is None:
            members = []
            bases.append(TypeRef(name))
    elif call.name == "lazy" and inner is not None:
        inner = schemas.returned(inner)
    elif call.name not in _OBJECTS:
        return None
    members = _shape(source, inner, bases) if inner is not None else members
    for method, arguments in call.methods:
        more = _shape(source, arguments[0], bases) if method in _JOINS and arguments else []
        if members is None or more is None:
            return None
        names = {member.wire_name for member in more}
        members = [*(member for member in members if member.wire_name not in names), *more]
    return members


def _typing_faults(source: _Source, declarator: Node, name: Node) -> Iterator[SyntaxFault]:
    """Yield what is wrong with the type of a schema: it is missing, not exported, or anything."""
    line, called = line_of(name), text_of(name)
    hidden = _wide_type(child_of(declarator, "type_annotation"))
    if hidden is not None:
        message = f"{called!r} is annotated as {hidden}, which hides what its type is"
        yield SyntaxFault(line, f"{message}; write export const {called} = z.…", "MISSING_CLASS")
    statement = source.inferred.get(called)
    (type_name,) = _fields(statement.node, "name") if statement is not None else (None,)
    # A schema with a suffix is named wrongly, which is reported already; its type need not be.
    if statement and type_name is not None and called.startswith(text_of(type_name)):
        yield from _export_faults(source, statement, type_name)
    else:
        message = f"{called!r} has no type; write export type {called} = z.infer<typeof {called}>;"
        yield SyntaxFault(line, message, "MISSING_CLASS")


def _wide_type(annotation: Node | None) -> str | None:
    """Return a type that says less than the schema it is written on, if it is one."""
    text = "" if annotation is None else text_of(annotation).removeprefix(":").strip()
    # One with a shape says as much.
    return text if _WIDE.search(text) and "{" not in text else None


def _entries(shape: Node) -> Iterator[Member]:
    """Yield the properties of an object schema; a method that is no getter is none."""
    for node in inside(shape):
        key, name, value, annotation = _fields(node, "key", "name", "value", "return_type")
        if node.type == "method_definition" and child_of(node, "get") is not None:
            value = schemas.returned(node)
        name = key or name
        if name is None or value is None:
            continue
        type_, hidden = types.schema_type(value), _wide_type(annotation)
        if hidden is not None and type_.name != "unknown":
            type_ = TypeRef(hidden)
        present = types.without_undefined(type_)
        yield _property(name, "key", present, is_required=present == type_)
