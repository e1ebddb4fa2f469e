"""Reads single schemas: their own keywords, the wrappers around them, and their merged shape."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_regen.documents.defects import DefectLog
from pytest_regen.documents.places import Node, Place
from pytest_regen.documents.references import Broken, References
from pytest_regen.documents.shapes import ANYTHING, NOTHING, Shape, join, kind_of, meet

__all__ = ["Reduced", "Schemas", "allows_null"]

_MAX_COMPOSITION: Final = 60
"""Levels of ``allOf`` and ``oneOf`` inside one another that are followed."""
_MAX_WORK: Final = 200_000
"""Schemas that are merged for one operation; more is an explosion, not a description."""
_STRUCTURE: Final = ("properties", "patternProperties", "required", "items", "prefixItems")
_COMPOSITION: Final = ("$ref", "allOf", "oneOf", "anyOf")
_VOID_BESIDE_REF: Final = frozenset(
    {*_STRUCTURE, *_COMPOSITION, "type", "format", "enum", "const", "additionalProperties"}
    | {"nullable", "x-nullable", "readOnly", "writeOnly", "deprecated", "default"}
)
"""Keywords that would change a field if they counted; others beside a ``$ref`` are no loss."""
_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_UNREAD: Final = ("not", "if", "dependentSchemas", "$dynamicRef")
_LABELS: Final = ("x-enumNames", "x-enum-varnames", "x-enumVarnames", "x-enum-names")


@dataclass(frozen=True, slots=True)
class Reduced:
    """A schema without the wrappers that only describe it."""

    core: Node
    """The schema that says what the value is; its place is the identity of the type."""
    overlay: tuple[Mapping[str, Any], ...] = ()
    """What the wrappers say, the outermost first: description, null, limits, a narrower enum."""


@dataclass(frozen=True, slots=True)
class _View:
    """One schema taken apart: its own keywords, and the schemas it is composed of."""

    own: Mapping[str, Any]
    node: Node
    """Holds ``own``, so that children have their places."""
    members: tuple[Node, ...] = ()
    """All of them hold: the target of ``$ref`` and the parts of ``allOf``."""

    @property
    def unions(self) -> list[tuple[str, tuple[Node, ...]]]:
        """The ``oneOf`` and ``anyOf`` of this schema with their branches."""
        found = ((key, tuple(self.node.entries(key))) for key in ("oneOf", "anyOf"))
        return [(key, branches) for key, branches in found if branches]


class Schemas:
    """Reads the schemas of one document, each at most once, and collects their defects."""

    def __init__(self, references: References, log: DefectLog, *, has_ref_siblings: bool) -> None:
        self._references = references
        self._log = log
        self._has_ref_siblings = has_ref_siblings
        self._reduced: dict[Place, Reduced] = {}
        self._shapes: dict[Place, Shape] = {}
        self._open: dict[Place, int] = {}
        self._reducing: set[Place] = set()
        self._lowest = math.inf
        self._work = 0

    # --- one schema -----------------------------------------------------------------------------

    def _view(self, node: Node) -> _View:
        value = node.value
        if not isinstance(value, dict):
            if not isinstance(value, bool):
                self._log.error(node.place, f"a schema is a mapping, not {value!r:.40}")
            return _View({}, Node({}, node.place))
        if "$ref" not in value:
            return _View(value, node, tuple(node.entries("allOf")))
        own = {key: inner for key, inner in value.items() if key != "$ref"}
        if not self._has_ref_siblings:
            own = self._without_siblings(own, node)
        target = self._references.target(node)
        if isinstance(target, Broken):
            self._log.error(node.place, target.reason)
            return _View(own, Node(own, node.place))
        rest = Node(own, node.place)
        return _View(own, rest, (target, *rest.entries("allOf")))

    def _without_siblings(self, own: Mapping[str, Any], node: Node) -> dict[str, Any]:
        """Return the description alone: before 3.1 everything else beside a ``$ref`` is void."""
        void = sorted(key for key in own if key in _VOID_BESIDE_REF)
        if void:
            self._log.review(
                node.place, f"{', '.join(void)} beside $ref has no effect before OpenAPI 3.1"
            )
        return {key: own[key] for key in ("description",) if key in own}

    # --- wrappers -------------------------------------------------------------------------------

    def reduce(self, node: Node) -> Reduced:
        """Return what ``node`` is about, and what is said around it."""
        if node.place in self._reducing:
            return Reduced(node)
        known = self._reduced.get(node.place)
        if known is None:
            known = self._reduced[node.place] = self._reduce(node)
        return known

    def _reduce(self, node: Node) -> Reduced:
        overlay: list[Mapping[str, Any]] = []
        mine: set[Place] = set()
        try:
            while True:
                if node.place in self._reducing or len(self._reducing) > _MAX_COMPOSITION:
                    if node.place in mine:
                        self._log.error(node.place, "the schema refers to nothing but itself")
                        node = Node(True, node.place)  # noqa: FBT003 - the schema ``true``
                    return Reduced(node, tuple(overlay))
                mine.add(node.place)
                self._reducing.add(node.place)
                view = self._view(node)
                inner = self._inner(view)
                if inner is None:
                    return Reduced(node, tuple(overlay))
                notes, node = inner
                overlay += [view.own, *notes]
        finally:
            self._reducing -= mine

    def _inner(self, view: _View) -> tuple[list[Mapping[str, Any]], Node] | None:
        """Return the one schema that ``view`` wraps, if it does no more than describe it."""
        if _has_structure(view.own):
            return None
        unions = view.unions
        if view.members and unions:
            return None
        if view.members:
            return self._single_member(view)
        return self._single_branch(unions[0][1]) if len(unions) == 1 else None

    def _single_member(self, view: _View) -> tuple[list[Mapping[str, Any]], Node] | None:
        weighty = [member for member in view.members if not _only_describes(member.value)]
        narrowing = [member for member in weighty if _only_narrows(member.value)]
        targets = [member for member in weighty if member not in narrowing] or narrowing
        if len({self.reduce(member).core.place for member in targets}) != 1:
            return None
        limits = [member for member in narrowing if member is not targets[0]]
        if not self._may_narrow(targets[0], [view.own, *(limit.value for limit in limits)]):
            return None
        around = [m.value for m in view.members if m not in targets and isinstance(m.value, dict)]
        return around, targets[0]

    def _may_narrow(self, target: Node, limits: list[Mapping[str, Any]]) -> bool:
        """Return whether ``limits`` leave the type of ``target`` as it is."""
        if any("enum" in limit or "const" in limit for limit in limits):
            return kind_of(self.shape(self.reduce(target).core)) == "enum"
        return len(limits) == 1 or kind_of(self.shape(self.reduce(target).core)) in {
            "scalar",
            "enum",
        }

    def _single_branch(
        self, branches: tuple[Node, ...]
    ) -> tuple[list[Mapping[str, Any]], Node] | None:
        live = [branch for branch in branches if not _is_null(branch)]
        if not live:
            return None
        notes: list[Mapping[str, Any]] = [{"nullable": True}] if len(live) < len(branches) else []
        if len(live) == 1:
            return notes, live[0]
        reduced = [self.reduce(branch) for branch in live]
        if len({each.core.place for each in reduced}) > 1:
            return None
        if any(allows_null(each.overlay) for each in reduced):
            notes = [{"nullable": True}]
        return notes, reduced[0].core

    # --- shapes ---------------------------------------------------------------------------------

    def shape(self, node: Node) -> Shape:
        """Return the merged shape of a schema."""
        if node.value is False:
            return NOTHING
        known = self._shapes.get(node.place)
        if known is not None:
            return known
        view = self._view(node)
        self._work += 1
        if node.place in self._open:
            # Met inside its own composition: what it says by itself already holds there.
            self._lowest = min(self._lowest, self._open[node.place])
            return self._own(view)
        depth = len(self._open)
        if depth > _MAX_COMPOSITION or self._work > _MAX_WORK:
            self._log.error(node.place, "compositions are nested too deeply to be merged")
            return self._own(view)
        self._open[node.place] = depth
        shape = self._merged(view)
        del self._open[node.place]
        if self._lowest >= depth:
            # Complete. Inside a cycle the result depends on where the cycle was entered.
            self._lowest = math.inf
            self._shapes[node.place] = shape
        return shape

    def _merged(self, view: _View) -> Shape:
        inner = ANYTHING
        for member in view.members:
            # The first member's properties come first, and its words count most.
            inner = meet(inner, self.shape(member))
        own = self._own(view)
        shape = meet(own, inner)
        order = dict.fromkeys((*inner.properties, *own.properties))
        shape = replace(shape, properties={name: shape.properties[name] for name in order})
        for keyword, branches in view.unions:
            shape = self._with_union(shape, view, keyword, branches)
        return shape

    def _with_union(
        self, shape: Shape, view: _View, keyword: str, branches: tuple[Node, ...]
    ) -> Shape:
        cores = [self.reduce(branch) for branch in branches]
        entered = [self._open[each.core.place] for each in cores if each.core.place in self._open]
        if entered:
            # One branch is a schema that is being read: what it allows is known already.
            self._lowest = min(self._lowest, *entered)
            return shape
        shapes = [self._branch(branch, each) for branch, each in zip(branches, cores, strict=True)]
        return meet(shape, join(shapes, view.node.place / keyword))

    def _branch(self, branch: Node, reduced: Reduced) -> Shape:
        if _is_null(branch):
            return Shape(types=frozenset(), null=True)
        shape = self.shape(branch)
        if shape.is_const and shape.labels is None and isinstance(branch.value, dict):
            title = branch.value.get("title")
            return replace(shape, labels=(title,) if isinstance(title, str) and title else None)
        return shape

    # --- own keywords ---------------------------------------------------------------------------

    def _own(self, view: _View) -> Shape:
        own, node = view.own, view.node
        if not own:
            return ANYTHING
        types, null = self._types(own, node)
        values, labels, null_in_enum = self._values(own, node)
        if own.keys() & {"nullable", "x-nullable"}:
            null = null or True in (own.get("nullable"), own.get("x-nullable"))
        elif null_in_enum:
            null = True
        elif values is not None and null is None:
            null = False
        properties = self._properties(own, node)
        extra = self._extra(own, node)
        if types is None and (properties or extra):
            types = frozenset({"object"})
        items = self._items(own, node)
        if types is None and ("items" in own or "prefixItems" in own):
            types = frozenset({"array"})
        for key in _UNREAD:
            if key in own:
                self._log.review(node.place, f"{key} is not read")
        return Shape(
            types=types,
            null=null,
            format=own["format"] if isinstance(own.get("format"), str) else None,
            enum=values,
            labels=labels,
            is_const="const" in own,
            properties=properties,
            required=self._required(own, node),
            extra=extra,
            items=items,
            notes=(own,),
        )

    def _types(
        self, own: Mapping[str, Any], node: Node
    ) -> tuple[frozenset[str] | None, bool | None]:
        declared = own.get("type")
        if declared is None:
            return None, None
        listed = declared if isinstance(declared, list) else [declared]
        names = {"string" if name == "file" else name for name in listed if isinstance(name, str)}
        unknown = sorted({str(name) for name in listed} - _TYPES - {"null", "file"})
        if unknown:
            self._log.review(
                node.place, f"no JSON type: {', '.join(unknown):.80}; read as any value"
            )
            return None, True if "null" in names else None
        return frozenset(names - {"null"}), "null" in names

    def _values(
        self, own: Mapping[str, Any], node: Node
    ) -> tuple[tuple[Any, ...] | None, tuple[str, ...] | None, bool]:
        """Return the values of ``enum`` or ``const`` without null, their labels, and null's."""
        if "const" in own:
            const = own["const"]
            return (() if const is None else (const,)), None, const is None
        values = own.get("enum")
        if values is None:
            return None, None, False
        if not isinstance(values, list) or not values:
            self._log.review(node.place, "enum must be a list of at least one value; it is ignored")
            return None, None, False
        labels = self._labels(own, values, node)
        first: dict[tuple[str, str], int] = {}
        for index, value in enumerate(values):
            if value is not None:
                first.setdefault((type(value).__name__, repr(value)), index)
        if len(first) + values.count(None) < len(values):
            self._log.review(node.place, "enum holds a value twice")
        kept = first.values()
        return (
            tuple(values[i] for i in kept),
            None if labels is None else tuple(labels[i] for i in kept),
            None in values,
        )

    def _labels(self, own: Mapping[str, Any], values: list[Any], node: Node) -> list[str] | None:
        for key in _LABELS:
            labels = own.get(key)
            if labels is None:
                continue
            if isinstance(labels, list) and len(labels) == len(values):
                return [str(label) for label in labels]
            if isinstance(labels, list) and len(labels) == len(values) - values.count(None):
                names = iter(labels)
                return ["" if value is None else str(next(names)) for value in values]
            self._log.review(node.place, f"{key} does not have one name per value; it is ignored")
        return None

    def _properties(self, own: Mapping[str, Any], node: Node) -> dict[str, tuple[Node, ...]]:
        properties = own.get("properties")
        if properties is None:
            return {}
        if not isinstance(properties, dict):
            self._log.error(node.place / "properties", "properties must be a mapping")
            return {}
        inner = node.child("properties")
        return {name: (inner.child(name),) for name in properties}

    def _extra(self, own: Mapping[str, Any], node: Node) -> tuple[Node, ...]:
        found = []
        if isinstance(own.get("additionalProperties"), dict) and own["additionalProperties"]:
            found.append(node.child("additionalProperties"))
        if isinstance(own.get("patternProperties"), dict):
            patterns = node.child("patternProperties")
            found += [patterns.child(key) for key in sorted(patterns.value)]
        if len(found) > 1:
            return (Node({"anyOf": found}, node.place / "additionalProperties" / "anyOf"),)
        return tuple(found)

    def _items(self, own: Mapping[str, Any], node: Node) -> tuple[Node, ...]:
        listed = [node.child("items")] if isinstance(own.get("items"), dict) else []
        tuple_key = "prefixItems" if "prefixItems" in own else "items"
        parts = [*node.entries(tuple_key), *listed]
        if not parts:
            return ()
        if len(parts) > 1:
            return (Node({"anyOf": parts}, node.place / "items" / "anyOf"),)
        return tuple(parts)

    def _required(self, own: Mapping[str, Any], node: Node) -> frozenset[str]:
        required = own.get("required")
        if required is None:
            return frozenset()
        if not isinstance(required, list):
            self._log.review(node.place, "required must be a list of names; it is ignored")
            return frozenset()
        return frozenset(name for name in required if isinstance(name, str))


def _has_structure(own: Mapping[str, Any]) -> bool:
    """Return whether ``own`` says of which parts a value is made."""
    return any(own.get(key) for key in _STRUCTURE) or isinstance(
        own.get("additionalProperties"), dict
    )


def _only_describes(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a member of ``allOf`` says nothing about the type."""
    if not isinstance(value, dict):
        return value is True
    if _has_structure(value) or any(key in value for key in (*_COMPOSITION, "enum", "const")):
        return False
    return value.get("type", "object") == "object"


def _only_narrows(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a schema is no more than a scalar with limits."""
    if not isinstance(value, dict) or _has_structure(value):
        return False
    is_scalar = value.get("type") not in ("object", "array") and not isinstance(
        value.get("type"), list
    )
    return is_scalar and not any(key in value for key in _COMPOSITION)


def _is_null(node: Node) -> bool:
    """Return whether a branch of a union is null itself."""
    value = node.value
    if not isinstance(value, dict):
        return False
    has_null_const = "const" in value and value["const"] is None
    return value.get("type") in ("null", ["null"]) or has_null_const or value.get("enum") == [None]


def allows_null(notes: Iterable[Mapping[str, Any]]) -> bool | None:
    """Return what the wrappers of a schema say about null; ``None`` if they say nothing."""
    said = [word for word in map(_null_of, notes) if word is not None]
    return None if not said else True in said


def _null_of(own: Mapping[str, Any]) -> bool | None:
    for key in ("nullable", "x-nullable"):
        if isinstance(own.get(key), bool):
            return bool(own[key])
    declared = own.get("type")
    if declared is None:
        return True if None in _listed(own.get("enum")) else None
    return "null" in _listed(declared)


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, list) else [value] if value is not None else []
