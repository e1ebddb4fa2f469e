"""Types of the document as Python spells them, and which constraints a profile keeps."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from pydantic_core import SchemaError, SchemaValidator, core_schema

from pytest_regen.documents import ir
from pytest_regen.languages.python.literals import literal
from pytest_regen.languages.python.names import member_name

Profile = Literal["default", "dataclass", "typeddict"]

_TEXT: Final = {"date": "dt.date", "date-time": "dt.datetime", "uuid": "UUID"}
"""Formats of strings that a type of the standard library holds, and writes as it read them. A
``time`` loses its fraction's digits, a ``timedelta`` its spelling, and a URL type adds slashes."""
_SCALARS: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "any": "Any",
}


def spell(field: ir.FieldIR, *, profile: str = "default") -> str:
    """Return the spelling that prompts ask for, with what says null and absence.

    Args:
        field: what the document allows.
        profile: of the store.
    """
    value = spell_value(field, profile=profile)
    if value != "Any":
        value += " | Unset" if profile == "dataclass" and not field.required else ""
        may_be_null = field.nullable or (profile == "default" and not field.required)
        value += " | None" if may_be_null else ""
    return f"NotRequired[{value}]" if profile == "typeddict" and not field.required else value


def spell_value(field: ir.FieldIR, *, profile: str) -> str:
    """Return the spelling of the values of a field, null and absence aside."""
    tag = tag_of(field)
    if tag is not None:
        return f"Literal[{literal(tag)}]"
    limits = field.constraints
    may_be_null = limits.get("nullableItems") or limits.get("nullableValues")
    return _spelling(field.type, profile, " | None" if may_be_null else "")


def tag_of(field: ir.FieldIR) -> ir.EnumValue | None:
    """Return the only value of a field, or ``None``; ``Literal`` takes no float."""
    value = field.constraints.get("const")
    return value if isinstance(value, str | int) else None


def _spelling(expression: ir.TypeExpr, profile: str, inside: str = "") -> str:
    match expression:
        case ir.Ref(name=name):
            return name
        case ir.ArrayOf(items=inner) | ir.MapOf(values=inner):
            part = _spelling(inner, profile)
            part += "" if part == "Any" else inside
            return f"list[{part}]" if isinstance(expression, ir.ArrayOf) else f"dict[str, {part}]"
        case ir.UnionOf(options=options, discriminator=tag):
            different = dict.fromkeys(_spelling(option, profile) for option in options)
            union = "Any" if "Any" in different else " | ".join(different)
            if tag is None or profile != "default" or "|" not in union:
                return union
            return f"Annotated[{union}, Field(discriminator={literal(member_name(tag))})]"
        case ir.Scalar(kind="string", format_family=family) if profile != "typeddict":
            return _TEXT.get(family, "str")
        case ir.Scalar(kind="number", format_family="int32" | "int64"):
            return "int"
        case ir.Scalar(kind="number", format_family="decimal") if profile == "default":
            return "DecimalNumber"
        case ir.Scalar(kind=kind):
            return _SCALARS[kind]


# --- constraints -------------------------------------------------------------------------------

_LENGTHS: Final[Mapping[str, tuple[str, str]]] = {
    "str": ("minLength", "maxLength"),
    "list": ("minItems", "maxItems"),
    "dict": ("minProperties", "maxProperties"),
}
_BOUNDS: Final = (
    ("minimum", "exclusiveMinimum", "ge", "gt"),
    ("maximum", "exclusiveMaximum", "le", "lt"),
)
_LONGEST: Final = 300
_MOST: Final = 2**31
_HUGE: Final = 1e300
_PORTABLE: Final = re.compile(
    r"(?:\\(?:[dDwWsSbBtnrfv]|[^\w<>])"  # an escape
    # A set: Rust has operations on them.
    r"|\[\^?(?:\\(?:[dDwWsStnrfv]|[^\w<>])|(?!&&|--|~~|\|\|)[^\\\[\]])+\]"
    r"|\((?:\?:|(?!\?))"  # a group: look-around, flags and names differ
    r"|\{\d+(?:,\d*)?\}"
    r"|[^\\\[({}])*"
)
"""What JSON Schema and pydantic read alike: pydantic's regular expressions are Rust's."""


def constraint_arguments(field: ir.FieldIR, *, profile: str) -> dict[str, Any]:
    """Return the arguments of ``Field`` that say what the document says about the values."""
    return {name: value for _, name, value in _constraints(field, profile)}


def kept_constraints(field: ir.FieldIR, profile: str) -> frozenset[str]:
    """Return the keywords of the document that the code of a field holds its values to.

    ``type``, ``required``, ``const``, ``enum``, ``discriminator`` and ``union`` belong to every
    profile, but for a field that allows a part of an enum. ``nullable`` does not where an optional
    field takes null for absence; of the rest, what ``Field`` can say is kept by models alone.
    """
    always = {"type", "required", "const", "enum", "discriminator", "union"}
    if "enum" in field.constraints:
        always.remove("enum")
    if profile != "default" or field.required:
        always.add("nullable")
    return frozenset(always | {key for key, _, _ in _constraints(field, profile)})


def _constraints(field: ir.FieldIR, profile: str) -> Iterator[tuple[str, str, Any]]:
    """Yield triples of keyword, argument and value."""
    if profile != "default" or tag_of(field) is not None:
        return
    spelled = spell_value(field, profile=profile).partition("[")[0]
    limits = field.constraints
    if spelled in {"int", "float", "DecimalNumber"}:
        for keyword, strict_keyword, name, strict_name in _BOUNDS:
            # In the older dialect the keyword of a strict bound says only how the other is meant.
            is_strict = limits.get(strict_keyword) is True
            bound = _number(limits.get(keyword), spelled)
            if bound is not None:
                yield keyword, strict_name if is_strict else name, bound
            bound = _number(limits.get(strict_keyword), spelled)
            if bound is not None:
                yield strict_keyword, strict_name, bound
        step = _number(limits.get("multipleOf"), spelled)
        if step is not None and step > 0 and spelled != "DecimalNumber":
            yield "multipleOf", "multiple_of", step
        return
    for keyword, name in zip(_LENGTHS.get(spelled, ()), ("min_length", "max_length"), strict=False):
        length = _number(limits.get(keyword), "int")
        if length is not None and (name == "min_length") <= length < _MOST:
            yield keyword, name, length
    pattern = limits.get("pattern")
    if spelled == "str" and isinstance(pattern, str) and is_portable(pattern):
        yield "pattern", "pattern", pattern


def _number(value: Any, spelled: str) -> int | float | None:
    """Return a bound as ``Field`` takes it: whole for whole numbers, ``None`` where it cannot."""
    # No value comes near a limit of some 300 digits, which no float holds.
    if type(value) not in {int, float} or not abs(value) < _HUGE:
        return None
    return int(value) if value == int(value) else value if spelled == "float" else None


@cache
def is_portable(pattern: str) -> bool:
    """Return whether a pattern means the same to JSON Schema and to pydantic.

    What is not safely the same does not pass, and neither does what pydantic refuses.
    """
    # A longer one is no check that anybody reads, and each is compiled twice below.
    is_plain = len(pattern) <= _LONGEST and pattern.isprintable()
    if not is_plain or not _PORTABLE.fullmatch(pattern):
        return False
    try:
        re.compile(pattern)
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except (re.error, RecursionError, OverflowError, SchemaError):
        return False
    return True
