"""Invalid instances: a valid one with one thing wrong, at one place, by one keyword.

What the IR says of a field is where to look: a generated type can refuse no more than that.
Whether a mutated instance is wrong, and for this reason alone, ``jsonschema`` decides by the
document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.canonical import canonical_json
from pytest_regen.documents.ir import (
    ArrayOf,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
)
from pytest_regen.strategies.dialects import FORMAT_RANGES, Check, has_format
from pytest_regen.strategies.patterns import UnreadablePatternError, agree

if TYPE_CHECKING:
    from jsonschema import ValidationError

Json = Any
Path = tuple[str | int, ...]
_KEPT: Final = 3
"""Different mutations by one keyword of one place that are kept."""
_MAX_TRIES: Final = 12
_MAX_GROWTH: Final = 2000
"""Characters or items more than which no limit is overstepped by."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An instance that the document refuses, for one reason at one place."""

    instance: Json
    path: Path
    """From the instance to what is wrong, or to what is missing. It stays within one type: what
    another type of the store says is violated in that type's own instances."""
    field: str
    """JSON name of the type's own field; empty for an enum."""
    keyword: str
    """As JSON Schema calls it, and beside that: ``nullable``, null where it may not be;
    ``discriminator``, the tag of no option of a union; ``union``, what none of them allows;
    ``coercion``, a value of another type that lenient readers convert (``"12"`` for 12);
    ``format``, only an annotation in JSON Schema."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """What could not be made, and why."""

    field: str
    """Empty for the type as a whole."""
    keyword: str
    """Empty where there is no valid instance."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Mutation:
    """A value to put at a place."""

    path: Path
    keyword: str
    value: Json
    """``_MISSING`` takes away what is there."""


_MISSING: Final = object()
_WRONG: Final[Mapping[str, tuple[Json, ...]]] = {
    "string": (5, {"key": "value"}, ["text"]),
    "integer": ("text", 1.5, {"key": 1}, [1]),
    "number": ("text", {"key": 1}, [1.5]),
    "boolean": ("text", {"key": True}, [True]),
    "array": ("text", {"key": []}, 5),
    "object": ("text", ["text"], 5),
}
"""By type: values of others that no reader takes for it."""
_LENIENT: Final[Mapping[str, tuple[Json, ...]]] = {
    "string": (True,),
    "integer": ("12", True, 12.0),
    "number": ("1.5", True),
    "boolean": (1, "true", "yes"),
}
"""By type: values of others that a lenient reader takes for it."""
_OF_NO_OPTION: Final[Sequence[tuple[frozenset[str], Json]]] = (
    (frozenset({"array"}), ["text"]),
    (frozenset({"object"}), {}),
    (frozenset({"boolean"}), True),
    (frozenset({"integer", "number"}), 5),
    (frozenset({"string"}), "text"),
)
"""What is wrong for a union without options of these types."""
_MISFORMED: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": ("not a moment", "2024-02-30T00:00:00Z", "2024-13-01T00:00:00Z"),
    "date": ("not a day", "2023-02-29", "2024-13-01"),
    "time": ("not a time", "25:00:00Z"),
    "duration": ("not a duration", "1 day"),
    "uuid": ("not a uuid", "123e4567-e89b-42d3-a456-42661417400g"),
    "email": ("nobody", "a b@c"),
    "uri": ("not a uri", "//"),
    "ipv4": ("256.0.0.1", "1.2.3"),
    "ipv6": ("12345::", "192.0.2.1"),
    "byte": ("a", "*"),
    "decimal": ("abc", "1,5"),
}
_TEXT_LIMITS: Final = ("minLength", "maxLength")
_NUMBER_LIMITS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def find_violations(
    type_: TypeIR,
    types: Mapping[str, TypeIR],
    valid: Sequence[Json],
    check: Check,
) -> tuple[list[Violation], list[Skipped]]:
    """Return invalid instances of a type, and by which keywords none was found.

    Args:
        type_: the type as the IR has it.
        types: all types of the store, by name.
        valid: instances of it, at least one.
        check: what the document says of them.
    """
    finder = _Finder(types, check)
    if type_.kind == "enum":
        finder.enum(type_, valid[0])
    else:
        ordered = sorted((v for v in valid if isinstance(v, dict)), key=_size)
        for field in type_.fields:
            finder.field(field, ordered)
    return finder.found, finder.skipped


class _Finder:
    """Collects the violations of one type."""

    def __init__(self, types: Mapping[str, TypeIR], check: Check) -> None:
        self.found: list[Violation] = []
        self.skipped: list[Skipped] = []
        self._types = types
        self._check = check

    def enum(self, type_: TypeIR, base: Json) -> None:
        """Look for what is no value of an enum."""
        self._keep("", base, _wrong_values(type_))

    def field(self, field: FieldIR, instances: Sequence[dict[str, Json]]) -> None:
        """Look for what one field may not be."""
        name = field.json_name
        there = [each for each in instances if each.get(name) is not None]
        if field.required and (there or any(name in each for each in instances)):
            bases = there or [each for each in instances if name in each]
            self._keep(name, bases[0], [_Mutation((name,), "required", _MISSING)])
        if not there:
            if any(name in each for each in instances) or field.read_only or field.write_only:
                return  # Null is all that it may be, or it does not travel this way.
            reason = "no instance was drawn that has it"
            self.skipped.append(Skipped(name, "", reason))
            return
        for base in _different_kinds(field, there):
            self._keep(name, base, self._mutations(field, base[name]))

    def _mutations(self, field: FieldIR, value: Json) -> Iterator[_Mutation]:
        at: Path = (field.json_name,)
        said = field.constraints
        if not field.nullable:
            yield _Mutation(at, "nullable", None)
        yield from self._of_expression(field.type, at, value, said, is_outer=True)

    def _of_expression(
        self,
        expression: TypeExpr,
        at: Path,
        value: Json,
        said: Mapping[str, Any],
        *,
        is_outer: bool,
    ) -> Iterator[_Mutation]:
        """Yield what is wrong for an expression; ``said`` holds for the outermost one alone."""
        limits = said if is_outer else {}
        match expression:
            case Scalar(kind="any"):
                return
            case Scalar():
                yield from _wrong_scalars(expression, at, value, limits)
            case Ref(name=name):
                yield from self._wrong_references(self._types[name], at, limits)
            case ArrayOf(items=items):
                yield from _wrong_types("array", at)
                if isinstance(value, list):
                    yield from _wrong_arrays(at, value, limits)
                    yield from self._inside(items, at, list(enumerate(value)), said, "Items")
            case MapOf(values=values):
                yield from _wrong_types("object", at)
                if isinstance(value, dict):
                    yield from self._inside(values, at, list(value.items()), said, "Values")
            case UnionOf(options=options):
                yield from self._wrong_unions(options, expression.discriminator, at, value)

    def _inside(
        self,
        expression: TypeExpr,
        at: Path,
        values: Sequence[tuple[str | int, Json]],
        said: Mapping[str, Any],
        word: str,
    ) -> Iterator[_Mutation]:
        """Yield what is wrong for one item of an array, or one value of a map."""
        key, value = next(((k, v) for k, v in values if v is not None), (None, None))
        if key is None:
            return
        if not said.get(f"nullable{word}"):
            yield _Mutation((*at, key), "nullable", None)
        yield from self._of_expression(expression, (*at, key), value, said, is_outer=False)

    def _wrong_references(
        self, type_: TypeIR, at: Path, said: Mapping[str, Any]
    ) -> Iterator[_Mutation]:
        if type_.kind == "object":
            yield from _wrong_types("object", at)
        elif isinstance(said.get("enum"), list):
            # What is no value at all is the enum's own affair.
            for value in type_.enum_values:
                if value not in said["enum"]:
                    yield _Mutation(at, "enum", value)

    def _wrong_unions(
        self, options: Sequence[TypeExpr], word: str | None, at: Path, value: Json
    ) -> Iterator[_Mutation]:
        if word is not None and isinstance(value, dict) and word in value:
            for wrong in ("no such tag", -1):
                yield _Mutation((*at, word), "discriminator", wrong)
            yield _Mutation(at, "discriminator", {k: v for k, v in value.items() if k != word})
        taken = {_json_type(option, self._types) for option in options}
        if None not in taken:
            for names, wrong in _OF_NO_OPTION:
                if not taken & names:
                    yield _Mutation(at, "union", wrong)

    # --- is it wrong, and for this reason alone? ------------------------------------------------

    def _keep(
        self, field: str, base: Json, mutations: Iterator[_Mutation] | Sequence[_Mutation]
    ) -> None:
        by_reason: dict[tuple[str, int], list[_Mutation]] = {}
        for mutation in mutations:
            key = (mutation.keyword, len(mutation.path))
            by_reason.setdefault(key, []).append(mutation)
        for (keyword, _), tried in by_reason.items():
            found = []
            for mutation in tried[:_MAX_TRIES]:
                instance = _put(base, mutation.path, mutation.value)
                if self._is_wrong(instance, mutation):
                    found.append(Violation(instance, mutation.path, field, keyword))
            known = {(v.field, v.keyword, canonical_json(v.instance)) for v in self.found}
            new = [v for v in found if (field, keyword, canonical_json(v.instance)) not in known]
            self.found += new[:_KEPT]
            if found:
                self.skipped = [s for s in self.skipped if (s.field, s.keyword) != (field, keyword)]
            elif not any((v.field, v.keyword) == (field, keyword) for v in self.found):
                skipped = Skipped(field, keyword, _why_none(keyword))
                if skipped not in self.skipped:
                    self.skipped.append(skipped)

    def _is_wrong(self, instance: Json, mutation: _Mutation) -> bool:
        errors = self._check.errors(instance)
        return bool(errors) and all(_is_about(error, mutation) for error in errors)


def _why_none(keyword: str) -> str:
    if keyword in {"coercion", "format"}:
        return "the document allows what was tried, or other keywords refuse it as well"
    return "what was tried is allowed by the document, or wrong in more than one way"


def _is_about(error: "ValidationError", mutation: _Mutation) -> bool:
    """Return whether an error says what a mutation did, and nothing else."""
    if error.context:
        # A union: all but one of its branches are out of the question anyway.
        branches: dict[Any, list[Any]] = {}
        for inner in error.context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        if any(all(_is_about(e, mutation) for e in errors) for errors in branches.values()):
            return True
    at = tuple(error.absolute_path)
    keyword = mutation.keyword
    if keyword == "required":
        return at == mutation.path[:-1] and error.validator == "required"
    if keyword in _SAME:
        return at == mutation.path and error.validator in _SAME[keyword]
    # Of another type altogether: whatever stands at this place may say so.
    return at[: len(mutation.path)] == mutation.path


_SAME: Final[Mapping[str, frozenset[str]]] = {
    "format": frozenset({"format"}),
    **{word: frozenset({word}) for word in ("pattern", "multipleOf", "uniqueItems")},
    **{word: frozenset({word}) for word in (*_TEXT_LIMITS, "minItems", "maxItems")},
    "minimum": frozenset({"minimum", "format"}),
    "maximum": frozenset({"maximum", "format"}),
    "exclusiveMinimum": frozenset({"minimum", "exclusiveMinimum"}),
    "exclusiveMaximum": frozenset({"maximum", "exclusiveMaximum"}),
}
"""By keyword of a violation: the keywords that may say so."""


# --- what is wrong ------------------------------------------------------------------------------


def _wrong_types(kind: str, at: Path) -> Iterator[_Mutation]:
    for value in _WRONG[kind]:
        yield _Mutation(at, "type", value)


def _wrong_scalars(
    scalar: Scalar, at: Path, value: Json, said: Mapping[str, Any]
) -> Iterator[_Mutation]:
    if "const" in said:
        yield from _other_constants(said["const"], at)
    # A moment may be read from a number, a duration too: what is left is of no such type.
    is_plain = scalar.kind != "string" or scalar.format is None
    for wrong in _WRONG[scalar.kind]:
        is_moment = not is_plain and isinstance(wrong, int)
        yield _Mutation(at, "coercion" if is_moment else "type", wrong)
    for wrong in _LENIENT[scalar.kind]:
        yield _Mutation(at, "coercion", wrong)
    if isinstance(value, str):
        yield from _wrong_texts(scalar, at, value, said)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _wrong_numbers(scalar, at, value, said)


def _other_constants(const: Json, at: Path) -> Iterator[_Mutation]:
    match const:
        case bool():
            yield _Mutation(at, "const", not const)
        case int() | float():
            yield _Mutation(at, "const", const + 1)
        case str():
            for other in (f"{const}_", const.swapcase(), ""):
                if other != const:
                    yield _Mutation(at, "const", other)
        case _:
            return


def _wrong_texts(
    scalar: Scalar, at: Path, value: str, said: Mapping[str, Any]
) -> Iterator[_Mutation]:
    for wrong in _MISFORMED.get(scalar.format or "", ()):
        if not has_format(wrong, scalar.format or ""):
            yield _Mutation(at, "format", wrong)
    shortest, longest = said.get("minLength"), said.get("maxLength")
    if isinstance(shortest, int) and 0 < shortest <= _MAX_GROWTH:
        yield _Mutation(at, "minLength", value[: shortest - 1])
        yield _Mutation(at, "minLength", "a" * (shortest - 1))
    if isinstance(longest, int) and 0 <= longest <= _MAX_GROWTH:
        last = value[-1:] or "a"
        yield _Mutation(at, "maxLength", value + last * (longest + 1 - len(value)))
        yield _Mutation(at, "maxLength", "a" * (longest + 1))
    pattern = said.get("pattern")
    if isinstance(pattern, str):
        for wrong in ("", "?", f"{value}\u00e9", f"{value}!", f" {value}", value.swapcase(), "~~"):
            if not _may_match(pattern, wrong):
                yield _Mutation(at, "pattern", wrong)


def _may_match(pattern: str, text: str) -> bool:
    """Return whether any reading of a pattern finds it in ``text``."""
    import re

    try:
        if agree(pattern, text):
            return True
        return re.compile(pattern).search(text) is not None
    except (re.error, UnreadablePatternError, OverflowError):
        return True


def _wrong_numbers(
    scalar: Scalar, at: Path, value: float, said: Mapping[str, Any]
) -> Iterator[_Mutation]:
    known = FORMAT_RANGES.get(scalar.format or "") if scalar.kind == "integer" else None
    if known and not said.keys() & {"const", "enum"}:
        low, high = known
        yield _Mutation(at, "format", high + 1)
        yield _Mutation(at, "format", low - 1)
    steps = [1] if scalar.kind == "integer" else [1, 0.5]
    for keyword in _NUMBER_LIMITS:
        limit = said.get(keyword)
        if limit is True:
            other = said.get(keyword.replace("exclusiveM", "m"))
            if isinstance(other, int | float):
                yield _Mutation(at, keyword, other)
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            continue
        if keyword.startswith("exclusive"):
            yield _Mutation(at, keyword, limit)
        sign = -1 if keyword.lower().endswith("minimum") else 1
        for step in (*steps, 1000):
            yield _Mutation(at, keyword, limit + sign * step)
    step = said.get("multipleOf")
    if isinstance(step, int | float) and not isinstance(step, bool) and step > 0:
        for part in (step / 2, step / 3):
            wrong = value + part
            yield _Mutation(at, "multipleOf", int(wrong) if scalar.kind == "integer" else wrong)


def _wrong_arrays(at: Path, value: list[Json], said: Mapping[str, Any]) -> Iterator[_Mutation]:
    fewest, most = said.get("minItems"), said.get("maxItems")
    if isinstance(fewest, int) and fewest > 0:
        yield _Mutation(at, "minItems", value[: fewest - 1])
    if isinstance(most, int) and value and most <= _MAX_GROWTH and not said.get("uniqueItems"):
        yield _Mutation(at, "maxItems", (value * (most + 1))[: most + 1])
    if said.get("uniqueItems") is True and value:
        yield _Mutation(at, "uniqueItems", [*value, value[0]])
        yield _Mutation(at, "uniqueItems", [value[0], value[0]])
        yield _Mutation(at, "uniqueItems", [*value[:-1], value[0]])


def _wrong_values(type_: TypeIR) -> Iterator[_Mutation]:
    """Yield what is no value of an enum: above all what looks like the name of one."""
    at: Path = ()
    values = type_.enum_values
    labels = type_.enum_names or ()
    if all(isinstance(value, str) for value in values):
        texts = [str(value) for value in values]
        looks = [look for text in texts[:3] for look in (text.upper(), text.lower(), text.title())]
        for wrong in (f"{texts[0]}_", *looks, *labels, "no such value", ""):
            if wrong not in texts:
                yield _Mutation(at, "enum", wrong)
        yield _Mutation(at, "type", 5)
        yield _Mutation(at, "type", [texts[0]])
        return
    numbers = [value for value in values if isinstance(value, int)]
    yield _Mutation(at, "enum", max(numbers, default=0) + 1)
    yield _Mutation(at, "enum", min(numbers, default=0) - 1)
    yield _Mutation(at, "type", "text")
    yield _Mutation(at, "type", [values[0]])
    yield _Mutation(at, "coercion", str(values[0]))


def _json_type(expression: TypeExpr, types: Mapping[str, TypeIR]) -> str | None:
    """Return the JSON type of an option; ``None`` where it may be anything."""
    match expression:
        case Scalar(kind=kind):
            return None if kind == "any" else kind
        case Ref(name=name):
            if types[name].kind == "object":
                return "object"
            return "string" if isinstance(types[name].enum_values[0], str) else "integer"
        case ArrayOf():
            return "array"
        case MapOf():
            return "object"
        case _:
            return None


# --- helpers ------------------------------------------------------------------------------------


def _put(value: Json, path: Path, wrong: Json) -> Json:
    """Return ``value`` with something else at a place; nothing of it is changed."""
    if not path:
        return wrong
    first, *rest = path
    if isinstance(value, list):
        return [
            _put(each, tuple(rest), wrong) if place == first else each
            for place, each in enumerate(value)
        ]
    if wrong is _MISSING and not rest:
        return {key: each for key, each in value.items() if key != first}
    return {
        key: _put(each, tuple(rest), wrong) if key == first else each for key, each in value.items()
    }


def _size(value: Json) -> int:
    return len(canonical_json(value))


def _different_kinds(
    field: FieldIR, instances: Sequence[dict[str, Json]]
) -> Iterator[dict[str, Json]]:
    """Yield an instance for each sort of value that a field has: what is empty shows little."""
    seen = set()
    name = field.json_name
    for instance in instances:
        value = instance[name]
        sort = (type(value).__name__, bool(value) if isinstance(value, list | dict) else True)
        if sort not in seen:
            seen.add(sort)
            yield instance
