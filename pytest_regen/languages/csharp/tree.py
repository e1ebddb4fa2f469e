"""C# text to a syntax tree, and from its nodes the values of constants, types and attributes."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pytest_regen.extras import needs
from pytest_regen.languages.base import Attribute, TypeRef
from pytest_regen.languages.names import unescape
from pytest_regen.languages.trees import Grammar, Node, text_of

with needs("openapi", "stores of generated code"):
    import tree_sitter_c_sharp

GRAMMAR: Final = Grammar("C#", tree_sitter_c_sharp.language)
parse = GRAMMAR.parse

Constant = str | int | None

_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{1,4})|(.))", re.DOTALL
)
_SIMPLE: Final = dict(zip("0abefnrtv", "\0\a\b\x1b\f\n\r\t\v", strict=True))


def constant(node: Node | None, names: Mapping[str, Constant]) -> Constant:
    """Return the value of a constant expression, or ``None`` where it is not plain.

    Args:
        node: the expression, if there is one.
        names: the constants that the source declares, by simple name.
    """
    if node is None:
        return None
    text = text_of(node)
    match node.type:
        case "string_literal" | "verbatim_string_literal" | "raw_string_literal":
            return decode_string(text)
        case "integer_literal":
            # Base 0 reads the prefixes 0x and 0b, but refuses a plain number with leading zeros.
            digits = text.rstrip("uUlL").replace("_", "")
            return int(digits, 10 if digits.isdigit() else 0)
        case "identifier" | "member_access_expression":
            return names.get(text.rpartition(".")[2].strip(" @"))
        case "invocation_expression" if text.startswith("nameof"):
            return text[len("nameof") :].strip("() \t\r\n").rpartition(".")[2]
        case "parenthesized_expression" | "cast_expression":
            return constant(node.named_children[-1], names)
        case "prefix_unary_expression":
            value = constant(node.named_children[-1], names)
            return -value if isinstance(value, int) and text[0] == "-" else None
    return None


def decode_string(literal: str) -> str:
    """Return what a literal without holes stands for: regular, verbatim or raw."""
    marks, text = literal.split('"', 1)
    if "@" in marks:
        return text[:-1].replace('""', '"')
    if not text.startswith('""'):
        return unescape(text[:-1], _ESCAPE, _SIMPLE)
    inside = text.lstrip('"')
    quotes = 1 + len(text) - len(inside)
    lines = inside[:-quotes].replace("\r\n", "\n").split("\n")
    if len(lines) == 1:
        return lines[0]
    # The indentation of the last line is cut from all, because it stands before the quotes.
    return "\n".join(line.removeprefix(lines[-1]) for line in lines[1:-1])


_NEVER_WRAPPED: Final = frozenset({"string", "String", "Uri"})
"""What ``Nullable<T>`` does not take: types that are null by themselves."""


def type_ref(node: Node) -> TypeRef:
    """Return the type that ``node`` spells."""
    return replace(_read_type(node), line=node.start_point.row + 1)


def _read_type(node: Node) -> TypeRef:
    match node.type, [child for child in node.named_children if child.type != "comment"]:
        case "nullable_type", [inner, *_]:
            return replace(_read_type(inner), nullable=True)
        case "array_type", [inner, *_]:
            rank = node.child_by_field_name("rank")
            return TypeRef(f"[{',' * text_of(rank or node).count(',')}]", (_read_type(inner),))
        case "generic_name", [name, arguments]:
            args = [child for child in arguments.named_children if child.type != "comment"]
            if text_of(name) == "Nullable" and args and text_of(args[0]) not in _NEVER_WRAPPED:
                return replace(_read_type(args[0]), nullable=True)
            return TypeRef(text_of(name).removeprefix("@"), tuple(map(_read_type, args)))
        case "qualified_name" | "alias_qualified_name", [before, name]:
            reference = _read_type(name)
            is_wrapper = reference.nullable  # Then it is what stands in ``System.Nullable``.
            qualifier = "" if is_wrapper else "".join(text_of(before).split())
            return replace(reference, qualifier=qualifier or reference.qualifier)
    return TypeRef(text_of(node).strip().removeprefix("@"))


def read_attributes(node: Node, constants: Mapping[str, Constant]) -> tuple[Attribute, ...]:
    """Return the attributes of a declaration, a member or a parameter, where they say something.

    Those of the serializer say nothing on a backing field, and nothing on a parameter, because it
    looks at the property that a positional parameter declares.
    """
    attributes = []
    for part in node.named_children:
        target = ""
        for child in part.named_children if part.type == "attribute_list" else ():
            if child.type == "attribute_target_specifier":
                target = text_of(child).rstrip(": \t\r\n")
            elif child.type == "attribute":
                attribute = _attribute(child, constants)
                is_parameter = node.type == "parameter"
                is_lost = target != "property" if is_parameter else target == "field"
                if not (is_lost and attribute.name.startswith("Json")):
                    attributes.append(attribute)
    return tuple(attributes)


def _attribute(node: Node, constants: Mapping[str, Constant]) -> Attribute:
    values: list[Constant] = []
    types: list[TypeRef] = []
    listed = next((part for part in node.named_children if part.type.endswith("_list")), None)
    for argument in listed.named_children if listed else ():
        if argument.type == "attribute_argument" and argument.named_children:
            value = argument.named_children[-1]
            if not any(child.type == "=" for child in argument.children):
                values.append(constant(value, constants))
            if value.type == "typeof_expression" and value.named_children:
                types.append(type_ref(value.named_children[-1]))
    full = "".join(text_of(node.child_by_field_name("name") or node).split())
    name = re.split(r"\.|::", full)[-1]
    # One of another serializer keeps its qualifier, because it says nothing to this one.
    name = full if "Newtonsoft." in full else name.removesuffix("Attribute") or name
    text = text_of(listed) if listed else ""
    return Attribute(name, tuple(values), node.start_point.row + 1, tuple(types), text)
