"""What only C# and its serializer ask of a type: names on the wire, converters, null, keys."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.documents.ir import EnumValue, FieldIR, Ref, Scalar, referenced_names
from pytest_regen.languages.base import (
    AbsenceFault,
    Attribute,
    Converter,
    Declaration,
    Member,
    RuleSubject,
    describe_absence,
)
from pytest_regen.languages.csharp.names import must_be_nullable, show_type, spell
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import Issue

_STRING_ENUM: Final = "[JsonConverter(typeof(JsonStringEnumConverter))]"
_DEMANDS: Final = frozenset({"JsonRequired", "Required"})
"""Attributes that refuse an object without the field."""


def missing_wire_name(member: Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    attribute = "JsonStringEnumMemberName" if is_enum else "JsonPropertyName"
    others = _attributes_with(member, wire)
    hint = f"; the serializer does not read {others}" if others else ""
    hint = f"; {member.hint}" if member.hint else hint
    return f"[{attribute}({quoted(wire)})]{hint}"


def _attributes_with(member: Member, value: str) -> str:
    """Return the attributes of ``member`` that hold ``value``, as ``[EnumMember]``; or nothing.

    On a member without a name on the wire, they are attributes that the serializer does not read.
    """
    names = [entry.name for entry in member.attributes if value in entry.arguments]
    return " and ".join(f"[{name}]" for name in dict.fromkeys(names) if name != "Description")


def absence_fault(field: FieldIR, member: Member) -> AbsenceFault | None:
    """Return what is wrong about null and absence: the question mark, ``required``."""
    state = describe_absence(field)
    reason = f"field {in_quotes(field.json_name)} {state}"
    is_nullable = member.type is not None and member.type.nullable
    needs_mark = must_be_nullable(field)
    if is_nullable != needs_mark and not _holds_null(field):
        mark = "lacks its question mark" if needs_mark else "has a question mark too many"
        return AbsenceFault(
            f"{member.name!r} must be {spell(field)!r}: {reason}",
            f"the type of each of these fields {mark}; each {state}",
        )
    if not field.required and _demands_a_value(member):
        return AbsenceFault(
            f"{member.name!r} must not be required: {reason}",
            f"these fields must not be required (neither required nor [Required]); each {state}",
        )
    return None


def _holds_null(field: FieldIR) -> bool:
    """Return whether null is among the values whatever the spelling, as JsonElement holds it."""
    is_any = isinstance(field.type, Scalar) and field.type.kind == "any"
    return is_any and field.required


def _demands_a_value(member: Member) -> bool:
    if member.kind != "parameter" and member.is_required:
        return True
    return any(attribute.name in _DEMANDS for attribute in member.attributes)


def rules(subject: RuleSubject) -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    yield from _unknown_arguments(subject)
    if subject.type.kind == "enum":
        yield from _enum_converter(subject)
    else:
        yield from _own_name(subject)
        yield from _field_converters(subject)
        yield from _primary_key(subject)


# --- types that attributes name -----------------------------------------------------------------


def _unknown_arguments(subject: RuleSubject) -> Iterator[Issue]:
    """Yield types that only attributes of the serializer name: ``typeof(Ghost)``."""
    asked = {name for field in subject.type.fields for name in referenced_names(field.type)}
    unfixable = asked - subject.around.types.keys()
    for part in subject.main:
        known = frozenset(part.type_parameters)
        yield from _unknown_in(subject, part, known, None)
        for member in part.members:
            if member.type is not None and member.name and not subject.is_near_fault(member):
                yield from _unknown_in(subject, member, known | unfixable, member.wire_name)


def _unknown_in(
    subject: RuleSubject,
    owner: Declaration | Member,
    known: frozenset[str],
    unit: EnumValue | None,
) -> Iterator[Issue]:
    is_judged = owner.converter is not None and owner.converter.reads != "unknown"
    for attribute in owner.attributes:
        is_converter = attribute.name == "JsonConverter"
        if not attribute.name.startswith("Json") or (is_converter and is_judged):
            continue
        advice = (
            "write the converter that the rules name" if is_converter else "take the attribute away"
        )
        where = f"[{attribute.name}] of {owner.name!r}"
        for reference in attribute.types:
            yield from subject.missing_types(
                reference, known, where, unit, line=attribute.line, advice=advice
            )


# --- names ---------------------------------------------------------------------------------------


def _own_name(subject: RuleSubject) -> Iterator[Issue]:
    """Yield members that are called as the class they stand in, or as a type nested in it."""
    nested = {entry.name for entry in subject.facts.declarations if entry.outer is not None}
    for member in subject.members:
        if member.name and member.name == subject.type.name:
            why = "is named as the class it stands in"
        elif member.name and member.name in nested:
            why = "is also the name of a nested type"
        else:
            continue
        yield subject.naming_issue(member, f"{member.name!r} {why}")


# --- converters ----------------------------------------------------------------------------------


def _enum_converter(subject: RuleSubject) -> Iterator[Issue]:
    """Yield an enum that the serializer reads as numbers where the wire has text, or as text."""
    has_text = any(isinstance(value, str) for value in subject.type.enum_values)
    found = next((part.converter for part in subject.main if part.converter), None)
    if found is None and not (has_text and _needs_converter(subject)):
        return
    why = _misread_enum(subject, found, has_text=has_text)
    if why is not None:
        line = found.line if found else subject.main[0].name_line
        yield subject.issue("ENUM_MEMBER", f"{subject.type.name!r} {why}", line=line)


def _misread_enum(  # one line per wrong converter
    subject: RuleSubject, found: Converter | None, *, has_text: bool
) -> str | None:
    """Return why a converter, or the lack of one, reads the wrong values."""
    name = subject.type.name
    right = f"write {_STRING_ENUM}" if has_text else "take it away"
    if found is None:
        return f"has no converter, so its values are read as numbers; write {_STRING_ENUM} above it"
    if found.reads == "unknown":
        return None
    if found.reads == "nothing":
        return f"has {found.text}, which System.Text.Json does not take; {right}"
    if found.of not in (None, name, subject.main[0].name):
        return f"has {found.text}, which is for {found.of!r}; {right}"
    if found.reads == "numbers" and has_text:
        return f"has {found.text}, which reads numbers; {right}"
    if found.reads == "text" and not has_text:
        return f"has {found.text}, which writes names, and its values are numbers; {right}"
    return None


def _needs_converter(subject: RuleSubject) -> bool:
    """Return whether text would be read as numbers, as far as the enum could be read."""
    if not all(part.is_numeric for part in subject.main) or _is_converted_elsewhere(subject):
        return False
    return not subject.is_unreadable(["JsonConverter", "JsonStringEnumConverter"])


def _is_converted_elsewhere(subject: RuleSubject) -> bool:
    """Return whether each use of the enum names a converter, or the whole context has one."""
    around, name = subject.around, subject.type.name
    uses = around.uses.get(name, ())
    if uses and all(
        member.type is not None
        and member.type.name == name
        and member.converter is not None
        and member.converter.reads in {"text", "unknown"}
        for _, member in uses
    ):
        return True
    return any(
        attribute.name == "JsonSourceGenerationOptions"
        and ("UseStringEnumConverter", "true") in attribute.options
        for entry in around.declarations
        for attribute in entry.attributes
    )


def _field_converters(subject: RuleSubject) -> Iterator[Issue]:
    """Yield converters of properties that do not read the values of their fields."""
    for field, member in subject.matches():
        found = member.converter
        if found is None or found.reads == "unknown" or subject.is_near_fault(member):
            continue
        why = _misread_field(subject, field, member, found)
        if why is not None:
            message = f"{member.name!r} has {found.text}, {why}"
            yield subject.issue("WRONG_TYPE", message, line=found.line, unit=field.json_name)


def _misread_field(
    subject: RuleSubject, field: FieldIR, member: Member, found: Converter
) -> str | None:
    """Return why a converter cannot stand on a field, or ``None``."""
    if found.reads == "nothing":
        return "which System.Text.Json does not take; take it away"
    name = field.type.name if isinstance(field.type, Ref) else None
    enum = subject.around.types.get(name or "")
    if enum is None or enum.kind != "enum":
        spelled = show_type(member.type) if member.type else "None"
        return f"which reads enums, not '{spelled}'; take it away"
    if found.of not in (None, enum.name):
        return f"which is for {found.of!r}; take it away"
    has_text = any(isinstance(value, str) for value in enum.enum_values)
    if has_text != (found.reads == "text"):
        values = "text" if has_text else "numbers"
        return f"and the values of {enum.name!r} are {values}; take it away"
    return None


# --- the primary key -----------------------------------------------------------------------------


def _primary_key(subject: RuleSubject) -> Iterator[Issue]:
    """Yield a root whose key is not declared, or declared of another field.

    ``[PrimaryKey]`` is demanded by the profile that has it; a contradiction is an issue in any.
    """
    key = subject.type.primary_key
    if key is None:
        return
    fields = list(subject.matches())
    carrier = next((member for field, member in fields if field.json_name == key), None)
    keys = [
        attribute
        for part in subject.main
        for attribute in part.attributes
        if attribute.name == "PrimaryKey"
    ]
    if not keys and subject.around.profile == "xchange":
        name = carrier.name if carrier else "…"
        message = f'the class lacks [PrimaryKey("{key}", nameof({name}))]'
        line, page = subject.main[0].name_line, subject.first_page
        yield subject.issue("PRIMARY_KEY", message, line=line, page=page, unit=key)
    for attribute in keys[:1]:
        yield from _wrong_key(subject, attribute, key, carrier)
    for field, member in fields:
        if field.json_name != key and any(entry.name == "Key" for entry in member.attributes):
            message = (
                f"[Key] is on {in_quotes(field.json_name)}; the primary key is {in_quotes(key)}"
            )
            yield subject.issue("PRIMARY_KEY", message, line=member.line, unit=key)


def _wrong_key(
    subject: RuleSubject, attribute: Attribute, key: str, carrier: Member | None
) -> Iterator[Issue]:
    values = [value for value in attribute.arguments if isinstance(value, str)]
    wanted = [key, *([carrier.name] if carrier else [])]
    for value, right in zip(values, wanted, strict=False):
        if value != right:
            message = f"[PrimaryKey] names {in_quotes(value)}; it must name {in_quotes(right)}"
            yield subject.issue("PRIMARY_KEY", message, line=attribute.line, unit=key)
            return
