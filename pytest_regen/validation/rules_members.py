"""Rules about members: fields and enum values that are missing, invented, twice, of a wrong type.

What only one language asks of a member is in ``Language.rules``.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from pytest_regen.documents.ir import EnumValue, FieldIR, referenced_names
from pytest_regen.languages.base import Member
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.subject import Subject

_NEAR = 0.7
"""How alike a value that is there and one that is missing must be to be one and the same."""


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
    """Return members that would carry a missing field, if they had its name on the wire."""
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
    if any(member.unread is None for member in carriers):
        return
    message = f"field {in_quotes(name)} is missing: {first.name!r} {first.unread}"
    noun = subject.around.nouns.member
    finding = f"the {noun} of each of these fields {first.unread}"
    yield subject.issue("MISSING_FIELD", message, line=first.line, unit=name, finding=finding)


def _missing_field(subject: Subject, name: str, unnamed: Member | None) -> Iterator[Issue]:
    if subject.is_silent(name):
        return
    if unnamed is not None:
        language = subject.around.language
        lack = language.missing_wire_name(unnamed, name, is_enum=False)
        why = unnamed.unread or f"lacks {lack}"
        message = f"field {in_quotes(name)} is missing: {unnamed.name!r} {why}"
        finding = f"the {subject.around.nouns.member} of each of these fields {why}"
        finding = finding.replace(quoted(name), '"..."')
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
    if is_told or not member.name:
        return
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
    """Yield identifiers that are used twice in one type."""
    seen: dict[str, Member] = {}
    for member in subject.members:
        if not member.name:
            continue
        first = seen.setdefault(member.name, member)
        if first is not member and _carries_another(first, member):
            yield subject.naming_issue(member, f"the name {member.name!r} is used twice")


def _carries_another(first: Member, second: Member) -> bool:
    """Return whether two members of one name differ on the wire.

    Two that do not are reported as one field or value that is carried twice.
    """
    if not (first.is_serialized and second.is_serialized):
        return True
    return first.wire_name != second.wire_name or first.wire_name is None


def field_types(subject: Subject) -> Iterator[Issue]:
    """Yield fields whose type cannot hold every value, or not what null and absence need."""
    around, language = subject.around, subject.around.language
    for field, member in subject.matches():
        if member.type is None or not member.name:
            continue
        if _is_undeclared(subject, field, member):
            continue
        line = member.type.line or member.line
        if not language.accepts(field.type, member.type, around.declarations_by_name):
            message = (
                f"{member.name!r} has type '{language.show_type(member.type)}'; field "
                f"{in_quotes(field.json_name)} is {language.spell(field, profile=around.profile)!r}"
            )
            yield subject.issue("WRONG_TYPE", message, line=line, unit=field.json_name)
        elif fault := language.absence_fault(field, member):
            yield subject.issue(
                "NULLABILITY",
                fault.message,
                line=line,
                unit=field.json_name,
                finding=fault.finding,
            )


def _is_undeclared(subject: Subject, field: FieldIR, member: Member) -> bool:
    """Return whether a type that does not exist is the reason, which has an issue of its own."""
    around = subject.around
    if any(name not in around.types for name in referenced_names(field.type)):
        return True
    used = member.type.walk() if member.type else ()
    return not all(map(around.exists, used))


def enum_values(subject: Subject) -> Iterator[Issue]:
    """Yield wire values that are missing, invented, misspelt or carried twice."""
    expected = subject.type.enum_values
    # Of several that carry one value, the page that was asked for it comes first.
    carried = sorted(_wire_values(subject), key=lambda pair: subject.is_out_of_place(*pair))
    seen: dict[EnumValue, Member] = {}
    invented: list[tuple[EnumValue, Member]] = []
    for value, member in carried:
        if member.unread is not None:
            message = f"value {in_quotes(value)} is missing: {member.name!r} {member.unread}"
            noun = subject.around.nouns.value
            finding = f"the {noun} of each of these values {member.unread}"
            yield subject.issue(
                "ENUM_MEMBER", message, line=member.line, unit=value, finding=finding
            )
        elif value in seen:
            yield subject.repeated("ENUM_MEMBER", "value", value, seen[value], member)
        elif value not in expected:
            invented.append((value, member))
        else:
            yield from _swapped(subject, value, member, carried)
        seen.setdefault(value, member)
    missing = [value for value in expected if value not in seen]
    for value, member in invented:
        yield from _unknown_value(subject, value, member, missing)
    for value in missing:
        yield from _missing_value(subject, value)
    if not any(isinstance(value, int) for value in expected):
        yield from _same_numbers(subject)


def _swapped(
    subject: Subject, value: EnumValue, member: Member, carried: Sequence[tuple[EnumValue, Member]]
) -> Iterator[Issue]:
    """Yield a value under the name that stands for another: whoever uses it means the other."""
    meant = next((unit for unit, name in subject.names.items() if name == member.name), value)
    others = [other.name for one, other in carried if one == meant]
    if meant != value and others and member.name not in others:
        message = (
            f"{member.name!r} carries {in_quotes(value)}; by its name it is {in_quotes(meant)}"
        )
        yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=value)


def _wire_values(subject: Subject) -> list[tuple[EnumValue, Member]]:
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


def _unknown_value(
    subject: Subject, value: EnumValue, member: Member, missing: list[EnumValue]
) -> Iterator[Issue]:
    """Yield one issue for a value that is not in the enum; a misspelt one is no longer missing."""
    if not member.name:
        return
    meant = _meant(subject, value, member, missing)
    if meant is None:
        message = f"value {in_quotes(value)} ({member.name!r}) is not among the values of the enum"
        yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=value)
        return
    missing.remove(meant)
    message, finding = _why_not(subject, value, member, meant)
    yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=meant, finding=finding)


def _why_not(
    subject: Subject, value: EnumValue, member: Member, meant: EnumValue
) -> tuple[str, str | None]:
    """Return why a member does not carry the value it is meant to, alone and of several."""
    if member.wire_name is not None or not isinstance(meant, str):
        carried = f"{member.name!r} carries {in_quotes(value)}"
        return f"{carried}; the value is {in_quotes(meant)}, to the letter", None
    language = subject.around.language
    lack = language.missing_wire_name(member, meant, is_enum=True)
    finding = f"the {subject.around.nouns.value}s for these values lack {lack}"
    return f"{member.name!r} lacks {lack}", finding.replace(quoted(meant), '"..."')


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
    if subject.is_silent(value):
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
