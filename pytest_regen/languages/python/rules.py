"""What only Python asks of a type: base classes, aliases, defaults, literals, names."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Ref, Scalar
from pytest_regen.languages import base
from pytest_regen.languages.python import spelling
from pytest_regen.languages.python.acceptance import LITERAL, literals_of, show_type
from pytest_regen.languages.python.literals import literal
from pytest_regen.languages.python.names import DATACLASS, KEYS, MODEL
from pytest_regen.languages.python.writer import head_of
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.validation.subject import Subject

_STYLES: Final[Mapping[str, str]] = {"default": MODEL, "dataclass": DATACLASS, "typeddict": KEYS}
_PROFILES: Final[Mapping[str, str]] = {style: profile for profile, style in _STYLES.items()}
_ANYTHING: Final = frozenset({"Any", "JsonValue", "object"})
_WORDS: Final[Mapping[str, str]] = {"ge": "min", "gt": "min", "le": "max", "lt": "max"}


def missing_wire_name(member: base.Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    text = literal(wire)
    if is_enum:
        return f"its value, = {text}"
    dataclass = f'dataclasses.field(metadata={{"alias": {text}}})'
    return {DATACLASS: dataclass, KEYS: f"the key {text}"}.get(member.kind, f"Field(alias={text})")


# --- null and absence -----------------------------------------------------------------------------


def absence_fault(field: FieldIR, member: base.Member) -> base.AbsenceFault | None:
    """Return what is wrong about null and absence: ``None`` in the type, the default."""
    keys: Mapping[type, str] = {ArrayOf: "nullableItems", MapOf: "nullableValues"}
    inner = member.type.args[-1] if member.type and member.type.args else None
    why = _wrong_absence(field, member)
    # Only their lack is told, because other types beside ``None`` are the type's own fault.
    may_be_null = field.constraints.get(keys.get(type(field.type), ""))
    if may_be_null and inner and not inner.nullable and inner.name not in _ANYTHING:
        why = f"lacks '| None' after {show_type(inner)!r} in its type"
    if why is None:
        return None
    state = base.describe_absence(field)
    right = spelling.spell(field, profile=_PROFILES.get(member.kind, "default"))
    if member.kind == KEYS:
        right = f"'{right}'"
    elif field.required:
        right = f"'{right}', without a default"
    else:
        right = f"'{right} = {'UNSET' if member.kind == DATACLASS else None}'"
    reason = f"field {in_quotes(field.json_name)} {state}"
    message = f"{member.name!r} {why}; it must be {right}: {reason}"
    return base.AbsenceFault(message, f"each of these fields {why}; each {state}")


def _wrong_absence(field: FieldIR, member: base.Member) -> str | None:
    """Return what is wrong, in words that follow the name of a member, or ``None``."""
    is_key, nullable = member.kind == KEYS, member.type is not None and member.type.nullable
    if field.required != member.is_required:
        if field.required:
            return "may be left out" if is_key else "has a default, and is required"
        return "lacks NotRequired[...]" if is_key else "has no default"
    is_any = isinstance(field.type, Scalar) and field.type.kind == "any"
    wants = field.nullable or (member.kind == MODEL and not field.required)
    if nullable != wants and not (is_any and spelling.tag_of(field) is None):
        return f"{'lacks' if wants else 'has'} '| None' in its type"
    if field.required or is_key:
        return None
    default = next((str(e.arguments[0]) for e in member.attributes if e.name == "default"), "")
    if default == "UNSET":
        spelled = member.type
        is_right = spelled is not None and (spelled.is_wrapped or spelled.name in _ANYTHING)
        return None if is_right else "has the default UNSET and lacks '| Unset' in its type"
    if default == "None" and member.kind == DATACLASS and field.nullable:
        return "has the default None, which cannot be told from null"
    # The default of the document is right too, because whoever leaves the field out means it.
    if default in {"None", repr(field.constraints.get("default"))}:
        return None
    return f"has the default {in_quotes(default[:40])}, which hides that it is absent"


# --- rules ----------------------------------------------------------------------------------------


def rules(subject: "Subject") -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    if subject.type.kind == "enum":
        return
    profile = subject.around.profile
    style = _STYLES.get(profile, MODEL)
    for part in subject.main[:1]:
        # A class that was not loaded passes, because nothing is known of it.
        if part.kind not in {"alias", "class", style}:
            head = head_of(part.name, profile).replace("\n", " above ")
            message = f"{part.name!r} is not a {style}; write {head}"
            yield subject.issue("MISSING_CLASS", message, line=part.name_line)
    for field, member in subject.matches():
        if member.type is None:
            continue
        why = _wrong_values(field, member.type) or _wrong_arguments(field, member)
        if why is not None:
            yield subject.issue(
                "WRONG_TYPE", f"{member.name!r} {why}", line=member.line, unit=field.json_name
            )


def _wrong_values(field: FieldIR, spelled: base.TypeRef) -> str | None:
    """Return why a ``Literal``, or the lack of one, does not allow the right values."""
    tag, is_literal = spelling.tag_of(field), spelled.name == LITERAL
    values = [(type(value), value) for value in literals_of(spelled)] if is_literal else []
    asked = spelling.spell_value(field, profile="default")
    shown = show_type(spelled)
    # With its type, because True is 1 to Python and not to JSON.
    if tag is not None and values != [(type(tag), tag)]:
        return f"has type {shown!r}; its only value is {literal(tag)}: write {asked!r}"
    if tag is None and is_literal and not isinstance(field.type, Ref):
        return f"has type {shown!r}, and the document allows other values: write {asked!r}"
    return None


def _wrong_arguments(field: FieldIR, member: base.Member) -> str | None:
    """Return which argument of ``Field`` contradicts the document.

    One that is left out only lets more values in, which behaviour shows; one that differs refuses
    what the document allows, or cannot be read by pydantic.
    """
    right = spelling.constraint_arguments(field, profile="default")
    for entry in member.attributes if member.kind == MODEL else ():
        value: Any = entry.arguments[0]
        if entry.name == "default" or value == right.get(entry.name):
            continue
        if entry.name in right:
            meant = right[entry.name]
            return f"has {entry.name}={value!r}; the document says {meant!r}"
        # The document may say so in a way that we would not have written.
        word = _WORDS.get(entry.name, entry.name[:3])
        values = [each for key, each in field.constraints.items() if word in key.lower()]
        if value not in values and (entry.name, value) != ("min_length", 0):
            return f"has {entry.name}={value!r}, which the document does not say; leave it out"
    return None
