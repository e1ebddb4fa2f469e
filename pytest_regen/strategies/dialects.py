"""What a document means by its schemas: a dialect of JSON Schema for each version of OpenAPI.

``jsonschema`` decides what is allowed. On top of Draft 4 (Swagger 2.0, OpenAPI 3.0) and 2020-12
(OpenAPI 3.1) stands only what OpenAPI adds to them, or leaves open:

- ``nullable: true`` and ``x-nullable: true`` allow null, whatever else the schema says;
- a property that is only written is never required of a response, one that is only read never of a
  request;
- under a ``discriminator`` the value of its property picks the branch of ``oneOf`` and ``anyOf``;
- formats count: a generated type may rely on them;
- patterns are read as ECMA 262 has them, and multiples are exact.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pytest_regen.documents.ir import usual_format
from pytest_regen.extras import needs
from pytest_regen.strategies.patterns import UnreadablePatternError, search

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from pytest_regen.documents.document import Document
    from pytest_regen.strategies.reach import Reach

Json = Any
_Keyword = Callable[[Any, Any, Any, Any], "Iterator[ValidationError] | None"]

FORMAT_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
"""The least and the greatest integer of a format."""

_DATE_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_TIME: Final = re.compile(
    r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)?", re.ASCII
)
_DURATION: Final = re.compile(
    r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)", re.ASCII
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EMAIL: Final = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_HOST: Final = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_DECIMAL: Final = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)


_MAX_STEPS: Final = 20_000
"""References and unions that are followed to check one value; more is no description."""
_MAX_UNIONS: Final = 24
"""Unions within one another, each of which may double the work."""
_CONSTANT: Final = frozenset({"const", "title", "description", "deprecated"})
"""The keywords of a branch that is no more than a constant."""


class Check:
    """Says whether a document allows a value at one of its schemas, and why not.

    Args:
        reach: what the schema reaches in its document.
        schema: the schema: a mapping, ``True`` or ``False``.
    """

    def __init__(self, reach: "Reach", schema: Any) -> None:
        with needs("strategies", "instances"):
            from jsonschema import FormatChecker
        found = _validator_class(*_dialect_of(reach.document))
        self._reach = reach
        formats: Any = FormatChecker(formats=())
        # What the keywords below look up goes along with the validator that calls them.
        formats.reach = reach
        self._validator: Validator = found(schema, format_checker=formats)

    def allows(self, value: Json) -> bool:
        """Return whether a value is allowed.

        Raises:
            UnreadablePatternError: a pattern on the way cannot be read.
            RecursionError: the schema only leads to itself, or its branches are too many.
        """
        self._reach.steps = self._reach.unions = 0
        return bool(self._validator.is_valid(value))

    def errors(self, value: Json) -> "list[ValidationError]":
        """Return why a value is not allowed; nothing where it is."""
        self._reach.steps = self._reach.unions = 0
        return list(self._validator.iter_errors(value))


def _dialect_of(document: "Document") -> tuple[Any, bool, bool]:
    """Return the validator that a document is written for, if it is old, and if it is OpenAPI."""
    from jsonschema import Draft4Validator, Draft202012Validator
    from jsonschema.validators import validator_for

    if document.version.startswith("3.") and document.has_ref_siblings:
        return Draft202012Validator, False, True
    if document.version[:1].isdigit():
        return Draft4Validator, True, True
    known = validator_for(document.references.root.value, default=Draft202012Validator)
    return known, not document.has_ref_siblings, False


@cache
def _validator_class(base: Any, is_old: bool, is_openapi: bool) -> Any:  # noqa: FBT001 - as found
    """Return a validator with the keywords of a dialect.

    Args:
        base: that of jsonschema.
        is_old: whether nothing beside a ``$ref`` counts.
        is_openapi: whether a schema may be ``nullable``, before 3.1.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import create

    keywords: dict[str, _Keyword] = dict(base.VALIDATORS)
    for name in ("$dynamicRef", "$recursiveRef"):
        keywords.pop(name, None)  # What reaches one is refused before.
    keywords.setdefault("const", Draft202012Validator.VALIDATORS["const"])
    own = {
        "$ref": _reference,
        "discriminator": _discriminator,
        "format": _format,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "required": _required,
        "minimum": _minimum,
        "maximum": _maximum,
        "exclusiveMinimum": _exclusive_minimum,
        "exclusiveMaximum": _exclusive_maximum,
    }
    keywords |= own
    for name in ("oneOf", "anyOf"):
        keywords[name] = _unless_picked(keywords[name])
    keywords["type"] = _of_known_type(keywords["type"])
    if is_old and is_openapi:
        keywords = {
            name: check if name == "$ref" else _unless_null(check)
            for name, check in keywords.items()
        }
    made: Any = create(
        meta_schema={},
        validators=keywords,
        type_checker=base.TYPE_CHECKER,
        id_of=lambda _: None,
        applicable_validators=_alone_beside_ref if is_old else dict.items,
    )
    made.evolve = _evolve_once
    return made


def _evolve_once(validator: Any, **changes: Any) -> Any:
    """Return a validator of another schema: the one made before, where there is one.

    A third of the time went into making them anew. And jsonschema's own would go over to another
    dialect where a schema names one, and forget the keywords that are added here.
    """
    formats = validator.format_checker
    schema = changes.get("schema", validator.schema)
    if id(schema) not in formats.reach.validators:
        formats.reach.validators[id(schema)] = type(validator)(schema, format_checker=formats)
    return formats.reach.validators[id(schema)]


def _alone_beside_ref(schema: Mapping[str, Any]) -> Any:
    """Return the keywords that count: beside a ``$ref`` none before OpenAPI 3.1."""
    return [("$ref", schema["$ref"])] if "$ref" in schema else schema.items()


def _unless_null(check: _Keyword) -> _Keyword:
    """Return a keyword that lets null pass where the schema is nullable."""

    def nullable(
        validator: Any, value: Any, instance: Json, schema: Any
    ) -> "Iterator[ValidationError]":
        if instance is None and True in (schema.get("nullable"), schema.get("x-nullable")):
            return
        yield from check(validator, value, instance, schema) or ()

    return nullable


def _of_known_type(check: _Keyword) -> _Keyword:
    """Return ``type`` as documents have it: with ``file``, and without what is no type."""
    known = {"object", "array", "string", "integer", "number", "boolean", "null"}

    def typed(
        validator: Any, value: Any, instance: Json, schema: Any
    ) -> "Iterator[ValidationError]":
        names = ["string" if name == "file" else name for name in _as_list(value)]
        if all(isinstance(name, str) and name in known for name in names):
            yield from check(validator, names, instance, schema) or ()

    return typed


def _reference(
    validator: Any, reference: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    # Looked up by identity: what a reference leads to was found, once, before.
    reach = validator.format_checker.reach
    _count_step(reach)
    target = reach.target_of(schema)
    yield from validator.descend(instance, target, schema_path=None)


def _count_step(reach: "Reach") -> None:
    reach.steps += 1
    if reach.steps > _MAX_STEPS:
        raise RecursionError("the references or branches are too many")


def _error(message: str) -> "ValidationError":
    from jsonschema import ValidationError

    return ValidationError(message)


def _required(
    validator: Any, names: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if isinstance(instance, dict) and isinstance(names, list):
        hidden = validator.format_checker.reach.hidden_in(schema)
        for name in names:
            if isinstance(name, str) and name not in instance and name not in hidden:
                yield _error(f"{name!r} is a required property")


def _format(validator: Any, name: Any, instance: Json, schema: Any) -> "Iterator[ValidationError]":
    if isinstance(name, str) and not has_format(instance, name):
        yield _error(f"{instance!r} is no {name!r}")


def _pattern(
    validator: Any, pattern: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if isinstance(instance, str) and isinstance(pattern, str) and not search(pattern, instance):
        yield _error(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if search(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _multiple_of(
    validator: Any, step: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if _is_number(instance) and _is_number(step) and not is_multiple(instance, step):
        yield _error(f"{instance!r} is not a multiple of {step}")


def _minimum(
    validator: Any, limit: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if not _is_number(instance) or not _is_number(limit):
        return
    if instance < limit or (instance == limit and schema.get("exclusiveMinimum") is True):
        yield _error(f"{instance!r} is less than the minimum of {limit}")


def _maximum(
    validator: Any, limit: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if not _is_number(instance) or not _is_number(limit):
        return
    if instance > limit or (instance == limit and schema.get("exclusiveMaximum") is True):
        yield _error(f"{instance!r} is greater than the maximum of {limit}")


def _exclusive_minimum(
    validator: Any, limit: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    # A number even where the version of OpenAPI asks for a boolean: what the author meant is plain.
    if _is_number(instance) and _is_number(limit) and instance <= limit:
        yield _error(f"{instance!r} is not above {limit}")


def _exclusive_maximum(
    validator: Any, limit: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    if _is_number(instance) and _is_number(limit) and instance >= limit:
        yield _error(f"{instance!r} is not below {limit}")


def is_multiple(value: float, step: float) -> bool:
    """Return whether a number is a multiple as both are written: in floats 0.07 of 0.01 is none."""
    return step <= 0 or Fraction(str(value)) % Fraction(str(step)) == 0


# --- discriminators -----------------------------------------------------------------------------


def _unless_picked(check: _Keyword) -> _Keyword:
    """Return a union whose branch the discriminator picks, where the instance has a tag."""

    def union(
        validator: Any, branches: Any, instance: Json, schema: Any
    ) -> "Iterator[ValidationError]":
        tags = validator.format_checker.reach.tags_in(schema)
        is_picked = tags is not None and isinstance(instance, dict) and tags.word in instance
        if not is_picked and not _is_one_constant(branches, instance):
            # Unions of unions are tried in every combination.
            reach = validator.format_checker.reach
            _count_step(reach)
            reach.unions += 1
            try:
                if reach.unions > _MAX_UNIONS:
                    raise RecursionError("unions are nested too deeply")
                yield from check(validator, branches, instance, schema) or ()
            finally:
                reach.unions -= 1

    return union


def _is_one_constant(branches: Any, instance: Json) -> bool:
    """Return whether a value is one of many constants: how documents write enums with titles."""
    if not isinstance(instance, str) or not isinstance(branches, list):
        return False
    constants = [
        b["const"] for b in branches if isinstance(b, dict) and _CONSTANT >= b.keys() >= {"const"}
    ]
    return len(constants) == len(branches) and constants.count(instance) == 1


def _discriminator(
    validator: Any, value: Any, instance: Json, schema: Any
) -> "Iterator[ValidationError]":
    tags = validator.format_checker.reach.tags_in(schema)
    if tags is None or not isinstance(instance, dict) or tags.word not in instance:
        return
    tag = instance[tags.word]
    branch = tags.branches.get(tag) if isinstance(tag, str | int) else None
    if branch is None:
        error = _error(f"{tag!r} is none of {', '.join(map(repr, tags.branches))}")
        error.path.append(tags.word)
        yield error
    else:
        yield from validator.descend(instance, branch)


# --- formats ------------------------------------------------------------------------------------


def has_format(value: Json, name: str) -> bool:
    """Return whether a value is of a format; so is every value where the format is unknown."""
    name = usual_format(name)
    if isinstance(value, str):
        check = _TEXT_FORMATS.get(name)
        return check is None or check(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and name in FORMAT_RANGES:
        low, high = FORMAT_RANGES[name]
        return low <= value <= high and value == int(value)
    return True


def _is_date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper()[:19]).replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme) and not re.search(r"[\s<>\"{}|\\^`]", text)
    except ValueError:
        return False


def _is_address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return "%" not in text


def _is_regex(text: str) -> bool:
    try:
        return search(text, "") or True
    except UnreadablePatternError:
        return False


def _is_whole_text(text: str, name: str) -> bool:
    low, high = FORMAT_RANGES[name]
    return bool(_INTEGER.fullmatch(text)) and low <= int(text[:25]) <= high


_TEXT_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date-time": _is_date_time,
    "date": _is_date,
    "time": lambda text: bool(_TIME.fullmatch(text)),
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "hostname": lambda text: bool(_HOST.fullmatch(text)),
    "ipv4": lambda text: _is_address(text, ipaddress.IPv4Address),
    "ipv6": lambda text: _is_address(text, ipaddress.IPv6Address),
    "uri": _is_uri,
    "url": _is_uri,
    "byte": _is_base64,
    "base64": _is_base64,
    "decimal": lambda text: bool(_DECIMAL.fullmatch(text)),
    "regex": _is_regex,
    "int32": lambda text: _is_whole_text(text, "int32"),
    "int64": lambda text: _is_whole_text(text, "int64"),
    "uint64": lambda text: _is_whole_text(text, "uint64"),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
