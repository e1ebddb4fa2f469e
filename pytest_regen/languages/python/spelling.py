"""Types of the document as Python spells them, and which constraints a profile keeps."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pytest_regen.documents.ir import (
    ArrayOf,
    EnumValue,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
)
from pytest_regen.languages.python.literals import literal
from pytest_regen.languages.python.names import member_name

Profile = Literal["default", "dataclass", "typeddict"]

_TEXT: Final[Mapping[str, str]] = {
    "date": "dt.date",
    "date-time": "dt.datetime",
    "uuid": "UUID",
}
"""Formats of strings that a type of the standard library holds, and writes as it read them. A
``time`` loses its fraction's digits, a ``timedelta`` its spelling, and a URL type adds slashes."""
_SCALARS: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "any": "Any",
}


def spell(field: FieldIR, *, profile: str = "default") -> str:
    """Return the spelling that prompts ask for, with what says null and absence.

    Args:
        field: what the document allows.
        profile: of the store.
    """
    value = spell_value(field, profile=profile)
    if value == "Any":
        return f"NotRequired[{value}]" if profile == "typeddict" and not field.required else value
    if profile == "dataclass" and not field.required:
        value += " | Unset"
    if field.nullable or (profile == "default" and not field.required):
        value += " | None"
    return f"NotRequired[{value}]" if profile == "typeddict" and not field.required else value


def spell_value(field: FieldIR, *, profile: str) -> str:
    """Return the spelling of the values of a field, null and absence aside."""
    if has_tag(field):
        return f"Literal[{literal(field.constraints['const'])}]"
    items = bool(field.constraints.get("nullableItems"))
    values = bool(field.constraints.get("nullableValues"))
    match field.type:
        case ArrayOf(items=inner):
            return f"list[{_or_none(_spelling(inner, profile), is_nullable=items)}]"
        case MapOf(values=inner):
            return f"dict[str, {_or_none(_spelling(inner, profile), is_nullable=values)}]"
        case _:
            return _spelling(field.type, profile)


def _or_none(spelled: str, *, is_nullable: bool) -> str:
    return f"{spelled} | None" if is_nullable and spelled != "Any" else spelled


def has_tag(field: FieldIR) -> bool:
    """Return whether the document allows one value only, and ``Literal`` can say so."""
    return tag_of(field) is not None


def tag_of(field: FieldIR) -> EnumValue | None:
    """Return the only value of a field, or ``None``; ``Literal`` takes no float."""
    value = field.constraints.get("const")
    return value if isinstance(value, str | int) else None


def _spelling(expression: TypeExpr, profile: str) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=inner):
            return f"list[{_spelling(inner, profile)}]"
        case MapOf(values=inner):
            return f"dict[str, {_spelling(inner, profile)}]"
        case UnionOf(options=options, discriminator=tag):
            return _union([_spelling(option, profile) for option in options], tag, profile)
        case Scalar():
            return _scalar(expression, profile)


def _union(options: Iterable[str], tag: str | None, profile: str) -> str:
    different = list(dict.fromkeys(options))
    if "Any" in different:
        return "Any"
    joined = " | ".join(different)
    if tag is None or profile != "default" or len(different) == 1:
        return joined
    return f"Annotated[{joined}, Field(discriminator={literal(member_name(tag))})]"


def _scalar(scalar: Scalar, profile: str) -> str:
    wanted = scalar.format_family
    if scalar.kind == "string" and profile != "typeddict":
        return _TEXT.get(wanted, "str")
    if scalar.kind == "number" and wanted in {"int32", "int64"}:
        return "int"
    if scalar.kind == "number" and wanted == "decimal" and profile == "default":
        return "DecimalNumber"
    return _SCALARS[scalar.kind]


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


def constraint_arguments(field: FieldIR, *, profile: str) -> dict[str, Any]:
    """Return the arguments of ``Field`` that say what the document says about the values."""
    return {name: value for _, name, value in _constraints(field, profile)}


def kept_constraints(field: FieldIR, profile: str) -> frozenset[str]:
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


def _constraints(field: FieldIR, profile: str) -> list[tuple[str, str, Any]]:
    """Return triples of keyword, argument and value."""
    if profile != "default" or has_tag(field):
        return []
    spelled = spell_value(field, profile=profile)
    said = field.constraints
    found: list[tuple[str, str, Any]] = []
    if spelled in {"int", "float", "DecimalNumber"}:
        for bound, exclusive, inclusive_name, exclusive_name in _BOUNDS:
            found += _bound(said, bound, exclusive, (inclusive_name, exclusive_name), spelled)
        step = _number(said.get("multipleOf"), spelled)
        if step is not None and step > 0 and spelled != "DecimalNumber":
            found.append(("multipleOf", "multiple_of", step))
        return found
    lower, upper = _LENGTHS.get(spelled.partition("[")[0], ("", ""))
    for keyword, name in ((lower, "min_length"), (upper, "max_length")):
        length = _length(said.get(keyword))
        if length is not None and (length or name == "max_length"):
            found.append((keyword, name, length))
    pattern = said.get("pattern")
    if spelled == "str" and isinstance(pattern, str) and is_portable(pattern):
        found.append(("pattern", "pattern", pattern))
    return found


def _bound(
    said: Mapping[str, Any], key: str, exclusive: str, names: tuple[str, str], spelled: str
) -> list[tuple[str, str, Any]]:
    """Return a bound in either dialect: ``exclusiveMinimum`` is a number, or says how."""
    found: list[tuple[str, str, Any]] = []
    value = _number(said.get(key), spelled)
    if value is not None:
        is_exclusive = said.get(exclusive) is True
        found.append((key, names[is_exclusive], value))
    other = _number(said.get(exclusive), spelled)
    if other is not None:
        found.append((exclusive, names[True], other))
    return found


def _number(value: Any, spelled: str) -> int | float | None:
    """Return a bound as ``Field`` takes it: whole for whole numbers, ``None`` where it cannot."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # of some 300 digits: a limit that no value comes near
        return None
    if not math.isfinite(number):
        return None
    if number.is_integer():
        return int(value)
    return value if spelled == "float" else None


def _length(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**31:
        return None
    return int(value) if float(value).is_integer() else None


_ESCAPES: Final = frozenset("dDwWsSbBtnrfv")
_UNSAFE: Final = re.compile(
    r"\(\?(?!:)"  # look-around, flags, names: each regex language has its own
    r"|&&|--|~~|\|\|"  # operations on sets of characters, in Rust
    r"|\[\]|\[\^\]"  # an empty set, in JavaScript
)


def is_portable(pattern: str) -> bool:
    """Return whether a pattern means the same to JSON Schema and to pydantic.

    pydantic's regular expressions are Rust's: without look-around and backreferences, and with
    meanings of their own for brackets and braces. Here only what is safely the same passes.
    """
    if _UNSAFE.search(pattern) or len(pattern) > _LONGEST:
        return False
    if not pattern.isprintable() or not _has_common_escapes(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


_LONGEST: Final = 300
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")
_MOST: Final = 1_000
"""Repetitions at most: Rust refuses an expression that grows too large."""


def _has_common_escapes(pattern: str) -> bool:
    """Return whether each escape, bracket and brace has one meaning in both languages."""
    at, in_set = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if not _is_common_escape(pattern[at + 1 : at + 2], in_set=in_set):
                return False
            at += 1
        elif in_set:
            if char == "[":
                return False
            in_set = char != "]"
        elif char == "[":
            in_set = True
            at += pattern[at + 1 : at + 2] == "^"
        elif char in "{}":
            repeat = _REPEAT.match(pattern, at)
            if repeat is None or max(int(repeat[1]), int(repeat[3] or 0)) > _MOST:
                return False
            at = repeat.end() - 1
        at += 1
    return not in_set


def _is_common_escape(char: str, *, in_set: bool) -> bool:
    if not char or char in "_<>" or (char.isalnum() and char not in _ESCAPES):
        return False
    return not (in_set and char in "bB")
