"""C# as the reference writer writes it: strings, types, members, declarations, replies."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from reference_writer_request import PageRequest, Unit
from reference_writer_styles import Style

__all__ = ["Draft", "Member", "csharp_string", "draft_of", "map_type", "write"]

_FRAMEWORK = {
    "bool": "Boolean",
    "byte": "Byte",
    "decimal": "Decimal",
    "double": "Double",
    "float": "Single",
    "int": "Int32",
    "long": "Int64",
    "object": "Object",
    "sbyte": "SByte",
    "short": "Int16",
    "string": "String",
    "uint": "UInt32",
    "ulong": "UInt64",
    "ushort": "UInt16",
}
_NAMESPACES = {
    **dict.fromkeys([*_FRAMEWORK.values()], "System"),
    **dict.fromkeys(
        ["DateTimeOffset", "DateOnly", "TimeOnly", "Guid", "Uri", "TimeSpan", "DateTime"], "System"
    ),
    **dict.fromkeys(
        ["List", "IReadOnlyList", "Dictionary", "IReadOnlyDictionary", "IDictionary"],
        "System.Collections.Generic",
    ),
    "JsonElement": "System.Text.Json",
}
_ATTRIBUTE_NAMESPACES = {
    "JsonPropertyName": "System.Text.Json.Serialization",
    "JsonConverter": "System.Text.Json.Serialization",
    "JsonStringEnumMemberName": "System.Text.Json.Serialization",
    "Description": "System.ComponentModel",
    "Required": "System.ComponentModel.DataAnnotations",
    "Key": "System.ComponentModel.DataAnnotations",
}
_SEQUENCES = {"List", "IList", "IReadOnlyList"}
_MAPS = {"Dictionary", "IDictionary", "IReadOnlyDictionary"}
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_DISTRACTIONS = (
    '// } a brace, and an open quote " that mean nothing {',
    '/* [JsonPropertyName("ghost")] public string Ghost { get; set; } */',
    "// [REGEN:END Nothing]",
    "/*\n// END_FIELDS\n```\npublic class Ghost {\n*/",
    "// public class Ghost { public Phantom Ghost { get; set; } }",
)


@dataclass(slots=True)
class Member:
    """One member about to be written; a mistake changes it."""

    wire: str | int
    identifier: str
    type: str
    description: str = ""
    is_required: bool = False
    is_key: bool = False
    access: str = "public"
    accessors: str = ""
    """``{ get; }``, where they are not those of the style."""
    wire_attribute: str = ""
    """What carries the name on the wire, where it is not the attribute that does."""
    target: str | None = None
    """``property: `` or nothing, where it is not that of the style."""
    has_wire_name: bool = True
    has_comma: bool = True
    edit: Callable[[str], str] = str
    """Changes the member's finished text."""


@dataclass(slots=True)
class Draft:
    """One page about to be written; a mistake changes it."""

    request: PageRequest
    style: Style
    members: list[Member]
    type_name: str
    keyword: str = ""
    loose: list[str] = field(default_factory=list)
    """Lines put after the members, inside the declaration."""
    closes_before_last: bool = False
    class_key: bool = True
    converter: str | None = None
    """The converter of an enum where it is not the right one; "" for none."""
    base: str | None = None
    """What an enum is based on where it is not what the request says."""
    edit_code: Callable[[str], str] = str
    edit_reply: Callable[[str], str] = str


def draft_of(request: PageRequest, style: Style) -> Draft:
    """Return the page as it should be, before it is written down."""
    units = list(request.units)
    if style.order == "reversed":
        units.reverse()
    elif style.order == "sorted":
        units.sort(key=lambda unit: unit.identifier)
    return Draft(request, style, [_member(unit, request) for unit in units], request.type_name)


def _member(unit: Unit, request: PageRequest) -> Member:
    flagged = "primary-key" in unit.flags and not request.is_xchange
    required = "required" in unit.flags
    return Member(unit.wire, unit.identifier, unit.type, unit.description, required, flagged)


def write(draft: Draft) -> str:
    """Return the reply that holds the page."""
    code = draft.edit_code(_enum(draft) if draft.request.is_enum else _object(draft))
    reply = draft.edit_reply(_reply(code, draft.style))
    reply = re.sub(r"\r?\n", lambda _: draft.style.newline, reply)
    return "\ufeff" + reply if draft.style.byte_order_mark else reply


# -- strings and types -------------------------------------------------------------------------


def csharp_string(text: str, kind: str = "regular") -> str:
    """Return a C# literal of ``text``; a kind that cannot hold it gives way to a regular one."""
    plain = not any(map(_is_special, text))
    if kind == "verbatim" and plain:
        return '@"' + text.replace('"', '""') + '"'
    if kind == "raw" and plain and text.strip() and '"' not in text:
        return f'"""{text}"""'
    escape_all = kind == "escaped"
    return '"' + "".join(_escaped(character, escape_all=escape_all) for character in text) + '"'


@cache
def _is_special(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@cache
def _escaped(character: str, *, escape_all: bool) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if _is_special(character) or (escape_all and not character.isalnum()):
        code = ord(character)
        return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
    return character


def map_type(text: str, change: Callable[[str, list[str]], str]) -> str:
    """Return a spelled type rebuilt from the inside out, ``change`` given each name and arguments.

    ``[]`` is passed as a name with its element as the argument.
    """
    built, rest = _type(text, change)
    if rest.strip():
        raise ValueError(f"no type: {text!r}, from {rest!r} on")
    return built


def _type(text: str, change: Callable[[str, list[str]], str]) -> tuple[str, str]:
    match = re.match(r"\s*([^\s<>,\[\]?]+)", text)
    if match is None:
        raise ValueError(f"no type: {text!r}")
    arguments, rest = [], text[match.end() :]
    if rest.startswith("<"):
        while not rest.startswith(">"):
            argument, rest = _type(rest[1:], change)
            arguments.append(argument)
        rest = rest[1:]
    built = change(match[1], arguments)
    while rest.startswith(("?", "[]")):
        if rest.startswith("?"):
            built, rest = f"{built}?", rest[1:]
        else:
            built, rest = change("[]", [built]), rest[2:]
    return built, rest


def _restyled(text: str, style: Style) -> str:
    def change(name: str, arguments: list[str]) -> str:
        if name == "[]":
            return f"{arguments[0]}[]"
        if name in _SEQUENCES and len(arguments) == 1:
            # byte[] is base64 text on the wire, not an array of numbers.
            is_bytes = re.fullmatch(r"(System\.)?[Bb]yte", arguments[0])
            if style.array == "[]" and not is_bytes:
                return f"{arguments[0]}[]"
            name = name if style.array in {"[]", "as asked"} else style.array
        elif name in _MAPS and len(arguments) == 2:
            name = name if style.map == "as asked" else style.map
        elif style.types != "keyword":
            name = _FRAMEWORK.get(name, name)
        if style.types == "qualified" and name in _NAMESPACES:
            name = f"{_NAMESPACES[name]}.{name}"
        return f"{name}<{', '.join(arguments)}>" if arguments else name

    return map_type(text, change)


# -- members and declarations ------------------------------------------------------------------


def _attribute(name: str, argument: str, style: Style) -> str:
    if style.attributes == "suffixed":
        name += "Attribute"
    elif style.attributes == "qualified" and name in _ATTRIBUTE_NAMESPACES:
        name = f"{_ATTRIBUTE_NAMESPACES[name]}.{name}"
    return f"{name}({argument})" if argument else name


def _attribute_lines(pairs: Sequence[tuple[str, str]], style: Style, target: str) -> list[str]:
    """Return attribute lists: one per line, or all in one."""
    written = [_attribute(name, argument, style) for name, argument in pairs]
    if style.attributes == "combined":
        return [f"[{target}{', '.join(written)}]"] if written else []
    return [f"[{target}{attribute}]" for attribute in written]


def _property_attributes(member: Member, draft: Draft) -> Iterator[tuple[str, str]]:
    style = draft.style
    if member.has_wire_name:
        name = member.wire_attribute or "JsonPropertyName"
        yield name, csharp_string(str(member.wire), style.strings)
    if member.description and style.descriptions:
        yield "Description", csharp_string(_sentence(member.description), style.strings)
    if member.is_required and not member.type.endswith("?"):
        yield "Required", ""
    if member.is_key:
        yield "Key", ""
    if draft.request.is_xchange and member.type.endswith("?"):
        yield "Nullable", "true"


def _property(member: Member, draft: Draft, number: int) -> str:
    style = draft.style
    keyword = "required " if member.is_required and style.required == "keyword" else ""
    promised = member.is_required and style.required == "default!"
    spelled = _restyled(member.type, style)
    accessors = member.accessors or f"{{ get; {style.accessor}; }}"
    access = f"{member.access} " if member.access else ""
    declared = f"{access}{keyword}{spelled} {member.identifier} {accessors}" + (
        " = default!;" if promised and not member.type.endswith("?") else ""
    )
    target = "property: " if style.property_target else ""
    attributes = _attribute_lines(list(_property_attributes(member, draft)), style, target)
    if style.attributes == "inline":
        attributes = [" ".join([*attributes, declared])]
    else:
        attributes.append(declared)
    return member.edit("\n".join([*_comment(member, style, number), *attributes]))


def _parameter(member: Member, draft: Draft, number: int) -> str:
    attributes = _attribute_lines(
        list(_property_attributes(member, draft)),
        draft.style,
        "property: " if member.target is None else member.target,
    )
    spelled = _restyled(member.type, draft.style)
    lines = [f"// parameter {number}"] if draft.style.comments != "none" else []
    return member.edit("\n".join([*lines, *attributes, f"{spelled} {member.identifier}"]))


def _comment(member: Member, style: Style, number: int) -> list[str]:
    if style.comments == "none":
        return []
    text = member.description or str(member.wire)
    safe = "".join(" " if _is_special(character) else character for character in text)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    summary = ["/// <summary>", f"/// {safe}", "/// </summary>"]
    if style.comments == "xml":
        return summary
    return [*_DISTRACTIONS[number % len(_DISTRACTIONS)].split("\n"), *summary]


def _indented(lines: Sequence[str], style: Style) -> str:
    return "\n".join(
        # A fence or a delimiter inside a comment stands in the first column on purpose.
        line if not line or line.startswith("```") else style.indent + line
        for text in lines
        for line in text.split("\n")
    )


def _object(draft: Draft) -> str:
    request, style = draft.request, draft.style
    positional = request.is_first and style.shape.startswith("positional")
    render = _parameter if positional else _property
    members = [render(member, draft, number) for number, member in enumerate(draft.members)]
    if positional:
        return _positional(draft, members)
    body = _indented("\n\n".join([*members, *draft.loose]).split("\n"), style)
    if not request.is_first and style.continuation != "wrapped":
        return _delimited(body, style)
    head = "\n".join([*_class_attributes(draft), _head(draft)])
    if draft.closes_before_last:
        kept = _indented("\n\n".join(members[:-1]).split("\n"), style)
        return f"{head}\n{{\n{kept}\n}}\n{_indented(members[-1:], style)}"
    return f"{head}\n{{\n{body}\n}}" if body else f"{head}\n{{\n}}"


def _sentence(text: str) -> str:
    """Return what is written of a description: of a long one, its first sentence."""
    end = re.search(r"[.!?](?=\s)", text)
    return text[: end.end()] if end and len(text) > 200 else text


def _described(draft: Draft) -> list[tuple[str, str]]:
    """Return the attribute that describes the type itself, where it has a description."""
    if not (draft.request.description and draft.style.descriptions):
        return []
    return [("Description", csharp_string(_sentence(draft.request.description)))]


def _class_attributes(draft: Draft) -> list[str]:
    request = draft.request
    lines = [] if draft.style.comments == "none" else ["/// <summary>A type.</summary>"]
    if request.is_first:
        lines += _attribute_lines(_described(draft), draft.style, "")
    if not (request.is_xchange and request.primary_key and request.is_first and draft.class_key):
        return lines
    name, identifier = request.primary_key
    return [*lines, f"[PrimaryKey({csharp_string(name)}, nameof({identifier}))]"]


def _head(draft: Draft) -> str:
    keyword = draft.keyword or ("class" if draft.style.shape == "class" else "record")
    return f"{draft.style.modifiers} {keyword} {draft.type_name}"


def _positional(draft: Draft, parameters: Sequence[str]) -> str:
    head = "\n".join([*_class_attributes(draft), _head(draft)])
    listed = ",\n".join(parameters)
    opening = f"(\n{_indented(listed.split(chr(10)), draft.style)}\n)" if parameters else "()"
    if draft.style.shape == "positional_body":
        return f"{head}{opening}\n{{\n}}"
    return f"{head}{opening};"


def _enum(draft: Draft) -> str:
    request, style = draft.request, draft.style
    members = [_value(member, draft, number) for number, member in enumerate(draft.members)]
    if members and not style.trailing_comma:
        members[-1] = members[-1].removesuffix(",")
    body = _indented("\n".join([*members, *draft.loose]).split("\n"), style)
    if not request.is_first and style.continuation != "wrapped":
        return _delimited(body, style)
    keyword = draft.keyword or "enum"
    base = (
        " : long" if request.value_kind.endswith("exceeding 32 bits") and not draft.keyword else ""
    )
    base = base if draft.base is None else draft.base
    converter = (
        f"typeof(JsonStringEnumConverter<{draft.type_name}>)"
        if style.generic_converter
        else "typeof(JsonStringEnumConverter)"
    )
    pairs = [("JsonConverter", converter)] if request.value_kind.startswith("strings") else []
    if draft.converter is not None:
        pairs = [("JsonConverter", f"typeof({draft.converter})")] if draft.converter else []
    pairs += _described(draft) if request.is_first else []
    head = [*_attribute_lines(pairs, style, ""), f"public {keyword} {draft.type_name}{base}"]
    return "\n".join([*head, "{", *([body] if body else []), "}"])


def _value(member: Member, draft: Draft, number: int) -> str:
    style = draft.style
    comma = "," if member.has_comma else ""
    if isinstance(member.wire, int):
        lines = [f"{member.identifier} = {member.wire}{comma}"]
    else:
        wire = csharp_string(member.wire, style.strings)
        name = member.wire_attribute or "JsonStringEnumMemberName"
        lines = _attribute_lines([(name, wire)], style, "")
        lines.append(f"{member.identifier}{comma}")
        if style.attributes == "inline":
            lines = [" ".join(lines)]
    return member.edit("\n".join([*_comment(member, style, number), *lines]))


def _delimited(body: str, style: Style) -> str:
    return body if style.continuation == "bare" else f"// BEGIN_FIELDS\n{body}\n// END_FIELDS"


def _reply(code: str, style: Style) -> str:
    match style.reply:
        case "bare":
            return code
        case "long":
            return f"````csharp\n{code}\n````"
        case "tilde":
            return f"~~~csharp\n{code}\n~~~"
        case "prose":
            return (
                "Here is the type, with every field of the page:\n\n"
                f"```csharp\n{code}\n```\n\nIt uses `System.Text.Json` only."
            )
        case tag:
            return f"```{'' if tag == 'plain' else tag}\n{code}\n```"
