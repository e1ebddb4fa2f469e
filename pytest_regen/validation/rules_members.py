"""Rules about fields: MISSING_FIELD, PHANTOM_FIELD, DUPLICATE_FIELD, DUPLICATE_PROPERTY."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from pytest_regen.documents.ir import EnumValue, FieldIR, Ref, Scalar, referenced_names
from pytest_regen.languages.base import Attribute, Converter, Member, TypeRef
from pytest_regen.text import in_quotes, quote
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.subject import Subject

__all__ = [
    "attributes_with",
    "duplicate_names",
    "enum_converter",
    "enum_values",
    "field_converters",
    "field_presence",
    "field_types",
    "matched",
    "primary_key",
]


def attributes_with(member: Member, value: str) -> str:
    """Return the attributes of ``member`` that hold ``value``, as ``[EnumMember]``; or nothing.

    On a member without a name on the wire, they are attributes that the serializer does not read.
    """
    names = [entry.name for entry in member.attributes if value in entry.arguments]
    return " and ".join(f"[{name}]" for name in dict.fromkeys(names) if name != "Description")


def matched(subject: Subject) -> Iterator[tuple[FieldIR, Member]]:
    """Yield each field of the type with the first member that carries it."""
    carriers = subject.carriers
    for field in subject.type.fields:
        if found := carriers.get(field.json_name):
            yield field, found[0]


def field_presence(subject: Subject) -> Iterator[Issue]:
    """Yield fields that are missing, invented or carried twice."""
    carriers = subject.carriers
    expected = {field.json_name: field for field in subject.type.fields}
    missing = [name for name in expected if name not in carriers]
    unnamed = _without_wire_name(subject, missing)
    for name in expected:
        if name in carriers:
            yield from _never_read(subject, name, carriers[name])
        else:
            yield from _missing_field(subject, name, unnamed.get(name))
    for wire, members in carriers.items():
        if wire not in expected:
            yield from _phantoms(subject, wire, members, missing, unnamed)
        for member in members[1:]:
            yield subject.repeated("DUPLICATE_FIELD", "field", wire, members[0], member)


def _without_wire_name(subject: Subject, missing: list[str]) -> dict[str, Member]:
    """Return members that would carry a missing field, if only they said so."""
    waiting = {subject.names[name]: name for name in missing}
    found: dict[str, Member] = {}
    for member in subject.members:
        if member.wire_name is not None and member.is_serialized:
            continue
        meant = str(member.wire_name) if member.wire_name in missing else waiting.get(member.name)
        if meant is not None:
            found.setdefault(meant, member)
    return found


def _never_read(subject: Subject, name: str, carriers: Sequence[Member]) -> Iterator[Issue]:
    """Yield a field that is written, and into which nothing is ever read."""
    first = carriers[0]
    if any(member.unread is None for member in carriers) or subject.is_near_fault(first):
        return
    message = f"field {in_quotes(name)} is missing: {first.name!r} {first.unread}"
    finding = f"the property of each of these fields {first.unread}"
    yield subject.issue("MISSING_FIELD", message, line=first.line, unit=name, finding=finding)


def _missing_field(subject: Subject, name: str, unnamed: Member | None) -> Iterator[Issue]:
    if subject.is_silent(name):
        return
    if subject.is_unreadable([name]):
        return
    if unnamed is not None and not subject.is_near_fault(unnamed):
        why = _why_not_field(unnamed, name)
        message = f"field {in_quotes(name)} is missing: {unnamed.name!r} {why}"
        finding = f"the property of each of these fields {why}".replace(quote(name), '"..."')
        yield subject.issue("MISSING_FIELD", message, line=unnamed.line, unit=name, finding=finding)
        return
    page = subject.page_of_unit(name)
    if subject.pages is not None and page is None:
        message = f"field {in_quotes(name)} is missing, and no stored prompt asks for it"
        yield subject.issue("UNFIXABLE", message, unit=name, detail="generate the store again")
        return
    yield subject.issue(
        "MISSING_FIELD",
        f"field {in_quotes(name)} is missing",
        page=page,
        unit=name,
        finding="these fields are missing",
    )


def _why_not_field(member: Member, name: str) -> str:
    if member.unread is not None:
        return member.unread
    others = attributes_with(member, name)
    hint = f"; the serializer does not read {others}" if others else ""
    hint = f"; {member.hint}" if member.hint else hint
    return f"lacks [JsonPropertyName({quote(name)})]{hint}"


def _phantoms(
    subject: Subject,
    wire: str,
    members: Sequence[Member],
    missing: list[str],
    unnamed: Mapping[str, Member],
) -> Iterator[Issue]:
    """Yield the first member that carries a field the type does not have."""
    member = members[0]
    is_told = any(member is known for known in unnamed.values())
    if is_told or not member.name or subject.is_near_fault(member):
        return
    if member.wire_name is None and subject.facts.unread:
        return  # its attribute may be what could not be read
    owners = [name for name in subject.around.owners.get(wire, ()) if name != subject.type.name]
    near = get_close_matches(wire, missing, 1, 0.6)
    detail = f"it belongs to {', '.join(owners[:3])}" if owners else None
    if near:
        detail = f"did you mean {in_quotes(near[0])}?"
    message = f"{subject.type.name!r} has no field {in_quotes(wire)} ({member.name!r} carries it)"
    finding = None if near else "the type has no such fields; leave them out"
    yield subject.issue(
        "PHANTOM_FIELD", message, line=member.line, unit=wire, detail=detail, finding=finding
    )


def duplicate_names(subject: Subject) -> Iterator[Issue]:
    """Yield identifiers that are used twice in one type, or that repeat the type's own name."""
    seen: dict[str, Member] = {}
    nested = {entry.name for entry in subject.facts.declarations if entry.outer is not None}
    for member in subject.members:
        if not member.name:
            continue
        first = seen.setdefault(member.name, member)
        if member.name == subject.type.name and subject.type.kind == "object":
            message = f"{member.name!r} is named as the class it stands in"
        elif member.name in nested and subject.type.kind == "object":
            message = f"{member.name!r} is also the name of a nested type"
        elif first is not member and _carries_another(first, member):
            message = f"the name {member.name!r} is used twice"
        else:
            continue
        unit = member.wire_name if member.wire_name in subject.names else None
        proposed = None if unit is None else subject.names[unit]
        detail = f"call this one {proposed!r}" if proposed not in {None, member.name} else None
        yield subject.issue(
            "DUPLICATE_PROPERTY", message, line=member.line, unit=unit, detail=detail
        )


def _carries_another(first: Member, second: Member) -> bool:
    """Return whether two members of one name differ on the wire.

    Two that do not are told as one field or value that is carried twice.
    """
    if not (first.is_serialized and second.is_serialized):
        return True
    return first.wire_name != second.wire_name or first.wire_name is None


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


_NEAR = 0.7
_TEXT = "[JsonConverter(typeof(JsonStringEnumConverter))]"


def enum_converter(subject: Subject) -> Iterator[Issue]:
    """Yield an enum that the serializer reads as numbers where the wire has text, or as text."""
    has_text = any(isinstance(value, str) for value in subject.type.enum_values)
    found = next((part.converter for part in subject.main if part.converter), None)
    if found is None and not (has_text and _needs_converter(subject)):
        return
    why = _why_unread(subject, found, has_text=has_text)
    if why is not None:
        line = found.line if found else subject.main[0].name_line
        yield subject.issue("ENUM_MEMBER", f"{subject.type.name!r} {why}", line=line)


def _why_unread(  # noqa: PLR0911 - one line per wrong converter
    subject: Subject, found: Converter | None, *, has_text: bool
) -> str | None:
    name = subject.type.name
    right = f"write {_TEXT}" if has_text else "take it away"
    if found is None:
        return f"has no converter, so its values are read as numbers; write {_TEXT} above it"
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


def _needs_converter(subject: Subject) -> bool:
    """Return whether text would be read as numbers, as far as the enum could be read."""
    if not all(part.is_numeric for part in subject.main) or _is_converted_elsewhere(subject):
        return False
    return not subject.is_unreadable(["JsonConverter", "JsonStringEnumConverter"])


def _is_converted_elsewhere(subject: Subject) -> bool:
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


def enum_values(subject: Subject) -> Iterator[Issue]:
    """Yield wire values that are missing, invented, misspelt or carried twice."""
    expected = subject.type.enum_values
    # Of several that carry one value, the page that was asked for it comes first.
    carried = sorted(_carried(subject), key=lambda pair: subject.is_out_of_place(*pair))
    seen: dict[EnumValue, Member] = {}
    invented: list[tuple[EnumValue, Member]] = []
    for value, member in carried:
        if member.unread is not None:
            message = f"value {in_quotes(value)} is missing: {member.name!r} {member.unread}"
            finding = f"the member of each of these values {member.unread}"
            yield subject.issue(
                "ENUM_MEMBER", message, line=member.line, unit=value, finding=finding
            )
        elif value in seen:
            yield subject.repeated("ENUM_MEMBER", "value", value, seen[value], member)
        elif value not in expected:
            invented.append((value, member))
        seen.setdefault(value, member)
    missing = [value for value in expected if value not in seen]
    for value, member in invented:
        yield from _invented(subject, value, member, missing)
    for value in missing:
        yield from _missing_value(subject, value)
    if not any(isinstance(value, int) for value in expected):
        yield from _same_numbers(subject)


def _carried(subject: Subject) -> list[tuple[EnumValue, Member]]:
    """Return what each member is on the wire, by the kind of values the enum has."""
    has_strings = any(isinstance(value, str) for value in subject.type.enum_values)
    has_numbers = any(isinstance(value, int) for value in subject.type.enum_values)
    found: list[tuple[EnumValue, Member]] = []
    for member in subject.members:
        wire, number = member.wire_name, member.number
        if isinstance(wire, str) or not member.name:
            found.append((wire if wire is not None else "", member))
        elif has_numbers and number is not None and not (has_strings and wire is None):
            found.append((number, member))
        else:
            found.append((member.name, member))
    return found


def _same_numbers(subject: Subject) -> Iterator[Issue]:
    """Yield members of one number: read from text, the second becomes the first."""
    seen: dict[int, Member] = {}
    for member in subject.members:
        if member.number is None or not member.name:
            continue
        first = seen.setdefault(member.number, member)
        if first is not member and first.name != member.name:
            message = f"{member.name!r} has the number of {first.name!r}, {member.number}"
            detail = "the two values cannot be told apart; leave the numbers out"
            unit = member.name if member.wire_name is None else member.wire_name
            yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=unit, detail=detail)


def _invented(
    subject: Subject, value: EnumValue, member: Member, missing: list[EnumValue]
) -> Iterator[Issue]:
    """Yield one issue for a value nobody asked for; a misspelt one is no longer missing."""
    if subject.is_near_fault(member) or not member.name:
        return
    meant = _meant(subject, value, member, missing)
    if meant is None:
        message = f"value {in_quotes(value)} ({member.name!r}) is not among the values of the enum"
        yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=value)
        return
    missing.remove(meant)
    message, finding = _why_not_value(value, member, meant)
    yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=meant, finding=finding)


def _why_not_value(value: EnumValue, member: Member, meant: EnumValue) -> tuple[str, str | None]:
    """Return why a member does not carry the value it is meant to, alone and of several."""
    if member.wire_name is not None or not isinstance(meant, str):
        carried = f"{member.name!r} carries {in_quotes(value)}"
        return f"{carried}; the value is {in_quotes(meant)}, to the letter", None
    others = attributes_with(member, meant)
    ignored = f"; the serializer does not read {others}" if others else ""
    ignored = f"; {member.hint}" if member.hint else ignored
    lacks = f"{member.name!r} lacks [JsonStringEnumMemberName({quote(meant)})]{ignored}"
    finding = f'the members for these values lack [JsonStringEnumMemberName("...")]{ignored}'
    return lacks, finding


def _meant(
    subject: Subject, value: EnumValue, member: Member, missing: list[EnumValue]
) -> EnumValue | None:
    """Return the missing value that a member was meant to carry, by its name or its spelling."""
    for candidate in missing:
        if subject.names[candidate] == member.name:
            return candidate
    texts = {str(candidate): candidate for candidate in missing if isinstance(candidate, str)}
    near = get_close_matches(str(value), list(texts), 1, _NEAR)
    return texts[near[0]] if near else None


def _missing_value(subject: Subject, value: EnumValue) -> Iterator[Issue]:
    if subject.is_silent(value) or subject.is_unreadable([str(value)]):
        return
    page = subject.page_of_unit(value)
    if subject.pages is not None and page is None:
        message = f"value {in_quotes(value)} is missing, and no stored prompt asks for it"
        yield subject.issue("UNFIXABLE", message, unit=value, detail="generate the store again")
        return
    yield subject.issue(
        "ENUM_MEMBER",
        f"value {in_quotes(value)} is missing",
        page=page,
        unit=value,
        finding="these values are missing",
    )
