"""Types as prompts ask for them: of TypeScript in one profile, schemas of zod in the other.

A schema refuses nothing that the document allows, and gives back what it was given. So formats are
checked only where zod means the same (``date``, ``uuid``), lengths are counted in characters and
not in the units of UTF-16 that ``.min`` and ``.max`` count, and defaults are left out.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pytest_regen.documents import ir
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


def spell(field: ir.FieldIR, *, profile: str = "default") -> str:
    """Return the type of a field as prompts ask for it: ``string | null``, ``z.int().nullable()``.

    That a property may be absent is said behind its name in TypeScript, and by ``.optional()`` in
    zod.
    """
    is_zod = profile == "zod"
    if has_const(field):
        value = quoted(field.constraints["const"])
        spelled = f"z.literal({value})" if is_zod else value
    else:
        key = "nullableItems" if isinstance(field.type, ir.ArrayOf) else "nullableValues"
        has_null = bool(field.constraints.get(key))
        spelled = _spelling(field.type, is_zod=is_zod, has_null=has_null)
    if is_zod:
        spelled += "".join(check.call for check in checks_of(field))
    if field.nullable and not is_any(field.type):
        spelled = _or_null(spelled, is_zod=is_zod)
    return spelled if field.required or not is_zod else f"{spelled}.optional()"


def has_const(field: ir.FieldIR) -> bool:
    """Return whether the document allows one value alone, that a literal can name."""
    return isinstance(field.constraints.get("const"), str | int | float | bool)


def needs_getter(field: ir.FieldIR) -> bool:
    """Return whether the schema of a field names another one, which may be declared later."""
    return not has_const(field) and any(ir.referenced_names(field.type))


def is_any(expression: ir.TypeExpr) -> bool:
    """Return whether any value of JSON is allowed."""
    options = expression.options if isinstance(expression, ir.UnionOf) else (expression,)
    return any(isinstance(option, ir.Scalar) and option.kind == "any" for option in options)


def _spelling(expression: ir.TypeExpr, *, is_zod: bool, has_null: bool = False) -> str:
    """Return a type; ``has_null`` says whether null may stand in the array or map that it is."""
    if is_any(expression):
        return _SCALARS["any"][is_zod]
    match expression:
        case ir.Ref(name=name):
            return name
        case ir.Scalar(kind=kind, format_family=form):
            return _FORMATS[form] if is_zod and form in _FORMATS else _SCALARS[kind][is_zod]
        case ir.UnionOf(options=options, discriminator=tag):
            inner = dict.fromkeys(_spelling(option, is_zod=is_zod) for option in options)
            if not is_zod:
                return " | ".join(inner)
            items = f"[{', '.join(inner)}]"
            return f"z.discriminatedUnion({quoted(tag)}, {items})" if tag else f"z.union({items})"
        case ir.ArrayOf(items=item) | ir.MapOf(values=item):
            spelled = _spelling(item, is_zod=is_zod)
            if has_null and not is_any(item):
                spelled = _or_null(spelled, is_zod=is_zod)
            is_array = isinstance(expression, ir.ArrayOf)
            if is_zod:
                return f"z.array({spelled})" if is_array else f"z.record(z.string(), {spelled})"
            if not is_array:
                return f"Record<string, {spelled}>"
            # In brackets, because [] binds more tightly than the sign of a union.
            is_union = not is_any(item) and (has_null or isinstance(item, ir.UnionOf))
            return f"({spelled})[]" if is_union else f"{spelled}[]"


def _or_null(spelled: str, *, is_zod: bool) -> str:
    return f"{spelled}.nullable()" if is_zod else f"{spelled} | null"


# --- checks --------------------------------------------------------------------------------------


def checks_of(field: ir.FieldIR) -> Iterator[Check]:
    """Yield the checks of a field's schema."""
    limits = {} if has_const(field) else field.constraints
    match field.type:
        case ir.Scalar(kind="string", format_family=form) if form not in _FORMATS:
            low, high = _count(limits, "minLength"), _count(limits, "maxLength")
            if low == 1 and high is None:
                yield Check(".min(1)", ("minLength",))
            elif max(low or 0, high or 0) <= _LONGEST and (low or high is not None):
                # Characters, because .min and .max would count some of them twice.
                text = f".regex(/^.{{{low or 0},{'' if high is None else high}}}$/su)"
                yield Check(text, ("minLength", "maxLength"))
            regex = regex_literal(limits.get("pattern"))
            if regex is not None:
                yield Check(f".regex({regex})", ("pattern",))
        case ir.Scalar(kind="integer" | "number" as kind):
            yield from _bounds(limits, is_integer=kind == "integer")
        case ir.ArrayOf():
            low, high = _count(limits, "minItems"), _count(limits, "maxItems")
            if low:
                yield Check(f".min({low})", ("minItems",))
            if high is not None:
                yield Check(f".max({high})", ("maxItems",))


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
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            is_safe = abs(value) <= _SAFE
            # Beyond that a number of JavaScript does not hold an integer.
            if is_safe or (math.isfinite(value) and not is_integer and isinstance(value, float)):
                number = int(value) if is_safe and value == int(value) else value
                yield Check(f".{name}({quoted(number)})", keywords)
    # Whole steps alone, because zod computes remainders of fractions inexactly.
    step = _count(limits, "multipleOf")
    if step:
        yield Check(f".multipleOf({step})", ("multipleOf",))


def _count(limits: Mapping[str, Any], keyword: str) -> int | None:
    value = limits.get(keyword)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _SAFE
    return value if is_count else None


def kept_constraints(field: ir.FieldIR, profile: str) -> frozenset[str]:
    """Return the keywords of a schema whose violation the code of a field refuses.

    Those of the field itself: of what is inside an array or a map, types alone are kept.
    """
    if is_any(field.type):
        return frozenset({"required", "const"} if has_const(field) else {"required"})
    keywords = {"type", "nullable", "required", "enum", "discriminator", "union"}
    if has_const(field):
        keywords.add("const")
    if profile == "zod":
        keywords.update(keyword for check in checks_of(field) for keyword in check.keywords)
        if isinstance(field.type, ir.Scalar) and field.type.format_family in _FORMATS:
            keywords.add("format")
    return frozenset(keywords)
