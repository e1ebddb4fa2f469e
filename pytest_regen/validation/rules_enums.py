"""The rules about enums: ENUM_MEMBER."""

from collections.abc import Iterator
from difflib import get_close_matches

from pytest_regen.documents.ir import EnumValue
from pytest_regen.languages.facts import Converter, Member
from pytest_regen.quoting import in_quotes, quote
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.rules_fields import attributes_with
from pytest_regen.validation.subject import Subject

__all__ = ["enum_converter", "enum_values"]

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
        yield from _missing(subject, value)
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
    message, finding = _why_not(value, member, meant)
    yield subject.issue("ENUM_MEMBER", message, line=member.line, unit=meant, finding=finding)


def _why_not(value: EnumValue, member: Member, meant: EnumValue) -> tuple[str, str | None]:
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


def _missing(subject: Subject, value: EnumValue) -> Iterator[Issue]:
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
