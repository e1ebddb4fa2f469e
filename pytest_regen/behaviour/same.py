"""Whether two JSON values are the same for a type: numbers by value, times by instant.

What is compared is what the IR has: properties that it left out are not missed. Keys may be in any
order; a property that is absent is not one that is null.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from ipaddress import ip_address
from typing import Any, Final
from uuid import UUID

from pytest_regen.documents.ir import (
    ArrayOf,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
    usual_format,
)
from pytest_regen.languages.runner import Traits


class _Absent:
    """What stands for a property that is not there."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Step:
    """A property on the way to a value."""

    type_name: str
    field: str
    """JSON name; empty for the value of an enum."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in which a value is not what it was."""

    steps: tuple[Step, ...]
    """The properties on the way, from the type that was asked; empty for the value itself."""
    expected: Any
    """``ABSENT`` where the property should not be there."""
    actual: Any
    """``ABSENT`` where the property is missing."""

    def within(self, step: Step) -> "Difference":
        """Return it as it is seen from a type around."""
        return replace(self, steps=(step, *self.steps))


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
    """Return an instance of a type without the properties that the IR has left out.

    Args:
        value: the instance; it need not be valid.
        type_: its type.
        types: all types of the store, by name.
    """
    return _pruned(value, Ref(name=type_.name), types)


def has_format(
    value: Any, type_: TypeIR, types: Mapping[str, TypeIR], formats: Collection[str]
) -> bool:
    """Return whether an instance of a type holds text of one of several formats."""
    return _has_format(value, Ref(name=type_.name), types, formats)


def _has_format(
    value: Any, expression: TypeExpr, types: Mapping[str, TypeIR], formats: Collection[str]
) -> bool:
    options = _options(expression)
    match value:
        case str():
            return any(
                usual_format(each.format or "") in formats
                for each in options
                if isinstance(each, Scalar)
            )
        case list():
            inner = [each.items for each in options if isinstance(each, ArrayOf)]
            return any(_has_format(item, each, types, formats) for each in inner for item in value)
        case dict():
            held = [(each.values, [*value.values()]) for each in options if isinstance(each, MapOf)]
            objects = [types[each.name] for each in options if isinstance(each, Ref)]
            held += [
                (field.type, [value[field.json_name]])
                for each in objects
                for field in each.fields
                if field.json_name in value
            ]
            return any(
                _has_format(item, each, types, formats) for each, items in held for item in items
            )
        case _:
            return False


def _pruned(value: Any, expression: TypeExpr, types: Mapping[str, TypeIR]) -> Any:
    match value:
        case list() if inner := [each for each in _options(expression) if each.kind == "array"]:
            items = _joined([each.items for each in inner])
            return [_pruned(item, items, types) for item in value]
        case dict():
            options = _options(expression)
            objects = [types[each.name] for each in options if isinstance(each, Ref)]
            fields: dict[str, list[TypeExpr]] = {}
            for field in (field for each in objects for field in each.fields):
                fields.setdefault(field.json_name, []).append(field.type)
            maps = [each.values for each in options if isinstance(each, MapOf)]
            if not objects and not maps:
                return value
            return {
                name: _pruned(item, _joined([*fields.get(name, ()), *maps]), types)
                for name, item in value.items()
                if name in fields or maps
            }
        case _:
            return value


def _options(expression: TypeExpr) -> Sequence[TypeExpr]:
    return expression.options if isinstance(expression, UnionOf) else (expression,)


def _joined(expressions: Sequence[TypeExpr]) -> TypeExpr:
    options = tuple(option for each in expressions for option in _options(each))
    return options[0] if len(options) == 1 else UnionOf(options=options)


@dataclass(frozen=True, slots=True)
class _Comparison:
    types: Mapping[str, TypeIR]
    traits: Traits

    def of_type(self, expected: Any, actual: Any, type_: TypeIR) -> Iterator[Difference]:
        if type_.kind == "enum":
            if not _is_same(expected, actual):
                yield Difference((Step(type_.name, ""),), expected, actual)
            return
        if not isinstance(expected, dict) or not isinstance(actual, dict):
            if not _is_same(expected, actual):
                yield Difference((), expected, actual)
            return
        for field in type_.fields:
            name = field.json_name
            old, new = expected.get(name, ABSENT), actual.get(name, ABSENT)
            if old is ABSENT or new is ABSENT:
                if old is not new and not self._is_held_alike(old, new):
                    yield Difference((Step(type_.name, name),), old, new)
            else:
                step = Step(type_.name, name)
                for found in self.of(old, new, field.type):
                    yield found.within(step)
        known = expected.keys() | {field.json_name for field in type_.fields}
        for name in actual.keys() - known:
            yield Difference((Step(type_.name, name),), ABSENT, actual[name])

    def _is_held_alike(self, old: Any, new: Any) -> bool:
        """Return whether null and a property that is absent are one for the code."""
        return not self.traits.tells_absence and old in (None, ABSENT) and new in (None, ABSENT)

    def of(self, expected: Any, actual: Any, expression: TypeExpr) -> Iterator[Difference]:
        """Yield where two values of an expression differ."""
        match expression:
            case Ref(name=name) if name in self.types and _are_not(None, expected, actual):
                yield from self.of_type(expected, actual, self.types[name])
            case ArrayOf(items=items) if _are_alike(list, expected, actual):
                for old, new in zip(expected, actual, strict=True):
                    yield from self.of(old, new, items)
            case MapOf(values=values) if _are_alike(dict, expected, actual):
                for name, old in expected.items():
                    yield from self.of(old, actual[name], values)
            case UnionOf():
                yield from self._of_union(expected, actual, expression)
            case Scalar() if self._is_same_scalar(expected, actual, expression):
                pass
            case _:
                if isinstance(expression, Scalar) or not _is_same(expected, actual):
                    yield Difference((), expected, actual)

    def _is_same_scalar(self, expected: Any, actual: Any, scalar: Scalar) -> bool:
        if scalar.kind in {"integer", "number"} and _are_numbers(expected, actual):
            is_exact = scalar.kind == "integer" or scalar.format == "decimal"
            return _is_same_number(expected, actual, is_exact=is_exact)
        if scalar.kind == "string" and scalar.format and _are(str, expected, actual):
            return self._is_same_text(expected, actual, scalar.format_family)
        return _is_same(expected, actual)

    def _of_union(self, expected: Any, actual: Any, union: UnionOf) -> Iterator[Difference]:
        """Yield the differences for the option for which there are fewest."""
        best: list[Difference] | None = None
        for option in union.options:
            if not self._may_be(expected, option, union.discriminator):
                continue
            found = list(self.of(expected, actual, option))
            if not found:
                return
            if best is None or len(found) < len(best):
                best = found
        if best is not None:
            yield from best
        elif not _is_same(expected, actual):
            yield Difference((), expected, actual)

    def _may_be(self, value: Any, option: TypeExpr, discriminator: str | None) -> bool:
        """Return whether a value may be meant as an option, by its tag or by its kind."""
        match option:
            case Ref(name=name) if name in self.types:
                type_ = self.types[name]
                if type_.kind == "enum":
                    return value in type_.enum_values
                if not isinstance(value, dict):
                    return False
                tags = [
                    field.constraints["const"]
                    for field in type_.fields
                    if field.json_name == discriminator and "const" in field.constraints
                ]
                return not tags or discriminator is None or value.get(discriminator) in tags
            case ArrayOf():
                return isinstance(value, list)
            case MapOf():
                return isinstance(value, dict)
            case Scalar(kind="string"):
                return isinstance(value, str)
            case Scalar(kind="boolean"):
                return isinstance(value, bool)
            case Scalar(kind="integer" | "number"):
                return _are_numbers(value, value)
            case _:
                return True

    def _is_same_text(self, expected: str, actual: str, format_: str) -> bool:
        if expected == actual:
            return True
        if format_ in {"date-time", "time"}:
            return _is_same_time(expected, actual, keeps_offset=self.traits.keeps_offset)
        if format_ not in _TEXT_VALUES:
            return False
        read = _TEXT_VALUES[format_]
        try:
            return bool(read(expected) == read(actual))
        except (ValueError, InvalidOperation):
            return False


def _are(kind: type, *values: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _are_not(word: object, *values: Any) -> bool:
    return all(value is not word for value in values)


def _are_alike(kind: type, expected: Any, actual: Any) -> bool:
    """Return whether two values are arrays of one length, or objects with the same keys."""
    if not _are(kind, expected, actual) or len(expected) != len(actual):
        return False
    return kind is list or expected.keys() == actual.keys()


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

_TIME: Final = re.compile(
    r"(?:(\d{4}-\d\d-\d\d)[Tt ])?(\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?"
)
_DURATION: Final = re.compile(
    r"([+-]?)P(?:([\d.]+)Y)?(?:([\d.]+)M)?(?:([\d.]+)W)?(?:([\d.]+)D)?"
    r"(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?"
)
_MICROSECOND: Final = 6
"""Digits of a second that count: no time of a standard library keeps more."""


def _is_same_time(expected: str, actual: str, *, keeps_offset: bool) -> bool:
    old, new = _read_time(expected), _read_time(actual)
    if old is None or new is None or (old[1] is None) != (new[1] is None):
        return False
    if keeps_offset and old[1] != new[1]:
        return False
    return old[0] - Fraction(old[1] or 0) == new[0] - Fraction(new[1] or 0)


def _read_time(text: str) -> tuple[Fraction, int | None] | None:
    """Return the seconds that the clock shows, and the offset in seconds; ``None``: no time."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        shown = datetime.fromisoformat(f"{day or '1970-01-01'}T{clock}").replace(tzinfo=UTC)
    except ValueError:
        return None
    seconds = Fraction(int(shown.timestamp())) + Fraction((fraction or ".0")[: _MICROSECOND + 1])
    if zone is None:
        return seconds, None
    if zone in {"Z", "z"}:
        return seconds, 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return seconds, (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)


def _read_duration(text: str) -> tuple[Fraction, Fraction]:
    """Return months and seconds: how long a month is, no calendar says."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    sign = -1 if found[1] == "-" else 1
    years, months, weeks, days, hours, minutes, seconds = (
        Fraction(part or 0) for part in found.groups()[1:]
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
