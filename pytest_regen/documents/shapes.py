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
    return _kind_of_types(types, has_properties=bool(shape.properties)) if types else "nothing"


def _kind_of_types(types: frozenset[str], *, has_properties: bool) -> SchemaKind:
    if types == {"object"}:
        return "object" if has_properties else "map"
    if types == {"array"}:
        return "array"
    return "scalar" if _one_scalar(types) else "any"


def _one_scalar(types: frozenset[str]) -> bool:
    return types <= {"integer", "number"} or (len(types) == 1 and types <= _SCALARS)


def as_one_schema(
    keyword: Literal["allOf", "oneOf"], parts: Sequence[JsonNode], place: Pointer
) -> JsonNode:
    """Return ``parts`` as one schema at ``place``; a single part is returned as it stands."""
    return parts[0] if len(parts) == 1 else JsonNode({keyword: list(parts)}, place)


def makeup(node: JsonNode) -> Makeup | None:
    """Return what a schema was put together from by merging; ``None`` if it stands in the document.

    Equal for schemas that say the same: neither order nor repetition nor nesting of one keyword
    within itself counts.
    """
    if not isinstance(node.value, dict) or len(node.value) != 1:
        return None
    ((keyword, parts),) = node.value.items()
    if not isinstance(parts, list) or not all(isinstance(part, JsonNode) for part in parts):
        return None
    inside: set[Any] = set()
    for part in parts:
        found = makeup(part)
        if found is None:
            inside.add(part.place)
        elif found[0] == keyword:
            inside |= found[1]
        else:
            inside.add(found)
    return keyword, frozenset(inside)


# --- allOf --------------------------------------------------------------------------------------


def meet(outer: Shape, inner: Shape) -> Shape:
    """Return what both allow; what ``outer`` says in words goes before ``inner``."""
    types = _common_types(outer.types, inner.types)
    doubt = outer.doubt or inner.doubt
    if types == frozenset() and outer.types and inner.types:
        doubt = (
            doubt or f"it must be {_list_types(outer.types)} and {_list_types(inner.types)} at once"
        )
    enum, labels = _common_values(outer, inner)
    if enum == () and outer.enum and inner.enum:
        doubt = doubt or "no value is in all of its enums"
    return Shape(
        types=types,
        null=_common_null(outer, inner),
        format=outer.format or inner.format,
        enum=enum,
        labels=labels,
        is_const=enum is not None and (outer.is_const or inner.is_const),
        properties=_common_properties(outer.properties, inner.properties),
        required=outer.required | inner.required,
        extra=outer.extra + inner.extra,
        items=outer.items + inner.items,
        notes=outer.notes + inner.notes,
        variants=outer.variants + inner.variants,
        options=_common_options(outer, inner),
        doubt=doubt,
    )


def _common_options(outer: Shape, inner: Shape) -> tuple[JsonNode, ...]:
    """Return the options of a union that the other side only describes; none where it narrows it.

    What is said beside a union holds for each option, and no option says it by itself.
    """
    if bool(outer.options) == bool(inner.options):
        return ()
    union, other = (outer, inner) if outer.options else (inner, outer)
    has_parts = other.properties or other.items or other.extra or other.enum is not None
    if has_parts or other.doubt or not other.required <= union.required:
        return ()
    return union.options if other.types is None or (union.types or {""}) <= other.types else ()


def _common_types(a: frozenset[str] | None, b: frozenset[str] | None) -> frozenset[str] | None:
    if a is None or b is None:
        return b if a is None else a
    common = a & b
    if ("integer" in a and "number" in b) or ("number" in a and "integer" in b):
        common |= {"integer"}
    return common


def _common_null(outer: Shape, inner: Shape) -> bool | None:
    """The outermost word counts where it allows null: that is how documents are written."""
    if outer.null is True:
        return True
    return False if False in (outer.null, inner.null) else inner.null


def _common_values(
    outer: Shape, inner: Shape
) -> tuple[tuple[Any, ...] | None, tuple[str, ...] | None]:
    if outer.enum is None or inner.enum is None:
        source = inner if outer.enum is None else outer
        return source.enum, source.labels
    kept = [i for i, value in enumerate(outer.enum) if _holds(inner.enum, value)]
    labelled = outer.labels
    if labelled is None and inner.labels is not None:
        names = {_identity(v): n for v, n in zip(inner.enum, inner.labels, strict=True)}
        labelled = tuple(names.get(_identity(value), "") for value in outer.enum)
    values = tuple(outer.enum[i] for i in kept)
    return values, None if labelled is None else tuple(labelled[i] for i in kept)


def _identity(value: Any) -> tuple[str, str]:
    """Return what tells values apart: ``1`` is not ``True``, and a list can be looked up."""
    return type(value).__name__, repr(value)


def _holds(values: Iterable[Any], value: Any) -> bool:
    return any(_identity(other) == _identity(value) for other in values)


def _common_properties(
    outer: Mapping[str, tuple[JsonNode, ...]], inner: Mapping[str, tuple[JsonNode, ...]]
) -> Mapping[str, tuple[JsonNode, ...]]:
    if not outer or not inner:
        return outer or inner
    merged = dict(outer)
    for name, nodes in inner.items():
        known = merged.get(name, ())
        places = {node.place for node in known}
        merged[name] = known + tuple(node for node in nodes if node.place not in places)
    return merged


def _list_types(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))


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
    if len(live) < 2 or is_open or "nothing" in kinds:
        return False
    if kinds == {"enum"}:
        return len(types_of(joined.enum or ())) > 1
    return kind_of(joined) not in {"scalar", "enum"}


def with_options(joined: Shape, live: Sequence[Shape], options: Sequence[JsonNode]) -> Shape:
    """Return ``joined`` as a union of ``options``."""
    types: frozenset[str] = frozenset()
    for branch in live:
        types |= branch.types or types_of(branch.enum or ())
    return replace(joined, types=types, options=tuple(options))


def join(branches: Sequence[Shape], place: Pointer) -> Shape:
    """Return what any of ``branches`` allows; merged properties stand below ``place``."""
    live = live_branches(branches)
    null = True if any(branch.null for branch in branches) else None
    if not live or all(branch.is_open for branch in live):
        return Shape(null=null, required=_in_all(live))
    return replace(_join_live(live, place), null=null)


def _join_live(live: Sequence[Shape], place: Pointer) -> Shape:
    doubts = [branch.doubt for branch in live if branch.doubt]
    if doubts:
        return Shape(doubt=doubts[0])
    if all(branch.enum is not None for branch in live):
        return _join_enums(live)
    types = _join_types(live)
    if types is None:
        return ANYTHING
    if types == {"object"}:
        return _join_objects(live, place)
    return _join_values(live, types, place)


def _join_values(live: Sequence[Shape], types: frozenset[str], place: Pointer) -> Shape:
    """Return the union of branches that are arrays or scalars."""
    if types == {"array"}:
        items = [
            as_one_schema("allOf", branch.items, place / index / "items")
            for index, branch in enumerate(live)
            if branch.items
        ]
        whole = len(items) == len(live)
        joined = (as_one_schema("oneOf", _different(items), place / "items"),) if whole else ()
        return Shape(types, items=joined)
    if _one_scalar(types):
        return Shape(types, format=_shared_format(live))
    return Shape(doubt=f"it may be {_list_types(types)}")


def _shared_format(live: Sequence[Shape]) -> str | None:
    formats = {branch.format for branch in live}
    return formats.pop() if len(formats) == 1 else None


def _join_types(live: Sequence[Shape]) -> frozenset[str] | None:
    """Return the types of all branches; ``None`` if one of them allows anything."""
    types: frozenset[str] = frozenset()
    for branch in live:
        if branch.types is None and branch.enum is None and not branch.required:
            return None
        types |= branch.types or types_of(branch.enum or ()) or {"object"}
    return types - {"integer"} if "number" in types else types


def types_of(values: Iterable[Any]) -> frozenset[str]:
    """Return the JSON types of values."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return frozenset(names.get(type(value), "object") for value in values)


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
    if maps and len(maps) < len(live):
        return Shape(doubt="it may be a map or an object with named properties")
    parts: dict[str, list[JsonNode]] = {}
    for index, branch in enumerate(live):
        for name, nodes in branch.properties.items():
            here = place / index / "properties" / name
            parts.setdefault(name, []).append(as_one_schema("allOf", nodes, here))
    extra = [
        as_one_schema("allOf", branch.extra, place / index / "additionalProperties")
        for index, branch in enumerate(maps)
    ]
    return Shape(
        types=frozenset({"object"}),
        properties={
            name: (as_one_schema("oneOf", _different(nodes), place / "properties" / name),)
            for name, nodes in parts.items()
        },
        required=_in_all(live),
        extra=(as_one_schema("oneOf", _different(extra), place / "additionalProperties"),)
        if maps
        else (),
    )


def _different(nodes: Iterable[JsonNode]) -> list[JsonNode]:
    return list({(node.place, isinstance(node.value, bool)): node for node in nodes}.values())


def _in_all(branches: Sequence[Shape]) -> frozenset[str]:
    return frozenset.intersection(*(b.required for b in branches)) if branches else frozenset()


_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_UNREAD: Final = ("not", "if", "dependentSchemas", "$dynamicRef")
_LABELS: Final = ("x-enumNames", "x-enum-varnames", "x-enumVarnames", "x-enum-names")


def own_shape(own: Mapping[str, Any], node: JsonNode, log: DefectLog) -> Shape:
    """Return the shape that the keywords in ``own`` describe; ``node`` gives them their places."""
    if not own:
        return ANYTHING
    types, null = _types(own, node, log)
    values, labels, null_in_enum = _values(own, node, log)
    if own.keys() & {"nullable", "x-nullable"}:
        null = null or True in (own.get("nullable"), own.get("x-nullable"))
    elif null_in_enum:
        null = True
    elif values is not None and null is None:
        null = False
    properties = _properties(own, node, log)
    extra = _extra(own, node)
    if types is None and (properties or extra):
        types = frozenset({"object"})
    items = _items(own, node)
    if types is None and ("items" in own or "prefixItems" in own):
        types = frozenset({"array"})
    for key in _UNREAD:
        if key in own:
            log.review(node.place, f"{key} is not read")
    return Shape(
        types=types,
        null=null,
        format=own["format"] if isinstance(own.get("format"), str) else None,
        enum=values,
        labels=labels,
        is_const="const" in own,
        properties=properties,
        required=_required(own, node, log),
        extra=extra,
        items=items,
        notes=(own,),
    )


def _types(
    own: Mapping[str, Any], node: JsonNode, log: DefectLog
) -> tuple[frozenset[str] | None, bool | None]:
    declared = own.get("type")
    if declared is None:
        return None, None
    listed = declared if isinstance(declared, list) else [declared]
    names = {"string" if name == "file" else name for name in listed if isinstance(name, str)}
    unknown = sorted({str(name) for name in listed} - _TYPES - {"null", "file"})
    if unknown:
        log.review(node.place, f"no JSON type: {', '.join(unknown):.80}; read as any value")
        return None, True if "null" in names else None
    return frozenset(names - {"null"}), "null" in names


def _values(
    own: Mapping[str, Any], node: JsonNode, log: DefectLog
) -> tuple[tuple[Any, ...] | None, tuple[str, ...] | None, bool]:
    """Return the values of ``enum`` or ``const`` without null, their labels, and null's."""
    if "const" in own:
        const = own["const"]
        return (() if const is None else (const,)), None, const is None
    values = own.get("enum")
    if values is None:
        return None, None, False
    if not isinstance(values, list) or not values:
        log.review(node.place, "enum must be a list of at least one value; it is ignored")
        return None, None, False
    labels = _labels(own, values, node, log)
    first: dict[tuple[str, str], int] = {}
    for index, value in enumerate(values):
        if value is not None:
            first.setdefault((type(value).__name__, repr(value)), index)
    if len(first) + values.count(None) < len(values):
        log.review(node.place, "enum holds a value twice")
    kept = first.values()
    return (
        tuple(values[i] for i in kept),
        None if labels is None else tuple(labels[i] for i in kept),
        None in values,
    )


def _labels(
    own: Mapping[str, Any], values: list[Any], node: JsonNode, log: DefectLog
) -> list[str] | None:
    for key in _LABELS:
        labels = own.get(key)
        if labels is None:
            continue
        if isinstance(labels, list) and len(labels) == len(values):
            return [str(label) for label in labels]
        if isinstance(labels, list) and len(labels) == len(values) - values.count(None):
            names = iter(labels)
            return ["" if value is None else str(next(names)) for value in values]
        log.review(node.place, f"{key} does not have one name per value; it is ignored")
    return None


def _properties(
    own: Mapping[str, Any], node: JsonNode, log: DefectLog
) -> dict[str, tuple[JsonNode, ...]]:
    properties = own.get("properties")
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        log.error(node.place / "properties", "properties must be a mapping")
        return {}
    inner = node.child("properties")
    return {name: (inner.child(name),) for name in properties}


def _extra(own: Mapping[str, Any], node: JsonNode) -> tuple[JsonNode, ...]:
    found = []
    if isinstance(own.get("additionalProperties"), dict) and own["additionalProperties"]:
        found.append(node.child("additionalProperties"))
    if isinstance(own.get("patternProperties"), dict):
        patterns = node.child("patternProperties")
        found += [patterns.child(key) for key in sorted(patterns.value)]
    if len(found) > 1:
        return (JsonNode({"anyOf": found}, node.place / "additionalProperties" / "anyOf"),)
    return tuple(found)


def _items(own: Mapping[str, Any], node: JsonNode) -> tuple[JsonNode, ...]:
    listed = [node.child("items")] if isinstance(own.get("items"), dict) else []
    tuple_key = "prefixItems" if "prefixItems" in own else "items"
    parts = [*node.entries(tuple_key), *listed]
    if not parts:
        return ()
    if len(parts) > 1:
        return (JsonNode({"anyOf": parts}, node.place / "items" / "anyOf"),)
    return tuple(parts)


def _required(own: Mapping[str, Any], node: JsonNode, log: DefectLog) -> frozenset[str]:
    required = own.get("required")
    if required is None:
        return frozenset()
    if not isinstance(required, list):
        log.review(node.place, "required must be a list of names; it is ignored")
        return frozenset()
    return frozenset(name for name in required if isinstance(name, str))
