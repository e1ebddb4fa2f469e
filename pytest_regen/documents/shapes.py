"""What a schema allows as one flat value; how two meet (``allOf``) and join (``oneOf``)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pytest_regen.documents.places import DefectLog, JsonNode, Pointer

SchemaKind = Literal["object", "enum", "map", "array", "scalar", "union", "any", "nothing"]

Makeup = tuple[str, frozenset[Any]]
"""A keyword and the parts that it joins: places, or what was put together in turn."""

Variant = tuple[str, frozenset[str]]
"""A branch of a union: its name and the names of its properties."""

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})


@dataclass(frozen=True, slots=True)
class Shape:
    """What a schema allows once its references and compositions are merged."""

    types: frozenset[str] | None = None
    """JSON types without ``null``; ``None`` where the schema does not say."""
    null: bool | None = None
    """Whether null is allowed; ``None`` where the schema does not say."""
    format: str | None = None
    enum: tuple[Any, ...] | None = None
    """The values it is limited to, without null."""
    labels: tuple[str, ...] | None = None
    """One name for each value of ``enum``."""
    is_const: bool = False
    """Whether ``enum`` is the single value of a ``const``."""
    properties: Mapping[str, tuple[JsonNode, ...]] = field(default_factory=dict)
    """For each property the schemas that all hold for it, the outermost first."""
    required: frozenset[str] = frozenset()
    extra: tuple[JsonNode, ...] = ()
    """Schemas of the values under names that are not listed."""
    items: tuple[JsonNode, ...] = ()
    """Schemas that all hold for each item of an array."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """The mappings it was read from, the outermost first: descriptions, limits, defaults."""
    variants: tuple[Variant, ...] = ()
    """The branches of unions whose properties are merged here."""
    options: tuple[JsonNode, ...] = ()
    """The schemas of which a value has one, where that says more than the rest: for languages with
    unions."""
    doubt: str = ""
    """Why it is no single type; then it is read as any value."""

    @property
    def is_only_null(self) -> bool:
        """Whether null is all it allows."""
        nothing_else = self.types == frozenset() or self.enum == ()
        return self.null is True and nothing_else

    @property
    def is_open(self) -> bool:
        """Whether it says nothing about structure: an annotation, or a bare ``required``."""
        is_plain = self.enum is None and not self.properties and not self.options
        return self.types is None and is_plain and not self.doubt


ANYTHING: Final = Shape()
NOTHING: Final = Shape(types=frozenset(), null=False)


def kind_of(shape: Shape) -> SchemaKind:
    """Return what an IR type expression would say of ``shape``."""
    types = shape.types
    if shape.options:
        return "union"
    if shape.doubt or (types == frozenset() and shape.null):
        return "any"
    if shape.enum and not shape.is_const:
        return "enum"
    if types is None:
        return "object" if shape.properties else "scalar" if shape.enum else "any"
    if types == {"object"}:
        return "object" if shape.properties else "map"
    if types == {"array"}:
        return "array"
    return "nothing" if not types else "scalar" if _one_scalar(types) else "any"


def _one_scalar(types: frozenset[str]) -> bool:
    return types <= {"integer", "number"} or (len(types) == 1 and types <= _SCALARS)


def all_of(parts: Sequence[JsonNode], place: Pointer) -> JsonNode:
    """Return ``parts``, which all hold, as one schema; a single part is returned as it stands."""
    return parts[0] if len(parts) == 1 else JsonNode({"allOf": list(parts)}, place)


def makeup(node: JsonNode) -> Makeup | None:
    """Return what a schema was put together from by merging; ``None`` if it stands in the document.

    Equal for schemas that say the same: neither order nor repetition nor nesting of one keyword
    within itself counts.
    """
    if not isinstance(node.value, dict) or len(node.value) != 1:
        return None
    # What merging put together holds nodes; what stands in the document holds plain values.
    ((keyword, parts),) = node.value.items()
    if not isinstance(parts, list) or not all(isinstance(part, JsonNode) for part in parts):
        return None
    inside: set[Any] = set()
    for part in parts:
        inner = makeup(part)
        if inner is not None and inner[0] == keyword:
            inside |= inner[1]
        else:
            inside.add(inner or part.place)
    return keyword, frozenset(inside)


# --- allOf --------------------------------------------------------------------------------------


def meet(outer: Shape, inner: Shape) -> Shape:
    """Return what both allow; what ``outer`` says in words goes before ``inner``."""
    types = outer.types if inner.types is None else inner.types
    doubt = outer.doubt or inner.doubt
    if outer.types is not None and inner.types is not None:
        # What must be both is a whole number where one says "number" and the other "integer".
        types = outer.types & inner.types
        numbers = {"integer", "number"}
        if outer.types & numbers and inner.types & numbers and numbers <= outer.types | inner.types:
            types |= {"integer"}
        if not types and outer.types and inner.types:
            both = (" or ".join(sorted(part)) for part in (outer.types, inner.types))
            doubt = doubt or f"it must be {' and '.join(both)} at once"
    enum, labels = (inner if outer.enum is None else outer).enum, outer.labels or inner.labels
    if outer.enum is not None and inner.enum is not None:
        values = set(map(_identity, inner.enum))
        enum = tuple(value for value in outer.enum if _identity(value) in values)
        # Fewer values have no labels, because labels are told apart by their order alone.
        labels = outer.labels if len(enum) == len(outer.enum) else None
        if not enum and outer.enum and inner.enum:
            doubt = doubt or "no value is in all of its enums"
    # The outermost word on null counts where it allows it: that is how documents are written.
    null = False if False in (outer.null, inner.null) else inner.null
    properties = dict(outer.properties)
    for name, nodes in inner.properties.items():
        nodes_before = properties.get(name, ())
        # A base that is inherited twice says the same of a property twice.
        places = {node.place for node in nodes_before}
        properties[name] = nodes_before + tuple(node for node in nodes if node.place not in places)
    options: tuple[JsonNode, ...] = ()
    if bool(outer.options) != bool(inner.options):
        union, other = (outer, inner) if outer.options else (inner, outer)
        has_parts = other.properties or other.items or other.extra or other.enum is not None
        is_typed = other.types is not None and not (union.types or {""}) <= other.types
        # A part beside a union would have to be put into each option, which no option says.
        if not (has_parts or is_typed or other.doubt) and other.required <= union.required:
            options = union.options
    return Shape(
        types=types,
        null=True if outer.null is True else null,
        format=outer.format or inner.format,
        enum=enum,
        labels=labels,
        is_const=enum is not None and (outer.is_const or inner.is_const),
        properties=properties,
        required=outer.required | inner.required,
        extra=outer.extra + inner.extra,
        items=outer.items + inner.items,
        notes=outer.notes + inner.notes,
        variants=outer.variants + inner.variants,
        options=options,
        doubt=doubt,
    )


def _identity(value: Any) -> tuple[str, str]:
    """Return what tells values apart: ``1`` is not ``True``, and a list can be looked up."""
    return type(value).__name__, repr(value)


# --- oneOf, anyOf -------------------------------------------------------------------------------


def live_branches(branches: Iterable[Shape]) -> list[Shape]:
    """Return the branches of a union that allow something beside null."""
    return [branch for branch in branches if not branch.is_only_null and branch != NOTHING]


def has_options(joined: Shape, live: Sequence[Shape]) -> bool:
    """Return whether a union of ``live`` says more than ``joined``, the one type made of them.

    Scalars of one kind are that scalar, and enums of one kind one enum. A branch that says nothing
    about structure is no option: it adds a limit to what stands beside it.
    """
    kinds = {kind_of(branch) for branch in live}
    is_open = any(branch.doubt or not branch.types for branch in live if kind_of(branch) == "any")
    # A branch that allows anything makes the union anything.
    if len(live) < 2 or is_open or "nothing" in kinds:
        return False
    if kinds == {"enum"}:
        return len(types_of(joined.enum or ())) > 1
    return kind_of(joined) not in {"scalar", "enum"}


def join(branches: Sequence[Shape], place: Pointer) -> Shape:
    """Return what any of ``branches`` allows; merged properties stand below ``place``."""
    live = live_branches(branches)
    null = True if any(branch.null for branch in branches) else None
    # Bare required lists: of which fields one has to be there.
    if not live or all(branch.is_open for branch in live):
        return Shape(null=null, required=_in_all(live))
    types = frozenset().union(
        *(branch.types or types_of(branch.enum or ()) or {"object"} for branch in live)
    )
    types -= {"integer"} if "number" in types else frozenset()
    # One that does not say what it is allows anything, unless it says what an object must have.
    has_any = any(b.types is None and b.enum is None and not b.required for b in live)
    doubt = next((branch.doubt for branch in live if branch.doubt), "")
    if doubt:
        joined = Shape(doubt=doubt)
    elif all(branch.enum is not None for branch in live):
        joined = _join_enums(live)
    elif has_any:
        joined = ANYTHING
    elif types == {"object"}:
        joined = _join_objects(live, place)
    elif types == {"array"}:
        items: list[JsonNode] = []
        if all(branch.items for branch in live):
            items = [all_of(branch.items, place / n / "items") for n, branch in enumerate(live)]
        joined = Shape(types, items=(_one_of(items, place / "items"),) if items else ())
    elif _one_scalar(types):
        joined = Shape(types, format=_shared_format(live))
    else:
        joined = Shape(doubt=f"it may be {' or '.join(sorted(types))}")
    return replace(joined, null=null)


def _one_of(parts: Iterable[JsonNode], place: Pointer) -> JsonNode:
    """Return one schema of those of ``parts`` that differ."""
    different = {(part.place, isinstance(part.value, bool)): part for part in parts}
    several = JsonNode({"oneOf": list(different.values())}, place)
    return several if len(different) > 1 else next(iter(different.values()))


def _shared_format(live: Sequence[Shape]) -> str | None:
    formats = {branch.format for branch in live}
    return formats.pop() if len(formats) == 1 else None


def types_of(values: Iterable[Any]) -> frozenset[str]:
    """Return the JSON types of values."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return frozenset(names.get(type(value), "object") for value in values)


def is_whole(value: Any) -> bool:
    """Return whether a value is a number without a fraction."""
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def _join_enums(live: Sequence[Shape]) -> Shape:
    values: dict[tuple[str, str], Any] = {}
    names: list[str] = []
    for branch in live:
        for index, value in enumerate(branch.enum or ()):
            if _identity(value) not in values:
                values[_identity(value)] = value
                names.extend(branch.labels[index : index + 1] if branch.labels else ())
    types = {branch.types for branch in live}
    return Shape(
        types=types.pop() if len(types) == 1 else None,
        enum=tuple(values.values()),
        labels=tuple(names) if len(names) == len(values) else None,
        format=_shared_format(live),
    )


def _join_objects(live: Sequence[Shape], place: Pointer) -> Shape:
    maps = [branch for branch in live if branch.extra and not branch.properties]
    # No language has a type for an object whose other names are data in one of two cases.
    if maps and len(maps) < len(live):
        return Shape(doubt="it may be a map or an object with named properties")
    parts: dict[str, list[JsonNode]] = {}
    for n, branch in enumerate(live):
        for name, nodes in branch.properties.items():
            node = all_of(nodes, place / n / "properties" / name)
            parts.setdefault(name, []).append(node)
    word = "additionalProperties"
    extra = [all_of(branch.extra, place / n / word) for n, branch in enumerate(maps)]
    inside = place / "properties"
    return Shape(
        types=frozenset({"object"}),
        properties={name: (_one_of(nodes, inside / name),) for name, nodes in parts.items()},
        required=_in_all(live),
        extra=(_one_of(extra, place / word),) if extra else (),
    )


def _in_all(branches: Sequence[Shape]) -> frozenset[str]:
    return frozenset.intersection(*(b.required for b in branches)) if branches else frozenset()


_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_UNREAD: Final = ("not", "if", "dependentSchemas", "$dynamicRef")
_LABELS: Final = ("x-enumNames", "x-enum-varnames", "x-enumVarnames", "x-enum-names")


def own_shape(keywords: Mapping[str, Any], node: JsonNode, log: DefectLog) -> Shape:
    """Return the shape that ``keywords`` describe; ``node`` gives them their places."""
    if not keywords:
        return ANYTHING
    for key, word in {"properties": dict, "required": list, "enum": list}.items():
        if keywords.get(key) is not None and not isinstance(keywords[key], word):
            # Of ``required`` no error, because documents say it of single fields: ``true``.
            log.review(node.place / key, f"{key} is of another type; it is ignored")
            keywords = {**keywords, key: None}
    values, labels, has_null = _values(keywords, node, log)
    types, null = _types(keywords, values, has_null=has_null, node=node, log=log)
    beside = "additionalProperties"
    values_of = [node.child(beside)] if isinstance(keywords.get(beside), dict) else []
    values_of = [part for part in values_of if part.value]
    if isinstance(keywords.get("patternProperties"), dict):
        patterns = node.child("patternProperties")
        values_of += [patterns.child(key) for key in sorted(patterns.value)]
    extra = _any_of(values_of, node.place / beside)
    items_of = [*node.entries("prefixItems" if "prefixItems" in keywords else "items")]
    items_of += [node.child("items")] if isinstance(keywords.get("items"), dict) else []
    items = _any_of(items_of, node.place / "items")
    properties: dict[str, tuple[JsonNode, ...]] = {}
    if isinstance(keywords.get("properties"), dict):
        inside = node.child("properties")
        properties = {name: (inside.child(name),) for name in inside.value}
    # Many documents leave the type of an object out: plaid.yml, JSON Schemas of tools.
    if types is None and (properties or extra):
        types = frozenset({"object"})
    if types is None and ("items" in keywords or "prefixItems" in keywords):
        types = frozenset({"array"})
    # They say which values go together, for which no target language has a type.
    for key in _UNREAD:
        if key in keywords:
            log.review(node.place, f"{key} is not read")
    return Shape(
        types=types,
        null=null,
        format=keywords["format"] if isinstance(keywords.get("format"), str) else None,
        enum=values,
        labels=labels,
        is_const="const" in keywords,
        properties=properties,
        required=frozenset(
            name for name in keywords.get("required") or () if isinstance(name, str)
        ),
        extra=extra,
        items=items,
        notes=(keywords,),
    )


def _types(
    keywords: Mapping[str, Any],
    values: tuple[Any, ...] | None,
    *,
    has_null: bool,
    node: JsonNode,
    log: DefectLog,
) -> tuple[frozenset[str] | None, bool | None]:
    """Return the types without null, and whether null is one of them."""
    declared = keywords.get("type", [])
    listed = declared if isinstance(declared, list) else [declared]
    names = {"string" if name == "file" else name for name in listed if isinstance(name, str)}
    unknown = sorted({str(name) for name in listed} - _TYPES - {"null", "file"})
    null = "null" in names if listed and not unknown else True if "null" in names else None
    words = [keywords[key] for key in ("nullable", "x-nullable") if key in keywords]
    # That null is not allowed says nothing: it only repeats what holds without the word.
    if True in words or (has_null and not words):
        null = True
    elif null is None and values is not None:
        null = False
    if unknown:
        log.review(node.place, f"no JSON type: {', '.join(unknown):.80}; read as any value")
    return frozenset(names - {"null"}) if listed and not unknown else None, null


def _values(
    keywords: Mapping[str, Any], node: JsonNode, log: DefectLog
) -> tuple[tuple[Any, ...] | None, tuple[str, ...] | None, bool]:
    """Return the values of ``enum`` or ``const`` without null, their labels, and null's."""
    values = [keywords["const"]] if "const" in keywords else keywords.get("enum")
    if not values:
        return None, None, False
    named = [value for value in values if value is not None]
    labels: list[str] | None = None
    for key in _LABELS if "const" not in keywords else ():
        names = keywords.get(key)
        if isinstance(names, list) and len(names) == len(values):
            names = [name for name, value in zip(names, values, strict=True) if value is not None]
        if isinstance(names, list) and len(names) == len(named):
            labels = labels or list(map(str, names))
        elif names is not None:
            log.review(node.place, f"{key} does not have one name per value; it is ignored")
    # A value that stands twice has the first of its names, because there is one member for both.
    first: dict[tuple[str, str], int] = {}
    for index, value in enumerate(named):
        first.setdefault(_identity(value), index)
    kept_labels = None if labels is None else tuple(labels[i] for i in first.values())
    return tuple(named[i] for i in first.values()), kept_labels, None in values


def _any_of(parts: list[JsonNode], place: Pointer) -> tuple[JsonNode, ...]:
    """Return ``parts`` as no schema or one."""
    return (JsonNode({"anyOf": parts}, place / "anyOf"),) if len(parts) > 1 else tuple(parts)
