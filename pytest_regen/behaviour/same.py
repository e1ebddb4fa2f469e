"""Whether two JSON values are the same for a type: numbers by value, times by instant.

What is compared is what the IR has; properties that it does not have are missed only where the code
keeps them. Keys may be in any order; a property that is absent is not one that is null.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from ipaddress import ip_address
from typing import Any, Final
from uuid import UUID

from pytest_regen.documents.ir import ArrayOf, MapOf, Ref, Scalar, TypeExpr, TypeIR, UnionOf
from pytest_regen.languages.runner import Traits

ABSENT: Final[Any] = object()
"""What stands for a property that is not there."""


@dataclass(frozen=True, slots=True)
class Step:
    """A property on the way to a value."""

    type_name: str
    field: str
    """JSON name; empty for the value of an enum or an alias."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in which a value is not what it was."""

    steps: tuple[Step, ...]
    """The properties on the way, from the type that was asked; empty for the value itself."""
    expected: Any
    """``ABSENT`` where the property should not be there."""
    actual: Any
    """``ABSENT`` where the property is missing."""


def differences(
    expected: Any, actual: Any, type_: TypeIR, types: Mapping[str, TypeIR], traits: Traits
) -> Iterator[Difference]:
    """Yield where ``actual`` is not ``expected``, as values of a type.

    Args:
        expected: the instance.
        actual: what came back, read with decimals.
        type_: the type of both.
        types: all types of the store, by name.
        traits: what the code that made ``actual`` can hold.
    """
    return _Comparison(types, traits).of_type(expected, actual, type_)


def prune(value: Any, type_: TypeIR, types: Mapping[str, TypeIR]) -> Any:
    """Return an instance of a type without the properties that the IR does not have.

    Args:
        value: the instance; it need not be valid.
        type_: its type.
        types: all types of the store, by name.
    """
    is_alias = type_.kind == "alias"
    return _pruned(value, [type_.fields[0].type if is_alias else Ref(name=type_.name)], types)


def _pruned(value: Any, may_be: Sequence[TypeExpr], types: Mapping[str, TypeIR]) -> Any:
    options = [
        option
        for kind in may_be
        for option in (kind.options if isinstance(kind, UnionOf) else (kind,))
    ]
    if isinstance(value, list):
        items = [option.items for option in options if isinstance(option, ArrayOf)]
        return [_pruned(item, items, types) for item in value] if items else value
    fields: dict[str, list[TypeExpr]] = {}
    # Maps beside types, because a union may be of both.
    objects = [option for option in options if isinstance(option, Ref)]
    maps = [option.values for option in options if isinstance(option, MapOf)]
    if not isinstance(value, dict) or not (objects or maps):
        return value
    # Of a union the option that is meant, because what only others have is no property of it.
    meant = [option for option in objects if _may_be(value, option, types)] or objects
    for option in meant:
        for field in types[option.name].fields:
            fields.setdefault(field.json_name, []).append(field.type)
    return {
        name: _pruned(item, [*fields.get(name, ()), *maps], types)
        for name, item in value.items()
        if name in fields or maps
    }


def _may_be(value: Any, option: TypeExpr, types: Mapping[str, TypeIR]) -> bool:
    """Return whether a value may be meant as an option: it has none but the tags of that type."""
    type_ = types.get(option.name) if isinstance(option, Ref) else None
    if type_ is None or not isinstance(value, dict):
        return True
    tags = {
        field.json_name: field.constraints["const"]
        for field in type_.fields
        if "const" in field.constraints
    }
    return all(value.get(name, tag) == tag for name, tag in tags.items())


@dataclass(frozen=True, slots=True)
class _Comparison:
    types: Mapping[str, TypeIR]
    traits: Traits

    def of_type(self, expected: Any, actual: Any, type_: TypeIR) -> Iterator[Difference]:
        if type_.kind == "alias":
            for found in self.of(expected, actual, type_.fields[0].type):
                yield replace(found, steps=(Step(type_.name, ""), *found.steps))
            return
        if not isinstance(expected, dict) or not isinstance(actual, dict):
            if not _is_same(expected, actual):
                steps = (Step(type_.name, ""),) if type_.kind == "enum" else ()
                yield Difference(steps, expected, actual)
            return
        fields = {field.json_name: field.type for field in type_.fields}
        # Only if it keeps them, because code may drop what the document does not describe.
        more = expected if self.traits.keeps_more else {}
        for name in fields | dict.fromkeys([*more, *actual]):
            step = Step(type_.name, name)
            old, new = expected.get(name, ABSENT), actual.get(name, ABSENT)
            if old is ABSENT or new is ABSENT:
                # For some code null and a property that is absent are one.
                are_alike = not self.traits.tells_absence and (old is None or new is None)
                if old is not new and not are_alike:
                    yield Difference((step,), old, new)
            else:
                for inner in self.of(old, new, fields.get(name, Scalar(kind="any"))):
                    yield replace(inner, steps=(step, *inner.steps))

    def of(self, expected: Any, actual: Any, expression: TypeExpr) -> Iterator[Difference]:
        """Yield where two values of an expression differ."""
        both = (expected, actual)
        match expression:
            # Null is compared below, because no type has fields to tell about it.
            case Ref(name=name) if name in self.types and None not in both:
                yield from self.of_type(expected, actual, self.types[name])
            case ArrayOf(items=items) if _are(list, *both) and len(expected) == len(actual):
                for old, new in zip(expected, actual, strict=True):
                    yield from self.of(old, new, items)
            case MapOf(values=values) if _are(dict, *both) and expected.keys() == actual.keys():
                for name, old in expected.items():
                    yield from self.of(old, actual[name], values)
            case UnionOf(options=options):
                by_option = [
                    list(self.of(expected, actual, option))
                    for option in options
                    if _may_be(expected, option, self.types)
                ]
                # The fewest, because the right option explains a value best.
                whole = [] if _is_same(expected, actual) else [Difference((), expected, actual)]
                yield from min(by_option, key=len, default=whole)
            case Scalar() if self._is_same_scalar(expected, actual, expression):
                pass
            case _:
                if isinstance(expression, Scalar) or not _is_same(expected, actual):
                    yield Difference((), expected, actual)

    def _is_same_scalar(self, expected: Any, actual: Any, scalar: Scalar) -> bool:
        if scalar.kind in {"integer", "number"} and _are_numbers(expected, actual):
            is_exact = scalar.kind == "integer" or scalar.format == "decimal"
            return _is_same_number(expected, actual, is_exact=is_exact)
        if _is_same(expected, actual):
            return True
        if not (scalar.kind == "string" and scalar.format and _are(str, expected, actual)):
            return False
        try:
            if (read := _TEXT_VALUES.get(scalar.format_family)) is not None:
                return bool(read(expected) == read(actual))
            if scalar.format_family not in {"date-time", "time"}:
                return False
            old, new = _read_time(expected), _read_time(actual)
        except (ValueError, InvalidOperation):
            return False
        # By the offset as well, because the moment alone is not what was sent.
        is_kept = not self.traits.keeps_offset or old.utcoffset() == new.utcoffset()
        return is_kept and old == new


def _are(kind: type, *values: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _are_numbers(*values: Any) -> bool:
    return all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in values
    )


def _is_same(expected: Any, actual: Any) -> bool:
    """Return whether two values of no special kind are the same JSON."""
    if _are_numbers(expected, actual):
        return _is_same_number(expected, actual, is_exact=False)
    if _are(list, expected, actual):
        return len(expected) == len(actual) and all(map(_is_same, expected, actual))
    if _are(dict, expected, actual):
        return expected.keys() == actual.keys() and all(
            _is_same(value, actual[name]) for name, value in expected.items()
        )
    return type(expected) is type(actual) and bool(expected == actual)


def _is_same_number(expected: Any, actual: Any, *, is_exact: bool) -> bool:
    """Return whether two numbers have one value, or at least, unless exact, as doubles."""
    if _exactly(expected) == _exactly(actual):
        return True
    try:
        return not is_exact and float(expected) == float(actual)
    except OverflowError:
        return False


def _exactly(number: float | Decimal) -> int | Decimal:
    """Return a number by the digits it is written with: ``0.1`` is a tenth."""
    return Decimal(repr(number)) if isinstance(number, float) else number


# --- texts that stand for a value -----------------------------------------------------------------

_DURATION: Final = re.compile(
    r"([+-]?)P(?:([\d.]+)Y)?(?:([\d.]+)M)?(?:([\d.]+)W)?(?:([\d.]+)D)?"
    r"(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?"
)


def _read_time(text: str) -> datetime:
    """Return a moment, or a time as one of the first day that there is."""
    return datetime.fromisoformat(text.upper() if "-" in text[:5] else f"1970-01-01T{text.upper()}")


def _read_duration(text: str) -> tuple[Fraction, Fraction]:
    """Return months and seconds: how long a month is, no calendar says."""
    parts = _DURATION.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    sign = -1 if parts[1] == "-" else 1
    years, months, weeks, days, hours, minutes, seconds = (
        Fraction(part or 0) for part in parts.groups()[1:]
    )
    whole = ((weeks * 7 + days) * 24 + hours) * 3600 + minutes * 60 + seconds
    return sign * (years * 12 + months), sign * whole


_TEXT_VALUES: Final[Mapping[str, Callable[[str], Any]]] = {
    "uuid": UUID,
    "decimal": Decimal,
    "ipv4": ip_address,
    "ipv6": ip_address,
    "duration": _read_duration,
}
"""Formats whose texts have more than one spelling of the same value."""
