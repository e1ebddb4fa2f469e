"""Plans: what a schema allows, taken apart so that values can be put together.

A plan is made of all schemas that hold for one value. Each of its options is a way to satisfy them:
one branch for each union, one type. What ordinary documents do not say (``not``, ``if``,
``contains``, what depends on something else) no option knows: then values are put together as if it
were not there, and ``jsonschema`` throws out those that are not allowed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle, islice, product
from math import ceil, floor, prod
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.strategies.dialects import Validators
from pytest_regen.strategies.scalars import Numbers, Texts
from pytest_regen.strategies.translation import reason_in

if TYPE_CHECKING:
    from jsonschema import ValidationError

Json = Any
Part = Mapping[str, Any]
_MAX_OPTIONS: Final = 60
"""Combinations of branches of several unions that are planned; more are gone through side by side,
so that each branch is there all the same."""
_MAX_EXPANSIONS: Final = 2000
"""Branches inside one another that are taken apart for one value; then they are left out, and the
values are what happens to be allowed."""
_MEANT: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "minItems", "maxItems", "uniqueItems")),
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
}
"""What a plan knows of each type; it tells the one that is meant where a schema does not say."""
_PLANNED: Final = frozenset({"type", "enum", "const", "allOf", "anyOf"}).union(*_MEANT.values())
"""Keywords of which a plan says all that they mean."""
_ANYTHING: Final[tuple[Json, ...]] = (
    "text",
    1,
    True,
    {"key": "value"},
    [1, "two"],
    0.5,
    {},
    [],
    "",
)


@dataclass(frozen=True, slots=True)
class Values:
    """An option: some values, all of which are known."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ArrayOption:
    """An option: an array."""

    items: "Plan | None"
    """``None`` where there may be none."""
    shortest: int
    longest: int | None
    is_unique: bool


@dataclass(frozen=True, slots=True)
class ObjectOption:
    """An option: an object."""

    properties: Mapping[str, "Plan"]
    required: frozenset[str]
    extra: "Plan | None"
    """Values under names that are not declared; ``None`` where there may be none."""
    is_map: bool
    """Whether it declares no names, or types the values under all others."""


Option = Values | Texts | Numbers | ArrayOption | ObjectOption


class Plan:
    """What the schemas of one value allow together."""

    def __init__(self, plans: "Plans", schemas: Sequence[Any]) -> None:
        self._plans, self._schemas = plans, schemas
        self._whole = schemas[0] if len(schemas) == 1 else {"allOf": list(schemas)}

    def allows(self, value: Json) -> bool:
        """Return whether a value is allowed.

        Raises:
            RecursionError: the schemas only lead to themselves, or their branches are too many.
        """
        return self._plans.validators.allows(self._whole, value)

    def errors(self, value: Json) -> "list[ValidationError]":
        """Return why a value is not allowed; nothing where it is."""
        return self._plans.validators.errors(self._whole, value)

    @cached_property
    def _alternatives(self) -> list[tuple[Part, ...]]:
        return list(self._plans.expand(self._schemas))

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The ways to satisfy the schemas, null last; none where there is no way."""
        options = [option for parts in self._alternatives for option in self._options(parts)]
        # Null last, because the simplest instance is to show more.
        return tuple(sorted(options, key=lambda option: option == Values((None,))))

    @cached_property
    def is_exact(self) -> bool:
        """Whether every value that the options make is allowed, if those inside are."""
        return all(part.keys() <= _PLANNED for parts in self._alternatives for part in parts)

    def _options(self, parts: Sequence[Part]) -> Iterator[Option]:
        """Yield an option for each type that one combination of schemas allows."""
        lists = [[part["const"]] for part in parts if "const" in part]
        lists += [part["enum"] for part in parts if "enum" in part]
        if lists:
            # By JSON, because to Python 1, 1.0 and True are the same key.
            different = {json.dumps(value, sort_keys=True): value for value in min(lists, key=len)}
            yield Values(tuple(filter(self.allows, different.values())))
            return
        lists = _all(parts, "type")
        # Every integer is a number, so that both together are an integer.
        names = [
            name
            for name in dict.fromkeys(chain.from_iterable(lists))
            if all(name in types or (name == "integer" and "number" in types) for types in lists)
        ]
        if not lists:
            # Of the type that is meant, because nearly no document means all that it allows so.
            meant = (name for name, keys in _MEANT.items() if any(map(keys.intersection, parts)))
            names = [next(meant, "any")]
        for name in names:
            match name:
                case "object":
                    yield from self._objects(parts)
                case "array":
                    items = _all(parts, "items")
                    yield ArrayOption(
                        items=None if False in items else self._plans.plan(*items),
                        shortest=int(max(_all(parts, "minItems"), default=0)),
                        longest=min(_all(parts, "maxItems"), default=None),
                        is_unique=any(_all(parts, "uniqueItems")),
                    )
                case "string":
                    yield Texts(
                        shortest=int(max(_all(parts, "minLength"), default=0)),
                        longest=min(_all(parts, "maxLength"), default=None),
                        patterns=tuple(dict.fromkeys(_all(parts, "pattern"))),
                        format=next(iter(_all(parts, "format")), None),
                    )
                case "integer" | "number":
                    is_integer = name == "integer"
                    above, below = _all(parts, "exclusiveMinimum"), _all(parts, "exclusiveMaximum")
                    low = max(above + _all(parts, "minimum"), default=None)
                    high = min(below + _all(parts, "maximum"), default=None)
                    yield Numbers(
                        is_integer=is_integer,
                        low=ceil(low) if is_integer and low is not None else low,
                        high=floor(high) if is_integer and high is not None else high,
                        excluded=frozenset(above + below),
                        format=next(iter(_all(parts, "format")), None),
                    )
                case "boolean":
                    yield Values((True, False))
                case "null":
                    yield Values((None,))
                case _:
                    yield Values(_ANYTHING)

    def _objects(self, parts: Sequence[Part]) -> Iterator[ObjectOption]:
        declared = dict.fromkeys(name for part in parts for name in part.get("properties", ()))
        required = dict.fromkeys(name for part in parts for name in part.get("required", ()))
        properties: dict[str, Plan] = {}
        for name in declared | required:
            schemas = [
                part.get("properties", {}).get(name, part.get("additionalProperties", True))
                for part in parts
            ]
            if False not in schemas:
                properties[name] = self._plans.plan(*schemas)
            elif name in required:
                return
        extra = _all(parts, "additionalProperties")
        yield ObjectOption(
            properties=properties,
            required=frozenset(required),
            extra=None if False in extra else self._plans.plan(*extra),
            is_map=not declared or any(isinstance(schema, dict) for schema in extra),
        )

    @property
    def why_nothing(self) -> str:
        """Why there is no value, where none can be drawn."""
        return reason_in([*self._schemas]) or (
            "nothing was found that the document allows, or every value leads on without end"
        )


class Plans:
    """Makes the plans of one document, each once."""

    def __init__(self) -> None:
        self.validators = Validators()
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._expansions = 0

    def plan(self, *schemas: Any) -> Plan:
        """Return the plan of a value for which all ``schemas`` hold, as they were translated."""
        different = {id(s): s for s in schemas if s is not True and s != {}} or {0: True}
        # By identity, because a schema that holds itself has no end to compare.
        key = tuple(different)
        if key not in self._plans:
            self._plans[key] = Plan(self, tuple(different.values()))
        return self._plans[key]

    def expand(
        self, schemas: Sequence[Any], around: frozenset[int] = frozenset()
    ) -> Iterator[tuple[Part, ...]]:
        """Yield what holds together, without composition, for each choice of branches."""
        self._expansions = self._expansions + 1 if around else 0
        parts: dict[int, Part] = {}
        unions: list[list[Any]] = []
        waiting = list(reversed(schemas))
        while waiting:
            schema = waiting.pop()
            if schema is False or (isinstance(schema, dict) and schema.get("not") == {}):
                return
            if schema is True or id(schema) in parts or id(schema) in around:
                continue
            parts[id(schema)] = schema
            waiting += reversed(schema.get("allOf", ()))
            unions += [schema[key] for key in ("oneOf", "anyOf") if key in schema]
        if self._expansions > _MAX_EXPANSIONS:
            unions = []
        inside = around | parts.keys()
        chosen = [
            [whole for branch in branches for whole in self.expand([branch], inside)]
            for branches in unions
        ]
        combinations: Iterable[tuple[tuple[Part, ...], ...]] = product(*chosen)
        if prod(map(len, chosen)) > _MAX_OPTIONS:
            longest = max(map(len, chosen))
            combinations = zip(*(islice(cycle(wholes), longest) for wholes in chosen), strict=True)
        for combination in combinations:
            yield (*parts.values(), *chain.from_iterable(combination))


def _all(parts: Sequence[Part], key: str) -> list[Any]:
    return [part[key] for part in parts if key in part]
