"""What is allowed: ``jsonschema`` decides, by schemas that ``translation`` has made.

Added are formats, because a generated type may rely on them, and patterns as ECMA 262 has them.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.documents.ir import usual_format
from pytest_regen.extras import needs
from pytest_regen.strategies.patterns import search

if TYPE_CHECKING:
    from jsonschema import ValidationError

Json = Any

_MOST_STEPS: Final = 200_000
"""Schemas that are held against one value; more is an explosion of branches, no description."""
_DAY: Final = r"\d{4}-\d\d-\d\d"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?"
_ZONE: Final = r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_URI: Final = r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*"
_BASE64: Final = r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_FORMATS: Final[Mapping[str, str]] = {
    "date": _DAY,
    "date-time": f"{_DAY}[Tt]{_CLOCK}{_ZONE}",
    "time": f"{_CLOCK}{_ZONE}?",
    "duration": r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)",
    "uuid": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "email": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?",
    "hostname": rf"{_LABEL}(\.{_LABEL})*",
    "decimal": r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?",
    **dict.fromkeys(("uri", "url"), _URI),
    **dict.fromkeys(("byte", "base64"), _BASE64),
    **dict.fromkeys(("int32", "int64", "uint64"), r"-?\d{1,20}"),
}


@cache
def _formats() -> Any:
    with needs("strategies", "instances"):
        from jsonschema import FormatChecker
    return FormatChecker(("ipv4", "ipv6", "regex"))


def has_format(value: Json, name: str) -> bool:
    """Return whether a value is of a format; so is every value where the format is unknown."""
    name = usual_format(name)
    if not isinstance(value, str):
        return True
    if name not in _FORMATS:
        return bool(_formats().conforms(value, name))
    if not re.fullmatch(_FORMATS[name], value, re.ASCII):
        return False
    try:
        # 30 February has the form of a day.
        return not name.startswith("date") or bool(date.fromisoformat(value[:10]))
    except ValueError:
        return False


class Validators:
    """Those of jsonschema for the schemas of one document, each made once.

    Making them anew for each value, as jsonschema does, is a third of the time of a check.
    """

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._steps = 0

    def of(self, schema: Any) -> Any:
        """Return the validator of a schema, which has to stay in memory.

        Raises:
            RecursionError: far too many were needed for one value.
        """
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise RecursionError
        if id(schema) not in self._made:
            self._made[id(schema)] = _validator_class()(schema, format_checker=self)
        return self._made[id(schema)]

    def begin(self) -> None:
        """Count from 0 again: another value is checked."""
        self._steps = 0


class Check:
    """Says whether a schema allows a value, and why not.

    Args:
        schema: a mapping, ``True`` or ``False``.
        validators: those of its document.
    """

    def __init__(self, schema: Any, validators: Validators) -> None:
        self._schema, self._validators = schema, validators

    def allows(self, value: Json) -> bool:
        """Return whether a value is allowed.

        Raises:
            RecursionError: the schema only leads to itself, or its branches are too many.
        """
        self._validators.begin()
        return bool(self._validators.of(self._schema).is_valid(value))

    def errors(self, value: Json) -> "list[ValidationError]":
        """Return why a value is not allowed; nothing where it is."""
        self._validators.begin()
        return list(self._validators.of(self._schema).iter_errors(value))


@cache
def _validator_class() -> Any:
    with needs("strategies", "instances"):
        from jsonschema import Draft202012Validator
        from jsonschema.validators import create
    made: Any = create(
        meta_schema={},
        validators={**Draft202012Validator.VALIDATORS, "pattern": _pattern, "format": _format},
        type_checker=Draft202012Validator.TYPE_CHECKER,
        id_of=lambda _: None,
    )
    made.evolve = lambda validator, **changes: validator.format_checker.of(
        changes.get("schema", validator.schema)
    )
    return made


def _pattern(_: Any, pattern: str, instance: Json, __: Any) -> "Iterator[ValidationError]":
    if isinstance(instance, str) and not search(pattern, instance):
        yield _error(f"{instance!r} does not match {pattern!r}")


def _format(_: Any, name: str, instance: Json, __: Any) -> "Iterator[ValidationError]":
    if not has_format(instance, name):
        yield _error(f"{instance!r} is no {name!r}")


def _error(message: str) -> "ValidationError":
    from jsonschema import ValidationError

    return ValidationError(message)
