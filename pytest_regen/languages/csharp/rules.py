"""What only C# and its serializer ask of a type: names on the wire, converters, null, keys."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.documents.ir import FieldIR, Ref, Scalar, TypeIR
from pytest_regen.languages.base import (
    AbsenceFault,
    Declaration,
    Member,
    RuleSubject,
    describe_absence,
)
from pytest_regen.languages.csharp.attributes import Converter, converter_of
from pytest_regen.languages.csharp.types import must_be_nullable, show_type, spell
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import Issue

_STRING_ENUM: Final = "[JsonConverter(typeof(JsonStringEnumConverter))]"
_HANDLINGS: Final = {
    "JsonNumberHandling": ("AllowReadingFromString", "WriteAsString"),
    "JsonUnmappedMemberHandling": ("Disallow",),
}
"""Attributes of the serializer, and the words by which texts are numbers and keys refused."""
_DEMANDS: Final = frozenset({"JsonRequired", "Required"})
"""Attributes that refuse an object without the field."""


def missing_wire_name(member: Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    attribute = "JsonStringEnumMemberName" if is_enum else "JsonPropertyName"
    target = "property: " if member.kind == "parameter" else ""
    names = dict.fromkeys(
        f"[{each.name}]"
        for each in member.attributes
        if quoted(wire) in each.text and each.name != "Description"
    )
    hint = f"; the serializer does not read {' and '.join(names)}" if names else ""
    if names and is_enum:
        hint = f"; {' and '.join(names)} has no effect on an enum member in System.Text.Json"
    return f"[{target}{attribute}({quoted(wire)})]{hint}"


def absence_fault(field: FieldIR, member: Member) -> AbsenceFault | None:
    """Return what is wrong about null and absence: the question mark, ``required``."""
    state = describe_absence(field)
    reason = f"field {in_quotes(field.json_name)} {state}"
    is_nullable = member.type is not None and member.type.nullable
    needs_mark = must_be_nullable(field)
    # JsonElement holds null as a value, whatever the spelling.
    is_free = isinstance(field.type, Scalar) and field.type.kind == "any" and field.required
    if is_nullable != needs_mark and not is_free:
        mark = "lacks its question mark" if needs_mark else "has a question mark too many"
        return AbsenceFault(
            f"{member.name!r} must be {spell(field)!r}: {reason}",
            f"the type of each of these fields {mark}; each {state}",
        )
    is_set = member.has_initializer and member.unread is None and member.kind != "parameter"
    if is_set and not field.required:
        return AbsenceFault(
            f"{member.name!r} must have no initial value: {reason}, and would be written",
            f"these fields must have no initial value, which would be written; each {state}",
        )
    is_keyword = member.kind != "parameter" and member.is_required
    is_demanded = is_keyword or any(each.name in _DEMANDS for each in member.attributes)
    if not field.required and is_demanded:
        return AbsenceFault(
            f"{member.name!r} must not be required: {reason}",
            f"these fields must not be required (neither required nor [Required]); each {state}",
        )
    return None


def rules(subject: RuleSubject) -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    for line in subject.facts.heads[:1]:
        message = "a using directive or a namespace stands among the types: take it away"
        yield subject.issue("SYNTAX", message, line=line)
    yield from _attributes(subject)
    if subject.type.kind == "enum":
        yield from _enum_converter(subject)
    else:
        yield from _own_name(subject)
        yield from _field_converters(subject)
        yield from _primary_key(subject)


def _attributes(subject: RuleSubject) -> Iterator[Issue]:
    """Yield attributes that name types which exist nowhere, or let other JSON in or out."""
    owners: list[Declaration | Member] = [*subject.main, *subject.members]
    for owner in owners:
        unit = owner.wire_name if isinstance(owner, Member) else None
        converter = converter_of(owner.attributes)
        is_judged = converter is not None and converter.reads != "unknown"
        for attribute in owner.attributes:
            name = attribute.name
            if any(word in attribute.text for word in _HANDLINGS.get(name, ())):
                message = f"{owner.name!r} has [{name}{attribute.text}]: take it away"
                yield subject.issue("WRONG_TYPE", message, line=attribute.line, unit=unit)
            is_converter = name == "JsonConverter"
            advice = "write the converter that the rules name"
            for reference in attribute.types if name.startswith("Json") else ():
                if not (is_converter and is_judged):
                    yield from subject.missing_types(
                        reference,
                        frozenset(),
                        f"[{name}] of {owner.name!r}",
                        unit,
                        line=attribute.line,
                        advice=advice if is_converter else "take the attribute away",
                    )


def _own_name(subject: RuleSubject) -> Iterator[Issue]:
    """Yield members that are called as the class they stand in, or as a type nested in it."""
    nested = {entry.name for entry in subject.facts.declarations if entry.outer is not None}
    for member in subject.members:
        if member.name in {subject.type.name, *nested}:
            is_own = member.name == subject.type.name
            why = "named as the class it stands in" if is_own else "also the name of a nested type"
            yield subject.naming_issue(member, f"{member.name!r} is {why}")


def _misread(converter: Converter, enum: TypeIR) -> str | None:
    """Return why a converter does not read the values of an enum, or ``None``."""
    has_text = any(isinstance(value, str) for value in enum.enum_values)
    if converter.reads == "nothing":
        return "which System.Text.Json does not take"
    if converter.of not in (None, enum.name):
        return f"which is for {converter.of!r}"
    if converter.reads == "numbers" and has_text:
        return "which reads numbers, and its values are text"
    if converter.reads == "text" and not has_text:
        return "which writes names, and its values are numbers"
    return None


def _enum_converter(subject: RuleSubject) -> Iterator[Issue]:
    """Yield an enum that the serializer reads as numbers where the wire has text, or as text."""
    name = subject.type.name
    has_text = any(isinstance(value, str) for value in subject.type.enum_values)
    converters = filter(None, (converter_of(part.attributes) for part in subject.main))
    converter = next(converters, None)
    if converter is not None:
        # A misspelt enum is one fault, whatever its converter is for.
        is_own = subject.main[0].name == name
        if is_own and (why := _misread(converter, subject.type)):
            right = f"write {_STRING_ENUM}" if has_text else "take it away"
            message = f"{name!r} has {converter.text}, {why}; {right}"
            yield subject.issue("ENUM_MEMBER", message, line=converter.line)
    elif has_text and not _is_converted_elsewhere(subject):
        message = f"{name!r} has no converter, so its values are read as numbers"
        line = subject.main[0].name_line
        yield subject.issue("ENUM_MEMBER", f"{message}; write {_STRING_ENUM} above it", line=line)


def _is_converted_elsewhere(subject: RuleSubject) -> bool:
    """Return whether each use of the enum names a converter."""
    uses = [member for _, member in subject.around.uses.get(subject.type.name, ())]
    for member in uses:
        converter = converter_of(member.attributes)
        is_own = member.type is not None and member.type.name == subject.type.name
        if not is_own or converter is None or converter.reads not in {"text", "unknown"}:
            return False
    return bool(uses)


def _field_converters(subject: RuleSubject) -> Iterator[Issue]:
    """Yield converters of properties that do not read the values of their fields."""
    for field, member in subject.matches():
        converter = converter_of(member.attributes)
        if converter is None or converter.reads == "unknown":
            continue
        name = field.type.name if isinstance(field.type, Ref) else ""
        enum = subject.around.types.get(name)
        if enum is not None and enum.kind == "enum":
            why = _misread(converter, enum)
        else:
            spelled = show_type(member.type) if member.type else "None"
            why = f"which reads enums, not '{spelled}'"
        if why is not None:
            message = f"{member.name!r} has {converter.text}, {why}; take it away"
            yield subject.issue("WRONG_TYPE", message, line=converter.line, unit=field.json_name)


def _primary_key(subject: RuleSubject) -> Iterator[Issue]:
    """Yield a root whose key is not declared, or declared of another field.

    ``[PrimaryKey]`` is demanded by the profile that has it; a contradiction is an issue in any.
    """
    key = subject.type.primary_key
    if key is None:
        return
    fields = list(subject.matches())
    carrier = next((member.name for field, member in fields if field.json_name == key), None)
    attributes = [each for part in subject.main for each in part.attributes]
    stated = next((each for each in attributes if each.name == "PrimaryKey"), None)
    if stated is None and subject.around.profile == "xchange":
        message = f'the class lacks [PrimaryKey("{key}", nameof({carrier or "…"}))]'
        line, page = subject.main[0].name_line, subject.first_page
        yield subject.issue("PRIMARY_KEY", message, line=line, page=page, unit=key)
    if stated is not None:
        for value, right in zip(stated.arguments, (key, carrier), strict=False):
            if value != right and isinstance(value, str) and right:
                message = f"[PrimaryKey] names {in_quotes(value)}; it must name {in_quotes(right)}"
                yield subject.issue("PRIMARY_KEY", message, line=stated.line, unit=key)
                break
    for field, member in fields:
        if field.json_name != key and any(each.name == "Key" for each in member.attributes):
            name = in_quotes(field.json_name)
            message = f"[Key] is on {name}; the primary key is {in_quotes(key)}"
            yield subject.issue("PRIMARY_KEY", message, line=member.line, unit=key)
