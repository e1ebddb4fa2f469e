"""What the interpreter and pydantic say of the types of a source, put on the lines that say it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pytest_regen.languages.base import Attribute, Declaration, Member, SyntaxFault, TypeRef
from pytest_regen.languages.python.source import why_undefined
from pytest_regen.text import in_quotes

MODEL_FIELD: Final = "field"
DATACLASS_FIELD: Final = "dataclass field"
KEY: Final = "key"
"""Kinds of members: of a pydantic model, of a dataclass, of a TypedDict."""
STYLE: Final = "style"
"""The attribute that tells of what kind the members of a class are."""


def completed(entry: Declaration, facts: Mapping[str, Any]) -> Declaration:
    """Return a declaration as running shows it, its members on the lines where they were read.

    Args:
        entry: as the source was read.
        facts: what the child says of the type; from outside, so that it may be anything.

    Raises:
        KeyError, TypeError, ValueError: it is not what the child sends.
    """
    lines: dict[str, list[Member]] = {}
    for member in entry.members:
        lines.setdefault(member.name, []).append(member)
    style = str(facts["style"])
    if style == "enum":
        members = list(_values(entry, facts["values"], lines))
        faults = _unbuilt(entry, facts)
        members += _again(members, lines)
        return replace(entry, kind="enum", members=tuple(members), faults=faults)
    fields = [_field(entry, style, each, lines) for each in facts["members"]]
    places = {member.name: at for at, member in enumerate(entry.members)}
    fields.sort(key=lambda member: places.get(member.name, -1))
    return replace(
        entry,
        kind="class",
        members=(*fields, *_again(fields, lines)),
        faults=() if any(member.faults for member in fields) else _unbuilt(entry, facts),
        attributes=(Attribute(STYLE, (style,)),),
    )


def _unbuilt(entry: Declaration, facts: Mapping[str, Any]) -> tuple[SyntaxFault, ...]:
    if "unbuilt" not in facts:
        return ()
    return (SyntaxFault(entry.name_line, str(facts["unbuilt"]), "IMPORT_FAILED"),)


def _again(members: Sequence[Member], lines: Mapping[str, Sequence[Member]]) -> list[Member]:
    """Return what stands twice: to the interpreter that is one member, only reading shows both."""
    return [
        replace(member, line=other.line, end_line=other.end_line)
        for member in members
        for other in lines.get(member.name, ())[1:]
    ]


def _values(
    entry: Declaration, values: Sequence[Sequence[Any]], lines: Mapping[str, Sequence[Member]]
) -> Iterator[Member]:
    for name, value in values:
        read = lines.get(name, ())
        line, end = (read[0].line, read[0].end_line) if read else (entry.name_line,) * 2
        wire = value if isinstance(value, str | int) else str(value)
        number = wire if isinstance(wire, int) else None
        yield Member(str(name), "value", line, end, wire, number=number)


def _field(
    entry: Declaration, style: str, facts: Mapping[str, Any], lines: Mapping[str, Sequence[Member]]
) -> Member:
    name = str(facts["name"])
    read = lines.get(name, ())
    line, end = (read[0].line, read[0].end_line) if read else (entry.name_line,) * 2
    member = Member(name, style, line, end, None, is_required=bool(facts["required"]))
    if "undefined" in facts:
        missing = str(facts["undefined"])
        advice = why_undefined(missing)
        message = f"{name!r} uses {in_quotes(missing)}, which is not declared"
        message += f"; {advice}" if advice else ""
        wire = read[0].wire_name if read else None
        return replace(
            member, wire_name=wire, faults=(SyntaxFault(line, message, "UNDECLARED_TYPE"),)
        )
    if "broken" in facts:
        message = f"the type of {name!r} cannot be made: {facts['broken']}"
        wire = str(facts["wire"]) if "wire" in facts else None
        faults = (SyntaxFault(line, message, "IMPORT_FAILED"),)
        return replace(member, wire_name=wire, faults=faults)
    default = facts.get("default")
    attributes = [Attribute(str(key), (value,), line) for key, value in facts["limits"].items()]
    if default is not None:
        attributes.insert(0, Attribute("default", (str(default),), line))
    wire = facts.get("wire")
    return replace(
        member,
        wire_name=None if wire is None else str(wire),
        type=_type(facts["type"], line),
        has_initializer=default not in {None, "None"},
        attributes=tuple(attributes),
        unread=str(facts["unread"]) if "unread" in facts else None,
    )


def _type(facts: Sequence[Any], line: int) -> TypeRef:
    name, nullable, wrapped, args = facts
    return TypeRef(
        str(name),
        tuple(_type(each, line) for each in args),
        nullable=bool(nullable),
        line=line,
        is_wrapped=bool(wrapped),
    )
