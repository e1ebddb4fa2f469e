"""The C# of one page, written from the IR: what its prompt asks for, in the words of the prompt."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeIR
from pytest_regen.languages.csharp.names import member_names
from pytest_regen.languages.csharp.types import spell
from pytest_regen.prompts.values import OutputMode

_INDENT: Final = "    "
_LONG: Final = 200
"""Of a description with more characters the first sentence is written."""
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)")
_INT32: Final = range(-(2**31), 2**31)
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that are not seen, or that would end the line."""


def write_page(type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str) -> str:
    """Return the code of one page; see ``Language.write_page``."""
    members = _values(type_, units) if type_.kind == "enum" else _properties(type_, units, profile)
    if mode in {"fields_only", "enum_values_only"}:
        return "\n".join(("// BEGIN_FIELDS", *members, "// END_FIELDS"))
    return "\n".join((*_heads(type_, profile), "{", *members, "}"))


def _heads(type_: TypeIR, profile: str) -> Iterator[str]:
    """Yield the attributes of a declaration, and its first line."""
    key = type_.primary_key
    if profile == "xchange" and key is not None and key in type_.units:
        yield f"[PrimaryKey({string_literal(key)}, nameof({member_names(type_)[key]}))]"
    if any(isinstance(value, str) for value in type_.enum_values):
        yield "[JsonConverter(typeof(JsonStringEnumConverter))]"
    yield from _description(type_.description, indent="")
    is_wide = any(isinstance(value, int) and value not in _INT32 for value in type_.enum_values)
    base = " : long" if is_wide else ""
    yield f"public {'enum' if type_.kind == 'enum' else 'class'} {type_.name}{base}"


def _values(type_: TypeIR, units: Sequence[EnumValue]) -> Iterator[str]:
    names = member_names(type_)
    for value in units:
        if isinstance(value, int):
            yield f"{_INDENT}{names[value]} = {value},"
        else:
            yield f"{_INDENT}[JsonStringEnumMemberName({string_literal(value)})]"
            yield f"{_INDENT}{names[value]},"


def _properties(type_: TypeIR, units: Sequence[EnumValue], profile: str) -> Iterator[str]:
    names = member_names(type_)
    fields = {field.json_name: field for field in type_.fields}
    for number, unit in enumerate(units):
        if number:
            yield ""
        field = fields[str(unit)]
        spelled = spell(field)
        yield f"{_INDENT}[JsonPropertyName({string_literal(field.json_name)})]"
        yield from _description(field.description, indent=_INDENT)
        is_key = field.json_name == type_.primary_key
        yield from (f"{_INDENT}[{name}]" for name in _marks(field, profile, is_key=is_key))
        required = "required " if field.required else ""
        yield f"{_INDENT}public {required}{spelled} {names[unit]} {{ get; init; }}"


def _marks(field: FieldIR, profile: str, *, is_key: bool) -> Iterator[str]:
    """Yield the attributes of a property about null, and about the key."""
    is_nullable = spell(field).endswith("?")
    if field.required and not is_nullable:
        yield "Required"
    if profile == "xchange":
        if is_nullable:
            yield "Nullable(true)"
    elif is_key:
        yield "Key"


def _description(text: str | None, *, indent: str) -> Iterator[str]:
    if text:
        end = _SENTENCE_END.search(text) if len(text) > _LONG else None
        yield f"{indent}[Description({string_literal(text[: end.end()] if end else text)})]"


def string_literal(text: str) -> str:
    """Return ``text`` as a regular C# string literal on one line."""
    return f'"{"".join(map(_escape, text))}"'


def _escape(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
