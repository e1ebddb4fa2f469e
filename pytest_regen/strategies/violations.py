"""Invalid instances: a valid one with one thing wrong, at one place, by one keyword.

What the IR says of a field is where to look: a generated type can refuse no more than that.
Whether a mutated instance is wrong, and for this reason alone, ``jsonschema`` decides by the
document.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.canonical import canonical_json
from pytest_regen.documents import ir
from pytest_regen.strategies.dialects import Check, has_format
from pytest_regen.strategies.patterns import may_hold, readings
from pytest_regen.strategies.translation import FORMAT_RANGES

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


Mutation = tuple[Path, str, Json]
"""A place, the keyword that it is to violate, and what is put there."""

_MISSING: Final = object()
"""Put at a place, it takes away what is there."""
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
_LIMITS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SAYING: Final[Mapping[str, tuple[str, ...]]] = {
    "format": ("format", "minimum", "maximum"),
    **dict.fromkeys(_LIMITS, ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    **{word: (word,) for word in ("pattern", "multipleOf", "uniqueItems")},
    **{word: (word,) for word in ("minLength", "maxLength", "minItems", "maxItems")},
}
"""By keyword of a violation: the keywords of which one is to say so. By any other a value is of
another type altogether, and whatever stands at its place may say so."""


def find_violations(
    type_: ir.TypeIR, types: Mapping[str, ir.TypeIR], valid: Sequence[Json], check: Check
) -> tuple[list[Violation], list[Skipped]]:
    """Return invalid instances of a type, and by which keywords none was found.

    Args:
        type_: the type as the IR has it.
        types: all types of the store, by name.
        valid: instances of it, at least one.
        check: what the document says of them.
    """
    finder = _Finder(check)
    if type_.kind == "enum":
        finder.keep("", valid[0], _wrong_values(type_))
    instances = sorted(valid, key=lambda value: len(canonical_json(value)))
    if type_.kind == "alias":
        (value,) = type_.fields
        for base in {type(each): each for each in reversed(instances)}.values():
            wrong = _of_expression(value.type, (), base, value.constraints, types)
            finder.keep("", base, [((), "nullable", None), *wrong])
    for field in type_.fields if type_.kind == "object" else ():
        name = field.json_name
        having = [each for each in instances if name in each]
        filled = [each for each in having if each[name] is not None]
        if having and field.required:
            finder.keep(name, (filled or having)[0], [((name,), "required", _MISSING)])
        # What is empty shows little of what may be wrong inside.
        sorts = [(type(each[name]), _first_filled(each[name]) is None) for each in filled]
        bases = dict(zip(reversed(sorts), reversed(filled), strict=True))
        for base in reversed(bases.values()):
            null = [] if field.nullable else [((name,), "nullable", None)]
            wrong = _of_expression(field.type, (name,), base[name], field.constraints, types)
            finder.keep(name, base, (*null, *wrong))
        if not having and not field.read_only and not field.write_only:
            finder.tried[name, ""] = "no instance was drawn that has it"
    violated = {(each.field, each.keyword) for each in finder.found}
    skipped = [Skipped(*key, why) for key, why in finder.tried.items() if key not in violated]
    return finder.found, skipped


class _Finder:
    """Keeps the mutations of one type that the document refuses for their own reason."""

    def __init__(self, check: Check) -> None:
        self.found: list[Violation] = []
        self.tried: dict[tuple[str, str], str] = {}
        """By field and keyword: why there is no violation, if there is none in the end."""
        self._check = check

    def keep(self, field: str, base: Json, mutations: Iterable[Mutation]) -> None:
        """Look for what one field may not be, beginning with an instance that is right."""
        by_reason: dict[tuple[str, int], list[Mutation]] = {}
        for mutation in mutations:
            by_reason.setdefault((mutation[1], len(mutation[0])), []).append(mutation)
        for (keyword, _), group in by_reason.items():
            instances = [
                Violation(instance, path, field, keyword)
                for path, _, value in group[:_MAX_TRIES]
                if self._is_wrong(instance := _put(base, path, value), path, keyword)
            ]
            self.found += [each for each in instances if each not in self.found][:_KEPT]
            self.tried[field, keyword] = "what was tried is allowed, or wrong in other ways too"

    def _is_wrong(self, instance: Json, path: Path, keyword: str) -> bool:
        errors = self._check.errors(instance)
        return bool(errors) and all(_is_about(error, path, keyword) for error in errors)


def _is_about(error: "ValidationError", path: Path, keyword: str) -> bool:
    """Return whether an error says what a mutation did, and nothing else."""
    branches: dict[Any, list[Any]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    # Of a union all but one of its branches are out of the question anyway.
    if any(all(_is_about(e, path, keyword) for e in errors) for errors in branches.values()):
        return True
    at = tuple(error.absolute_path)
    if keyword == "required":
        return at == path[:-1] and error.validator == "required"
    if keyword in _SAYING:
        return at == path and error.validator in _SAYING[keyword]
    return at[: len(path)] == path


# --- what is wrong ------------------------------------------------------------------------------


def _of_expression(
    expression: ir.TypeExpr,
    at: Path,
    value: Json,
    said: Mapping[str, Any],
    types: Mapping[str, ir.TypeIR],
) -> Iterator[Mutation]:
    """Yield what is wrong for an expression; limits in ``said`` hold for the outermost alone."""
    is_outer = len(at) == 1
    match expression:
        case ir.Scalar(kind="any"):
            return
        case ir.Scalar():
            yield from _wrong_scalars(expression, at, value, said if is_outer else {})
        case ir.Ref(name=name) if types[name].kind == "object":
            yield from ((at, "type", wrong) for wrong in _WRONG["object"])
        case ir.Ref(name=name) if is_outer and isinstance(said.get("enum"), list):
            # What is no value at all is the enum's own affair.
            values = types[name].enum_values
            yield from ((at, "enum", wrong) for wrong in values if wrong not in said["enum"])
        case ir.ArrayOf(items=inner) | ir.MapOf(values=inner):
            kind = "array" if isinstance(expression, ir.ArrayOf) else "object"
            yield from ((at, "type", wrong) for wrong in _WRONG[kind])
            if isinstance(value, list) and is_outer:
                yield from _wrong_arrays(at, value, said)
            key = _first_filled(value)
            if key is not None:
                may_be_null = said.get("nullableItems" if kind == "array" else "nullableValues")
                yield from [] if may_be_null else [((*at, key), "nullable", None)]
                yield from _of_expression(inner, (*at, key), value[key], said, types)
        case ir.UnionOf(options=options):
            yield from _wrong_unions(options, expression.discriminator, at, value, types)


def _first_filled(value: Json) -> str | int | None:
    """Return where the first item stands that is not null; ``None`` where there is none."""
    if not isinstance(value, dict | list):
        return None
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return next((key for key, item in entries if item is not None), None)


def _wrong_unions(
    options: Sequence[ir.TypeExpr],
    word: str | None,
    at: Path,
    value: Json,
    types: Mapping[str, ir.TypeIR],
) -> Iterator[Mutation]:
    if word is not None and isinstance(value, dict) and word in value:
        yield (*at, word), "discriminator", "no such tag"
        yield (*at, word), "discriminator", -1
        yield at, "discriminator", {key: each for key, each in value.items() if key != word}
    taken = {_json_type(option, types) for option in options}
    if None not in taken:
        yield from ((at, "union", wrong) for names, wrong in _OF_NO_OPTION if not taken & names)


def _wrong_scalars(
    scalar: ir.Scalar, at: Path, value: Json, said: Mapping[str, Any]
) -> Iterator[Mutation]:
    yield from ((at, "const", other) for other in _other_constants(said.get("const")))
    # A moment may be read from a number, a duration too: what is left is of no such type.
    is_moment = scalar.kind == "string" and scalar.format is not None
    for wrong in _WRONG[scalar.kind]:
        yield at, "coercion" if is_moment and isinstance(wrong, int) else "type", wrong
    yield from ((at, "coercion", wrong) for wrong in _LENIENT[scalar.kind])
    if isinstance(value, str):
        yield from _wrong_texts(scalar, at, value, said)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _wrong_numbers(scalar, at, value, said)


def _other_constants(const: Json) -> list[Json]:
    match const:
        case bool():
            return [not const]
        case int():
            return [const + 1]
        case str():
            return [other for other in (f"{const}_", const.swapcase(), "") if other != const]
        case _:
            return []  # Of a fraction most languages have no type.


def _wrong_texts(
    scalar: ir.Scalar, at: Path, value: str, said: Mapping[str, Any]
) -> Iterator[Mutation]:
    name = scalar.format or ""
    for wrong in _MISFORMED.get(name, ()):
        if not has_format(wrong, name):
            yield at, "format", wrong
    shortest, longest = said.get("minLength"), said.get("maxLength")
    if isinstance(shortest, int) and 0 < shortest <= _MAX_GROWTH:
        yield at, "minLength", value[: shortest - 1]
        yield at, "minLength", "a" * (shortest - 1)
    if isinstance(longest, int) and 0 <= longest <= _MAX_GROWTH:
        yield at, "maxLength", value.ljust(longest + 1, value[-1:] or "a")
        yield at, "maxLength", "a" * (longest + 1)
    pattern = said.get("pattern")
    if isinstance(pattern, str):
        for wrong in ("", "?", f"{value}\u00e9", f"{value}!", f" {value}", value.swapcase(), "~~"):
            if may_hold(pattern, wrong) and not any(readings(pattern, wrong)):
                yield at, "pattern", wrong


def _wrong_numbers(
    scalar: ir.Scalar, at: Path, value: float, said: Mapping[str, Any]
) -> Iterator[Mutation]:
    is_integer = scalar.kind == "integer"
    name = scalar.format or ""
    if is_integer and name in FORMAT_RANGES and not said.keys() & {"const", "enum"}:
        low, high = FORMAT_RANGES[name]
        yield at, "format", high + 1
        yield at, "format", low - 1
    for keyword in _LIMITS:
        limit = said.get(keyword)
        if limit is True:  # how OpenAPI 3.0 excludes the limit beside it
            limit = said.get(keyword.replace("exclusiveM", "m"))
        if isinstance(limit, int | float) and not isinstance(limit, bool):
            sign = -1 if keyword.lower().endswith("minimum") else 1
            first = 0 if keyword.startswith("exclusive") else 1
            for step in (first, 1, *(() if is_integer else (0.5,)), 1000):
                yield at, keyword, limit + sign * step
    step = said.get("multipleOf")
    if isinstance(step, int | float) and not isinstance(step, bool) and step > 0:
        for wrong in (value + step / 2, value + step / 3):
            yield at, "multipleOf", int(wrong) if is_integer else wrong


def _wrong_arrays(at: Path, value: list[Json], said: Mapping[str, Any]) -> Iterator[Mutation]:
    fewest, most = said.get("minItems"), said.get("maxItems")
    if isinstance(fewest, int) and fewest > 0:
        yield at, "minItems", value[: fewest - 1]
    if isinstance(most, int) and value and most <= _MAX_GROWTH and not said.get("uniqueItems"):
        yield at, "maxItems", (value * (most + 1))[: most + 1]
    if said.get("uniqueItems") is True and value:
        yield at, "uniqueItems", [*value, value[0]]
        yield at, "uniqueItems", [value[0], value[0]]
        yield at, "uniqueItems", [*value[:-1], value[0]]


def _wrong_values(type_: ir.TypeIR) -> Iterator[Mutation]:
    """Yield what is no value of an enum: above all what looks like the name of one."""
    at: Path = ()
    values = type_.enum_values
    numbers = [value for value in values if isinstance(value, int)]
    texts = [value for value in values if isinstance(value, str)]
    if not numbers:
        looks = [look for text in texts[:3] for look in (text.upper(), text.lower(), text.title())]
        for wrong in (f"{texts[0]}_", *looks, *(type_.enum_names or ()), "no such value", ""):
            if wrong not in texts:
                yield at, "enum", wrong
        yield at, "type", 5
    else:
        yield at, "enum", max(numbers) + 1
        yield at, "enum", min(numbers) - 1
        yield at, "type", "text"
        yield at, "coercion", str(values[0])
    yield at, "type", [values[0]]


def _json_type(expression: ir.TypeExpr, types: Mapping[str, ir.TypeIR]) -> str | None:
    """Return the JSON type of an option; ``None`` where it may be anything."""
    match expression:
        case ir.Scalar(kind=kind):
            return None if kind == "any" else kind
        case ir.Ref(name=name) if types[name].kind == "enum":
            return "string" if isinstance(types[name].enum_values[0], str) else "integer"
        case ir.Ref() | ir.MapOf():
            return "object"
        case ir.ArrayOf():
            return "array"
        case _:
            return None


def _put(value: Json, path: Path, wrong: Json) -> Json:
    """Return ``value`` with something else at a place; nothing of it is changed."""
    if not path:
        return wrong
    first, *rest = path
    changed = value.copy()
    if wrong is _MISSING and not rest:
        del changed[first]
    else:
        changed[first] = _put(value[first], tuple(rest), wrong)
    return changed
