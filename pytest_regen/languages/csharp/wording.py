"""What prompts say about C#: rules and examples, per profile."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from pytest_regen.errors import UsageError
from pytest_regen.languages.wording import Wording
from pytest_regen.prompts.values import OutputMode

__all__ = ["PROFILES", "wording"]

PROFILES: Final = ("default", "xchange")
"""``default`` uses attributes of .NET alone; ``xchange`` adds ``PrimaryKey`` and ``Nullable``."""

_MEMBERS: Final = """\
Write [JsonPropertyName("...")] on every property, with json_name exactly as given: never change \
its case, its spelling or its punctuation. Name the property as identifier says.
Write [Description("...")] on every property that has a description: the text as a C# string \
literal on one line; of a text longer than 200 characters its first sentence alone. Leave the \
attribute out otherwise.
Where the request has a DESCRIPTION, write [Description("...")] by the same rule on the class or \
enum itself, where it is declared.
Write public properties with { get; init; } in a public class. Add no constructor, method, base \
class, interface, constant or nested type.
Write the type exactly as type says, with its question mark if it has one and without one if it \
has none; nullability is part of it.
A field flagged required takes the keyword required. Where its type has no question mark, it takes \
[Required] as well.
A field flagged deprecated, read-only or write-only is a property like any other."""

_ENUMS: Final = """\
An enum whose values are strings is declared [JsonConverter(typeof(JsonStringEnumConverter))] and \
each member has [JsonStringEnumMemberName("...")] with the value exactly as given.
An enum whose values are integers has neither; each member is written Name = number. Where the \
request says that values exceed 32 bits, the enum is declared with : long.
Strings and integers in one enum: a string is written as in a string enum, an integer as a number, \
and the enum is declared with the converter.
Put a comma after every enum member, the last one too: other pages are joined to it."""

_LIMITS: Final = """\
Write no using directives, no namespace and no file header: the file has them already (System, \
System.Collections.Generic, System.ComponentModel, System.ComponentModel.DataAnnotations, \
System.Text.Json, System.Text.Json.Serialization).
Escape text inside string literals as C# requires: quotes, backslashes and line ends."""

_KEYS: Final[Mapping[str, str]] = {
    "default": "The field flagged primary-key also takes [Key].",
    "xchange": """\
Where the request names a PRIMARY KEY, the class itself takes [PrimaryKey("json_name", \
nameof(Identifier))] on page 1. No other class takes it.
A property whose type ends in a question mark also takes [Nullable(true)].""",
}

_ID_PROPERTY: Final[Mapping[str, str]] = {
    "default": """\
    [JsonPropertyName("kite_id")]
    [Description("Number sewn on the kite.")]
    [Required]
    [Key]
    public required long KiteId { get; init; }
""",
    "xchange": """\
    [JsonPropertyName("kite_id")]
    [Description("Number sewn on the kite.")]
    [Required]
    public required long KiteId { get; init; }
""",
}

_MARK: Final[Mapping[str, str]] = {"default": "", "xchange": "    [Nullable(true)]\n"}


@cache
def wording(profile: str = "default") -> Wording:
    """Return the words for ``profile``.

    Raises:
        UsageError: there is no such profile.
    """
    if profile not in PROFILES:
        raise UsageError(
            f"unknown profile {profile!r} for C#",
            why="the profile decides which attributes the prompts ask for",
            hint=f"use --profile with one of: {', '.join(PROFILES)}",
        )
    return Wording(
        title="C# 13 for .NET 9 with System.Text.Json and nullable reference types",
        object_noun="class",
        rules=tuple("\n".join((_MEMBERS, _KEYS[profile], _ENUMS, _LIMITS)).splitlines()),
        begin_delimiter="// BEGIN_FIELDS",
        end_delimiter="// END_FIELDS",
        fence="csharp",
        examples=_examples(profile),
        field_characters=95,
        value_characters=50,
    )


def _examples(profile: str) -> dict[OutputMode, str]:
    mark = _MARK[profile]
    class_key = '[PrimaryKey("kite_id", nameof(KiteId))]\n' if profile == "xchange" else ""
    return {
        "full_class": (
            f"{class_key}public class KiteDataObject\n{{\n{_ID_PROPERTY[profile]}\n"
            '    [JsonPropertyName("tail-colour")]\n'
            f"{mark}    public KiteColour? TailColour {{ get; init; }}\n}}"
        ),
        "class_only": (
            'public class KiteString\n{\n    [JsonPropertyName("metres")]\n    [Required]\n'
            "    public required double Metres { get; init; }\n}"
        ),
        "fields_only": (
            '// BEGIN_FIELDS\n    [JsonPropertyName("knots")]\n'
            f"{mark}    public IReadOnlyList<string>? Knots {{ get; init; }}\n// END_FIELDS"
        ),
        "enum_only": (
            "[JsonConverter(typeof(JsonStringEnumConverter))]\npublic enum KiteColour\n{\n"
            '    [JsonStringEnumMemberName("sky-blue")]\n    SkyBlue,\n}'
        ),
        "enum_values_only": (
            '// BEGIN_FIELDS\n    [JsonStringEnumMemberName("moss green")]\n    MossGreen,\n'
            "// END_FIELDS"
        ),
    }
