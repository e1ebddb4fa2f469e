"""The C# of one page, written from the IR: what its prompt asks for, in the words of the prompt."""

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.documents.ir import EnumValue, TypeIR
from pytest_regen.languages.csharp.names import member_names
from pytest_regen.languages.csharp.types import spell
from pytest_regen.languages.names import first_sentence
from pytest_regen.prompts.values import OutputMode
from pytest_regen.text import quoted

_INDENT: Final = "    "
_INT32: Final = range(-(2**31), 2**31)


def write_page(type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str) -> str:
    """Return the code of one page; see ``Language.write_page``."""
    members = [*_members(type_, units, profile)]
    if mode in {"fields_only", "enum_values_only"}:
        return "\n".join(("// BEGIN_FIELDS", *members, "// END_FIELDS"))
    key, values, head = type_.primary_key, type_.enum_values, []
    if profile == "xchange" and key is not None and key in type_.units:
        head.append(f"[PrimaryKey({quoted(key)}, nameof({member_names(type_)[key]}))]")
    if any(isinstance(value, str) for value in values):
        head.append("[JsonConverter(typeof(JsonStringEnumConverter))]")
    head += _description(type_.description, indent="")
    is_wide = any(isinstance(value, int) and value not in _INT32 for value in values)
    keyword, base = "enum" if type_.kind == "enum" else "class", " : long" if is_wide else ""
    head.append(f"public {keyword} {type_.name}{base}")
    return "\n".join((*head, "{", *members, "}"))


def _members(type_: TypeIR, units: Sequence[EnumValue], profile: str) -> Iterator[str]:
    names = member_names(type_)
    fields = {field.json_name: field for field in type_.fields}
    for number, unit in enumerate(units):
        if type_.kind == "enum":
            is_text = isinstance(unit, str)
            yield from [f"{_INDENT}[JsonStringEnumMemberName({quoted(unit)})]"] if is_text else []
            yield f"{_INDENT}{names[unit]}{'' if is_text else f' = {unit}'},"
            continue
        # A blank line, because each property has several lines.
        if number:
            yield ""
        field = fields[str(unit)]
        spelled = spell(field)
        is_nullable = spelled.endswith("?")
        yield f"{_INDENT}[JsonPropertyName({quoted(field.json_name)})]"
        yield from _description(field.description, indent=_INDENT)
        if field.required and not is_nullable:
            yield f"{_INDENT}[Required]"
        if profile == "xchange" and is_nullable:
            yield f"{_INDENT}[Nullable(true)]"
        if profile == "default" and field.json_name == type_.primary_key:
            yield f"{_INDENT}[Key]"
        required = "required " if field.required else ""
        yield f"{_INDENT}public {required}{spelled} {names[unit]} {{ get; init; }}"


def _description(text: str | None, *, indent: str) -> Iterator[str]:
    if text:
        yield f"{indent}[Description({quoted(first_sentence(text))})]"
