"""What only Python asks of a type: base classes, aliases, defaults, literals, names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Ref, Scalar
from pytest_regen.languages.base import (
    AbsenceFault,
    Member,
    RuleSubject,
    TypeRef,
    describe_absence,
)
from pytest_regen.languages.python.acceptance import LITERAL, literals_of, show_type
from pytest_regen.languages.python.literals import literal
from pytest_regen.languages.python.names import BASE_MODEL
from pytest_regen.languages.python.reflection import DATACLASS_FIELD, KEY, MODEL_FIELD, STYLE
from pytest_regen.languages.python.spelling import (
    constraint_arguments,
    spell,
    spell_value,
    tag_of,
)
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue

_STYLES: Final[Mapping[str, str]] = {
    "default": MODEL_FIELD,
    "dataclass": DATACLASS_FIELD,
    "typeddict": KEY,
}
_PROFILES: Final[Mapping[str, str]] = {style: profile for profile, style in _STYLES.items()}
_CONSTRAINTS: Final = frozenset({"ge", "gt", "le", "lt", "max_length", "min_length"}) | {
    "multiple_of",
    "pattern",
}


def missing_wire_name(member: Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    if is_enum:
        return f"its value, = {literal(wire)}"
    if member.kind == DATACLASS_FIELD:
        return f'dataclasses.field(metadata={{"alias": {literal(wire)}}})'
    if member.kind == KEY:
        return f"the key {literal(wire)}"
    return f"Field(alias={literal(wire)})"


# --- null and absence -----------------------------------------------------------------------------


def absence_fault(field: FieldIR, member: Member) -> AbsenceFault | None:
    """Return what is wrong about null and absence: ``None`` in the type, the default."""
    state = describe_absence(field)
    reason = f"field {in_quotes(field.json_name)} {state}"
    why = _wrong_absence(field, member)
    if why is None:
        return None
    asked = spell(field, profile=_PROFILES.get(member.kind, "default"))
    default = ""
    if not field.required and member.kind != KEY:
        default = " = UNSET" if member.kind == DATACLASS_FIELD else " = None"
    right = f"it must be '{asked}{default}'" + (
        "" if default or member.kind == KEY else ", without a default"
    )
    message = f"{member.name!r} {why}; {right}: {reason}"
    return AbsenceFault(message, f"each of these fields {why}; each {state}")


def _wrong_absence(field: FieldIR, member: Member) -> str | None:
    """Return what is wrong, in words that follow the name of a member, or ``None``."""
    is_any = isinstance(field.type, Scalar) and field.type.kind == "any" and tag_of(field) is None
    nullable = member.type is not None and member.type.nullable
    inner = _inner_null(field, member)
    if inner is not None:
        return inner
    if field.required and not member.is_required:
        return "may be left out" if member.kind == KEY else "has a default, and is required"
    if not field.required and member.is_required:
        return "lacks NotRequired[...]" if member.kind == KEY else "has no default"
    wants = field.nullable
    if member.kind == MODEL_FIELD:
        wants = wants or not field.required
    if nullable != wants and not is_any:
        return "lacks '| None' in its type" if wants else "has '| None' in its type"
    if field.required or member.kind == KEY:
        return None
    return _wrong_default(field, member)


def _default(member: Member) -> str:
    found = next((entry for entry in member.attributes if entry.name == "default"), None)
    return str(found.arguments[0]) if found is not None else ""


def _wrong_default(field: FieldIR, member: Member) -> str | None:
    """Return why the default of an optional field would hide that it is absent."""
    default = _default(member)
    if default == "UNSET":
        is_wrapped = member.type is not None and member.type.is_wrapped
        is_any = member.type is not None and member.type.name in {"Any", "object"}
        return (
            None
            if is_wrapped or is_any
            else "has the default UNSET and lacks '| Unset' in its type"
        )
    if default == "None":
        if member.kind == DATACLASS_FIELD and field.nullable:
            return "has the default None, which cannot be told from null"
        return None
    said = field.constraints.get("default")
    if said is not None and default == repr(said):
        return None
    return f"has the default {in_quotes(default[:40])}, which hides that it is absent"


def _inner_null(field: FieldIR, member: Member) -> str | None:
    """Return whether the items of an array, or the values of a map, lack ``None``."""
    key = ""
    match field.type:
        case ArrayOf():
            key = "nullableItems"
        case MapOf():
            key = "nullableValues"
    if not key or not field.constraints.get(key) or member.type is None or not member.type.args:
        return None
    inner = member.type.args[-1]
    if inner.nullable or inner.name in {"Any", "object", "JsonValue"}:
        return None
    return f"lacks '| None' after {show_type(inner)!r} in its type"


# --- rules ----------------------------------------------------------------------------------------


def rules(subject: RuleSubject) -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    if subject.type.kind == "enum":
        return
    yield from _wrong_style(subject)
    for field, member in subject.matches():
        if member.type is None:
            continue
        why = _wrong_values(field, member, member.type) or _wrong_arguments(field, member)
        if why is not None:
            yield subject.issue(
                "WRONG_TYPE", f"{member.name!r} {why}", line=member.line, unit=field.json_name
            )


def _wrong_style(subject: RuleSubject) -> Iterator[Issue]:
    """Yield a class that is not what the profile asks for."""
    wanted = _STYLES.get(subject.around.profile, MODEL_FIELD)
    for part in subject.main[:1]:
        found = next((str(one.arguments[0]) for one in part.attributes if one.name == STYLE), None)
        if found in {wanted, None}:  # Nothing is known of a class that was not loaded.
            continue
        name = part.name
        right = {
            MODEL_FIELD: f"write class {name}({BASE_MODEL}):",
            DATACLASS_FIELD: "write @dataclasses.dataclass(slots=True, kw_only=True) above it",
            KEY: f"write class {name}(TypedDict):",
        }[wanted]
        what = {MODEL_FIELD: "pydantic model", DATACLASS_FIELD: "dataclass", KEY: "TypedDict"}
        message = f"{name!r} is no {what[wanted]}; {right}"
        yield subject.issue("MISSING_CLASS", message, line=part.name_line)


def _wrong_values(field: FieldIR, member: Member, spelled: TypeRef) -> str | None:
    """Return why a ``Literal``, or the lack of one, does not allow the right values."""
    del member
    tag = tag_of(field)
    values = literals_of(spelled) if spelled.name == LITERAL else ()
    asked = spell_value(field, profile="default")
    if tag is not None and (
        values != (tag,) or isinstance(values[0], bool) != isinstance(tag, bool)
    ):
        return f"has type {show_type(spelled)!r}; its only value is {literal(tag)}: write {asked!r}"
    if tag is None and spelled.name == LITERAL and not isinstance(field.type, Ref):
        shown = show_type(spelled)
        return f"has type {shown!r}, and the document allows other values: write {asked!r}"
    return None


def _wrong_arguments(field: FieldIR, member: Member) -> str | None:
    """Return which argument of ``Field`` contradicts the document.

    One that is left out only lets more values in, which behaviour shows; one that differs refuses
    what the document allows, or cannot be read by pydantic.
    """
    if member.kind != MODEL_FIELD:
        return None
    right = constraint_arguments(field, profile="default")
    for entry in member.attributes:
        value: Any = entry.arguments[0] if entry.arguments else None
        if entry.name not in _CONSTRAINTS or _is_same(value, right.get(entry.name)):
            continue
        if entry.name in right:
            meant = right[entry.name]
            return f"has {entry.name}={value!r}; the document says {meant!r}"
        if not _is_said(field, entry.name, value):
            return f"has {entry.name}={value!r}, which the document does not say; leave it out"
    return None


def _is_same(value: Any, right: Any) -> bool:
    if isinstance(value, str) and isinstance(right, float):
        return value == repr(right)  # floats are kept as their text
    return value == right and right is not None


_KEYWORDS: Final[Mapping[str, Sequence[str]]] = {
    "ge": ("minimum", "exclusiveMinimum"),
    "gt": ("minimum", "exclusiveMinimum"),
    "le": ("maximum", "exclusiveMaximum"),
    "lt": ("maximum", "exclusiveMaximum"),
    "max_length": ("maxLength", "maxItems", "maxProperties"),
    "min_length": ("minLength", "minItems", "minProperties"),
    "multiple_of": ("multipleOf",),
    "pattern": ("pattern",),
}


def _is_said(field: FieldIR, name: str, value: Any) -> bool:
    """Return whether the document says so in a way that we would not have written."""
    said = field.constraints
    if name == "min_length" and value == 0:
        return True
    return any(said.get(key) == value or str(said.get(key)) == value for key in _KEYWORDS[name])
