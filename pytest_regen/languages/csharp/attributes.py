"""Attributes of C#: what they say, where they may stand, and which converter they name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_regen.languages.base import Attribute, Converter, SyntaxFault, TypeRef
from pytest_regen.languages.csharp.names import is_reference, show_type
from pytest_regen.languages.csharp.tree import Constant, constant
from pytest_regen.languages.names import word_set
from pytest_regen.languages.trees import Node, text_of

_known_types: dict[bytes, TypeRef] = {}
_MAX_KNOWN_TYPES = 4096


def type_ref(node: Node) -> TypeRef:
    """Return the type that ``node`` spells. Equal texts are taken apart once."""
    text = node.text or b""
    known = _known_types.get(text)
    if known is None:
        known = _read_type(node)
        if len(_known_types) >= _MAX_KNOWN_TYPES:
            _known_types.clear()
        _known_types[text] = known
    return replace(known, line=node.start_point.row + 1)


def _read_type(node: Node) -> TypeRef:  # one line per kind of node
    match node.type:
        case "nullable_type":
            return replace(_inner_type(node), nullable=True)
        case "array_type":
            rank = node.child_by_field_name("rank")
            commas = text_of(rank).count(",") if rank else 0
            return TypeRef(f"[{',' * commas}]", (_inner_type(node),))
        case "generic_name":
            return _generic_type(node)
        case "qualified_name" | "alias_qualified_name":
            return _qualified_type(node)
        case "tuple_type":
            elements = [child.child_by_field_name("type") for child in node.named_children]
            return TypeRef("()", tuple(_read_type(element) for element in elements if element))
        case "pointer_type":
            return TypeRef("*", (_inner_type(node),))
        case "ref_type":
            return TypeRef("ref", (_inner_type(node),))
        case "scoped_type":
            return _inner_type(node)
    return TypeRef(text_of(node).strip().removeprefix("@"))


def _inner_type(node: Node) -> TypeRef:
    inner = node.child_by_field_name("type")
    if inner is None and node.named_children:
        inner = node.named_children[0]
    return TypeRef("") if inner is None else _read_type(inner)


def _generic_type(node: Node) -> TypeRef:
    name = ""
    arguments: tuple[TypeRef, ...] = ()
    for child in node.named_children:
        if child.type == "identifier":
            name = text_of(child).removeprefix("@")
        elif child.type == "type_argument_list":
            arguments = tuple(
                _read_type(argument)
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


def _qualified_type(node: Node) -> TypeRef:
    name = node.child_by_field_name("name")
    before = node.child_by_field_name("qualifier") or node.child_by_field_name("alias")
    if name is None or before is None:
        return TypeRef(text_of(node))
    simple = _read_type(name)
    if simple.nullable and name.type == "generic_name":
        return simple
    return replace(simple, qualifier="".join(text_of(before).split()))


TargetedAttribute = tuple[str, Attribute]
"""A target, ``property`` of ``[property: Key]`` or empty, and the attribute."""

_MEMBERS: Final = frozenset({"property", "field"})
_TYPES: Final = frozenset({"class", "record", "struct", "interface"})
_PLACES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        word_set(
            """
            DataMember JsonExtensionData JsonIgnore JsonInclude JsonPropertyName JsonPropertyOrder
            JsonRequired
            """
        ),
        _MEMBERS | {"enum_member"},
    ),
    "EnumMember": frozenset({"field", "enum_member"}),
    "JsonConstructor": frozenset({"constructor"}),
    "JsonConverter": _MEMBERS | _TYPES | {"enum", "enum_member"},
    "JsonDerivedType": frozenset({"class", "record", "interface"}),
    "JsonNumberHandling": _MEMBERS | _TYPES - {"interface"} | {"enum_member"},
    "JsonObjectCreationHandling": _MEMBERS | _TYPES | {"enum_member"},
    "JsonPolymorphic": frozenset({"class", "record", "interface"}),
    "JsonStringEnumMemberName": frozenset({"field", "enum_member"}),
    "JsonUnmappedMemberHandling": _TYPES,
    "Key": _MEMBERS | {"enum_member"},
}
"""Attribute to what the compiler takes it on: CS0592 elsewhere."""

_SINGLE: Final = frozenset(_PLACES) - {"JsonDerivedType"} | {"Description", "Obsolete", "Required"}
"""Attributes that one thing has once: CS0579 else."""

_OWN_TARGETS: Final[Mapping[str, frozenset[str]]] = {
    "property": frozenset({"", "property"}),
    "parameter": frozenset({"", "property", "param"}),
    "field": frozenset({"", "field"}),
    "enum_member": frozenset({"", "field"}),
}
_NOUNS: Final[Mapping[str, str]] = {
    "class": "a class",
    "constructor": "a constructor",
    "enum": "an enum",
    "enum_member": "an enum member",
    "field": "a field",
    "interface": "an interface",
    "parameter": "a parameter",
    "property": "a property",
    "record": "a record",
    "struct": "a struct",
}

_known_attributes: dict[bytes, Attribute] = {}
_SHORT: Final = 120
_MAX_KNOWN_ATTRIBUTES: Final = 4096


def read_attributes(
    lists: Sequence[Node], constants: Mapping[str, Constant]
) -> Iterator[TargetedAttribute]:
    """Yield the attributes of attribute lists, each with its target."""
    for part in lists:
        if part.type != "attribute_list":
            continue
        target = ""
        for node in part.named_children:
            if node.type == "attribute_target_specifier":
                target = text_of(node).rstrip(": \t\r\n")
            elif node.type == "attribute":
                yield target, _attribute(node, constants)


def _attribute(node: Node, constants: Mapping[str, Constant]) -> Attribute:
    """Return one attribute. Equal texts are taken apart once, unless constants may be in them."""
    text, line = node.text or b"", node.start_point.row + 1
    known = _known_attributes.get(text)
    if known is None:
        known = _parse_arguments(node, constants)
        if not constants and len(text) <= _SHORT:
            if len(_known_attributes) >= _MAX_KNOWN_ATTRIBUTES:
                _known_attributes.clear()
            _known_attributes[text] = known
    types = tuple(replace(each, line=line) for each in known.types)
    return Attribute(known.name, known.arguments, line, types, known.options)


def _parse_arguments(node: Node, constants: Mapping[str, Constant]) -> Attribute:
    values, types, options = [], [], []
    for part in node.named_children:
        if part.type != "attribute_argument_list":
            continue
        for argument in part.named_children:
            if argument.type != "attribute_argument" or not argument.named_children:
                continue
            value = argument.named_children[-1]
            if not any(child.type == "=" for child in argument.children):
                values.append(constant(value, constants))
            if value.type == "typeof_expression" and value.named_children:
                types.append(type_ref(value.named_children[-1]))
            elif value.type in {"member_access_expression", "identifier", "boolean_literal"}:
                name = argument.child_by_field_name("name")
                word = text_of(value).rsplit(".", 1)[-1].strip()
                options.append((text_of(name) if name and name != value else "", word))
    return Attribute(_name(node), tuple(values), 0, tuple(types), tuple(options))


def _name(node: Node) -> str:
    """Return the simple name; one of another serializer keeps its qualifier."""
    full = text_of(node.child_by_field_name("name") or node)
    full = "".join(full.split()).removeprefix("global::")
    if full.startswith("Newtonsoft."):
        return full
    name = full.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    return name.removesuffix("Attribute") or name


# -- what they say -------------------------------------------------------------------------------


def own(kind: str, attributes: Sequence[TargetedAttribute]) -> tuple[Attribute, ...]:
    """Return the attributes of a member itself, not of its backing field or its parameter."""
    targets = _OWN_TARGETS.get(kind)
    return tuple(one for target, one in attributes if targets is None or target in targets)


def wire_name(kind: str, attributes: Sequence[Attribute]) -> str | None:
    """Return the name on the wire that the attributes give a member.

    On a property, an attribute meant for enum members is believed: that the compiler refuses it
    there is told apart. On an enum member the one for properties is legal, and has no effect.
    """
    names = {"JsonStringEnumMemberName"}
    if kind != "enum_member":
        names.add("JsonPropertyName")
    for attribute in attributes:
        if attribute.name in names:
            value = next(iter(attribute.arguments), None)
            return value if isinstance(value, str) else None
    return None


def wire_hint(kind: str, attributes: Sequence[TargetedAttribute]) -> str | None:
    """Return which attribute was meant to name a member on the wire, and does not."""
    for target, attribute in attributes:
        if kind == "enum_member" and attribute.name in {"JsonPropertyName", "EnumMember"}:
            return f"[{attribute.name}] has no effect on an enum member in System.Text.Json"
        if kind != "enum_member" and target == "field" and attribute.name == "JsonPropertyName":
            return "[field: JsonPropertyName] names the backing field, which is not serialized"
    return None


def ignored_by(attributes: Sequence[Attribute]) -> str | None:
    """Return the attribute by which the serializer passes over a member, as text."""
    for attribute in attributes:
        if attribute.name == "JsonIgnore":
            condition = dict(attribute.options).get("Condition")
            if condition is None and not attribute.arguments:
                return "[JsonIgnore]"
            if condition in {"Always", "WhenReading"}:
                return f"[JsonIgnore(Condition = JsonIgnoreCondition.{condition})]"
    return None


def refuses_null(attributes: Sequence[Attribute]) -> bool:
    """Return whether the serializer takes the member only if its type can be null."""
    return any(
        attribute.name == "JsonIgnore" and ("Condition", "WhenWritingNull") in attribute.options
        for attribute in attributes
    )


def converter_of(attributes: Sequence[Attribute]) -> Converter | None:
    """Return the converter that ``[JsonConverter]`` names."""
    for attribute in attributes:
        if attribute.name != "JsonConverter":
            continue
        if not attribute.types:
            return Converter("[JsonConverter]", "nothing", line=attribute.line)
        named = attribute.types[0]
        text = f"[JsonConverter(typeof({show_type(named)}))]"
        of = named.args[0].name if named.args else None
        root = named.qualifier.removeprefix("global::").split(".")[0]
        if root == "Newtonsoft" or named.name == "StringEnumConverter":
            return Converter(text, "nothing", line=attribute.line)
        if named.name == "JsonStringEnumConverter":
            return Converter(text, "text", of, attribute.line)
        if named.name == "JsonNumberEnumConverter":
            return Converter(text, "numbers", of, attribute.line)
        is_standard = root in {"System", "Microsoft"}
        return Converter(text, "nothing" if is_standard else "unknown", line=attribute.line)
    return None


# -- where they may stand ------------------------------------------------------------------------


def placement_faults(
    kind: str, name: str, attributes: Sequence[TargetedAttribute]
) -> Iterator[SyntaxFault]:
    """Yield attributes that the compiler refuses: on the wrong kind of thing, or there twice.

    Args:
        kind: what they stand on: a kind of member or declaration, or ``constructor``.
        name: of what they stand on.
        attributes: with their targets.
    """
    seen: set[tuple[str, str]] = set()
    reported: set[tuple[str, str]] = set()
    for target, attribute in attributes:
        place = _place(kind, target)
        places = _PLACES.get(attribute.name)
        if places is not None and place is not None and place not in places:
            yield SyntaxFault(attribute.line, _refusal(kind, name, attribute))
            continue
        bare = (target if kind == "parameter" else "", attribute.name)
        is_again = bare in seen
        seen.add(bare)
        if is_again and attribute.name in _SINGLE and bare not in reported:
            reported.add(bare)
            message = f"{name!r} has [{attribute.name}] twice; the compiler takes it once"
            yield SyntaxFault(attribute.line, message)


def _place(kind: str, target: str) -> str | None:
    """Return what an attribute is put on; ``None`` where its target makes it have no effect."""
    if kind == "parameter":
        return {"": "parameter", "param": "parameter"}.get(target, target)
    if kind == "property":
        return {"": "property"}.get(target, target if target in _MEMBERS else None)
    return kind if target in {"", "field", "type"} else None


def _refusal(kind: str, name: str, attribute: Attribute) -> str:
    shown = f"[{attribute.name}]"
    value = next(iter(attribute.arguments), None)
    argument = f"({json.dumps(value, ensure_ascii=False)})" if isinstance(value, str) else ""
    if kind == "parameter" and _PLACES[attribute.name] & _MEMBERS:
        right = f"[property: {attribute.name}{argument}]"
        return f"{name!r} is a parameter, on which the compiler refuses {shown}: write {right}"
    if kind in {"property", "field", "parameter"} and attribute.name in {
        "EnumMember",
        "JsonStringEnumMemberName",
    }:
        target = "property: " if kind == "parameter" else ""
        right = f"[{target}JsonPropertyName{argument or '(…)'}]"
        return f"{shown} is for enum members and refused on {name!r}: write {right}"
    return f"the compiler refuses {shown} on {_NOUNS.get(kind, kind)}: take it from {name!r}"
