"""Types as prompts ask for them: of TypeScript in one profile, schemas of zod in the other.

A schema refuses nothing that the document allows, and gives back what it was given. So formats are
checked only where zod means the same (``date``, ``uuid``), lengths are counted in characters and
not in the units of UTF-16 that ``.min`` and ``.max`` count, and defaults are left out.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pytest_regen.documents.ir import (
    ArrayOf,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
    referenced_names,
)
from pytest_regen.languages.typescript.patterns import regex_literal
from pytest_regen.text import quoted

_SCALARS: Final = {
    "string": ("string", "z.string()"),
    "integer": ("number", "z.int()"),
    "number": ("number", "z.number()"),
    "boolean": ("boolean", "z.boolean()"),
    "any": ("unknown", "z.unknown()"),
}
_FORMATS: Final[Mapping[str, str]] = {"date": "z.iso.date()", "uuid": "z.guid()"}
"""Formats that zod checks as documents mean them. Its ``z.uuid()`` refuses UUIDs of no known
version, and its date-times have no leap seconds."""
_SAFE: Final = 2**53 - 1
"""The largest integer that a number of JavaScript holds for certain."""
_LONGEST: Final = 10_000
"""Characters that a regular expression counts."""


class Check(NamedTuple):
    """A call on a schema that refuses values."""

    call: str
    keywords: tuple[str, ...]
    """What it enforces of the document."""


def spell(field: FieldIR, *, profile: str = "default") -> str:
    """Return the type of a field as prompts ask for it: ``string | null``, ``z.int().nullable()``.

    That a property may be absent is said behind its name in TypeScript, and by ``.optional()`` in
    zod.
    """
    is_zod = profile == "zod"
    if has_const(field):
        value = quoted(field.constraints["const"])
        spelled = f"z.literal({value})" if is_zod else value
    else:
        key = "nullableItems" if isinstance(field.type, ArrayOf) else "nullableValues"
        has_null = bool(field.constraints.get(key))
        spelled = _spelling(field.type, is_zod=is_zod, has_null=has_null)
    if is_zod:
        spelled += "".join(check.call for check in checks_of(field))
    if field.nullable and not is_any(field.type):
        spelled = _or_null(spelled, is_zod=is_zod)
    return spelled if field.required or not is_zod else f"{spelled}.optional()"


def has_const(field: FieldIR) -> bool:
    """Return whether the document allows one value alone, that a literal can name."""
    return isinstance(field.constraints.get("const"), str | int | float | bool)


def needs_getter(field: FieldIR) -> bool:
    """Return whether the schema of a field names another one, which may be declared later."""
    return not has_const(field) and any(referenced_names(field.type))


def is_any(expression: TypeExpr) -> bool:
    """Return whether any value of JSON is allowed."""
    match expression:
        case Scalar(kind="any"):
            return True
        case UnionOf(options=options):
            return any(map(is_any, options))
    return False


def _spelling(expression: TypeExpr, *, is_zod: bool, has_null: bool = False) -> str:
    """Return a type; ``has_null`` says whether null may stand in the array or map that it is."""
    match expression:
        case Ref(name=name):
            return name
        case Scalar(kind=kind, format_family=form):
            return _FORMATS[form] if is_zod and form in _FORMATS else _SCALARS[kind][is_zod]
        case UnionOf(options=options, discriminator=tag):
            if is_any(expression):
                return _SCALARS["any"][is_zod]
            inner = dict.fromkeys(_spelling(option, is_zod=is_zod) for option in options)
            if not is_zod:
                return " | ".join(inner)
            shown = f"[{', '.join(inner)}]"
            return f"z.discriminatedUnion({quoted(tag)}, {shown})" if tag else f"z.union({shown})"
        case ArrayOf(items=held) | MapOf(values=held):
            spelled = _spelling(held, is_zod=is_zod)
            if has_null and not is_any(held):
                spelled = _or_null(spelled, is_zod=is_zod)
            if isinstance(expression, MapOf):
                return (
                    f"z.record(z.string(), {spelled})" if is_zod else f"Record<string, {spelled}>"
                )
            if is_zod:
                return f"z.array({spelled})"
            is_union = not is_any(held) and (has_null or isinstance(held, UnionOf))
            return f"({spelled})[]" if is_union else f"{spelled}[]"


def _or_null(spelled: str, *, is_zod: bool) -> str:
    return f"{spelled}.nullable()" if is_zod else f"{spelled} | null"


# --- checks --------------------------------------------------------------------------------------


def checks_of(field: FieldIR) -> tuple[Check, ...]:
    """Return the checks of a field's schema."""
    if not has_const(field):
        match field.type:
            case Scalar(kind="string", format_family=form) if form not in _FORMATS:
                return tuple(_of_text(field.constraints))
            case Scalar(kind="integer" | "number" as kind):
                return tuple(_bounds(field.constraints, is_integer=kind == "integer"))
            case ArrayOf():
                return tuple(_sizes(field.constraints))
    return ()


def _of_text(limits: Mapping[str, Any]) -> Iterator[Check]:
    low, high = _count(limits.get("minLength")) or 0, _count(limits.get("maxLength"))
    if low == 1 and high is None:
        yield Check(".min(1)", ("minLength",))
    elif max(low, high or 0) <= _LONGEST and (low or high is not None):
        # Characters: .min and .max would count some of them twice.
        text = f".regex(/^.{{{low},{'' if high is None else high}}}$/su)"
        yield Check(text, ("minLength", "maxLength"))
    regex = regex_literal(limits.get("pattern"))
    if regex is not None:
        yield Check(f".regex({regex})", ("pattern",))


def _bounds(limits: Mapping[str, Any], *, is_integer: bool) -> Iterator[Check]:
    for keyword, exclusive, names in (
        ("minimum", "exclusiveMinimum", ("min", "gt")),
        ("maximum", "exclusiveMaximum", ("max", "lt")),
    ):
        bound, beyond = limits.get(keyword), limits.get(exclusive)
        if beyond is True:  # OpenAPI 3.0: it says how the other is meant
            beyond, bound = bound, None
        for value, name, keywords in (
            (bound, names[0], (keyword,)),
            (beyond, names[1], (keyword, exclusive)),
        ):
            number = _number(value, is_integer=is_integer)
            if number is not None:
                yield Check(f".{name}({number})", keywords)
    step = _count(limits.get("multipleOf"))
    if step:
        yield Check(f".multipleOf({step})", ("multipleOf",))


def _sizes(limits: Mapping[str, Any]) -> Iterator[Check]:
    for keyword, name in (("minItems", "min"), ("maxItems", "max")):
        count = _count(limits.get(keyword))
        if count is not None and (count or name == "max"):
            yield Check(f".{name}({count})", (keyword,))


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _SAFE
    return value if is_count else None  # type: ignore[return-value] # it is an int


def _number(value: object, *, is_integer: bool) -> str | None:
    """Return a bound as a literal; ``None`` where it is none, or beyond what numbers can tell."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if abs(value) > _SAFE and (is_integer or isinstance(value, int)):
        return None
    return quoted(int(value) if value == int(value) and abs(value) <= _SAFE else value)


def kept_constraints(field: FieldIR, profile: str) -> frozenset[str]:
    """Return the keywords of a schema whose violation the code of a field refuses.

    Those of the field itself: of what is inside an array or a map, types alone are kept.
    """
    if is_any(field.type):
        return frozenset({"required", "const"} if has_const(field) else {"required"})
    kept = {"type", "nullable", "required", "enum", "discriminator", "union"}
    if has_const(field):
        kept.add("const")
    if profile == "zod":
        kept.update(keyword for check in checks_of(field) for keyword in check.keywords)
        if isinstance(field.type, Scalar) and field.type.format_family in _FORMATS:
            kept.add("format")
    return frozenset(kept)
