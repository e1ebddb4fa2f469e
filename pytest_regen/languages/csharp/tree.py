"""C# text to a syntax tree, and from its nodes the values of constants, types and attributes."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
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
_NUMBERS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "-": operator.sub,
    "|": operator.or_,
    "<<": operator.lshift,
}
_SHIFT: Final = 64
"""Bits of a long: a number shifted further is none."""


def constant(node: Node, names: Mapping[str, Constant]) -> Constant:
    """Return the value of a constant expression, or ``None`` where it is not plain.

    Args:
        node: the expression.
        names: the constants that the source declares, by simple name.
    """
    text = text_of(node)
    match node.type:
        case "string_literal" | "verbatim_string_literal" | "raw_string_literal":
            return decode_string(text)
        case "interpolated_string_expression":
            has_hole = any(child.type == "interpolation" for child in node.named_children)
            return None if has_hole else _interpolate(text)
        case "integer_literal":
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
        case "binary_expression":
            return _combine(node, names)
    return None


def _combine(node: Node, names: Mapping[str, Constant]) -> Constant:
    sign = next((child.type for child in node.children if not child.is_named), "")
    values = [constant(child, names) for child in node.named_children if child.type != "comment"]
    match values:
        case [str(left), str(right)] if sign == "+":
            return left + right
        case [int(left), int(right)] if sign == "+":
            return left + right
        case [int(left), int(right)] if sign in _NUMBERS and (sign != "<<" or 0 <= right < _SHIFT):
            return _NUMBERS[sign](left, right)
    return None


def decode_string(literal: str) -> str:
    """Return what a literal without holes stands for: regular, verbatim or raw; ``u8`` allowed."""
    literal = literal.removesuffix("u8")
    if literal.startswith('@"'):
        return literal[2:-1].replace('""', '"')
    if not literal.startswith('"""'):
        return unescape(literal[1:-1], _ESCAPE, _SIMPLE)
    quotes = len(literal) - len(literal.lstrip('"'))
    lines = literal[quotes:-quotes].replace("\r\n", "\n").split("\n")
    if len(lines) == 1:
        return lines[0]
    # The indentation of the last line is cut from all, because it stands before the quotes.
    return "\n".join(line.removeprefix(lines[-1]) for line in lines[1:-1])


def _interpolate(text: str) -> str:
    prefix = text[: text.index('"')]
    value = decode_string(("@" if "@" in prefix else "") + text[len(prefix) :])
    return value.replace("{{", "{").replace("}}", "}") if prefix.count("$") == 1 else value


_NEVER_WRAPPED: Final = frozenset({"string", "String", "object", "Object", "dynamic", "Uri"})
"""What ``Nullable<T>`` does not take: types that are null by themselves."""
_MANY: Final = 4096
_types: dict[bytes, TypeRef] = {}


def type_ref(node: Node) -> TypeRef:
    """Return the type that ``node`` spells."""
    text = node.text or b""
    reference = _types.get(text)
    if reference is None:
        reference = _read_type(node)
        if len(_types) < _MANY:  # Nearly all types of a source are the same few.
            _types[text] = reference
    return replace(reference, line=node.start_point.row + 1)


def _read_type(node: Node) -> TypeRef:
    match node.type, [child for child in node.named_children if child.type != "comment"]:
        case "nullable_type", [inner, *_]:
            return replace(_read_type(inner), nullable=True)
        case "array_type", [inner, *_]:
            rank = node.child_by_field_name("rank")
            return TypeRef(f"[{',' * text_of(rank or node).count(',')}]", (_read_type(inner),))
        case "generic_name", [name, arguments]:
            args = tuple(
                _read_type(child) for child in arguments.named_children if child.type != "comment"
            )
            if text_of(name) == "Nullable" and len(args) == 1 and _is_wrapped(args[0]):
                return replace(args[0], nullable=True)
            return TypeRef(text_of(name).removeprefix("@"), args)
        case "qualified_name" | "alias_qualified_name", [before, name]:
            reference = _read_type(name)
            is_wrapper = reference.nullable and name.type == "generic_name"
            qualifier = "" if is_wrapper else "".join(text_of(before).split())
            return replace(reference, qualifier=qualifier or reference.qualifier)
    return TypeRef(text_of(node).strip().removeprefix("@"))


def _is_wrapped(reference: TypeRef) -> bool:
    return not (reference.args or reference.nullable or reference.name in _NEVER_WRAPPED)


def read_attributes(node: Node, constants: Mapping[str, Constant]) -> Iterator[Attribute]:
    """Yield the attributes of a declaration, a member or a parameter, where they say something.

    Those of a backing field do not, nor those of the serializer on a parameter, because it looks
    at the property that a positional parameter declares.
    """
    is_field = node.type not in {"property_declaration", "parameter"}
    for part in node.named_children:
        if part.type != "attribute_list":
            continue
        target = ""
        for child in part.named_children:
            if child.type == "attribute_target_specifier":
                target = text_of(child).rstrip(": \t\r\n")
            elif child.type == "attribute" and (is_field or target != "field"):
                attribute = _attribute(child, constants)
                is_lost = node.type == "parameter" and target != "property"
                if not (is_lost and attribute.name.startswith("Json")):
                    yield attribute


def _attribute(node: Node, constants: Mapping[str, Constant]) -> Attribute:
    values: list[Constant] = []
    types: list[TypeRef] = []
    listed = [child for child in node.named_children if child.type == "attribute_argument_list"]
    for argument in listed[0].named_children if listed else ():
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
    text = text_of(listed[0]) if listed else ""
    return Attribute(name, tuple(values), node.start_point.row + 1, tuple(types), text)
