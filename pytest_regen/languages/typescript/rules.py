"""What only TypeScript and zod ask of a type: absence, literals, checks, and order."""

from collections.abc import Iterator
from typing import Final

from pytest_regen.documents.ir import FieldIR, Scalar, UnionOf
from pytest_regen.languages.base import (
    AbsenceFault,
    Attribute,
    Member,
    RuleSubject,
    TypeRef,
    describe_absence,
)
from pytest_regen.languages.typescript.declarations import SCHEMA
from pytest_regen.languages.typescript.names import literal
from pytest_regen.languages.typescript.schemas import CHANGES, CHECKS
from pytest_regen.languages.typescript.spelling import checks_of, const_of, has_const, spell
from pytest_regen.languages.typescript.types import is_literal, show_type
from pytest_regen.text import in_quotes
from pytest_regen.validation.issues import Issue


def missing_wire_name(member: Member, wire: str, *, is_enum: bool) -> str:
    """Return what a member lacks to carry ``wire``."""
    del member
    if is_enum:
        return f"its value: write {literal(wire)}"
    return f"its name on the wire: call it {literal(wire)}"


def _is_any(field: FieldIR) -> bool:
    match field.type:
        case Scalar(kind="any"):
            return True
        case UnionOf(options=options):
            return any(isinstance(each, Scalar) and each.kind == "any" for each in options)
    return False


def absence_fault(field: FieldIR, member: Member) -> AbsenceFault | None:
    """Return what is wrong about null and absence: the question mark, ``null``, ``undefined``."""
    state = describe_absence(field)
    reason = f"field {in_quotes(field.json_name)} {state}"
    is_key = member.kind == "key"
    right = spell(field, profile="zod" if is_key else "default")
    mark = "" if is_key or field.required else "?"
    written = in_quotes(f"{member.name}{mark}: {right}")
    has_undefined = any(each.name == "undefined" for each in member.attributes)
    faults: list[str] = []
    if has_undefined and member.is_required:
        faults.append("is undefined in place of absent")
    elif member.is_required != field.required:
        what = ".optional()" if is_key else "question mark"
        faults.append(f"lacks its {what}" if member.is_required else f"has a {what} too many")
    is_nullable = member.type is not None and member.type.nullable
    if is_nullable != field.nullable and not _is_any(field):
        what = ".nullable()" if is_key else "null"
        faults.append(f"has {what} too many" if is_nullable else f"lacks {what}")
    if not faults:
        return None
    words = " and ".join(faults)
    return AbsenceFault(
        f"{member.name!r} must be written {written}: {reason}",
        f"each of these properties {words}; each {state}",
    )


def rules(subject: RuleSubject) -> Iterator[Issue]:
    """Yield what is wrong with a type that other languages have no word for."""
    is_zod = subject.around.profile == "zod"
    for part in subject.main:
        if (SCHEMA in part.attributes) != is_zod:
            asked = "a schema of zod" if is_zod else "a type alone, no schema of zod"
            message = f"{part.name!r} must be {asked}: the store has the profile"
            shown = f"{message} {subject.around.profile!r}"
            yield subject.issue("MISSING_CLASS", shown, line=part.name_line)
            return
    if subject.type.kind == "enum":
        return
    order = [entry.name for entry in subject.around.declarations] if is_zod else []
    for field, member in subject.matches():
        if member.type is None or subject.is_near_fault(member):
            continue
        yield from _weak(subject, field, member)
        yield from _literals(subject, field, member)
        yield from _null_inside(subject, field, member)
        if is_zod:
            yield from _changes(subject, field, member)
            yield from _checks(subject, field, member)
            yield from _order(subject, member, order)


def _weak(subject: RuleSubject, field: FieldIR, member: Member) -> Iterator[Issue]:
    """Yield ``any`` where the document allows any value: right, and not checked by anybody."""
    if member.type is not None and member.type.name == "any" and _is_any(field):
        written = spell(field, profile=subject.around.profile)
        message = f"{member.name!r} is any, which turns checks off where it is used"
        yield subject.issue(
            "REVIEW",
            f"{message}; write {in_quotes(written)}",
            line=member.line,
            unit=field.json_name,
        )


def _literals(subject: RuleSubject, field: FieldIR, member: Member) -> Iterator[Issue]:
    """Yield a literal that is not the only value of the field, or a type that lacks one."""
    found = member.type
    if found is None or found.args or not isinstance(field.type, Scalar) or _is_any(field):
        return
    if has_const(field):
        is_right = is_literal(found) and found.name == literal(const_of(field))
        why = f"the only value of field {in_quotes(field.json_name)}"
    else:
        is_right = not is_literal(found)
        why = f"field {in_quotes(field.json_name)} has other values, too"
    if not is_right:
        right = spell(field, profile=subject.around.profile)
        message = f"{member.name!r} has type {show_type(found)!r}; it must be {in_quotes(right)}"
        yield subject.issue(
            "WRONG_TYPE", f"{message}: {why}", line=member.line, unit=field.json_name
        )


def _null_inside(subject: RuleSubject, field: FieldIR, member: Member) -> Iterator[Issue]:
    """Yield an array or a map whose null items or values have no place in it."""
    for key, noun in (("nullableItems", "items"), ("nullableValues", "values")):
        if not field.constraints.get(key) or member.type is None:
            continue
        kind = "array" if key == "nullableItems" else "map"
        if field.type.kind != kind or not member.type.args:
            continue
        inner = member.type.args[-1]
        if not inner.nullable and inner.name not in {"any", "unknown"}:
            right = spell(field, profile=subject.around.profile)
            message = f"{member.name!r} must be {in_quotes(right)}: its {noun} may be null"
            yield subject.issue("NULLABILITY", message, line=member.line, unit=field.json_name)


# --- schemas -------------------------------------------------------------------------------------

_ALWAYS: Final = {
    "positive": ("gt", "0"),
    "negative": ("lt", "0"),
    "nonnegative": ("min", "0"),
    "nonpositive": ("max", "0"),
    "nonempty": ("min", "1"),
}
_SAME: Final = {"gte": "min", "lte": "max", "step": "multipleOf"}


def _changes(subject: RuleSubject, field: FieldIR, member: Member) -> Iterator[Issue]:
    """Yield calls that make another value of the one that was parsed, or that cannot be read."""
    for each in member.attributes:
        if each.name in CHANGES:
            message = f"{member.name!r} has {each.name}, which makes another value; take it away"
            yield subject.issue("WRONG_TYPE", message, line=each.line, unit=field.json_name)
        elif each.name == "misplaced":
            message = (
                f"{member.name!r} has .{each.arguments[0]}() after .optional() or .nullable(), "
                "where there is no such method"
            )
            yield subject.issue("SYNTAX", message, line=each.line, unit=field.json_name)
        elif each.name in {"check", "refine", "superRefine", "with"}:
            message = f"{member.name!r} has .{each.name}(), which may refuse what is allowed"
            yield subject.issue("REVIEW", message, line=each.line, unit=field.json_name)


def _checks(subject: RuleSubject, field: FieldIR, member: Member) -> Iterator[Issue]:
    """Yield checks that are missing, and those that refuse what the document allows."""
    if any(each.name in CHANGES for each in member.attributes):
        return
    wanted = {*checks_of(field)}
    accepted = wanted | _lengths(field)
    found = [(_normal(each), each) for each in member.attributes if each.name in CHECKS]
    flat = {pair for pairs, _ in found for pair in pairs}
    counted = {pair for pair in wanted if pair[1].endswith("/su")}
    if counted and _lengths(field) <= flat:
        wanted -= counted
    right = spell(field, profile="zod")
    for pairs, each in found:
        if not set(pairs) <= accepted:
            message = (
                f"{member.name!r} has .{each.name}({_shown(each)}), which the document does not "
                f"ask for; it must be {in_quotes(right)}"
            )
            yield subject.issue("WRONG_TYPE", message, line=each.line, unit=field.json_name)
            return
    missing = sorted(wanted - flat)
    if missing:
        shown = " and ".join(f".{name}({argument})" for name, argument in missing)
        message = f"{member.name!r} lacks {shown}; it must be {in_quotes(right)}"
        yield subject.issue("WRONG_TYPE", message, line=member.line, unit=field.json_name)


def _lengths(field: FieldIR) -> set[tuple[str, str]]:
    """Return what most write for lengths: right but for characters that UTF-16 counts twice."""
    found: set[tuple[str, str]] = set()
    if isinstance(field.type, Scalar) and field.type.kind == "string":
        for key, name in (("minLength", "min"), ("maxLength", "max")):
            count = field.constraints.get(key)
            if isinstance(count, int) and not isinstance(count, bool) and (count or name == "max"):
                found.add((name, str(count)))
    return found


def _normal(check: Attribute) -> tuple[tuple[str, str], ...]:
    """Return a check by the names that prompts use."""
    if check.name in _ALWAYS and not (check.name == "nonempty" and check.arguments):
        return (_ALWAYS[check.name],)
    shown = _shown(check)
    if check.name == "length":
        return ("min", shown), ("max", shown)
    return ((_SAME.get(check.name, check.name), shown),)


def _shown(check: Attribute) -> str:
    return "…" if not check.arguments else str(check.arguments[0])


def _order(subject: RuleSubject, member: Member, order: list[str]) -> Iterator[Issue]:
    """Yield schemas that are looked up before they are declared."""
    for each in member.attributes:
        for reference in each.types if each.name == "eager" else ():
            if _is_later(reference, subject.type.name, order):
                message = (
                    f"{member.name!r} uses {reference.name!r} before it is declared; write a "
                    f"getter: get {member.name}() {{ return …; }}"
                )
                yield subject.issue("WRONG_TYPE", message, line=each.line, unit=member.wire_name)
                return


def _is_later(reference: TypeRef, own: str, order: list[str]) -> bool:
    if reference.name not in order or own not in order:
        return False
    return order.index(reference.name) >= order.index(own)
