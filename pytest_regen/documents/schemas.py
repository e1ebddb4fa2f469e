"""Reads single schemas: their own keywords, the wrappers around them, and their merged shape."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_regen.documents.naming import home_name
from pytest_regen.documents.places import DefectLog, JsonNode, Pointer
from pytest_regen.documents.reading import BrokenReference, References
from pytest_regen.documents.shapes import (
    ANYTHING,
    NOTHING,
    Shape,
    Variant,
    has_options,
    join,
    kind_of,
    live_branches,
    meet,
    own_shape,
    with_options,
)

_MAX_COMPOSITION: Final = 40
"""Levels of ``allOf`` and ``oneOf`` inside one another that are read in one go."""
_MAX_CYCLE: Final = 60
"""Levels at which only schemas that contain themselves are still read."""
_MAX_WORK: Final = 200_000
"""Schemas that are merged for one operation; more is an explosion, not a description."""
MAX_OPTIONS: Final = 64
"""Schemas that one value may be one of; a union of more is read as languages without unions do."""
_STRUCTURE: Final = ("properties", "patternProperties", "required", "items", "prefixItems")
_COMPOSITION: Final = ("$ref", "allOf", "oneOf", "anyOf")
_VOID_BESIDE_REF: Final = frozenset(
    {*_STRUCTURE, *_COMPOSITION, "type", "format", "enum", "const", "additionalProperties"}
    | {"nullable", "x-nullable", "readOnly", "writeOnly", "deprecated", "default"}
)
"""Keywords that would change a field if they counted; others beside a ``$ref`` are no loss."""


@dataclass(frozen=True, slots=True)
class CoreSchema:
    """A schema without the wrappers that only describe it."""

    core: JsonNode
    """The schema that says what the value is; its place is the identity of the type."""
    overlay: tuple[Mapping[str, Any], ...] = ()
    """What the wrappers say, the outermost first: description, null, limits, a narrower enum."""


@dataclass(frozen=True, slots=True)
class _View:
    """One schema taken apart: its own keywords, and the schemas it is composed of."""

    own: Mapping[str, Any]
    node: JsonNode
    """Holds ``own``, so that children have their places."""
    members: tuple[JsonNode, ...] = ()
    """All of them hold: the target of ``$ref`` and the parts of ``allOf``."""

    @property
    def unions(self) -> list[tuple[str, tuple[JsonNode, ...]]]:
        """The ``oneOf`` and ``anyOf`` of this schema with their branches."""
        found = ((key, tuple(self.node.entries(key))) for key in ("oneOf", "anyOf"))
        return [(key, branches) for key, branches in found if branches]


class _TooDeepError(Exception):
    """A schema stands so deep inside compositions that it has to be read by itself first."""

    def __init__(self, read: "_Read", node: JsonNode) -> None:
        super().__init__(str(node.place))
        self.read = read
        self.node = node


_Read = Callable[[JsonNode], Any]


class Schemas:
    """Reads the schemas of one document, each at most once, and collects their defects."""

    def __init__(
        self,
        references: References,
        log: DefectLog,
        *,
        has_ref_siblings: bool,
        has_unions: bool = False,
        subtypes: Container[Pointer] = (),
    ) -> None:
        self._references = references
        self._log = log
        self._has_ref_siblings = has_ref_siblings
        self._has_unions = has_unions
        self._subtypes = subtypes
        """Where schemas stand that are types of their own, even if they only wrap another."""
        self._reduced: dict[Pointer, CoreSchema] = {}
        self._shapes: dict[Pointer, Shape] = {}
        self._cyclic: dict[Pointer, tuple[Shape, frozenset[Pointer]]] = {}
        """Shapes at which a cycle was entered, with the schemas that take part in it."""
        self._open: dict[Pointer, int] = {}
        self._reducing: set[Pointer] = set()
        self._lowest = math.inf
        """Depth of the outermost open schema that was met again; infinite where none was."""
        self._visited: list[Pointer] = []
        self._begun: set[tuple[_Read, Pointer]] = set()
        """What was read by itself because it stands too deep to be read in its place."""
        self._uses: dict[Pointer, dict[Pointer, None]] = {}
        """By place: the places that were read in order to read it."""
        self._readers: list[Pointer] = []
        """The places that are being read, the innermost last."""

    # --- what was read for what -----------------------------------------------------------------

    @contextmanager
    def reading(self, place: Pointer) -> Iterator[None]:
        """Remember that whatever is read inside is read for ``place``."""
        self._note_use(place)
        self._readers.append(place)
        try:
            yield
        finally:
            self._readers.pop()

    def _note_use(self, place: Pointer) -> None:
        self._uses.setdefault(place, {})
        if self._readers:
            self._uses[self._readers[-1]][place] = None

    def places_read(self, start: Pointer, *, stop: Container[Pointer] = ()) -> set[Pointer]:
        """Return the places that were read for ``start``, itself included.

        Args:
            start: of a schema that was read.
            stop: places whose own reading does not count.
        """
        found = {start}
        waiting = [start]
        while waiting:
            for place in self._uses.get(waiting.pop(), ()):
                if place not in found:
                    found.add(place)
                    if place not in stop:
                        waiting.append(place)
        return found

    # --- compositions of any depth --------------------------------------------------------------

    def _read(self, read: _Read, node: JsonNode) -> Any:
        """Return ``read(node)``, noting for which schema it is read.

        Python's stack would not hold a long chain of ``allOf``. Where it grows too high the work
        is given up and begun again further inside; what was read there is known the next time.
        """
        if self._open or self._reducing:
            with self.reading(node.place):
                return read(node)
        waiting = [(read, node)]
        try:
            while True:
                read, node = waiting[-1]
                try:
                    with self.reading(node.place):
                        found = read(node)
                except _TooDeepError as deeper:
                    self._lowest = math.inf
                    waiting.append((deeper.read, deeper.node))
                    continue
                waiting.pop()
                if not waiting:
                    return found
        finally:
            self._begun.clear()

    def _check_depth(self, depth: int, read: _Read, node: JsonNode) -> bool:
        """Return whether ``node`` may be read at this depth of compositions.

        Raises:
            _TooDeepError: it may, once it has been read by itself.
        """
        if depth > _MAX_COMPOSITION and (read, node.place) not in self._begun:
            self._begun.add((read, node.place))
            raise _TooDeepError(read, node)
        return depth <= _MAX_CYCLE

    # --- one schema -----------------------------------------------------------------------------

    def _view(self, node: JsonNode) -> _View:
        value = node.value
        if not isinstance(value, dict):
            if not isinstance(value, bool):
                self._log.error(node.place, f"a schema is a mapping, not {value!r:.40}")
            return _View({}, JsonNode({}, node.place))
        if "$ref" not in value:
            return _View(value, node, tuple(node.entries("allOf")))
        own = {key: inner for key, inner in value.items() if key != "$ref"}
        if not self._has_ref_siblings:
            own = self._without_siblings(own, node)
        target = self._references.target(node)
        if isinstance(target, BrokenReference):
            self._log.error(node.place, target.reason)
            return _View(own, JsonNode(own, node.place))
        rest = JsonNode(own, node.place)
        return _View(own, rest, (target, *rest.entries("allOf")))

    def _without_siblings(self, own: Mapping[str, Any], node: JsonNode) -> dict[str, Any]:
        """Return the description alone: before 3.1 everything else beside a ``$ref`` is void."""
        void = sorted(key for key in own if key in _VOID_BESIDE_REF)
        if void:
            self._log.review(
                node.place, f"{', '.join(void)} beside $ref has no effect before OpenAPI 3.1"
            )
        return {key: own[key] for key in ("description",) if key in own}

    # --- wrappers -------------------------------------------------------------------------------

    def reduce(self, node: JsonNode) -> CoreSchema:
        """Return what ``node`` is about, and what is said around it."""
        if node.place in self._reducing:
            return CoreSchema(node)
        known: CoreSchema = self._read(self._reduce_once, node)
        return known

    def _reduce_once(self, node: JsonNode) -> CoreSchema:
        known = self._reduced.get(node.place)
        if known is None:
            known = self._reduced[node.place] = self._reduce(node)
        return known

    def _reduce(self, node: JsonNode) -> CoreSchema:
        overlay: list[Mapping[str, Any]] = []
        mine: set[Pointer] = set()
        try:
            while True:
                self._note_use(node.place)
                if node.place in self._reducing:
                    if node.place in mine:
                        self._log.error(node.place, "the schema refers to nothing but itself")
                        node = JsonNode(True, node.place)  # noqa: FBT003 - the schema ``true``
                    return CoreSchema(node, tuple(overlay))
                depth = len(self._reducing)
                if depth > _MAX_COMPOSITION and node.place in self._reduced:
                    known = self._reduced[node.place]
                    return CoreSchema(known.core, (*overlay, *known.overlay))
                if not self._check_depth(depth, self._reduce_once, node):
                    return CoreSchema(node, tuple(overlay))
                mine.add(node.place)
                self._reducing.add(node.place)
                view = self._view(node)
                inner = self._inner(view)
                if inner is None:
                    return CoreSchema(node, tuple(overlay))
                notes, node = inner
                overlay += [view.own, *notes]
        finally:
            self._reducing -= mine

    def _inner(self, view: _View) -> tuple[list[Mapping[str, Any]], JsonNode] | None:
        """Return the one schema that ``view`` wraps, if it does no more than describe it."""
        if _has_structure(view.own) or view.node.place in self._subtypes:
            return None
        unions = view.unions
        if view.members and unions:
            return None
        if view.members:
            return self._single_member(view)
        return self._single_branch(unions[0][1]) if len(unions) == 1 else None

    def _single_member(self, view: _View) -> tuple[list[Mapping[str, Any]], JsonNode] | None:
        weighty = [member for member in view.members if not _only_describes(member.value)]
        narrowing = [member for member in weighty if _only_narrows(member.value)]
        targets = [member for member in weighty if member not in narrowing] or narrowing
        if len({self.reduce(member).core.place for member in targets}) != 1:
            return None
        limits = [member for member in narrowing if member is not targets[0]]
        if not self._may_narrow(targets[0], [view.own, *(limit.value for limit in limits)]):
            return None
        around: list[Mapping[str, Any]] = [
            m.value for m in view.members if m not in targets and isinstance(m.value, dict)
        ]
        return around, targets[0]

    def _may_narrow(self, target: JsonNode, limits: list[Mapping[str, Any]]) -> bool:
        """Return whether ``limits`` leave the type of ``target`` as it is."""
        if any("enum" in limit or "const" in limit for limit in limits):
            return kind_of(self.shape(self.reduce(target).core)) == "enum"
        return len(limits) == 1 or kind_of(self.shape(self.reduce(target).core)) in {
            "scalar",
            "enum",
        }

    def _single_branch(
        self, branches: tuple[JsonNode, ...]
    ) -> tuple[list[Mapping[str, Any]], JsonNode] | None:
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

    def shape(self, node: JsonNode) -> Shape:
        """Return the merged shape of a schema."""
        found: Shape = self._read(self._shape, node)
        return found

    def _shape(self, node: JsonNode) -> Shape:
        if node.value is False:
            return NOTHING
        known = self._known(node.place)
        if known is not None:
            return known
        view = self._view(node)
        self._visited.append(node.place)
        if node.place in self._open:
            # Met inside its own composition: what it says by itself already holds there.
            self._lowest = min(self._lowest, self._open[node.place])
            return own_shape(view.own, view.node, self._log)
        depth = len(self._open)
        if not self._check_depth(depth, self._shape, node) or len(self._visited) > _MAX_WORK:
            self._log.error(node.place, "compositions lead back to themselves, or are too many")
            return own_shape(view.own, view.node, self._log)
        start = len(self._visited)
        self._open[node.place] = depth
        try:
            shape = self._merge(view)
        finally:
            del self._open[node.place]
        self._remember(node.place, shape, depth, start)
        return shape

    def _known(self, place: Pointer) -> Shape | None:
        """Return the shape read before, if it would come out the same from here."""
        if place in self._shapes:
            return self._shapes[place]
        shape, members = self._cyclic.get(place, (None, frozenset()))
        if shape is None or members & self._open.keys():
            return None
        self._visited += members
        return shape

    def _remember(self, place: Pointer, shape: Shape, depth: int, start: int) -> None:
        """Keep a shape for later, unless it depends on where its cycle was entered."""
        if self._lowest > depth:
            self._shapes[place] = shape
        elif self._lowest == depth:
            self._cyclic[place] = (shape, frozenset(self._visited[start:]))
            self._lowest = math.inf

    def _merge(self, view: _View) -> Shape:
        inner = ANYTHING
        for member in view.members:
            # The first member's properties come first, and its words count most.
            inner = meet(inner, self.shape(member))
        own = own_shape(view.own, view.node, self._log)
        shape = meet(own, inner)
        order = dict.fromkeys((*inner.properties, *own.properties))
        shape = replace(shape, properties={name: shape.properties[name] for name in order})
        for keyword, branches in view.unions:
            shape = self._with_union(shape, view, keyword, branches)
        return shape

    def _with_union(
        self, shape: Shape, view: _View, keyword: str, branches: tuple[JsonNode, ...]
    ) -> Shape:
        cores = [self.reduce(branch) for branch in branches]
        entered = [self._open[each.core.place] for each in cores if each.core.place in self._open]
        if entered:
            # One branch is a schema that is being read: what it allows is known already.
            self._lowest = min(self._lowest, *entered)
            return shape
        shapes = [self._branch(branch) for branch in branches]
        joined = join(shapes, view.node.place / keyword)
        if kind_of(joined) == "object":
            joined = replace(joined, variants=tuple(_variants(branches, cores, shapes)))
        if self._has_unions and has_options(joined, live := live_branches(shapes)):
            options = _options(branches, cores, shapes)
            if 1 < len(options) <= MAX_OPTIONS:
                joined = with_options(joined, live, options)
        return meet(shape, joined)

    def _branch(self, branch: JsonNode) -> Shape:
        if _is_null(branch):
            return Shape(types=frozenset(), null=True)
        shape = self.shape(branch)
        if shape.is_const and shape.labels is None and isinstance(branch.value, dict):
            title = branch.value.get("title")
            return replace(shape, labels=(title,) if isinstance(title, str) and title else None)
        return shape


def _options(
    branches: Sequence[JsonNode], cores: Sequence[CoreSchema], shapes: Sequence[Shape]
) -> list[JsonNode]:
    """Return the schemas of which a union allows one; a union among them counts as its own."""
    found: dict[Pointer, JsonNode] = {}
    for branch, core, shape in zip(branches, cores, shapes, strict=True):
        if not live_branches([shape]):
            continue
        if shape.options:
            found.update((option.place, option) for option in shape.options)
        else:
            found.setdefault(core.core.place, branch)
    return list(found.values())


def _variants(
    branches: Sequence[JsonNode], cores: Sequence[CoreSchema], shapes: Sequence[Shape]
) -> Iterator[Variant]:
    """Yield the objects that a union merges; none where only one of its branches has properties."""
    found: dict[Pointer, tuple[Variant, ...]] = {}
    for number, (branch, core, shape) in enumerate(zip(branches, cores, shapes, strict=True), 1):
        if shape.properties:
            name = _variant_name(branch, core.core.place, number)
            found[core.core.place] = shape.variants or ((name, frozenset(shape.properties)),)
    if len(found) > 1:
        for variants in found.values():
            yield from variants


def _variant_name(branch: JsonNode, core: Pointer, number: int) -> str:
    """Return the name of a schema that stands somewhere of its own, the title of one in place."""
    if not core.path or not core.path[-1].isdigit():
        return home_name(core)
    title = branch.value.get("title") if isinstance(branch.value, dict) else None
    return title if isinstance(title, str) and title.strip() else f"branch {number}"


def _has_structure(own: Mapping[str, Any]) -> bool:
    """Return whether ``own`` says of which parts a value is made."""
    extra = own.get("additionalProperties")
    return any(own.get(key) for key in _STRUCTURE) or bool(extra and extra is not True)


def _only_describes(value: Any) -> bool:
    """Return whether a member of ``allOf`` says nothing about the type."""
    if not isinstance(value, dict):
        return value is True
    if _has_structure(value) or any(key in value for key in (*_COMPOSITION, "enum", "const")):
        return False
    declared = value.get("type")
    return declared is None or declared == "object"


def _only_narrows(value: Any) -> bool:
    """Return whether a schema is no more than a scalar with limits."""
    if not isinstance(value, dict) or _has_structure(value):
        return False
    is_scalar = value.get("type") not in ("object", "array") and not isinstance(
        value.get("type"), list
    )
    return is_scalar and not any(key in value for key in _COMPOSITION)


def _is_null(node: JsonNode) -> bool:
    """Return whether a branch of a union is null itself."""
    value = node.value
    if not isinstance(value, dict):
        return False
    if value.get("nullable") is True and value.get("additionalProperties") is False:
        # OpenAPI 3.0 has no type for null; this object without properties is how it is written.
        return "properties" not in value
    is_typed = value.get("type") in ("null", ["null"])
    if is_typed or value.get("const", 0) is None:
        return True
    values = value.get("enum")
    return isinstance(values, list) and values == [None]


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
        return True if None in _as_list(own.get("enum")) else None
    return "null" in _as_list(declared)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value is not None else []
