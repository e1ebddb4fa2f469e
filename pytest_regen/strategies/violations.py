"""Invalid instances: a valid one with one thing wrong, at one place, by one keyword.

What the IR says of a field is where to look: a generated type can refuse no more than that.
Whether a mutated instance is wrong, and for this reason alone, ``jsonschema`` decides by the
document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.canonical import canonical_json
from pytest_regen.documents import ir
from pytest_regen.strategies.patterns import is_match
from pytest_regen.strategies.plans import Plan
from pytest_regen.strategies.translation import FORMAT_RANGES

if TYPE_CHECKING:
    from jsonschema import ValidationError

Json = Any
Path = tuple[str | int, ...]
_KEPT: Final = 3
"""Different mutations by one keyword of one place that are kept."""
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
    """As JSON Schema calls it, and beside that: ``nullable``, null where it may not be,
    ``nullableItems`` inside an array or a map;
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
_OF_NUMBERS: Final = frozenset({"format", *_LIMITS})
"""Keywords of which any may say what another means, because formats of integers become limits."""
_OF_ANY: Final = frozenset(
    {"type", "coercion", "nullable", "nullableItems", "const", "enum", "discriminator", "union"}
)
"""Keywords by which a value is of another type altogether: whatever stands there may say so."""


def find_violations(
    type_: ir.TypeIR, types: Mapping[str, ir.TypeIR], valid: Sequence[Json], plan: Plan
) -> tuple[list[Violation], list[Skipped]]:
    """Return invalid instances of a type, and by which keywords none was found.

    Args:
        type_: the type as the IR has it.
        types: all types of the store, by name.
        valid: instances of it, at least one.
        plan: what the document says of them.
    """
    groups: dict[tuple[str, str, int, int], list[tuple[Json, Mutation]]] = {}
    for field, base, mutation in _of_type(type_, types, valid):
        key = field, mutation[1], len(mutation[0]), id(base)
        groups.setdefault(key, []).append((base, mutation))
    violations: list[Violation] = []
    for (field, keyword, *_), group in groups.items():
        new = (
            violation
            for base, (path, _, wrong) in group
            if (violation := Violation(_put(base, path, wrong), path, field, keyword))
            not in violations
            and (errors := plan.errors(violation.instance))
            # For its own reason alone, because else it shows nothing of the keyword.
            and all(_is_about(error, path, keyword) for error in errors)
        )
        violations += islice(new, _KEPT)
    violated = {(violation.field, violation.keyword) for violation in violations}
    tried = dict.fromkeys((field, keyword) for field, keyword, *_ in groups)
    reason = "what was tried is allowed, or wrong in other ways too"
    skipped = [Skipped(*key, reason) for key in tried if key not in violated]
    skipped += [
        Skipped(field.json_name, "", "no instance was drawn that has it")
        for field in type_.fields
        if not (field.read_only or field.write_only or type_.kind == "alias")
        and not any(field.json_name in instance for instance in valid)
    ]
    return violations, skipped


def _of_type(
    type_: ir.TypeIR, types: Mapping[str, ir.TypeIR], valid: Sequence[Json]
) -> Iterator[tuple[str, Json, Mutation]]:
    """Yield mutations with the field that each is about, and the instance that it begins with."""
    if type_.kind == "enum":
        at: Path = ()
        values = type_.enum_values
        numbers = [value for value in values if isinstance(value, int)]
        texts = [text for text in values[:3] if isinstance(text, str)]
        # Above all what looks like the name of a value, because readers look up by name.
        looks = [look for text in texts for look in (text.upper(), text.lower(), text.title())]
        near = [f"{text}_" for text in texts[:1]]
        wrong: dict[str, Sequence[Json]] = {
            "enum": (*near, *looks, *(type_.enum_names or ()), "no such value", ""),
            "type": (5, [values[0]]),
        }
        if numbers:
            wrong = {
                "enum": (max(numbers) + 1, min(numbers) - 1),
                "type": ("text", [values[0]]),
                "coercion": (str(values[0]),),
            }
        for keyword, mutants in wrong.items():
            yield from (("", valid[0], (at, keyword, mutant)) for mutant in mutants)
    # The shortest first, because a person has to see what is wrong with it.
    instances = sorted(valid, key=lambda value: len(canonical_json(value)))
    is_alias = type_.kind == "alias"
    for field in type_.fields:
        name = "" if is_alias else field.json_name
        path: Path = () if is_alias else (name,)
        having = [
            (base, base if is_alias else base[name])
            for base in instances
            if is_alias or name in base
        ]
        filled = [(base, value) for base, value in having if value is not None]
        # Filled if possible, because what is null already may be allowed to be absent.
        if having and field.required and not is_alias:
            yield name, (filled or having)[0][0], (path, "required", _MISSING)
        sorts: dict[tuple[type, bool], tuple[Json, Json]] = {}
        for base, value in filled:
            # What is empty shows little of what may be wrong inside.
            sorts.setdefault((type(value), _first_filled(value) is None), (base, value))
        for base, value in sorts.values():
            if not field.nullable:
                yield name, base, (path, "nullable", None)
            for mutation in _of_expression(field.type, path, value, field.constraints, types):
                yield name, base, mutation


def _is_about(error: "ValidationError", path: Path, keyword: str) -> bool:
    """Return whether an error says what a mutation did, and nothing else."""
    branches: dict[Any, list[Any]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    # Of a union all but one of its branches are out of the question anyway.
    if any(all(_is_about(e, path, keyword) for e in errors) for errors in branches.values()):
        return True
    at = tuple(error.absolute_path)
    if keyword in _OF_ANY:
        return at[: len(path)] == path
    words = _OF_NUMBERS if keyword in _OF_NUMBERS else {keyword}
    return error.validator in words and at == (path[:-1] if keyword == "required" else path)


# --- what is wrong ------------------------------------------------------------------------------


def _of_expression(
    expression: ir.TypeExpr,
    at: Path,
    value: Json,
    limits: Mapping[str, Any],
    types: Mapping[str, ir.TypeIR],
) -> Iterator[Mutation]:
    """Yield what is wrong for an expression."""
    match expression:
        case ir.Scalar() if expression.kind != "any":
            yield from _of_scalar(expression, at, value, limits)
        case ir.Ref(name=name) if types[name].kind == "object":
            yield from ((at, "type", wrong) for wrong in _WRONG["object"])
        case ir.Ref(name=name) if "enum" in limits:
            # What is no value at all is the enum's own affair.
            values = [value for value in types[name].enum_values if value not in limits["enum"]]
            yield from ((at, "enum", wrong) for wrong in values)
        case ir.ArrayOf(items=inner) | ir.MapOf(values=inner):
            kind = "array" if isinstance(expression, ir.ArrayOf) else "object"
            key = _first_filled(value)
            # Some readers take an item for a list of it.
            items = [value[key]] if kind == "array" and key is not None else []
            yield from ((at, "type", wrong) for wrong in (*items, *_WRONG[kind]))
            if isinstance(value, list):
                yield from _of_size(at, value, "Items", value[:1], limits)
            if key is not None:
                if not limits.keys() & {"nullableItems", "nullableValues"}:
                    yield (*at, key), "nullableItems", None
                # Without limits, because those of a field are not those of what is in it.
                yield from _of_expression(inner, (*at, key), value[key], {}, types)
        case ir.UnionOf(options=options, discriminator=word):
            if word is not None and isinstance(value, dict) and word in value:
                yield (*at, word), "discriminator", "no such tag"
                yield (*at, word), "discriminator", -1
                yield at, "discriminator", {key: value[key] for key in value if key != word}
            taken = {_json_type(option, types) for option in options}
            none_takes = [wrong for names, wrong in _OF_NO_OPTION if not taken & names]
            yield from ((at, "union", wrong) for wrong in none_takes if None not in taken)


def _first_filled(value: Json) -> str | int | None:
    """Return where the first item stands that is not null; ``None`` where there is none."""
    if not isinstance(value, dict | list):
        return None
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return next((key for key, item in entries if item is not None), None)


def _of_scalar(
    scalar: ir.Scalar, at: Path, value: Json, limits: Mapping[str, Any]
) -> Iterator[Mutation]:
    match limits.get("const"):
        case bool(const):
            yield at, "const", not const
        case int(const):
            yield at, "const", const + 1
        case str(const):
            yield from ((at, "const", wrong) for wrong in (f"{const}_", const.swapcase(), ""))
    # A moment may be read from a number, a duration too: what is left is of no such type.
    is_moment = scalar.kind == "string" and scalar.format is not None
    for wrong in _WRONG[scalar.kind]:
        yield at, "coercion" if is_moment and isinstance(wrong, int) else "type", wrong
    yield from ((at, "coercion", wrong) for wrong in _LENIENT[scalar.kind])
    if isinstance(value, str):
        yield from ((at, "format", wrong) for wrong in _MISFORMED.get(scalar.format or "", ()))
        yield from _of_size(at, value, "Length", "a", limits)
        pattern = limits.get("pattern")
        for wrong in ("", f"{value}^", f"{value}\u00e9", "?", f" {value}", value.swapcase(), "~~"):
            if isinstance(pattern, str) and is_match(pattern, wrong) is False:
                yield at, "pattern", wrong
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(scalar, at, value, limits)


def _of_size(
    at: Path, value: Any, unit: str, filler: Any, limits: Mapping[str, Any]
) -> Iterator[Mutation]:
    """Yield what is too short or too long: texts by their ``Length``, arrays by their ``Items``."""
    least, most = limits.get(f"min{unit}"), limits.get(f"max{unit}")
    if isinstance(least, int) and 0 < least <= _MAX_GROWTH:
        yield at, f"min{unit}", value[: least - 1]
        yield at, f"min{unit}", filler * (least - 1)
    # Not a set, because of its items none could be there twice.
    if isinstance(most, int) and most <= _MAX_GROWTH and not limits.get("uniqueItems"):
        yield at, f"max{unit}", value + (value[-1:] or filler) * (most + 1 - len(value))
        yield at, f"max{unit}", filler * (most + 1)
    if limits.get("uniqueItems") is True and value:
        first = value[:1]
        yield from (
            (at, "uniqueItems", wrong) for wrong in (value + first, first * 2, value[:-1] + first)
        )


def _of_number(
    scalar: ir.Scalar, at: Path, value: float, limits: Mapping[str, Any]
) -> Iterator[Mutation]:
    is_integer = scalar.kind == "integer"
    ends = FORMAT_RANGES.get(scalar.format or "")
    if is_integer and ends and not limits.keys() & {"const", "enum"}:
        low, high = ends
        yield at, "format", high + 1
        yield at, "format", low - 1
    for keyword in _LIMITS:
        limit = limits.get(keyword)
        if isinstance(limit, int | float) and not isinstance(limit, bool):
            sign = -1 if keyword.lower().endswith("minimum") else 1
            # The limit itself too, because it may be excluded.
            for step in (0, 1, 1000, 0.5)[: 3 if is_integer else 4]:
                yield at, keyword, limit + sign * step
    multiple = limits.get("multipleOf")
    if isinstance(multiple, int | float):
        for wrong in (value + multiple / 2, value + multiple / 3):
            yield at, "multipleOf", int(wrong) if is_integer else wrong


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
    first, *inner = path
    changed = value.copy()
    if wrong is _MISSING and not inner:
        del changed[first]
    else:
        changed[first] = _put(value[first], tuple(inner), wrong)
    return changed
