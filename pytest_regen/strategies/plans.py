"""Plans: what a schema allows, taken apart so that values can be put together.

A plan is made of all schemas that hold for one value. Each of its options is a way to satisfy them:
one branch for each union, one type. Options are nearly right; a plan that cannot say all of its
schemas (``not``, branches that must not overlap) says so, and its values are checked one by one.
"""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import inf
from typing import Any, Final

from pytest_regen.canonical import canonical_json
from pytest_regen.documents.ir import usual_format
from pytest_regen.strategies.dialects import Check
from pytest_regen.strategies.patterns import search
from pytest_regen.strategies.reach import Reach
from pytest_regen.strategies.scalars import Numbers, Texts

Json = Any
_MAX_OPTIONS: Final = 60
"""Combinations of branches of several unions that are planned; more are gone through side by side,
so that each branch is there all the same."""
_MAX_EXPANSIONS: Final = 2000
"""Branches inside one another that are taken apart for one value; then they are left out, and the
values are what happens to be allowed."""
_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "object": (
        *("properties", "required", "additionalProperties", "patternProperties"),
        *("minProperties", "maxProperties", "propertyNames", "dependentRequired"),
    ),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""What tells the type that is meant where a schema does not say."""
_INEXACT: Final = (
    *("not", "oneOf", "if", "contains", "unevaluatedProperties", "unevaluatedItems"),
    *(
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "propertyNames",
        "patternProperties",
    ),
    *("minProperties", "maxProperties", "discriminator"),
)
"""Keywords whose plans do not say all of what they mean."""
_FEW: Final[Mapping[str, tuple[Json, ...]]] = {"boolean": (True, False), "null": (None,)}
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

    prefix: tuple["Plan", ...]
    """What stands at the first places."""
    items: "Plan | None"
    """What stands after them; ``None`` where nothing may."""
    shortest: int = 0
    longest: int | None = None
    is_unique: bool = False
    contained: "Plan | None" = None
    """What one of the items has to be."""


@dataclass(frozen=True, slots=True)
class ObjectOption:
    """An option: an object."""

    properties: Mapping[str, "Plan"]
    required: frozenset[str]
    extra: "Plan | None"
    """Values under names of one's own; ``None`` where there should be none."""
    names: "Texts | None" = None
    """Names of one's own that fit; ``None`` for any."""
    fewest: int = 0
    most: int | None = None
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """``dependentRequired``: by name, what has to be there as well."""


Option = Values | Texts | Numbers | ArrayOption | ObjectOption


class Plan:
    """What the schemas of one value allow together.

    Attributes:
        schemas: all of them hold.
        check: whether they allow a value.
    """

    def __init__(self, plans: "Plans", schemas: Sequence[Any]) -> None:
        self.schemas = tuple(schemas)
        self._plans = plans
        whole = schemas[0] if len(schemas) == 1 else {"allOf": list(schemas)}
        self.check = Check(plans.reach, whole)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The ways to satisfy the schemas; none where there is no way."""
        found: list[Option] = []
        for parts in self._alternatives:
            found.extend(self._plans.options(parts, self.check))
        if not any(isinstance(o, Values) and None in o.values for o in found):
            # Last: the simplest instance shows more than null.
            found += [Values((None,))] if self.check.allows(None) and self._may_be_null else []
        return tuple(found)

    @cached_property
    def _alternatives(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(self._plans.alternatives(self.schemas))

    @property
    def _may_be_null(self) -> bool:
        """Whether null is said to be allowed, and not only by saying nothing at all."""
        return any(_says_null(part) for parts in self._alternatives for part in parts)

    @cached_property
    def is_exact(self) -> bool:
        """Whether every value that the options make is allowed, if those inside are."""
        return not any(
            key in schema
            for start in self.schemas
            for schema in self._plans.reach.family(start)
            for key in _INEXACT
        )

    @property
    def height(self) -> float:
        """Objects inside one another in the lowest value; infinite if none comes to an end."""
        return self._plans.height(self)


def _stands_for_null(part: Mapping[str, Any]) -> bool:
    """Return whether an object is how OpenAPI 3.0, which has no type for null, writes it."""
    is_empty = part.get("additionalProperties") is False and "properties" not in part
    return is_empty and part.get("nullable") is True


def _says_null(part: Any) -> bool:
    declared = part.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return (
        "null" in names
        or True in (part.get("nullable"), part.get("x-nullable"))
        or (isinstance(part.get("enum"), list) and None in part["enum"])
        or part.get("const", 0) is None
    )


class Plans:
    """Makes the plans of one document, each once.

    Args:
        reach: the schemas, which are given as ``reach.add`` returns them.
        extras: whether names of one's own are put beside declared ones where the document types
            them; a generated type keeps those of a map only.
    """

    def __init__(self, reach: Reach, *, extras: bool) -> None:
        self.reach = reach
        self._extras = extras
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._heights: dict[int, float] = {}
        self._made: list[Any] = []
        """Schemas put together here; they have to stay, because their identity counts."""
        self._tag_schemas: dict[int, Any] = {}
        self._expansions = 0
        self.undeclared: dict[str, None] = {}
        """Names that objects require and do not declare, where such names are not drawn."""

    def plan(self, *schemas: Any) -> Plan:
        """Return the plan of a value for which all ``schemas`` hold."""
        different = {id(s): s for s in schemas if s is not True and s != {}} or {0: True}
        key = tuple(different)
        if key not in self._plans:
            self._plans[key] = Plan(self, tuple(self._tagged(tuple(different.values()))))
        return self._plans[key]

    def _tagged(self, schemas: tuple[Any, ...]) -> Iterator[Any]:
        """Yield schemas, and the tags of those that unions tell from others."""
        for schema in schemas:
            yield schema
            for wrapped in self._wrapped(schema):
                if self.reach.tags_of(wrapped):
                    yield self._tag_schema(wrapped)

    def _wrapped(self, schema: Any) -> Iterator[Any]:
        """Yield a schema, and the one that it only refers to or describes."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) not in seen:
            seen.add(id(schema))
            yield schema
            members = schema.get("allOf")
            if "$ref" in schema:
                schema = self.reach.target_of(schema)
            elif isinstance(members, list) and len(members) == 1 and "properties" not in schema:
                schema = members[0]
            else:
                return

    def _tag_schema(self, schema: Any) -> Any:
        if id(schema) not in self._tag_schemas:
            tags = self.reach.tags_of(schema)
            self._tag_schemas[id(schema)] = {
                "properties": {word: {"enum": list(names)} for word, names in tags.items()},
                "required": list(tags),
            }
        return self._tag_schemas[id(schema)]

    # --- compositions ---------------------------------------------------------------------------

    def alternatives(self, schemas: Sequence[Any]) -> Iterator[tuple[dict[str, Any], ...]]:
        """Yield what holds together, without composition, for each choice of branches."""
        self._expansions = 0
        yield from self._expand(tuple(schemas), frozenset())

    def _expand(
        self, schemas: Sequence[Any], open_: frozenset[int]
    ) -> Iterator[tuple[dict[str, Any], ...]]:
        self._expansions += 1
        parts: dict[int, dict[str, Any]] = {}
        unions: list[list[list[Any]]] = []
        waiting = list(reversed(schemas))
        while waiting:
            schema = waiting.pop()
            if schema is False:
                return
            if not isinstance(schema, dict) or id(schema) in parts or id(schema) in open_:
                continue
            parts[id(schema)] = schema
            if "$ref" in schema:
                waiting.append(self.reach.target_of(schema))
                if not self.reach.document.has_ref_siblings:
                    parts[id(schema)] = {}
                    continue
            members = schema.get("allOf")
            waiting.extend(reversed(members if isinstance(members, list) else ()))
            unions.extend(self._unions(schema))
            subtypes = self.reach.subtypes_of(schema)
            if not any(id(subtype) in parts or id(subtype) in open_ for subtype in subtypes):
                unions.extend([[[s, self._tag_schema(s)] for s in subtypes]] if subtypes else [])
        inside = open_ | parts.keys()
        if self._expansions > _MAX_EXPANSIONS:
            unions = []
        chosen = [
            [found for branch in branches for found in self._expand(branch, inside)]
            for branches in unions
        ]
        own = tuple(part for part in parts.values() if part)
        for combination in _combinations(chosen):
            yield own + tuple(part for found in combination for part in found)

    def _unions(self, schema: dict[str, Any]) -> Iterator[list[list[Any]]]:
        tags = self.reach.tags_in(schema)
        for key in ("oneOf", "anyOf"):
            branches = schema.get(key)
            if not isinstance(branches, list) or not branches:
                continue
            if tags is None:
                yield [[branch] for branch in branches]
            else:
                yield [[b, self._tag_schema(b)] for b in tags.branches.values()]
        if "if" in schema:
            yield [
                [schema["if"], schema.get("then", True)],
                [schema.get("else", True), self._keep({"not": schema["if"]})],
            ]

    def _keep(self, schema: Any) -> Any:
        self._made.append(schema)
        return schema

    # --- one combination ------------------------------------------------------------------------

    def options(self, parts: Sequence[dict[str, Any]], check: Check) -> Iterator[Option]:
        """Yield an option for each type that one combination of schemas allows."""
        known = _known_values(parts)
        if known is not None:
            allowed = tuple(value for value in known if check.allows(value))
            if allowed:
                yield Values(allowed)
            return
        for name in _types(parts):
            match name:
                case "object":
                    option = self._object(parts)
                    if option is not None:
                        yield option
                case "array":
                    yield self._array(parts)
                case "string":
                    yield _texts(parts)
                case "integer" | "number":
                    yield _numbers(parts, is_integer=name == "integer")
                case _:
                    few = _FEW.get(name, _ANYTHING)
                    yield Values(tuple(value for value in few if check.allows(value)))

    def _array(self, parts: Sequence[dict[str, Any]]) -> ArrayOption:
        positions = max((len(_prefix(part)) for part in parts), default=0)
        prefix = [
            self.plan(*(_item_at(part, position) for part in parts))
            for position in range(positions)
        ]
        rest = [_item_at(part, positions) for part in parts]
        contained = [part["contains"] for part in parts if "contains" in part]
        longest = _least(parts, "maxItems")
        shortest = int(_greatest(parts, "minItems") or 0)
        is_open = shortest > positions or contained or any(schema is not True for schema in rest)
        is_closed = positions > 0 and not is_open
        return ArrayOption(
            prefix=tuple(prefix),
            # Nothing is said about what follows a tuple: left out, as undeclared properties are.
            items=None if False in rest or is_closed else self.plan(*rest),
            shortest=shortest,
            longest=None if longest is None else int(longest),
            is_unique=any(part.get("uniqueItems") is True for part in parts),
            contained=self.plan(*rest, *contained) if contained and False not in rest else None,
        )

    def _object(self, parts: Sequence[dict[str, Any]]) -> ObjectOption | None:
        declared = dict.fromkeys(name for part in parts for name in _mapping(part, "properties"))
        required = dict.fromkeys(
            name for part in parts for name in _listed(part, "required") if isinstance(name, str)
        )
        if any(_stands_for_null(part) for part in parts):
            return None
        hidden = {name for part in parts for name in self.reach.hidden_in(part)}
        properties: dict[str, Plan] = {}
        for name in (*declared, *(name for name in required if name not in declared)):
            schemas = [s for part in parts for s in _schemas_of(part, name)]
            if name in hidden or any(self.reach.is_hidden(schema) for schema in schemas):
                hidden.add(name)
            elif False in schemas:
                if name in required:
                    return None
            elif name in declared or self._extras:
                properties[name] = self.plan(*schemas)
            else:
                self.undeclared[name] = None
                return None
        needs = {
            name: frozenset(map(str, names))
            for part in parts
            for name, names in _mapping(part, "dependentRequired").items()
            if isinstance(names, list)
        }
        extra, names = self._extra(parts) if self._extras or not declared else (None, None)
        most = _least(parts, "maxProperties")
        return ObjectOption(
            properties=properties,
            required=frozenset(required) - hidden,
            extra=extra,
            names=names,
            fewest=int(_greatest(parts, "minProperties") or 0),
            most=None if most is None else int(most),
            needs=needs,
        )

    def _extra(self, parts: Sequence[dict[str, Any]]) -> tuple[Plan | None, Texts | None]:
        """Return the plan of values under names of one's own, and of the names."""
        patterns = tuple(
            pattern for part in parts for pattern in _mapping(part, "patternProperties")
        )
        others = [part.get("additionalProperties") for part in parts]
        rules = [
            part["propertyNames"] for part in parts if isinstance(part.get("propertyNames"), dict)
        ]
        names = _texts(rules) if rules else None
        if patterns and (False in others or not any(isinstance(o, dict) for o in others)):
            # One pattern at a time: a name that fits the first is typed by it.
            schemas = [_mapping(part, "patternProperties").get(patterns[0], True) for part in parts]
            return self.plan(*schemas), Texts(patterns=patterns[:1])
        if False in others or any(part.get("unevaluatedProperties") is False for part in parts):
            return None, None
        typed = [other for other in others if isinstance(other, dict)]
        has_names = any(_mapping(part, "properties") for part in parts)
        if not typed and has_names:
            return None, None
        return self.plan(*typed), names

    # --- does it come to an end? ----------------------------------------------------------------

    def height(self, plan: Plan) -> float:
        """Return the objects inside one another in the lowest value of a plan."""
        if id(plan) not in self._heights:
            found = _all_needed(plan)
            heights = {id(each): inf for each in found}
            while True:
                # From below, until nothing changes: a value that needs itself stays infinite.
                fresh = {id(each): _height(each, heights) for each in found}
                if fresh == heights:
                    break
                heights = fresh
            self._heights |= heights
        return self._heights[id(plan)]


def _all_needed(plan: Plan) -> list[Plan]:
    """Return the plans without which no value of ``plan`` is complete, itself included."""
    found = {id(plan): plan}
    waiting = [plan]
    while waiting:
        for option in waiting.pop().options:
            for inner in needed_by(option):
                if id(inner) not in found:
                    found[id(inner)] = inner
                    waiting.append(inner)
    return list(found.values())


def needed_by(option: Option) -> list[Plan]:
    """Return the plans without which no value of ``option`` is complete."""
    match option:
        case ObjectOption(extra=None):
            return [option.properties[name] for name in option.required]
        case ObjectOption():
            needed = [option.properties[name] for name in option.required]
            assert option.extra is not None
            return needed + ([option.extra] if option.fewest > len(needed) else [])
        case ArrayOption():
            inside = [*option.prefix[: option.shortest]]
            if option.items is not None and option.shortest > len(inside):
                inside.append(option.items)
            return inside + ([option.contained] if option.contained else [])
    return []


def height_of(option: Option) -> float:
    """Return the objects inside one another in the lowest value of an option."""
    inside = max((plan.height for plan in needed_by(option)), default=0)
    return inside + isinstance(option, ObjectOption)


def _height(plan: Plan, heights: Mapping[int, float]) -> float:
    return min(
        (
            isinstance(option, ObjectOption)
            + max((heights[id(inner)] for inner in needed_by(option)), default=0)
            for option in plan.options
        ),
        default=inf,
    )


def _combinations(chosen: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield one of each list: all combinations, or where there are too many, each at least once."""
    if not all(chosen):
        return
    count = 1
    for each in chosen:
        count *= len(each)
    if count <= _MAX_OPTIONS:
        yield from product(*chosen)
        return
    for index in range(max(map(len, chosen))):
        yield tuple(each[index % len(each)] for each in chosen)


# --- keywords -----------------------------------------------------------------------------------


def _known_values(parts: Sequence[dict[str, Any]]) -> list[Json] | None:
    """Return the values of the shortest ``enum`` or ``const``; ``None`` where there is none."""
    lists = [[part["const"]] for part in parts if "const" in part]
    lists += [part["enum"] for part in parts if isinstance(part.get("enum"), list) and part["enum"]]
    if not lists:
        return None
    shortest = min(lists, key=len)
    return list({json.dumps(value, sort_keys=True): value for value in shortest}.values())


def _types(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Return the types that all parts allow, in the order they are named; null comes by itself."""
    found: list[str] | None = None
    for part in parts:
        if not part.get("type"):
            continue
        names = part["type"] if isinstance(part["type"], list) else [part["type"]]
        if not all(isinstance(name, str) for name in names):
            continue
        names = ["string" if name == "file" else name for name in names]
        if not all(name in {*_KEYWORDS, "integer", "boolean", "null"} for name in names):
            continue
        found = names if found is None else _common_types(found, names)
    if found is None:
        meant = [
            name for name in _KEYWORDS if any(key in p for p in parts for key in _KEYWORDS[name])
        ]
        meant = meant or (
            ["string"] if any(isinstance(p.get("format"), str) for p in parts) else []
        )
        return meant[:1] or ["any"]
    return [name for name in found if name != "null"] if set(found) != {"null"} else ["null"]


def _common_types(a: list[str], b: list[str]) -> list[str]:
    common = [name for name in a if name in b]
    if ("integer" in a and "number" in b) or ("number" in a and "integer" in b):
        common.append("integer")
    return list(dict.fromkeys(common))


def _texts(parts: Sequence[dict[str, Any]]) -> Texts:
    longest = _least(parts, "maxLength")
    return Texts(
        shortest=int(_greatest(parts, "minLength") or 0),
        longest=None if longest is None else int(longest),
        patterns=tuple(
            dict.fromkeys(p["pattern"] for p in parts if isinstance(p.get("pattern"), str))
        ),
        format=_format(parts),
        examples=tuple(text for text in _examples(parts) if isinstance(text, str)),
    )


def _numbers(parts: Sequence[dict[str, Any]], *, is_integer: bool) -> Numbers:
    lows = [(p["minimum"], p.get("exclusiveMinimum") is True) for p in parts if _has(p, "minimum")]
    lows += [(p["exclusiveMinimum"], True) for p in parts if _has(p, "exclusiveMinimum")]
    highs = [
        (-p["maximum"], p.get("exclusiveMaximum") is True) for p in parts if _has(p, "maximum")
    ]
    highs += [(-p["exclusiveMaximum"], True) for p in parts if _has(p, "exclusiveMaximum")]
    low, is_above = max(lows, default=(None, False))
    high, is_below = max(highs, default=(None, False))
    return Numbers(
        is_integer=is_integer,
        least=low,
        greatest=None if high is None else -high,
        is_above_least=is_above,
        is_below_greatest=is_below,
        steps=tuple(
            p["multipleOf"] for p in parts if _has(p, "multipleOf") and p["multipleOf"] > 0
        ),
        format=_format(parts),
        examples=tuple(
            value
            for value in _examples(parts)
            if isinstance(value, int | float) and not isinstance(value, bool)
        ),
    )


def _has(part: Mapping[str, Any], key: str) -> bool:
    value = part.get(key)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format(parts: Sequence[dict[str, Any]]) -> str | None:
    named = next((p["format"] for p in parts if isinstance(p.get("format"), str)), None)
    return None if named is None else usual_format(named)


def _examples(parts: Sequence[dict[str, Any]]) -> Iterator[Any]:
    for part in parts:
        yield from (part[key] for key in ("example", "default") if key in part)
        examples = part.get("examples")
        yield from examples if isinstance(examples, list) else ()


def _greatest(parts: Sequence[dict[str, Any]], key: str) -> int | float | None:
    return max((part[key] for part in parts if _has(part, key)), default=None)


def _least(parts: Sequence[dict[str, Any]], key: str) -> int | float | None:
    return min((part[key] for part in parts if _has(part, key)), default=None)


def _mapping(part: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = part.get(key)
    return value if isinstance(value, dict) else {}


def _listed(part: Mapping[str, Any], key: str) -> list[Any]:
    value = part.get(key)
    return value if isinstance(value, list) else []


def _prefix(part: Mapping[str, Any]) -> list[Any]:
    return _listed(part, "prefixItems") or _listed(part, "items")


def _item_at(part: Mapping[str, Any], position: int) -> Any:
    """Return the schema of the item at a place."""
    prefix = _prefix(part)
    if position < len(prefix):
        return prefix[position]
    is_old = isinstance(part.get("items"), list)
    rest = part.get("additionalItems", True) if is_old else part.get("items", True)
    return rest if isinstance(rest, dict | bool) else True


def _schemas_of(part: Mapping[str, Any], name: str) -> Iterator[Any]:
    """Yield the schemas that a part has for the property of a name."""
    found = []
    if name in _mapping(part, "properties"):
        found.append(part["properties"][name])
    for pattern, schema in _mapping(part, "patternProperties").items():
        if search(pattern, name):
            found.append(schema)
    yield from found or [part.get("additionalProperties", True)]


def same_json(value: Json) -> Hashable:
    """Return what is equal for values that are the same JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool) or value is None:
        return ("", value)
    if isinstance(value, str | int | float):
        return value
    return ("json", canonical_json(_numbers_alike(value)))


def _numbers_alike(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_numbers_alike(each) for each in value]
    if isinstance(value, dict):
        return {key: _numbers_alike(each) for key, each in value.items()}
    return value
