"""The right C# for a whole type, written from its IR."""

import json

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages import find_language

__all__ = ["write_csharp"]


def write_csharp(type_: TypeIR) -> str:
    """Return the declaration that the prompts ask for."""
    csharp = find_language("csharp")
    names = csharp.member_names(type_)
    lines: list[str] = []
    for value in type_.enum_values:
        if isinstance(value, str):
            lines += [
                f"    [JsonStringEnumMemberName({json.dumps(value)})]",
                f"    {names[value]},",
            ]
        else:
            lines.append(f"    {names[value]} = {value},")
    for field in type_.fields:
        spelled = csharp.spell(field)
        lines.append(f"    [JsonPropertyName({json.dumps(field.json_name)})]")
        required = "required " if field.required else ""
        if required and not spelled.endswith("?"):
            lines.append("    [Required]")
        lines.append(f"    public {required}{spelled} {names[field.json_name]} {{ get; init; }}")
    has_text = any(isinstance(value, str) for value in type_.enum_values)
    head = ["[JsonConverter(typeof(JsonStringEnumConverter))]"] if has_text else []
    word = "enum" if type_.kind == "enum" else "class"
    return "\n".join((*head, f"public {word} {type_.name}", "{", *lines, "}"))
