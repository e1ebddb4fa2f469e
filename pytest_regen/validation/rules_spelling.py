"""Rules about how a field is typed: WRONG_TYPE, NULLABILITY, PRIMARY_KEY."""

from collections.abc import Iterator

from pytest_regen.documents.ir import FieldIR, Ref, Scalar, referenced_names
from pytest_regen.languages.facts import Attribute, Converter, Member, TypeRef
from pytest_regen.quoting import in_quotes
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.rules_fields import matched
from pytest_regen.validation.subject import Subject

__all__ = ["field_converters", "field_types", "primary_key"]

_DEMANDS = frozenset({"JsonRequired", "Required"})


def field_types(subject: Subject) -> Iterator[Issue]:
    """Yield fields whose type cannot hold every value, or whose ``?`` is wrong."""
    for field, member in matched(subject):
        if member.type is None or not member.name or subject.is_near_fault(member):
            continue
        if _is_told_elsewhere(subject, field, member):
            continue
        if not _is_accepted(subject, field, member.type):
            spelled = subject.around.language.spell(field)
            message = (
                f"{member.name!r} has type '{member.type}'; field {in_quotes(field.json_name)} is"
            )
            yield subject.issue(
                "WRONG_TYPE",
                f"{message} {spelled!r}",
                line=member.type.line or member.line,
                unit=field.json_name,
            )
        elif wrong := _nullability(subject, field, member):
            line = member.type.line or member.line
            message, finding = wrong
            yield subject.issue(
                "NULLABILITY", message, line=line, unit=field.json_name, finding=finding
            )


def _is_told_elsewhere(subject: Subject, field: FieldIR, member: Member) -> bool:
    """Return whether a type that does not exist is the reason."""
    around = subject.around
    if any(name not in around.types for name in referenced_names(field.type)):
        return True
    used = member.type.walk() if member.type else ()
    return not all(map(around.exists, used))


def _is_accepted(subject: Subject, field: FieldIR, spelled: TypeRef) -> bool:
    """Return whether the type holds every value, and the compiler takes its ``Nullable<T>``."""
    declared = subject.around.declared_as
    for part in spelled.walk():
        if part.is_wrapped and part.name in declared and not declared[part.name].is_value:
            return False
    return subject.around.language.accepts(field.type, spelled)


def field_converters(subject: Subject) -> Iterator[Issue]:
    """Yield converters of properties that do not read the values of their fields."""
    for field, member in matched(subject):
        found = member.converter
        if found is None or found.reads == "unknown" or subject.is_near_fault(member):
            continue
        why = _misread(subject, field, member, found)
        if why is not None:
            message = f"{member.name!r} has {found.text}, {why}"
            yield subject.issue("WRONG_TYPE", message, line=found.line, unit=field.json_name)


def _misread(subject: Subject, field: FieldIR, member: Member, found: Converter) -> str | None:
    """Return why a converter cannot stand on a field, or ``None``."""
    if found.reads == "nothing":
        return "which System.Text.Json does not take; take it away"
    named = field.type.name if isinstance(field.type, Ref) else None
    enum = subject.around.types.get(named or "")
    if enum is None or enum.kind != "enum":
        return f"which reads enums, not '{member.type}'; take it away"
    if found.of not in (None, enum.name):
        return f"which is for {found.of!r}; take it away"
    has_text = any(isinstance(value, str) for value in enum.enum_values)
    if has_text != (found.reads == "text"):
        values = "text" if has_text else "numbers"
        return f"and the values of {enum.name!r} are {values}; take it away"
    return None


def _nullability(subject: Subject, field: FieldIR, member: Member) -> tuple[str, str] | None:
    """Return what is wrong about absence and null, of this field and of several, or ``None``."""
    is_nullable = member.type is not None and member.type.nullable
    needs_mark = field.nullable or not field.required
    if is_nullable != needs_mark and not _is_anything(field):
        message = f"{member.name!r} must be {_spelled(subject, field)}: {_reason(field)}"
        mark = "lacks its question mark" if needs_mark else "has a question mark too many"
        return message, f"the type of each of these fields {mark}; each {_state(field)}"
    if not field.required and _demands_a_value(member):
        message = f"{member.name!r} must not be required: {_reason(field)}"
        finding = "these fields must not be required (neither required nor [Required])"
        return message, f"{finding}; each {_state(field)}"
    return None


def _reason(field: FieldIR) -> str:
    return f"field {in_quotes(field.json_name)} {_state(field)}"


def _state(field: FieldIR) -> str:
    if field.nullable:
        return "may be null" + ("" if field.required else " and is optional")
    return f"is {'required and never null' if field.required else 'optional'}"


def _spelled(subject: Subject, field: FieldIR) -> str:
    return repr(subject.around.language.spell(field))


def _is_anything(field: FieldIR) -> bool:
    """Return whether null is among the values whatever the spelling, as JsonElement holds it."""
    is_any = isinstance(field.type, Scalar) and field.type.kind == "any"
    return is_any and field.required


def _demands_a_value(member: Member) -> bool:
    if member.kind != "parameter" and member.is_required:
        return True
    return any(attribute.name in _DEMANDS for attribute in member.attributes)


def primary_key(subject: Subject) -> Iterator[Issue]:
    """Yield a root whose key is not declared, or declared of another field.

    ``[PrimaryKey]`` is demanded by the profile that has it; a contradiction is told in any.
    """
    key = subject.type.primary_key
    if key is None:
        return
    carrier = next((member for field, member in matched(subject) if field.json_name == key), None)
    declared = [
        attribute
        for part in subject.main
        for attribute in part.attributes
        if attribute.name == "PrimaryKey"
    ]
    line = subject.main[0].name_line
    if not declared and subject.around.profile == "xchange":
        name = carrier.name if carrier else "…"
        message = f'the class lacks [PrimaryKey("{key}", nameof({name}))]'
        page = 1 if subject.pages else None
        yield subject.issue("PRIMARY_KEY", message, line=line, page=page, unit=key)
    for attribute in declared[:1]:
        yield from _wrong_key(subject, attribute, key, carrier)
    for field, member in matched(subject):
        if field.json_name != key and any(entry.name == "Key" for entry in member.attributes):
            message = (
                f"[Key] is on {in_quotes(field.json_name)}; the primary key is {in_quotes(key)}"
            )
            yield subject.issue("PRIMARY_KEY", message, line=member.line, unit=key)


def _wrong_key(
    subject: Subject, attribute: Attribute, key: str, carrier: Member | None
) -> Iterator[Issue]:
    values = [value for value in attribute.arguments if isinstance(value, str)]
    wanted = [key, *([carrier.name] if carrier else [])]
    for value, right in zip(values, wanted, strict=False):
        if value != right:
            message = f"[PrimaryKey] names {in_quotes(value)}; it must name {in_quotes(right)}"
            yield subject.issue("PRIMARY_KEY", message, line=attribute.line, unit=key)
            return
