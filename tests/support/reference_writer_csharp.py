"""C# as the reference writer writes it: strings, members, declarations, replies."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from reference_writer_request import PageRequest, Unit


@dataclass(frozen=True, slots=True)
class Style:
    """One accepted way to write a page; every choice is independent of the others."""

    name: str
    shape: Literal["class", "record", "positional"] = "class"
    modifiers: str = "public"
    accessor: Literal["init", "set"] = "init"
    required: Literal["keyword", "default!"] = "keyword"
    comments: Literal["none", "xml", "everywhere"] = "none"
    descriptions: bool = True
    newline: str = "\n"
    indent: str = "    "
    byte_order_mark: bool = False
    reply: Literal["fenced", "long", "tilde", "bare", "prose"] = "fenced"
    continuation: Literal["delimited", "bare", "wrapped"] = "delimited"
    trailing_comma: bool = True


STYLES: tuple[Style, ...] = (
    Style("as_asked"),
    Style("plain_class", accessor="set", required="default!", reply="bare", continuation="bare"),
    Style("documented", comments="xml", reply="prose", trailing_comma=False),
    Style("record", shape="record", modifiers="public sealed partial", continuation="wrapped"),
    Style("positional", shape="positional", comments="xml", reply="tilde", continuation="wrapped"),
    Style("windows", newline="\r\n", indent="\t", byte_order_mark=True, reply="bare"),
    Style("commented", comments="everywhere", reply="long", continuation="wrapped"),
)


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
    has_wire_name: bool = True
    edit: Callable[[str], str] = str
    """Changes the member's finished text."""


@dataclass(slots=True)
class Draft:
    """One page about to be written; a mistake changes it."""

    request: PageRequest
    style: Style
    members: list[Member]
    type_name: str
    loose: list[str] = field(default_factory=list)
    """Lines put after the members, inside the declaration."""
    class_key: bool = True
    has_converter: bool = True
    edit_code: Callable[[str], str] = str
    edit_reply: Callable[[str], str] = str


def draft_of(request: PageRequest, style: Style) -> Draft:
    """Return the page as it should be, before it is written down."""
    members = [_member(unit, request) for unit in request.units]
    return Draft(request, style, members, request.type_name)


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


def csharp_string(text: str) -> str:
    """Return a C# literal of ``text``."""
    return '"' + "".join(map(_escaped, text)) + '"'


@cache
def _is_special(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@cache
def _escaped(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if _is_special(character):
        code = ord(character)
        return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
    return character


# -- members and declarations ------------------------------------------------------------------


def _attribute_lines(pairs: Iterable[tuple[str, str]], target: str = "") -> list[str]:
    """Return attribute lists, one per line."""
    return [
        f"[{target}{name}({argument})]" if argument else f"[{target}{name}]"
        for name, argument in pairs
    ]


def _property_attributes(member: Member, draft: Draft) -> Iterator[tuple[str, str]]:
    style = draft.style
    if member.has_wire_name:
        yield "JsonPropertyName", csharp_string(str(member.wire))
    if member.description and style.descriptions:
        yield "Description", csharp_string(_sentence(member.description))
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
    accessors = f"{{ get; {style.accessor}; }}"
    declared = f"public {keyword}{member.type} {member.identifier} {accessors}" + (
        " = default!;" if promised and not member.type.endswith("?") else ""
    )
    lines = [
        *_comment(member, style, number),
        *_attribute_lines(_property_attributes(member, draft)),
    ]
    return member.edit("\n".join([*lines, declared]))


def _parameter(member: Member, draft: Draft, number: int) -> str:
    attributes = _attribute_lines(_property_attributes(member, draft), "property: ")
    lines = [f"// parameter {number}"] if draft.style.comments != "none" else []
    return member.edit("\n".join([*lines, *attributes, f"{member.type} {member.identifier}"]))


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
    positional = request.is_first and style.shape == "positional"
    render = _parameter if positional else _property
    members = [render(member, draft, number) for number, member in enumerate(draft.members)]
    if positional:
        return _positional(draft, members)
    body = _indented("\n\n".join([*members, *draft.loose]).split("\n"), style)
    if not request.is_first and style.continuation != "wrapped":
        return _delimited(body, style)
    head = "\n".join([*_class_attributes(draft), _head(draft)])
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
        lines += _attribute_lines(_described(draft))
    if not (request.is_xchange and request.primary_key and request.is_first and draft.class_key):
        return lines
    name, identifier = request.primary_key
    return [*lines, f"[PrimaryKey({csharp_string(name)}, nameof({identifier}))]"]


def _head(draft: Draft) -> str:
    keyword = "class" if draft.style.shape == "class" else "record"
    return f"{draft.style.modifiers} {keyword} {draft.type_name}"


def _positional(draft: Draft, parameters: Sequence[str]) -> str:
    head = "\n".join([*_class_attributes(draft), _head(draft)])
    listed = ",\n".join(parameters)
    opening = f"(\n{_indented(listed.split(chr(10)), draft.style)}\n)" if parameters else "()"
    return f"{head}{opening};"


def _enum(draft: Draft) -> str:
    request, style = draft.request, draft.style
    members = [_value(member, draft, number) for number, member in enumerate(draft.members)]
    if members and not style.trailing_comma:
        members[-1] = members[-1].removesuffix(",")
    body = _indented("\n".join([*members, *draft.loose]).split("\n"), style)
    if not request.is_first and style.continuation != "wrapped":
        return _delimited(body, style)
    base = " : long" if request.value_kind.endswith("exceeding 32 bits") else ""
    pairs = []
    if draft.has_converter and request.value_kind.startswith("strings"):
        pairs = [("JsonConverter", "typeof(JsonStringEnumConverter)")]
    pairs += _described(draft) if request.is_first else []
    head = [*_attribute_lines(pairs), f"public enum {draft.type_name}{base}"]
    return "\n".join([*head, "{", *([body] if body else []), "}"])


def _value(member: Member, draft: Draft, number: int) -> str:
    style = draft.style
    if isinstance(member.wire, int):
        lines = [f"{member.identifier} = {member.wire},"]
    else:
        wire = csharp_string(member.wire)
        lines = _attribute_lines([("JsonStringEnumMemberName", wire)])
        lines.append(f"{member.identifier},")
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
        case _:
            return f"```csharp\n{code}\n```"
