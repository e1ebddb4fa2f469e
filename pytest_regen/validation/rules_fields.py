"""Rules about fields: MISSING_FIELD, PHANTOM_FIELD, DUPLICATE_FIELD, DUPLICATE_PROPERTY."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from pytest_regen.documents.ir import FieldIR
from pytest_regen.languages.facts import Member
from pytest_regen.quoting import in_quotes, quote
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.subject import Subject

__all__ = ["attributes_with", "duplicate_names", "field_presence", "matched"]


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
            yield from _missing(subject, name, unnamed.get(name))
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


def _missing(subject: Subject, name: str, unnamed: Member | None) -> Iterator[Issue]:
    if subject.is_silent(name):
        return
    if subject.is_unreadable([name]):
        return
    if unnamed is not None and not subject.is_near_fault(unnamed):
        why = _why_not(unnamed, name)
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


def _why_not(member: Member, name: str) -> str:
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
