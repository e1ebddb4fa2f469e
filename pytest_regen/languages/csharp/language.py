"""C# as a target language."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, Ref, Scalar, TypeExpr
from pytest_regen.errors import UsageError
from pytest_regen.languages import base, samples
from pytest_regen.languages.csharp import names, rules, types, writer
from pytest_regen.languages.csharp.names import RESERVED_TYPE_NAMES
from pytest_regen.languages.runner import Runner
from pytest_regen.regions.markers import Comment

NOUNS: Final = base.Nouns(object="class", enum="enum", member="property", value="member")

PROFILES: Final = ("default", "xchange")
"""``default`` uses attributes of .NET alone; ``xchange`` adds ``PrimaryKey`` and ``Nullable``."""

_MEMBER_RULES: Final = """\
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

_ENUM_RULES: Final = """\
An enum whose values are strings is declared [JsonConverter(typeof(JsonStringEnumConverter))] and \
each member has [JsonStringEnumMemberName("...")] with the value exactly as given.
An enum whose values are integers has neither; each member is written Name = number. Where the \
request says that values exceed 32 bits, the enum is declared with : long.
Strings and integers in one enum: a string is written as in a string enum, an integer as a number, \
and the enum is declared with the converter.
Put a comma after every enum member, the last one too: other pages are joined to it."""

_LIMIT_RULES: Final = """\
Write no using directives, no namespace and no file header: the file has them already (System, \
System.Collections.Generic, System.ComponentModel, System.ComponentModel.DataAnnotations, \
System.Text.Json, System.Text.Json.Serialization).
Escape text inside string literals as C# requires: quotes, backslashes and line ends."""

_KEY_RULES: Final[Mapping[str, str]] = {
    "default": "The field flagged primary-key also takes [Key].",
    "xchange": """\
Where the request names a PRIMARY KEY, the class itself takes [PrimaryKey("json_name", \
nameof(Identifier))] on page 1. No other class takes it.
A property whose type ends in a question mark also takes [Nullable(true)].""",
}

_KITE: Final = samples.type_of(
    name="KiteDataObject",
    kind="object",
    primary_key="kite_id",
    fields=(
        samples.needed(
            json_name="kite_id", type=Scalar(kind="integer"), description="Number sewn on the kite."
        ),
        FieldIR(json_name="tail-colour", type=Ref(name="KiteColour")),
    ),
)
_REEL: Final = samples.type_of(
    name="KiteString",
    kind="object",
    fields=(
        samples.needed(json_name="metres", type=Scalar(kind="number")),
        FieldIR(json_name="knots", type=ArrayOf(items=Scalar(kind="string"))),
    ),
)


@cache
def wording(profile: str = "default") -> base.Wording:
    """Return the words for ``profile``.

    Raises:
        UsageError: there is no such profile.
    """
    base.check_profile(profile, PROFILES, "C#")
    return base.Wording(
        title="C# 13 for .NET 9 with System.Text.Json and nullable reference types",
        nouns=NOUNS,
        rules=tuple(
            "\n".join((_MEMBER_RULES, _KEY_RULES[profile], _ENUM_RULES, _LIMIT_RULES)).splitlines()
        ),
        begin_delimiter="// BEGIN_FIELDS",
        end_delimiter="// END_FIELDS",
        fence="csharp",
        examples=samples.write_samples(writer.write_page, profile, _KITE, _REEL),
        field_characters=95,
        value_characters=50,
    )


_TYPE: Final = r"(?<![\w.:])({})(?=[?>\[]|\s+[\w@])"
_GENERIC: Final = r"(?<![\w.:])({})(?=<)"
_ATTRIBUTE: Final = r"(?:\[(?:\w+:\s*)?|,\s*(?=\w+\())({})\b"
_OF_ALL: Final = {
    "System": _TYPE.format("DateOnly|DateTime|DateTimeOffset|Guid|TimeOnly|TimeSpan|Uri"),
    "System.Collections.Generic": _GENERIC.format(r"I?(?:ReadOnly)?(?:Collection|Dictionary|List)"),
    "System.Text.Json": _TYPE.format("JsonElement"),
    "System.Text.Json.Serialization": _ATTRIBUTE.format(r"Json\w+"),
}
_USINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "default": _OF_ALL
    | {
        "System.ComponentModel": _ATTRIBUTE.format("DefaultValue|Description"),
        "System.ComponentModel.DataAnnotations": _ATTRIBUTE.format("Key|Required"),
    },
    # Nullable, Required and Description come from the schema generator here: with the usings of
    # the default profile beside it, [Required] would be ambiguous. PrimaryKey is the SDK's.
    "xchange": _OF_ALL
    | {
        "Json.Schema.Generation": _ATTRIBUTE.format("Description|Nullable|Required"),
        "Xchange.Connector.SDK.CacheWriter": _ATTRIBUTE.format("PrimaryKey"),
    },
}
"""By profile the usings of the header, and where code names what each is for, in group 1."""

_USING_ADVICE: Final = (
    "put the line back at the top of the file; where another file of the project has it as a "
    "global using, leave MISSING_USING out with `ignore`"
)

_USING: Final = re.compile(r"^[ \t\ufeff]*(?:global\s+)?using\s+([\w.:\s]+?)\s*;", re.MULTILINE)
_TEXTS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//.*')
_NAMESPACE = re.compile(r"@?[^\W\d]\w*(\.@?[^\W\d]\w*)*")


def _usings(profile: str) -> list[str]:
    """Return the namespaces of the header, those of .NET first."""
    return sorted(_USINGS[profile], key=lambda using: (not using.startswith("System"), using))


def header(*, namespace: str, profile: str) -> str:
    """Return the lines before the first boundary, without a final line end.

    Args:
        namespace: a dotted name, or "" for the global namespace.
        profile: ``default`` (base class library only) or ``xchange``.

    Raises:
        UsageError: the namespace is no dotted name, or the profile is unknown.
    """
    base.check_profile(profile, PROFILES, "C#")
    if namespace and _NAMESPACE.fullmatch(namespace) is None:
        raise UsageError(
            f"{namespace!r} is not a C# namespace",
            hint="use identifiers joined by dots, e.g. --namespace Acme.Projects",
        )
    lines = ["#nullable enable", "", *(f"using {using};" for using in _usings(profile))]
    if namespace:
        lines += ["", f"namespace {namespace};"]
    return "\n".join(lines)


def missing_in_header(
    outside: str, blocks: Mapping[str, str], *, profile: str
) -> Sequence[base.HeaderLine]:
    """Return the usings of the header that are gone although a block needs them.

    See ``Language.missing_in_header``. Qualified names need none, and a global using of the file
    itself will do.
    """
    present = {re.sub(r"\s|global::", "", name) for name in _USING.findall(outside)}
    lines = []
    for using in [using for using in _usings(profile) if using not in present]:
        for name, text in blocks.items():
            # Without texts and comments, because a description may be about dates.
            match = re.search(_USINGS[profile][using], _TEXTS.sub('""', text))
            if match:
                lines.append(base.HeaderLine(f"using {using};", match[1], name, _USING_ADVICE))
                break
    return lines


class CSharp:
    """C#, as ``languages.base.Language`` describes it."""

    name: str = "csharp"
    suffix: str = ".cs"
    comment: Comment = Comment("//")
    fence_tags: frozenset[str] = frozenset({"c#", "cs", "csharp"})
    reserved_type_names: frozenset[str] = RESERVED_TYPE_NAMES
    object_kinds: frozenset[str] = frozenset({"class", "record", "struct"})
    nouns: base.Nouns = NOUNS
    syntax: base.Syntax = base.Syntax(
        comment_marks=("/*", "*/"),
        attribute_line=re.compile(r"\[.*\]"),
        declares=re.compile(r"[{=]|record"),
    )
    has_unions: bool = False
    redeclared: str = "take it out, give it another name, or make both declarations partial"

    type_name = staticmethod(names.type_name)
    member_names = staticmethod(names.member_names)
    is_legal_type_name = staticmethod(names.is_type_identifier)
    show_type = staticmethod(types.show_type)
    is_known = staticmethod(types.is_known)
    write_page = staticmethod(writer.write_page)
    header = staticmethod(header)
    missing_in_header = staticmethod(missing_in_header)
    wording = staticmethod(wording)
    missing_wire_name = staticmethod(rules.missing_wire_name)
    absence_fault = staticmethod(rules.absence_fault)
    rules = staticmethod(rules.rules)
    read = base.Later("csharp.reader")
    stitch, unwrap_page, split, illegality, leaves = base.Later.each("csharp.pages", 5)
    weakens = base.Later("csharp.guard")

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire.

        The converter of System.Text.Json refuses an enum with a member whose name is empty, or
        begins or ends with white space (dotnet/runtime#107367).
        """
        return bool(value) and value == value.strip()

    def spell(self, field: FieldIR, *, profile: str = "default") -> str:
        """Return the spelling of the field's type that prompts ask for, ``?`` included."""
        del profile  # Attributes differ, types do not.
        return types.spell(field)

    def accepts(
        self, expression: TypeExpr, spelled: base.TypeRef, declared: Mapping[str, base.Declaration]
    ) -> bool:
        """Return whether ``spelled`` can hold every value of ``expression``, nullability aside."""
        del declared  # What stands in the source changes nothing about a spelling.
        return types.accepts(expression, spelled)

    def runner(self, profile: str) -> Runner | None:
        """Return what runs code of the default profile; attributes of others are not at hand."""
        if profile != "default":
            return None
        from pytest_regen.languages.csharp.runner import CSharpRunner

        return CSharpRunner()
