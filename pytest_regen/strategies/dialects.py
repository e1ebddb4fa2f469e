"""What is allowed: ``jsonschema`` decides, by schemas that ``translation`` has made.

Added are formats, because a generated type may rely on them, and patterns as ECMA 262 has them.
"""

import re
from collections.abc import Iterator, Mapping
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
    "date-time": f"{_DAY}[Tt]{_CLOCK}{_ZONE}",
    "time": f"{_CLOCK}{_ZONE}?",
    "duration": r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)",
    "email": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?",
    "hostname": rf"{_LABEL}(\.{_LABEL})*",
    "decimal": r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?",
    **dict.fromkeys(("uri", "url"), _URI),
    **dict.fromkeys(("byte", "base64"), _BASE64),
    **dict.fromkeys(("int32", "int64", "uint64"), r"-?\d{1,20}"),
}
"""Those that jsonschema knows not at all, or only with further packages, or laxly."""


def has_format(value: Json, name: str) -> bool:
    """Return whether a value is of a format; so is every value where the format is unknown."""
    name = usual_format(name)
    if not isinstance(value, str):
        return True
    # First by our own form, because jsonschema lets pass what it has no package for.
    if name in _FORMATS and not re.fullmatch(_FORMATS[name], value, re.ASCII):
        return False
    if name == "date-time":
        # 30 February has the form of a day.
        name, value = "date", value[:10]
    return bool(_library()[1].conforms(value, name))


class Validators:
    """Those of jsonschema for the schemas of one document, each made once.

    They are kept, because making them anew for each value, as jsonschema does, is a third of the
    time of a check. Schemas have to stay in memory.
    """

    def __init__(self) -> None:
        self._by_schema: dict[int, Any] = {}
        self._steps = 0

    def of(self, schema: Any) -> Any:
        """Return the validator of a schema that another schema holds.

        Raises:
            RecursionError: far too many were needed for one value.
        """
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise RecursionError
        if id(schema) not in self._by_schema:
            self._by_schema[id(schema)] = _library()[0](schema, format_checker=self)
        return self._by_schema[id(schema)]

    def allows(self, schema: Any, value: Json) -> bool:
        """Return whether a schema allows a value.

        Raises:
            RecursionError: the schema only leads to itself, or its branches are too many.
        """
        self._steps = 0
        return bool(self.of(schema).is_valid(value))

    def errors(self, schema: Any, value: Json) -> "list[ValidationError]":
        """Return why a schema does not allow a value; nothing where it does."""
        self._steps = 0
        return list(self.of(schema).iter_errors(value))


@cache
def _library() -> tuple[Any, Any]:
    """Return the class of validators, and what checks formats; imported when first needed."""
    with needs("strategies", "instances"):
        from jsonschema import Draft202012Validator, FormatChecker, ValidationError
        from jsonschema.validators import create

    def check_pattern(_: Any, pattern: str, instance: Json, __: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not search(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def check_format(_: Any, name: str, instance: Json, __: Any) -> Iterator[ValidationError]:
        if not has_format(instance, name):
            yield ValidationError(f"{instance!r} is not a {name!r}")

    keywords = {**Draft202012Validator.VALIDATORS, "pattern": check_pattern, "format": check_format}
    types = Draft202012Validator.TYPE_CHECKER
    created: Any = create({}, keywords, type_checker=types, id_of=lambda _: None)
    # Where the kept ones are found, because jsonschema hands this on to what it makes.
    created.evolve = lambda validator, **changes: validator.format_checker.of(
        changes.get("schema", validator.schema)
    )
    # No others, because jsonschema has those only with further packages, or laxly.
    return created, FormatChecker(("date", "ipv4", "ipv6", "regex", "uuid"))
