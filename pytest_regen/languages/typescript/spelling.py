"""Types as prompts ask for them: of TypeScript in one profile, schemas of zod in the other.

A schema refuses nothing that the document allows, and gives back what it was given. So formats are
checked only where zod means the same (``date``, ``uuid``), lengths are counted in characters and
not in the units of UTF-16 that ``.min`` and ``.max`` count, and defaults are left out.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

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
from pytest_regen.languages.typescript.names import literal
from pytest_regen.languages.typescript.patterns import regex_literal

_SCALARS: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "any": "unknown",
}
_SCHEMAS: Final = {
    "string": "z.string()",
    "integer": "z.int()",
    "number": "z.number()",
    "boolean": "z.boolean()",
    "any": "z.unknown()",
}
FORMATS: Final[Mapping[str, str]] = {"date": "z.iso.date()", "uuid": "z.guid()"}
"""Formats that zod checks as documents mean them. Its ``z.uuid()`` refuses UUIDs of no known
version, and its date-times have no leap seconds."""
_SAFE: Final = 2**53 - 1
"""The largest integer that a number of JavaScript holds for certain."""
_LONGEST: Final = 10_000
"""Characters that a regular expression counts."""


def spell(field: FieldIR, *, profile: str = "default") -> str:
    """Return the type of a field as prompts ask for it: ``string | null``, ``z.int().nullable()``.

    That a property may be absent is said behind its name in TypeScript, and by ``.optional()`` in
    zod.
    """
    if profile == "zod":
        spelled = _schema(field)
        spelled += ".nullable()" if field.nullable and not _is_any(field.type) else ""
        return spelled if field.required else f"{spelled}.optional()"
    spelled = literal(field.constraints["const"]) if has_const(field) else _type(field)
    return f"{spelled} | null" if field.nullable and not _is_any(field.type) else spelled


def has_const(field: FieldIR) -> bool:
    """Return whether the document allows one value alone, that a literal can name."""
    return "const" in field.constraints and isinstance(
        field.constraints["const"], str | int | float | bool
    )


def const_of(field: FieldIR) -> Any:
    """Return that value."""
    return field.constraints["const"]


def needs_getter(field: FieldIR) -> bool:
    """Return whether the schema of a field names another one, which may be declared later."""
    return not has_const(field) and any(referenced_names(field.type))


def _is_any(expression: TypeExpr) -> bool:
    match expression:
        case Scalar(kind="any"):
            return True
        case UnionOf(options=options):
            return any(map(_is_any, options))
    return False


# --- types ---------------------------------------------------------------------------------------


def _type(field: FieldIR) -> str:
    return _spelling(field.type, has_null=_has_null_inside(field))


def _has_null_inside(field: FieldIR) -> bool:
    """Return whether the items of an array, or the values of a map, may be null."""
    key = "nullableItems" if isinstance(field.type, ArrayOf) else "nullableValues"
    return bool(field.constraints.get(key))


def _spelling(expression: TypeExpr, *, has_null: bool = False) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=items):
            inner = _inner(items, has_null=has_null)
            is_union = inner != _SCALARS["any"] and (has_null or isinstance(items, UnionOf))
            return f"({inner})[]" if is_union else f"{inner}[]"
        case MapOf(values=values):
            return f"Record<string, {_inner(values, has_null=has_null)}>"
        case UnionOf(options=options):
            if _is_any(expression):
                return _SCALARS["any"]
            return " | ".join(dict.fromkeys(map(_spelling, options)))
        case Scalar(kind=kind):
            return _SCALARS[kind]


def _inner(expression: TypeExpr, *, has_null: bool) -> str:
    spelled = _spelling(expression)
    return f"{spelled} | null" if has_null and not _is_any(expression) else spelled


# --- schemas -------------------------------------------------------------------------------------


def _schema(field: FieldIR) -> str:
    if has_const(field):
        return f"z.literal({literal(const_of(field))})"
    base = _schema_of(field.type, has_null=_has_null_inside(field))
    return base + "".join(f".{name}({argument})" for name, argument in checks_of(field))


def _schema_of(expression: TypeExpr, *, has_null: bool = False) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=items):
            return f"z.array({_inner_schema(items, has_null=has_null)})"
        case MapOf(values=values):
            return f"z.record(z.string(), {_inner_schema(values, has_null=has_null)})"
        case UnionOf(options=options, discriminator=discriminator):
            if _is_any(expression):
                return "z.unknown()"
            inner = ", ".join(dict.fromkeys(map(_schema_of, options)))
            if discriminator is not None:
                return f"z.discriminatedUnion({literal(discriminator)}, [{inner}])"
            return f"z.union([{inner}])"
        case Scalar(kind="string"):
            return FORMATS.get(expression.format_family, _SCHEMAS["string"])
        case Scalar(kind=kind):
            return _SCHEMAS[kind]


def _inner_schema(expression: TypeExpr, *, has_null: bool) -> str:
    spelled = _schema_of(expression)
    return f"{spelled}.nullable()" if has_null and not _is_any(expression) else spelled


# --- checks --------------------------------------------------------------------------------------


def checks_of(field: FieldIR) -> tuple[tuple[str, str], ...]:
    """Return the checks of a field's schema: names of methods and their only arguments."""
    if has_const(field):
        return ()
    constraints = field.constraints
    match field.type:
        case Scalar(kind="string") as scalar if scalar.format_family not in FORMATS:
            return (*_lengths(constraints), *_patterns(constraints))
        case Scalar(kind="integer" | "number" as kind):
            return tuple(_bounds(constraints, is_integer=kind == "integer"))
        case ArrayOf():
            return tuple(_sizes(constraints))
    return ()


def _lengths(constraints: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    low = _count(constraints.get("minLength")) or 0
    high = _count(constraints.get("maxLength"))
    if low == 1 and high is None:
        yield "min", "1"
    elif max(low, high or 0) <= _LONGEST and (low or high is not None):
        # Characters: .min and .max would count some of them twice.
        yield "regex", f"/^.{{{low},{'' if high is None else high}}}$/su"


def _patterns(constraints: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    found = regex_literal(constraints.get("pattern"))
    if found is not None:
        yield "regex", found


def _bounds(constraints: Mapping[str, Any], *, is_integer: bool) -> Iterator[tuple[str, str]]:
    for inclusive, exclusive, names in (
        ("minimum", "exclusiveMinimum", ("min", "gt")),
        ("maximum", "exclusiveMaximum", ("max", "lt")),
    ):
        bound, beyond = constraints.get(inclusive), constraints.get(exclusive)
        if beyond is True:  # OpenAPI 3.0: it says how the other is meant
            beyond, bound = bound, None
        for value, name in ((bound, names[0]), (beyond, names[1])):
            number = _number(value, is_integer=is_integer)
            if number is not None:
                yield name, number
    step = constraints.get("multipleOf")
    if isinstance(step, int) and not isinstance(step, bool) and 1 <= step <= _SAFE:
        yield "multipleOf", str(step)


def _sizes(constraints: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for keyword, name in (("minItems", "min"), ("maxItems", "max")):
        count = _count(constraints.get(keyword))
        if count is not None and (count or name == "max"):
            yield name, str(count)


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _SAFE and value == int(value) else None


def _number(value: object, *, is_integer: bool) -> str | None:
    """Return a bound as a literal; ``None`` where it is none, or beyond what numbers can tell."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if abs(value) > _SAFE and (is_integer or isinstance(value, int)):
        return None
    return literal(int(value) if value == int(value) and abs(value) <= _SAFE else value)


def kept_constraints(field: FieldIR, profile: str) -> frozenset[str]:
    """Return the keywords of a schema whose violation the code of a field refuses.

    Those of the field itself: of what is inside an array or a map, types alone are kept.
    """
    kept = {"type", "nullable", "required", "enum", "discriminator", "union"}
    if has_const(field):
        kept.add("const")
    if _is_any(field.type):
        kept -= {"type", "nullable", "enum", "discriminator", "union"}
    if profile != "zod":
        return frozenset(kept)
    names = [name for name, _ in checks_of(field)]
    if isinstance(field.type, Scalar) and field.type.kind == "string":
        counted = any(argument.endswith("/su") for _, argument in checks_of(field))
        kept |= {"minLength", "maxLength"} if counted else {"minLength"} & set(_words(names))
        kept |= {"pattern"} if regex_literal(field.constraints.get("pattern")) else set()
        kept |= {"format"} if field.type.format_family in FORMATS else set()
        return frozenset(kept)
    of = "Items" if isinstance(field.type, ArrayOf) else "imum"
    words = {"min": f"min{of}", "max": f"max{of}", "multipleOf": "multipleOf"}
    kept |= {words[name] for name in names if name in words}
    kept |= {"exclusiveMinimum", "minimum"} if "gt" in names else set()
    kept |= {"exclusiveMaximum", "maximum"} if "lt" in names else set()
    return frozenset(kept)


def _words(names: list[str]) -> list[str]:
    return ["minLength"] if "min" in names else []
