"""What only C# and its serializer ask of a type: names on the wire, converters, null, keys."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pytest_regen.documents.ir import FieldIR, Ref, Scalar, TypeIR
from pytest_regen.languages import base
from pytest_regen.languages.base import Attribute, Declaration, Member
from pytest_regen.languages.csharp.types import must_be_nullable, show_type, spell
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.validation.subject import Subject

_STRING_ENUM: Final = "[JsonConverter(typeof(JsonStringEnumConverter))]"
_HANDLINGS: Final = {
    "JsonNumberHandling": ("AllowReadingFromString", "WriteAsString"),
    "JsonUnmappedMemberHandling": ("Disallow",),
}
"""Attributes of the serializer, and the words by which texts are numbers and keys refused."""
_DEMANDS: Final = frozenset({"JsonRequired", "Required"})
"""Attributes that refuse an object without the field."""
_READS: Final[Mapping[str, str]] = {
    "JsonStringEnumConverter": "text",
    "JsonNumberEnumConverter": "numbers",
    "StringEnumConverter": "nothing",
}


def converter_of(attributes: Sequence[Attribute]) -> Attribute | None:
    """Return the attribute that names a converter in place of the serializer."""
    converters = (entry for entry in attributes if entry.name == "JsonConverter" and entry.types)
    return next(converters, None)


def reads(converter: Attribute) -> str | None:
    """Return what a converter makes enum values of; ``None`` where it is somebody's own.

    One of Newtonsoft reads nothing, because the serializer does not take it at all.
    """
    return _READS.get(converter.types[0].name)


def missing_wire_name(member: Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    attribute = "JsonStringEnumMemberName" if is_enum else "JsonPropertyName"
    # A positional parameter passes an attribute on only where it is told to.
    target = "property: " if member.kind == "parameter" else ""
    names = dict.fromkeys(
        f"[{attribute.name}]"
        for attribute in member.attributes
        if quoted(wire) in attribute.text and attribute.name != "Description"
    )
    listed = " and ".join(names)
    hint = f"; the serializer does not read {listed}" if names else ""
    if names and is_enum:
        hint = f"; {listed} has no effect on an enum member in System.Text.Json"
    return f"[{target}{attribute}({quoted(wire)})]{hint}"


def absence_fault(field: FieldIR, member: Member) -> base.AbsenceFault | None:
    """Return what is wrong about null and absence: the question mark, ``required``."""
    state, name = base.describe_absence(field), in_quotes(field.json_name)
    needs_mark, is_parameter = must_be_nullable(field), member.kind == "parameter"
    is_nullable = member.type is not None and member.type.nullable
    # JsonElement holds null as a value, whatever the spelling.
    is_free = isinstance(field.type, Scalar) and field.type.kind == "any" and field.required
    is_demanded = any(entry.name in _DEMANDS for entry in member.attributes)
    is_demanded = is_demanded or (member.is_required and not is_parameter)
    effect = ""
    if is_nullable != needs_mark and not is_free:
        what = f"must be {spell(field)!r}"
        mark = "lacks its question mark" if needs_mark else "has a question mark too many"
        finding = f"the type of each of these fields {mark}"
    elif field.required:
        return None
    elif member.has_initializer and member.unread is None and not is_parameter:
        what, effect = "must have no initial value", ", and would be written"
        finding = "these fields must have no initial value, which would be written"
    elif is_demanded:
        what = "must not be required"
        finding = "these fields must not be required (neither required nor [Required])"
    else:
        return None
    message = f"{member.name!r} {what}: field {name} {state}{effect}"
    return base.AbsenceFault(message, f"{finding}; each {state}")


def rules(subject: "Subject") -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    # The first alone, because one sentence takes all of them away.
    for line in subject.facts.heads[:1]:
        message = "a using directive or a namespace stands among the types: take it away"
        yield subject.issue("SYNTAX", message, line=line)
    yield from _attributes(subject)
    if subject.type.kind == "enum":
        yield from _enum_converter(subject)
    else:
        for member in subject.members:
            if member.name == subject.type.name:
                message = f"{member.name!r} is named as the class it stands in"
                yield subject.naming_issue(member, message)
        yield from _field_converters(subject)
        yield from _primary_key(subject)


def _attributes(subject: "Subject") -> Iterator[Issue]:
    """Yield attributes that name types which exist nowhere, or let other JSON in or out."""
    owners: list[Declaration | Member] = [*subject.main, *subject.members]
    for owner in owners:
        unit = owner.wire_name if isinstance(owner, Member) else None
        for attribute in owner.attributes:
            name, line = attribute.name, attribute.line
            if any(word in attribute.text for word in _HANDLINGS.get(name, ())):
                message = f"{owner.name!r} has [{name}{attribute.text}]: take it away"
                yield subject.issue("WRONG_TYPE", message, line=line, unit=unit)
            where = f"[{name}] of {owner.name!r}"
            advice = "take the attribute away"
            if name == "JsonConverter":
                advice = "write the converter that the rules name"
            for reference in attribute.types if name.startswith("Json") else ():
                if reference.name not in _READS:
                    yield from subject.missing_types(
                        reference, frozenset(), where, unit, line=line, advice=advice
                    )


def _misread(converter: Attribute, enum: TypeIR) -> str | None:
    """Return why a converter does not read the values of an enum, or ``None``."""
    has_text = any(isinstance(value, str) for value in enum.enum_values)
    reading, arguments = reads(converter), converter.types[0].args
    if reading == "nothing":
        return "which System.Text.Json does not take"
    if reading and arguments and arguments[0].name != enum.name:
        return f"which is for {arguments[0].name!r}"
    if reading == "numbers" and has_text:
        return "which reads numbers, and its values are text"
    if reading == "text" and not has_text:
        return "which writes names, and its values are numbers"
    return None


def _enum_converter(subject: "Subject") -> Iterator[Issue]:
    """Yield an enum that the serializer reads as numbers where the wire has text, or as text."""
    name, first = subject.type.name, subject.main[0]
    has_text = any(isinstance(value, str) for value in subject.type.enum_values)
    converter = converter_of([attribute for part in subject.main for attribute in part.attributes])
    if converter is not None:
        # Not of a misspelt enum, because that is one fault, whatever its converter is for.
        if first.name == name and (why := _misread(converter, subject.type)):
            right = f"write {_STRING_ENUM}" if has_text else "take it away"
            message = f"{name!r} has [JsonConverter{converter.text}], {why}; {right}"
            yield subject.issue("ENUM_MEMBER", message, line=converter.line)
    elif has_text:
        # A converter on every property that uses the enum will do as well.
        uses = [converter_of(use.attributes) for _, use in subject.around.uses.get(name, ())]
        if not uses or not all(use and reads(use) in {"text", None} for use in uses):
            message = f"{name!r} has no converter, so its values are read as numbers"
            message += f"; write {_STRING_ENUM} above it"
            yield subject.issue("ENUM_MEMBER", message, line=first.name_line)


def _field_converters(subject: "Subject") -> Iterator[Issue]:
    """Yield converters of properties that do not read the values of their fields."""
    for field, member in subject.matches():
        converter = converter_of(member.attributes)
        # Somebody's own converter passes, because nobody knows what it reads.
        if converter is None or reads(converter) is None or member.type is None:
            continue
        name = field.type.name if isinstance(field.type, Ref) else ""
        enum = subject.around.types.get(name)
        why: str | None = f"which reads enums, not '{show_type(member.type)}'"
        if enum is not None and enum.kind == "enum":
            why = _misread(converter, enum)
        if why is not None:
            message = f"{member.name!r} has [JsonConverter{converter.text}], {why}; take it away"
            yield subject.issue("WRONG_TYPE", message, line=converter.line, unit=field.json_name)


def _primary_key(subject: "Subject") -> Iterator[Issue]:
    """Yield a root whose key is not declared, or declared of another field.

    ``[PrimaryKey]`` is demanded by the profile that has it; a contradiction is an issue in any.
    """
    key = subject.type.primary_key
    if key is None:
        return
    fields = list(subject.matches())
    carrier = next((member.name for field, member in fields if field.json_name == key), None)
    attributes = [attribute for part in subject.main for attribute in part.attributes]
    stated = next((entry for entry in attributes if entry.name == "PrimaryKey"), None)
    if stated is not None:
        # Not strict, because the second argument may be left out, or be no plain name.
        for value, right in zip(stated.arguments, (key, carrier), strict=False):
            if value != right and isinstance(value, str) and right:
                message = f"[PrimaryKey] names {in_quotes(value)}; it must name {in_quotes(right)}"
                yield subject.issue("PRIMARY_KEY", message, line=stated.line, unit=key)
                break
    elif subject.around.profile == "xchange":
        message = f'the class lacks [PrimaryKey("{key}", nameof({carrier or "…"}))]'
        line, page = subject.main[0].name_line, subject.first_page
        yield subject.issue("PRIMARY_KEY", message, line=line, page=page, unit=key)
    for field, member in fields:
        if field.json_name != key and any(entry.name == "Key" for entry in member.attributes):
            name = in_quotes(field.json_name)
            message = f"[Key] is on {name}; the primary key is {in_quotes(key)}"
            yield subject.issue("PRIMARY_KEY", message, line=member.line, unit=key)
