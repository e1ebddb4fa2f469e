"""What the interpreter and pydantic say of the types of a source, put on the lines that say it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_regen.languages.base import Attribute, Declaration, Member, SyntaxFault, TypeRef
from pytest_regen.languages.python.source import why_undefined
from pytest_regen.text import in_quotes


def completed(entry: Declaration, facts: Mapping[str, Any]) -> Declaration:
    """Return a declaration as running shows it, its members on the lines where they were read.

    Args:
        entry: as the source was read.
        facts: what the child says of the type; from outside, so that it may be anything.

    Raises:
        KeyError, TypeError, ValueError: it is not what the child sends.
    """
    style, is_enum = str(facts["style"]), facts["style"] == "enum"
    places: dict[str, list[Member]] = {}
    for member in entry.members:
        places.setdefault(member.name, []).append(member)
    if entry.kind == "alias" and not is_enum:
        place = Member(entry.name, "alias", entry.name_line, entry.end_line, None)
        value = replace(_field(place, "alias", facts["value"]), wire_name="")
        return replace(entry, members=(value,))
    members: list[Member] = []
    for each in facts["values"] if is_enum else facts["members"]:
        name = str(each[0] if is_enum else each["name"])
        nowhere = Member(name, style, entry.name_line, entry.name_line, None)
        # What stands twice is one member to the interpreter, so that only reading shows both.
        for place in places.get(name, [nowhere]):
            if is_enum:
                wire = each[1] if isinstance(each[1], str | int) else str(each[1])
                number = wire if isinstance(wire, int) else None
                members.append(replace(place, wire_name=wire, number=number))
            else:
                members.append(_field(place, style, each))
    # In the order of the source, because pydantic puts inherited fields first.
    members.sort(key=lambda member: member.line)
    faults: tuple[SyntaxFault, ...] = ()
    if "unbuilt" in facts and not any(member.faults for member in members):
        faults = (SyntaxFault(entry.name_line, str(facts["unbuilt"]), "IMPORT_FAILED"),)
    return replace(entry, kind=style, members=tuple(members), faults=faults)


def _field(place: Member, style: str, facts: Mapping[str, Any]) -> Member:
    line, name = place.line, place.name
    member = Member(name, style, line, place.end_line, None, is_required=bool(facts["required"]))
    if "undefined" in facts:
        missing = str(facts["undefined"])
        advice = why_undefined(missing)
        message = f"{name!r} uses {in_quotes(missing)}, which is not declared"
        fault = SyntaxFault(line, f"{message}; {advice}" if advice else message, "UNDECLARED_TYPE")
        return replace(member, wire_name=place.wire_name, faults=(fault,))
    wire = facts.get("wire")
    member = replace(member, wire_name=None if wire is None else str(wire))
    if "broken" in facts:
        message = f"the type of {name!r} cannot be made: {facts['broken']}"
        return replace(member, faults=(SyntaxFault(line, message, "IMPORT_FAILED"),))
    limits = facts["limits"]
    # A fact like a limit, because rules tell of both with the same words.
    if "default" in facts:
        limits = {"default": str(facts["default"]), **limits}
    return replace(
        member,
        type=_type(facts["type"], line),
        has_initializer=facts.get("default") not in {None, "None"},
        attributes=tuple(Attribute(str(key), (value,), line) for key, value in limits.items()),
        unread=str(facts["unread"]) if "unread" in facts else None,
    )


def _type(facts: Sequence[Any], line: int) -> TypeRef:
    name, nullable, wrapped, args = facts
    parts = tuple(_type(each, line) for each in args)
    return TypeRef(str(name), parts, nullable=bool(nullable), line=line, is_wrapped=bool(wrapped))
