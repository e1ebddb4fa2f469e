"""Declarations and their members from the syntax tree."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_regen.languages.base import (
    Attribute,
    Declaration,
    Member,
    SyntaxFault,
    TypeRef,
)
from pytest_regen.languages.csharp.attributes import (
    TargetedAttribute,
    converter_of,
    ignored_by,
    own,
    placement_faults,
    read_attributes,
    refuses_null,
    type_ref,
    wire_hint,
    wire_name,
)
from pytest_regen.languages.csharp.compiler import (
    Accessor,
    accessor_faults,
    default_faults,
    enum_faults,
    modifier_faults,
    required_faults,
)
from pytest_regen.languages.csharp.names import (
    canonical_name,
    is_identifier,
    is_type_identifier,
    show_type,
)
from pytest_regen.languages.csharp.serializer import (
    Constructor,
    DeclarationShape,
    RawMember,
    is_never_null,
    never_set,
    resolve_shapes,
    why_hidden,
)
from pytest_regen.languages.csharp.tree import branches, constant
from pytest_regen.languages.trees import Node, text_of

KINDS: Final[Mapping[str, str]] = {
    "class_declaration": "class",
    "delegate_declaration": "delegate",
    "enum_declaration": "enum",
    "interface_declaration": "interface",
    "record_declaration": "record",
    "struct_declaration": "struct",
}
_NO_VALUE = frozenset({"null", "default"})
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
    aliases: set[str] = field(default_factory=set)
    """Names that ``using Name = Type;`` gives."""
    shapes: list[DeclarationShape] = field(default_factory=list)
    """The declarations with what can be checked only once all parts of a type are read."""


@dataclass(slots=True)
class _Body:
    """What has been collected of one type while its body is read."""

    name: str
    attributes: tuple[Attribute, ...]
    members: list[Member] = field(default_factory=list)
    raw: list[RawMember] = field(default_factory=list)
    constructors: list[Constructor] = field(default_factory=list)
    nested: list[DeclarationShape] = field(default_factory=list)
    faults: list[SyntaxFault] = field(default_factory=list)

    def add(self, member: Member, raw: RawMember, condition: str | None) -> None:
        """Add a member; one that is not always compiled is not always there."""
        if condition is not None:
            why = f"stands under '{condition}' and is not always compiled; take the directives away"
            member = replace(member, unread=why)
        self.members.append(member)
        self.raw.append(raw)


def declarations(root: Node) -> Reading:
    """Return all that the tree below ``root`` declares, in source order."""
    reading = Reading()
    if b"const " in (root.text or b""):
        _collect_constants(root, reading)
    _read_space(root, reading)
    reading.declarations = resolve_shapes(reading.shapes)
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


def _read_space(space: Node, reading: Reading, condition: str | None = None) -> None:
    """Read what stands directly in a file, a namespace or a preprocessor branch."""
    comment: Node | None = None
    for node, under in _live_nodes(space.named_children, condition):
        if node.type == "comment":
            comment = comment or node
            continue
        if node.type in KINDS:
            reading.shapes += _declaration(node, reading, None, comment, under)
        elif node.type in _SPACES:
            _read_space(node, reading, under)
        elif node.type == "using_directive":
            alias = node.child_by_field_name("name")
            if alias is not None:
                reading.aliases.add(text_of(alias))
        elif node.type not in _HARMLESS and space.type != "ERROR":
            reading.strays.append(node)
        comment = None


def _live_nodes(nodes: Sequence[Node], condition: str | None) -> Iterator[tuple[Node, str | None]]:
    """Yield the nodes that may be compiled, those in branches of directives included.

    With each comes the directive that it depends on, if any.
    """
    for node in nodes:
        if not node.type.startswith("preproc_"):
            yield node, condition
            continue
        for inside, under in branches(node):
            yield from _live_nodes(inside, under or condition)


def _declaration(
    node: Node, reading: Reading, outer: str | None, comment: Node | None, condition: str | None
) -> list[DeclarationShape]:
    """Return the declaration of ``node`` and, after it, those nested in it."""
    name = node.child_by_field_name("name")
    if name is None:
        return []
    bare = _legal_name(name, reading, is_type_identifier)
    parts = (*_own_parts(node),)
    kind = KINDS[node.type]
    targeted = tuple(read_attributes(parts, reading.constants))
    attributes = tuple(one for _, one in targeted)
    modifiers = tuple(text_of(part) for part in parts if part.type == "modifier")
    if any(child.type == "ref" for child in node.children):
        modifiers = ("ref", *modifiers)
    content = _Body(bare, attributes)
    line = name.start_point.row + 1
    is_marked = ("method", "JsonConstructor") in {
        (at, attribute.name) for at, attribute in targeted
    }
    _read_parameters(node, parts, reading, content, is_marked=is_marked)
    body = node.child_by_field_name("body")
    if body is not None:
        _read_body(body, reading, content, None)
    bases = tuple(_bases(parts))
    is_value = kind in {"struct", "enum"} or any(child.type == "struct" for child in node.children)
    said = "record struct" if kind == "record" and is_value else kind
    faults = [
        *modifier_faults(said, bare, modifiers, line),
        *placement_faults(said.rpartition(" ")[2], bare, targeted),
    ]
    if kind == "enum":
        content.members = list(_count_on(content.members))
        numbers = [(each.name, each.number) for each in content.members if each.number is not None]
        faults += enum_faults(bare, _enum_base(bases), numbers, line)
    declaration = Declaration(
        name=bare,
        kind=kind,
        line=(comment or node).start_point.row + 1,
        end_line=node.end_point.row + 1,
        members=tuple(content.members),
        attributes=attributes,
        outer=outer,
        is_partial="partial" in modifiers,
        type_parameters=tuple(_type_parameters(parts)),
        bases=() if kind == "enum" else bases,
        name_line=line,
        is_value=is_value,
        is_numeric=kind == "enum",
        converter=converter_of(attributes),
        faults=(*faults, *content.faults),
    )
    shape = DeclarationShape(
        declaration, modifiers, tuple(content.raw), tuple(content.constructors), condition
    )
    return [shape, *content.nested]


def _enum_base(bases: Sequence[TypeRef]) -> str:
    """Return the keyword of what an enum is based on."""
    return canonical_name(bases[0]) if bases else "int"


def _count_on(members: Sequence[Member]) -> Iterator[Member]:
    """Yield enum members with their numbers; one without a number counts on."""
    number: int | None = -1
    for member in members:
        if member.number is not None:
            number = member.number
        else:
            number = None if number is None or member.has_initializer else number + 1
        yield replace(member, number=number)


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


def _read_body(body: Node, reading: Reading, content: _Body, condition: str | None) -> None:
    """Read the members of a type, and the types nested in it."""
    comment: Node | None = None
    for node, under in _live_nodes(body.named_children, condition):
        kind = node.type
        if kind == "comment":
            comment = comment or node
            continue
        if kind == "property_declaration":
            _read_property(node, reading, content, under)
        elif kind == "enum_member_declaration":
            content.add(_enum_member(node, reading), RawMember(), under)
        elif kind == "field_declaration":
            _read_fields(node, reading, content, under)
        elif kind == "constructor_declaration":
            _read_constructor(node, reading, content)
        elif kind in KINDS:
            content.nested += _declaration(node, reading, content.name, comment, under)
        elif kind == "ERROR":
            _read_body(node, reading, content, under)
        comment = None


def _read_property(node: Node, reading: Reading, content: _Body, condition: str | None) -> None:
    modifiers, targeted = _modifiers(node, reading)
    if "public" not in modifiers and _is_explicit(node):
        return  # seen through the interface only
    attributes = own("property", targeted)
    name, type_ = node.child_by_field_name("name"), node.child_by_field_name("type")
    value = node.child_by_field_name("value")
    is_computed = value is not None and value.type == "arrow_expression_clause"
    accessors = _accessors(node)
    bare, line = _legal_name(name, reading), node.start_point.row + 1
    has_initial_value = not is_computed and value is not None
    unseen = _why_hidden("property", modifiers, attributes)
    is_seen = unseen is None
    if is_computed:
        unseen = unseen or "is computed, so nothing is read into it; write { get; init; }"
    faults = [*placement_faults("property", bare, targeted)]
    faults += modifier_faults("property", bare, modifiers, line)
    faults += accessor_faults(bare, modifiers, accessors, line)
    promised = has_initial_value and _is_value(value)
    unread = unseen or never_set(
        accessors, attributes, content.attributes, has_initial_value=promised
    )
    lacks_setter = is_seen and unread is not None and condition is None
    reference = type_ref(type_) if type_ else None
    if unread is None and reference and is_never_null(reference) and refuses_null(attributes):
        unread = f"has WhenWritingNull, which the serializer refuses on {show_type(reference)!r}"
    if unread is None:
        faults += required_faults(bare, modifiers, accessors, line)
    member = Member(
        name=bare,
        kind="property",
        line=line,
        end_line=node.end_point.row + 1,
        wire_name=wire_name("property", attributes),
        type=reference,
        is_required="required" in modifiers,
        has_initializer=promised,
        attributes=attributes,
        is_serialized=unseen is None,
        unread=unread,
        hint=wire_hint("property", targeted),
        is_public="public" in modifiers,
        converter=converter_of(attributes),
        faults=tuple(faults),
    )
    raw = RawMember(frozenset(modifiers), accessors, has_initial_value, lacks_setter)
    content.add(member, raw, condition)


def _is_explicit(node: Node) -> bool:
    """Return whether a member implements one of an interface: ``string INamed.Name``."""
    return any(child.type == "explicit_interface_specifier" for child in node.named_children)


def _accessors(node: Node) -> tuple[Accessor, ...]:
    """Return the accessors of a property. Equal texts are taken apart once."""
    listed = node.child_by_field_name("accessors")
    if listed is None:
        return ()
    text = listed.text or b""
    known = _seen.get(text)
    if known is None:
        known = tuple(_read_accessors(listed))
        if len(text) <= _SHORT and len(_seen) < _MANY:
            _seen[text] = known
    return known


_seen: dict[bytes, tuple[Accessor, ...]] = {}
_SHORT: Final = 60
_MANY: Final = 4096


def _read_accessors(listed: Node) -> Iterator[Accessor]:
    for child in listed.named_children:
        if child.type != "accessor_declaration":
            continue
        words = [part.type for part in child.children if part.type in {"get", "set", "init"}]
        modifiers = tuple(text_of(part) for part in child.children if part.type == "modifier")
        has_body = child.child_by_field_name("body") is not None
        yield Accessor(words[0] if words else "", modifiers, has_body)


def _why_hidden(kind: str, modifiers: Sequence[str], attributes: Sequence[Attribute]) -> str | None:
    """Return why the serializer passes over a member; ``None`` if it does not."""
    why = why_hidden(kind, modifiers, attributes)
    if why is None and (ignore := ignored_by(attributes)):
        return f"has {ignore}, so it is not serialized; take the attribute away"
    if why is None and any(attribute.name == "JsonExtensionData" for attribute in attributes):
        return "has [JsonExtensionData], which holds what is no field; take the attribute away"
    return why


def _read_constructor(node: Node, reading: Reading, content: _Body) -> None:
    modifiers, targeted = _modifiers(node, reading)
    if "static" in modifiers:
        return
    content.faults += placement_faults("constructor", content.name, targeted)
    listed = node.child_by_field_name("parameters")
    parameters = []
    for parameter in listed.named_children if listed else ():
        name = parameter.child_by_field_name("name")
        type_ = parameter.child_by_field_name("type")
        if parameter.type == "parameter" and name is not None:
            parameters.append((text_of(name).removeprefix("@"), type_ref(type_) if type_ else None))
    is_marked = any(attribute.name == "JsonConstructor" for _, attribute in targeted)
    line = node.start_point.row + 1
    content.constructors.append(
        Constructor(tuple(parameters), "public" in modifiers, is_marked, line)
    )


def _legal_name(
    name: Node | None, reading: Reading, is_legal: Callable[[str], bool] = is_identifier
) -> str:
    """Return the name without ``@``, noting one that the language does not allow."""
    text = text_of(name) if name else ""
    if name and text and not is_legal(text):
        reading.illegal_names.append(name)
    return text.removeprefix("@")


def _is_value(value: Node | None) -> bool:
    """Return whether a value other than ``null`` and ``default`` is given or promised."""
    return value is not None and text_of(value) not in _NO_VALUE


def _read_fields(node: Node, reading: Reading, content: _Body, condition: str | None) -> None:
    """Read a member per name; the serializer skips fields without [JsonInclude]."""
    modifiers, targeted = _modifiers(node, reading)
    attributes = own("field", targeted)
    declaration = next(
        (child for child in node.named_children if child.type == "variable_declaration"), None
    )
    type_ = declaration.child_by_field_name("type") if declaration else None
    unseen = _why_hidden("field", modifiers, attributes)
    is_fixed = "readonly" in modifiers
    line = node.start_point.row + 1
    for name, value in _declarators(node):
        bare = _legal_name(name, reading)
        member = Member(
            name=bare,
            kind="field",
            line=line,
            end_line=node.end_point.row + 1,
            wire_name=wire_name("field", attributes),
            type=type_ref(type_) if type_ else None,
            is_required="required" in modifiers,
            has_initializer=_is_value(value),
            attributes=attributes,
            is_serialized=unseen is None,
            unread=unseen
            or (
                "is readonly, so nothing is read into it; make it a property" if is_fixed else None
            ),
            is_public="public" in modifiers,
            converter=converter_of(attributes),
            faults=(
                *placement_faults("field", bare, targeted),
                *modifier_faults("field", bare, modifiers, line),
            ),
        )
        content.add(member, RawMember(frozenset(modifiers), (), value is not None), condition)


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


def _read_parameters(
    node: Node, parts: Sequence[Node], reading: Reading, content: _Body, *, is_marked: bool
) -> None:
    """Read the parameters of a type: its constructor, and of a record the properties."""
    listed = next((part for part in parts if part.type == "parameter_list"), None)
    if listed is None:
        return
    own_constructor: list[tuple[str, TypeRef | None]] = []
    defaults: list[tuple[str, str | None, int]] = []
    for parameter in listed.named_children:
        name, type_ = (parameter.child_by_field_name(key) for key in ("name", "type"))
        if parameter.type != "parameter" or name is None:
            continue
        reference = type_ref(type_) if type_ else None
        bare = _legal_name(name, reading)
        own_constructor.append((bare, reference))
        rest = [part for part in parameter.named_children if part.type != "comment"]
        default = rest[-1] if rest[-1] not in (name, type_) else None
        defaults.append((bare, default.type if default else None, parameter.start_point.row + 1))
        if node.type == "record_declaration":
            member = _parameter(parameter, bare, reference, default, reading)
            content.add(member, RawMember(), None)
    line = listed.start_point.row + 1
    content.constructors.append(
        Constructor(tuple(own_constructor), is_public=True, is_marked=is_marked, line=line)
    )
    untyped = (
        (number, SyntaxFault(defaults[number][2], f"the parameter {name!r} has no type"))
        for number, (name, type_) in enumerate(own_constructor)
        if type_ is None
    )
    for number, fault in (*default_faults(defaults), *untyped):
        if content.members:
            member = content.members[number]
            content.members[number] = replace(member, faults=(*member.faults, fault))
        else:
            content.faults.append(fault)


def _parameter(
    parameter: Node, name: str, type_: TypeRef | None, default: Node | None, reading: Reading
) -> Member:
    """Return the property that a positional parameter declares."""
    modifiers, targeted = _modifiers(parameter, reading)
    attributes = own("parameter", targeted)
    unseen = _why_hidden("parameter", modifiers, attributes)
    return Member(
        name=name,
        kind="parameter",
        line=parameter.start_point.row + 1,
        end_line=parameter.end_point.row + 1,
        wire_name=wire_name("parameter", attributes),
        type=type_,
        is_required=default is None,
        has_initializer=_is_value(default),
        attributes=attributes,
        is_serialized=unseen is None,
        unread=unseen,
        hint=wire_hint("parameter", targeted),
        converter=converter_of(attributes),
        faults=tuple(placement_faults("parameter", name, targeted)),
    )


def _enum_member(node: Node, reading: Reading) -> Member:
    _, targeted = _modifiers(node, reading)
    attributes = own("enum_member", targeted)
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    number = constant(value, reading.constants) if value else None
    wire = wire_name("enum_member", attributes)
    bare = _legal_name(name, reading)
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
        hint=wire_hint("enum_member", targeted),
        number=number if isinstance(number, int) else None,
        faults=tuple(placement_faults("enum_member", bare, targeted)),
    )


def _modifiers(node: Node, reading: Reading) -> tuple[list[str], tuple[TargetedAttribute, ...]]:
    """Return the modifiers and the attributes of a member, in order."""
    modifiers: list[str] = []
    lists: list[Node] = []
    for child in node.named_children:
        if child.type == "attribute_list":
            lists.append(child)
        elif child.type == "modifier":
            modifiers.append(text_of(child))
    return modifiers, tuple(read_attributes(lists, reading.constants))
