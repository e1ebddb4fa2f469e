"""What only TypeScript and zod ask of a type: absence, and the profile."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_regen.documents.ir import ArrayOf, FieldIR
from pytest_regen.languages.base import AbsenceFault, Member, TypeRef, describe_absence
from pytest_regen.languages.typescript.reader import SCHEMA
from pytest_regen.languages.typescript.spelling import is_any, spell
from pytest_regen.languages.typescript.types import ANYTHING
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.validation.subject import Subject


def missing_wire_name(member: Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    del member
    return f"{'its value: write' if is_enum else 'its name on the wire: call it'} {quoted(wire)}"


def absence_fault(field: FieldIR, member: Member) -> AbsenceFault | None:
    """Return what is wrong about null and absence: the question mark and ``null``."""
    state, is_key = describe_absence(field), member.kind == "key"
    absent, null = (".optional()", ".nullable()") if is_key else ("question mark", "null")
    faults: list[str] = []
    # Absence and null are told apart, because JSON and exactOptionalPropertyTypes do.
    if member.is_required != field.required:
        faults.append(f"lacks its {absent}" if member.is_required else f"has a {absent} too many")
    type_ = member.type or TypeRef("any")
    is_nullable = type_.nullable
    if is_nullable != field.nullable and not is_any(field.type):
        faults.append(f"has {null} too many" if is_nullable else f"lacks {null}")
    key = "nullableItems" if isinstance(field.type, ArrayOf) else "nullableValues"
    # What is no array or map holds nothing, and what may be anything may be null because of that.
    item = type_.args[0] if type_.name in {"[]", "{}"} else TypeRef("any")
    if item.name not in ANYTHING and item.nullable != bool(field.constraints.get(key)):
        faults.append("says of null inside it what the document does not")
    if not faults:
        return None
    mark = "" if is_key or field.required else "?"
    right = f"{member.name}{mark}: {spell(field, profile='zod' if is_key else 'default')}"
    reason = f"field {in_quotes(field.json_name)} {state}"
    return AbsenceFault(
        f"{member.name!r} must be written {in_quotes(right)}: {reason}",
        f"each of these properties {' and '.join(faults)}; each {state}",
    )


def rules(subject: "Subject") -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    profile = subject.around.profile
    for part in subject.main:
        if (SCHEMA in part.attributes) != (profile == "zod"):
            right = "a schema of zod" if profile == "zod" else "a type alone, no schema of zod"
            message = f"{part.name!r} must be {right}: the store has the profile {profile!r}"
            yield subject.issue("MISSING_CLASS", message, line=part.name_line)
            return
    # Because a second import of a name is illegal in the whole file.
    if "z" in subject.facts.aliases:
        message = "z is imported again; take the import out, for the file has it already"
        yield subject.issue("SYNTAX", message, line=1)
    for field, member in subject.matches() if subject.type.kind == "object" else ():
        if member.type is not None and member.type.name == "any" and is_any(field.type):
            right = in_quotes(spell(field, profile=profile))
            message = f"{member.name!r} is any, which turns checks off where it is used"
            yield subject.issue(
                "REVIEW", f"{message}; write {right}", line=member.line, unit=field.json_name
            )
