"""Reads single schemas: their own keywords, the wrappers around them, and their merged shape."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final

from pytest_regen.documents import shapes
from pytest_regen.documents.naming import home_name
from pytest_regen.documents.places import DefectLog, JsonNode, Pointer
from pytest_regen.documents.reading import BrokenReference, References

_MAX_COMPOSITION: Final = 100
"""Levels of ``allOf`` and ``oneOf`` inside one another that are read."""
_MAX_WORK: Final = 200_000
"""Schemas that are merged for one operation; more is an explosion, not a description."""
MAX_OPTIONS: Final = 64
"""Schemas that one value may be one of; a union of more is read as languages without unions do."""
_STRUCTURE: Final = ("properties", "patternProperties", "required", "items", "prefixItems")
_COMPOSITION: Final = ("$ref", "allOf", "oneOf", "anyOf")
_SAYS_MORE: Final = frozenset({*_COMPOSITION, "enum", "const"})
_VOID_BESIDE_REF: Final = frozenset(
    {*_STRUCTURE, *_COMPOSITION, "type", "format", "enum", "const", "additionalProperties"}
    | {"nullable", "x-nullable", "readOnly", "writeOnly", "deprecated", "default"}
)
"""Keywords that would change a field if they counted; others beside a ``$ref`` are no loss."""

_Notes = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CoreSchema:
    """A schema without the wrappers that only describe it."""

    core: JsonNode
    """The schema that says what the value is; its place is the identity of the type."""
    overlay: tuple[Mapping[str, Any], ...] = ()
    """What the wrappers say, the outermost first: description, null, limits, a narrower enum."""

    @property
    def narrowed(self) -> tuple[Any, ...] | None:
        """The values that wrappers of an enum leave; ``None`` where they leave all."""
        enums = (note["enum"] for note in self.overlay if isinstance(note.get("enum"), list))
        values = next(enums, None)
        return None if values is None else tuple(v for v in values if v is not None)

    @property
    def allows_null(self) -> bool | None:
        """What the wrappers say about null; ``None`` if they say nothing."""
        allows: bool | None = None
        for note in self.overlay:
            declared, values = note.get("type"), note.get("enum")
            if True in (note.get("nullable"), note.get("x-nullable")):
                return True
            if declared is not None:
                types = declared if isinstance(declared, list) else [declared]
                allows = allows or "null" in types
            elif isinstance(values, list) and None in values:
                return True
        return allows

    def only_value(self, shape: shapes.Shape, kind: shapes.SchemaKind) -> str | int | None:
        """Return the one text, whole number or truth value that is allowed; ``None`` if none.

        Args:
            shape: of the core.
            kind: of the core.
        """
        consts = (note["const"] for note in self.overlay if "const" in note)
        # A const around an enum says more than the enum, and a narrower enum more than the whole.
        values: Sequence[Any] = list(consts)[:1] or self.narrowed or shape.enum or ()
        if kind not in {"enum", "scalar"} or len(values) != 1:
            return None
        value = values[0]
        is_in = shape.enum is None or any(value == allowed for allowed in shape.enum)
        types = shape.types or shapes.types_of([value])
        if "integer" in types and shapes.is_whole(value):
            # YAML and JSON write whole numbers as 1.0, too.
            value = int(value)
        wide = types | {"integer"} if "number" in types else types
        is_of_type = shapes.types_of([value]) <= wide
        return value if is_in and is_of_type and isinstance(value, str | int) else None


@dataclass(frozen=True, slots=True)
class _View:
    """One schema taken apart: its own keywords, and the schemas it is composed of."""

    keywords: Mapping[str, Any]
    node: JsonNode
    """Holds ``keywords``, so that children have their places."""
    members: tuple[JsonNode, ...] = ()
    """All of them hold: the target of ``$ref`` and the parts of ``allOf``."""

    @property
    def unions(self) -> list[tuple[str, tuple[JsonNode, ...]]]:
        """The ``oneOf`` and ``anyOf`` of this schema with their branches."""
        both = ((key, tuple(self.node.entries(key))) for key in ("oneOf", "anyOf"))
        return [(key, branches) for key, branches in both if branches]


@dataclass(eq=False)
class Schemas:
    """Reads the schemas of one document, each at most once, and collects their defects."""

    references: References
    log: DefectLog
    _: KW_ONLY
    has_ref_siblings: bool
    has_unions: bool = False
    subtypes: Container[Pointer] = ()
    """Where schemas stand that are types of their own, even if they only wrap another."""
    _reduced: dict[Pointer, CoreSchema] = field(default_factory=dict)
    _reducing: set[Pointer] = field(default_factory=set)
    _shapes: dict[Pointer, shapes.Shape] = field(default_factory=dict)
    _cyclic: dict[Pointer, shapes.Shape] = field(default_factory=dict)
    """Shapes at which a cycle was entered: what is inside it may be read otherwise."""
    _open: dict[Pointer, int] = field(default_factory=dict)
    """The schemas whose shape is being read, and how deep inside compositions they stand."""
    _lowest: float = math.inf
    """Depth of the outermost open schema that was met again; infinite where none was."""
    _union: int = -1
    """Depth of the innermost open schema of which a union is being read."""
    _work: int = _MAX_WORK
    _wrappers: int = 0
    """How many wrappers are being taken off inside one another."""

    # --- one schema -----------------------------------------------------------------------------

    def _view(self, node: JsonNode) -> _View:
        value = node.value
        if not isinstance(value, dict):
            if not isinstance(value, bool):
                self.log.error(node.place, f"a schema is a mapping, not {value!r:.40}")
            return _View({}, JsonNode({}, node.place))
        if "$ref" not in value:
            return _View(value, node, tuple(node.entries("allOf")))
        keywords = {key: inner for key, inner in value.items() if key != "$ref"}
        if not self.has_ref_siblings:
            # Before 3.1 everything else beside a $ref is void, but for the description.
            if void := sorted(keywords.keys() & _VOID_BESIDE_REF):
                message = f"{', '.join(void)} beside $ref has no effect before OpenAPI 3.1"
                self.log.review(node.place, message)
            keywords = {key: keywords[key] for key in ("description",) if key in keywords}
        beside = JsonNode(keywords, node.place)
        target = self.references.target(node)
        if isinstance(target, BrokenReference):
            self.log.error(node.place, target.reason)
            return _View(keywords, beside)
        return _View(keywords, beside, (target, *beside.entries("allOf")))

    # --- wrappers -------------------------------------------------------------------------------

    def reduce(self, node: JsonNode) -> CoreSchema:
        """Return what ``node`` is about, and what is said around it."""
        start = node.place
        if start in self._reduced:
            return self._reduced[start]
        overlay: _Notes = []
        chain: set[Pointer] = set()
        self._wrappers += 1
        # A schema that an outer call is at work on is met where subtypes list one another.
        while node.place not in self._reducing:
            chain.add(node.place)
            self._reducing.add(node.place)
            view = self._view(node)
            # What is taken off describes the field; what is left is the identity of the type.
            inner = self._inner(view)
            if inner is None:
                break
            notes, node = inner
            overlay += [view.keywords, *notes]
        else:
            if node.place in chain:
                self.log.error(node.place, "the schema refers to nothing but itself")
                node = JsonNode(True, node.place)  # noqa: FBT003 - the schema ``true``
        self._wrappers -= 1
        self._reducing -= chain
        core = CoreSchema(node, tuple(overlay))
        if chain:
            self._reduced[start] = core
        return core

    def _inner(self, view: _View) -> tuple[_Notes, JsonNode] | None:
        """Return the one schema that ``view`` wraps, if it does no more than describe it."""
        is_type = _has_structure(view.keywords) or view.node.place in self.subtypes
        if is_type or self._wrappers + len(self._open) > _MAX_COMPOSITION:
            return None
        unions = view.unions
        if not view.members:
            branches = unions[0][1] if len(unions) == 1 else ()
            live = [branch for branch in branches if not _is_null(branch)]
            reduced = [self.reduce(branch) for branch in live] if len(live) > 1 else []
            if not live or len({part.core.place for part in reduced}) > 1:
                return None
            is_nullable = any(part.allows_null for part in reduced) or len(live) < len(branches)
            notes: _Notes = [{"nullable": True}] if is_nullable else []
            return notes, reduced[0].core if reduced else live[0]
        # A member that says nothing about the type only describes: box.json has hundreds.
        weighty = [
            member
            for member in view.members
            if member.value is not True
            if not isinstance(member.value, dict)
            or _has_structure(member.value)
            or member.value.keys() & _SAYS_MORE
            or member.value.get("type", "object") not in (None, "object")
        ]
        # No more than a scalar with limits.
        narrowing = [
            member
            for member in weighty
            if isinstance(member.value, dict)
            and not _has_structure(member.value)
            and not any(key in member.value for key in _COMPOSITION)
            and not isinstance(declared := member.value.get("type"), list)
            and declared not in ("object", "array")
        ]
        targets = [member for member in weighty if member not in narrowing] or narrowing
        # A single one is not reduced yet: hundreds may wrap one another.
        several = targets[len(targets) == 1 :]
        if unions or not targets or len({self.reduce(part).core.place for part in several}) > 1:
            return None
        # Limits beside a scalar are limits of the field; beside an object they make another type.
        limits = [view.keywords, *(part.value for part in narrowing if part is not targets[0])]
        is_narrower = any("enum" in limit or "const" in limit for limit in limits)
        if is_narrower or len(limits) > 1:
            kind = shapes.kind_of(self.shape(self.reduce(targets[0]).core))
            if kind != "enum" and (is_narrower or kind != "scalar"):
                return None
        # box.json describes references so: allOf of the reference and of a description.
        around = (part.value for part in view.members if part not in targets)
        return [value for value in around if isinstance(value, dict)], targets[0]

    # --- shapes ---------------------------------------------------------------------------------

    def shape(self, node: JsonNode) -> shapes.Shape:
        """Return the merged shape of a schema."""
        place = node.place
        # JSON Schema says so of a property that must not be there.
        if node.value is False:
            return shapes.NOTHING
        if place in self._shapes:
            return self._shapes[place]
        if place in self._cyclic and not self._open:
            return self._cyclic[place]
        view = self._view(node)
        if place in self._open:
            # Met inside its own composition: what it says by itself already holds there.
            if self._union < self._open[place]:
                self.log.review(place, "it is composed of itself by allOf, which adds nothing")
            self._lowest = min(self._lowest, self._open[place])
            return shapes.own_shape(view.keywords, view.node, self.log)
        depth, self._work = len(self._open), self._work - 1
        if depth > _MAX_COMPOSITION or self._work < 0:
            self.log.error(place, "compositions lead back to themselves, or are too many")
            return shapes.own_shape(view.keywords, view.node, self.log)
        self._open[place] = depth
        shape = self._merge(view)
        del self._open[place]
        # Within a cycle a shape depends on where it was entered, and is not remembered.
        if self._lowest > depth:
            self._shapes[place] = shape
        elif self._lowest == depth:
            self._cyclic[place] = shape
            self._lowest = math.inf
        return shape

    def _merge(self, view: _View) -> shapes.Shape:
        inner = shapes.ANYTHING
        for member in view.members:
            # The first member's properties come first, and its words count most.
            inner = shapes.meet(inner, self.shape(member))
        keywords = shapes.own_shape(view.keywords, view.node, self.log)
        shape = shapes.meet(keywords, inner)
        # What is inherited comes first, as people write and read it.
        order = dict.fromkeys((*inner.properties, *keywords.properties))
        shape = replace(shape, properties={name: shape.properties[name] for name in order})
        # A base that lists its children by oneOf is met again in them, which is no fault.
        outer, self._union = self._union, len(self._open) - 1
        for keyword, branches in view.unions:
            cores = [self.reduce(branch) for branch in branches]
            entered = [self._open[c.core.place] for c in cores if c.core.place in self._open]
            if entered:
                # One branch is a schema that is being read: what it allows is known already.
                self._lowest = min(self._lowest, *entered)
            else:
                shape = shapes.meet(shape, self._join(branches, cores, view.node.place / keyword))
        self._union = outer
        return shape

    def _join(
        self, branches: Sequence[JsonNode], cores: Sequence[CoreSchema], place: Pointer
    ) -> shapes.Shape:
        """Return what any of ``branches`` allows, whose reduced schemas are ``cores``."""
        read = []
        for branch in branches:
            is_null = _is_null(branch)
            shape = shapes.Shape(types=frozenset(), null=True) if is_null else self.shape(branch)
            if shape.is_const and shape.labels is None and (title := _title(branch)):
                # OpenAPI 3.1 names the values of an enum so: as titles of consts.
                shape = replace(shape, labels=(title,))
            read.append(shape)
        joined = shapes.join(read, place)
        if shapes.kind_of(joined) == "object":
            joined = replace(joined, variants=_variants(branches, cores, read))
        if self.has_unions and shapes.has_options(joined, live := shapes.live_branches(read)):
            options: dict[Pointer, JsonNode] = {}
            for branch, core, shape in zip(branches, cores, read, strict=True):
                # A union among the branches counts as its own.
                options.update((option.place, option) for option in shape.options)
                if not shape.options and shapes.live_branches([shape]):
                    options.setdefault(core.core.place, branch)
            # Of hundreds of options no language makes a union that people can read.
            if 1 < len(options) <= MAX_OPTIONS:
                types = [part.types or shapes.types_of(part.enum or ()) for part in live]
                all_types = frozenset().union(*types)
                joined = replace(joined, types=all_types, options=tuple(options.values()))
        return joined


def _title(branch: JsonNode) -> str:
    title = branch.value.get("title") if isinstance(branch.value, dict) else None
    return title if isinstance(title, str) else ""


def _variants(
    branches: Sequence[JsonNode], cores: Sequence[CoreSchema], read: Sequence[shapes.Shape]
) -> tuple[shapes.Variant, ...]:
    """Return the objects that a union merges; none where only one of its branches has properties.

    They are called as schemas that stand somewhere of their own, or by the title of one in place.
    """
    merged: dict[Pointer, tuple[shapes.Variant, ...]] = {}
    for number, (branch, reduced, shape) in enumerate(zip(branches, cores, read, strict=True), 1):
        # A branch that only limits (bare required) is no variant.
        if shape.properties:
            place = reduced.core.place
            title = _title(branch)
            name = title if title.strip() else f"branch {number}"
            if not place.path or not place.path[-1].isdigit():
                name = home_name(place)
            merged[place] = shape.variants or ((name, frozenset(shape.properties)),)
    return (
        tuple(part for keywords in merged.values() for part in keywords) if len(merged) > 1 else ()
    )


def _has_structure(keywords: Mapping[str, Any]) -> bool:
    """Return whether ``keywords`` says of which parts a value is made."""
    extra = keywords.get("additionalProperties")
    return any(keywords.get(key) for key in _STRUCTURE) or bool(extra and extra is not True)


def _is_null(node: JsonNode) -> bool:
    """Return whether a branch of a union is null itself."""
    value = node.value
    if not isinstance(value, dict):
        return False
    if value.get("nullable") is True and value.get("additionalProperties") is False:
        # OpenAPI 3.0 has no type for null; this object without properties is how it is written.
        return "properties" not in value
    # OpenAPI 3.1 and JSON Schema: discord has ["null"], openai.yaml anyOf of a type and null.
    is_typed = value.get("type") in ("null", ["null"])
    return is_typed or value.get("const", 0) is None or value.get("enum") == [None]
