"""Declarations, members and attributes from the syntax tree."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pytest_regen.languages.csharp.literals import constant
from pytest_regen.languages.csharp.names import is_identifier, is_type_identifier
from pytest_regen.languages.csharp.tree import Node, text_of
from pytest_regen.languages.csharp.typerefs import type_ref
from pytest_regen.languages.facts import Attribute, Declaration, DeclarationKind, Member, TypeRef

__all__ = ["KINDS", "Reading", "declarations"]

KINDS: Final[Mapping[str, DeclarationKind]] = {
    "class_declaration": "class",
    "delegate_declaration": "delegate",
    "enum_declaration": "enum",
    "interface_declaration": "interface",
    "record_declaration": "record",
    "struct_declaration": "struct",
}
_WIRE_NAMES = ("JsonPropertyName", "JsonStringEnumMemberName")
_HIDDEN = frozenset({"private", "protected", "internal", "static", "const"})
_NO_VALUE = frozenset({"null", "default"})
_seen: dict[bytes, tuple[str, tuple[str | int | bool | None, ...]]] = {}
_SHORT: Final = 120
_MANY: Final = 50_000
_SPACES = ("namespace_declaration", "declaration_list", "ERROR")
_HARMLESS = frozenset(
    {
        "comment",
        "extern_alias_directive",
        "file_scoped_namespace_declaration",
        "global_attribute",
        "identifier",
        "qualified_name",
        "shebang_directive",
        "using_directive",
        "empty_statement",
    }
)


@dataclass(slots=True)
class Reading:
    """What has been collected while a tree is read."""

    declarations: list[Declaration] = field(default_factory=list)
    strays: list[Node] = field(default_factory=list)
    """Top-level nodes that are no declaration."""
    illegal_names: list[Node] = field(default_factory=list)
    """Names that the grammar takes and the language does not."""
    constants: dict[str, str | int | bool | None] = field(default_factory=dict)


def declarations(root: Node) -> Reading:
    """Return all that the tree below ``root`` declares, in source order."""
    reading = Reading()
    if b"const " in (root.text or b""):
        _collect_constants(root, reading)
    _read_space(root, reading)
    return reading


def _collect_constants(root: Node, reading: Reading) -> None:
    """Read ``const`` fields first: attributes above them may use them."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type == "field_declaration":
            for name, value in _declarators(node):
                if value is not None:
                    reading.constants[text_of(name)] = constant(value, reading.constants)
        elif node.type.endswith(("declaration", "declaration_list", "_unit")):
            pending.extend(reversed(node.named_children))


def _read_space(space: Node, reading: Reading) -> None:
    """Read what stands directly in a file, a namespace or a preprocessor branch."""
    comment: Node | None = None
    for node in space.named_children:
        if node.type == "comment":
            comment = comment or node
            continue
        if node.type in KINDS:
            reading.declarations += _declaration(node, reading, None, comment)
        elif node.type in _SPACES or node.type.startswith("preproc_"):
            _read_space(node, reading)
        elif node.type not in _HARMLESS and space.type != "ERROR":
            reading.strays.append(node)
        comment = None


def _declaration(
    node: Node, reading: Reading, outer: str | None, comment: Node | None
) -> list[Declaration]:
    """Return the declaration of ``node`` and, after it, those nested in it."""
    name = node.child_by_field_name("name")
    if name is None:
        return []
    bare = _named(name, reading, is_type_identifier)
    own = (*_own_parts(node),)
    members: list[Member] = list(_parameters(node, reading))
    nested: list[Declaration] = []
    body = node.child_by_field_name("body")
    if body is not None:
        _read_body(body, reading, bare, members, nested)
    declaration = Declaration(
        name=bare,
        kind=KINDS[node.type],
        line=(comment or node).start_point.row + 1,
        end_line=node.end_point.row + 1,
        members=tuple(members),
        attributes=tuple(_attributes(own, reading)),
        outer=outer,
        is_partial=any(part.type == "modifier" and part.text == b"partial" for part in own),
        type_parameters=tuple(_type_parameters(own)),
        bases=tuple(_bases(own)),
        name_line=name.start_point.row + 1,
    )
    return [declaration, *nested]


def _own_parts(node: Node) -> Iterator[Node]:
    """Yield the parts of a declaration that stand before its body."""
    for part in node.named_children:
        if part.type in ("declaration_list", "enum_member_declaration_list"):
            return
        yield part


def _type_parameters(parts: tuple[Node, ...]) -> Iterator[str]:
    for part in parts:
        if part.type == "type_parameter_list":
            for parameter in part.named_children:
                name = parameter.child_by_field_name("name") or parameter
                yield text_of(name)


def _bases(parts: tuple[Node, ...]) -> Iterator[TypeRef]:
    for part in parts:
        if part.type == "base_list":
            for base in part.named_children:
                if base.type == "primary_constructor_base_type":
                    yield type_ref(base.child_by_field_name("type") or base.named_children[0])
                elif base.type not in ("comment", "ERROR", "argument_list"):
                    yield type_ref(base)


def _read_body(
    body: Node, reading: Reading, owner: str, members: list[Member], nested: list[Declaration]
) -> None:
    """Read the members of a type, and the types nested in it."""
    comment: Node | None = None
    for node in body.named_children:
        kind = node.type
        if kind == "comment":
            comment = comment or node
            continue
        if kind == "property_declaration":
            members.append(_property(node, reading))
        elif kind == "enum_member_declaration":
            members.append(_enum_member(node, reading))
        elif kind == "field_declaration":
            members += _fields(node, reading)
        elif kind in KINDS:
            nested += _declaration(node, reading, owner, comment)
        elif kind.startswith("preproc_") or kind == "ERROR":
            _read_body(node, reading, owner, members, nested)
        comment = None


def _property(node: Node, reading: Reading) -> Member:
    modifiers, attributes = _modifiers(node, reading)
    name, type_ = node.child_by_field_name("name"), node.child_by_field_name("type")
    value = node.child_by_field_name("value")
    is_computed = value is not None and value.type == "arrow_expression_clause"
    return Member(
        name=_named(name, reading),
        kind="property",
        line=node.start_point.row + 1,
        end_line=node.end_point.row + 1,
        wire_name=_wire_name(attributes),
        type=type_ref(type_) if type_ else None,
        is_required="required" in modifiers,
        has_initializer=not is_computed and _is_value(value),
        attributes=attributes,
        is_serialized=not is_computed and _is_serialized(modifiers, attributes),
    )


def _named(
    name: Node | None, reading: Reading, is_legal: Callable[[str], bool] = is_identifier
) -> str:
    """Return the name without ``@``, noting one that the language does not allow."""
    text = text_of(name) if name else ""
    if name and text and not is_legal(text):
        reading.illegal_names.append(name)
    return text.removeprefix("@")


def _is_value(value: Node | None) -> bool:
    """Return whether an initial value is given or promised; ``null`` and ``default`` are none."""
    return value is not None and text_of(value) not in _NO_VALUE


def _is_serialized(modifiers: set[str], attributes: tuple[Attribute, ...]) -> bool:
    names = {attribute.name for attribute in attributes}
    ignored = any(entry.name == "JsonIgnore" and not entry.arguments for entry in attributes)
    hidden = bool(modifiers & _HIDDEN) and "JsonInclude" not in names
    return not ignored and not hidden and "JsonExtensionData" not in names


def _fields(node: Node, reading: Reading) -> Iterator[Member]:
    """Yield a member per name; the serializer passes over fields but those it is told of."""
    modifiers, attributes = _modifiers(node, reading)
    declaration = next(
        (child for child in node.named_children if child.type == "variable_declaration"), None
    )
    type_ = declaration.child_by_field_name("type") if declaration else None
    included = any(attribute.name == "JsonInclude" for attribute in attributes)
    for name, value in _declarators(node):
        yield Member(
            name=_named(name, reading),
            kind="field",
            line=node.start_point.row + 1,
            end_line=node.end_point.row + 1,
            wire_name=_wire_name(attributes),
            type=type_ref(type_) if type_ else None,
            is_required="required" in modifiers,
            has_initializer=_is_value(value),
            attributes=attributes,
            is_serialized=included and _is_serialized(modifiers, attributes),
        )


def _declarators(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """Yield name and initial value of each name that a field declaration declares."""
    for declaration in node.named_children:
        if declaration.type != "variable_declaration":
            continue
        for declarator in declaration.named_children:
            name = declarator.child_by_field_name("name")
            if declarator.type == "variable_declarator" and name is not None:
                rest = [child for child in declarator.named_children if child.type != "comment"]
                yield name, rest[-1] if len(rest) > 1 else None


def _parameters(node: Node, reading: Reading) -> Iterator[Member]:
    """Yield the properties that a record's positional parameters declare."""
    if node.type != "record_declaration":
        return
    for part in node.named_children:
        if part.type != "parameter_list":
            continue
        for parameter in part.named_children:
            name, type_ = (parameter.child_by_field_name(key) for key in ("name", "type"))
            if parameter.type != "parameter" or name is None:
                continue
            modifiers, attributes = _modifiers(parameter, reading)
            rest = [part for part in parameter.named_children if part.type != "comment"]
            default = rest[-1] if rest[-1] not in (name, type_) else None
            yield Member(
                name=_named(name, reading),
                kind="parameter",
                line=parameter.start_point.row + 1,
                end_line=parameter.end_point.row + 1,
                wire_name=_wire_name(attributes),
                type=type_ref(type_) if type_ else None,
                is_required=default is None,
                has_initializer=_is_value(default),
                attributes=attributes,
                is_serialized=_is_serialized(modifiers, attributes),
            )


def _enum_member(node: Node, reading: Reading) -> Member:
    _, attributes = _modifiers(node, reading)
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    number = constant(value, reading.constants) if value else None
    wire = _wire_name(attributes)
    bare = _named(name, reading)
    if isinstance(number, int):
        reading.constants[bare] = number
    return Member(
        name=bare,
        kind="enum_member",
        line=node.start_point.row + 1,
        end_line=node.end_point.row + 1,
        wire_name=number if wire is None and isinstance(number, int) else wire,
        has_initializer=value is not None,
        attributes=attributes,
    )


def _modifiers(node: Node, reading: Reading) -> tuple[set[str], tuple[Attribute, ...]]:
    """Return the modifiers and the attributes of a member."""
    modifiers: set[str] = set()
    lists: list[Node] = []
    for child in node.named_children:
        if child.type == "attribute_list":
            lists.append(child)
        elif child.type == "modifier":
            modifiers.add(text_of(child))
    return modifiers, tuple(_attributes(lists, reading))


def _attributes(lists: list[Node] | tuple[Node, ...], reading: Reading) -> Iterator[Attribute]:
    for part in lists:
        if part.type != "attribute_list":
            continue
        for node in part.named_children:
            if node.type == "attribute":
                yield _attribute(node, reading)


def _attribute(node: Node, reading: Reading) -> Attribute:
    """Return one attribute. Equal texts are taken apart once, unless constants may be in them."""
    text, line = node.text or b"", node.start_point.row + 1
    known = _seen.get(text)
    if known is None:
        known = _attribute_name(node), tuple(_arguments(node, reading))
        if not reading.constants and len(text) <= _SHORT and len(_seen) < _MANY:
            _seen[text] = known
    return Attribute(known[0], known[1], line)


def _attribute_name(node: Node) -> str:
    name = text_of(node.child_by_field_name("name") or node)
    name = name.rsplit(".", 1)[-1].rsplit("::", 1)[-1].strip()
    return name.removesuffix("Attribute") or name


def _arguments(node: Node, reading: Reading) -> Iterator[str | int | bool | None]:
    for part in node.named_children:
        if part.type == "attribute_argument_list":
            for argument in part.named_children:
                if argument.type == "attribute_argument" and argument.named_children:
                    yield constant(argument.named_children[-1], reading.constants)


def _wire_name(attributes: tuple[Attribute, ...]) -> str | None:
    for attribute in attributes:
        if attribute.name in _WIRE_NAMES:
            value = next(iter(attribute.arguments), None)
            return value if isinstance(value, str) else None
    return None
