"""What a schema reaches in its document: targets of references, tags of unions, hidden names."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_regen.canonical import canonical_hash, text_hash
from pytest_regen.documents.document import Document
from pytest_regen.documents.ir import EnumValue
from pytest_regen.documents.places import JsonNode
from pytest_regen.documents.reading import BrokenReference

Direction = Literal["response", "request"]
"""Which way the JSON goes: a server never answers with what is only written."""

_SINGLE: Final = (
    *("items", "additionalItems", "additionalProperties", "contains", "propertyNames"),
    *("not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"),
)
_LISTS: Final = ("allOf", "oneOf", "anyOf", "prefixItems", "items")
_MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_HIDING: Final[Mapping[Direction, str]] = {"response": "writeOnly", "request": "readOnly"}
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class Tags:
    """What a discriminator makes of the union beside it."""

    word: str
    """The property that holds the tag."""
    branches: Mapping[EnumValue, Any]
    """The schema of each tag."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A keyword that no instance can be drawn for."""

    where: str
    keyword: str


class Reach:
    """The schemas that one schema leads to, and what is said about them elsewhere.

    Schemas are told apart by identity: each is the very mapping that the file was read into, so
    that whatever was found out here holds wherever ``jsonschema`` comes across it.
    """

    def __init__(
        self,
        document: Document,
        *,
        direction: Direction = "response",
        has_subtypes: bool = True,
    ) -> None:
        self.document = document
        self.steps = 0
        """References and unions that were followed to check the present value."""
        self.unions = 0
        """Unions within one another that the present value is checked in."""
        self._has_subtypes = has_subtypes
        self.unreadable: list[Unreadable] = []
        self.validators: dict[int, Any] = {}
        """Those of jsonschema, by the identity of their schemas."""
        self._hiding = _HIDING[direction]
        self._targets: dict[int, JsonNode] = {}
        self._tags: dict[int, Tags] = {}
        self._own_tags: dict[int, dict[str, list[EnumValue]]] = {}
        self._subtypes: dict[int, list[Any]] = {}
        self._hidden: dict[int, set[str]] = {}
        self._seen: dict[int, Any] = {}
        """All schemas by identity. Those that were put together live here alone."""
        self._unhidden: list[Any] = []
        """Schemas that were not yet searched for what does not travel."""
        self._hashes: dict[int, str] = {}
        self._leads: dict[int, list[Any]] = {}

    def add(self, node: JsonNode, tags: Mapping[str, Any] | None = None) -> Any:
        """Read a schema and what it leads to, and return it as plain JSON.

        Args:
            node: as a type was read from it; several that were merged are joined anew.
            tags: properties that have one value here, because a union elsewhere says so.
        """
        schema = self._plain(node)
        for word, tag in (tags or {}).items():
            self._own_tags.setdefault(id(schema), {}).setdefault(word, [tag])
        for each in self._unhidden:
            self._note_hidden(each)
        self._unhidden.clear()
        return schema

    def _plain(self, node: JsonNode) -> Any:
        merged = isinstance(node.value, dict) and {
            key: inner
            for key, inner in node.value.items()
            if isinstance(inner, list) and inner and all(isinstance(i, JsonNode) for i in inner)
        }
        if not merged:
            self._scan(node)
            return node.value
        # What was merged of several branches may be any of them, and often is two at once.
        schema = {
            "anyOf" if key == "oneOf" else key: [self._plain(part) for part in parts]
            for key, parts in merged.items()
        }
        self._unhidden.append(schema)
        return self._seen.setdefault(id(schema), schema)

    def _scan(self, start: JsonNode) -> None:
        """Find everything that ``start`` leads to."""
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if not isinstance(node.value, dict) or id(node.value) in self._seen:
                continue
            self._seen[id(node.value)] = node.value
            self._unhidden.append(node.value)
            for keyword in _DYNAMIC:
                if keyword in node.value:
                    self.unreadable.append(Unreadable(str(node.place), keyword))
            waiting.extend(self._inner(node))
            if "$ref" in node.value:
                target = self.document.references.target(node)
                if not isinstance(target, BrokenReference):
                    self._targets[id(node.value)] = target
                    waiting.append(target)
            self._note_tags(node)
            waiting.extend(self._note_subtypes(node))

    def _inner(self, node: JsonNode) -> Iterator[JsonNode]:
        """Yield the schemas that are written inside one."""
        value = node.value
        if "$ref" in value and not self.document.has_ref_siblings:
            return
        for key in _SINGLE:
            if isinstance(value.get(key), dict):
                yield node.child(key)
        for key in _LISTS:
            yield from node.entries(key)
        for key in _MAPS:
            if isinstance(value.get(key), dict):
                inner = node.child(key)
                yield from (inner.child(name) for name in inner.value)

    # --- references and discriminators ----------------------------------------------------------

    def target_of(self, schema: Mapping[str, Any]) -> Any:
        """Return what the ``$ref`` of a schema leads to; ``True`` where it leads nowhere."""
        target = self._targets.get(id(schema))
        return True if target is None else target.value

    def _note_tags(self, node: JsonNode) -> None:
        """Note the tags of a union that has a discriminator."""
        discriminator = node.value.get("discriminator")
        if not isinstance(discriminator, dict):
            return
        word = discriminator.get("propertyName")
        branches = [*node.entries("oneOf"), *node.entries("anyOf")]
        if not isinstance(word, str) or not branches:
            return
        targets = [self.document.references.target(b) for b in branches if _is_reference(b.value)]
        found = {t.place: t for t in targets if not isinstance(t, BrokenReference)}
        if len(found) < len(branches):
            return  # Written in place, a branch has no name that could be a tag.
        named: dict[EnumValue, JsonNode] = {}
        mapping = discriminator.get("mapping")
        for tag, reference in (mapping if isinstance(mapping, dict) else {}).items():
            target = self._mapped(reference, node, found.values())
            if target is not None and target.place in found:
                named[tag] = target
        mapped = {target.place for target in named.values()}
        for target in found.values():
            own = self._own_values(target, word)
            if own is not None:
                # What the branch itself says holds, whatever it is called.
                named = {tag: t for tag, t in named.items() if t is not target}
                named |= dict.fromkeys(own, target)
            elif target.place not in mapped and target.place.path:
                named[target.place.path[-1]] = target
        self._tags[id(node.value)] = Tags(word, {tag: t.value for tag, t in named.items()})
        for tag, target in named.items():
            self._own_tags.setdefault(id(target.value), {}).setdefault(word, []).append(tag)

    def _own_values(self, branch: JsonNode, word: str) -> list[EnumValue] | None:
        """Return what a branch of a union says itself that its tag is."""
        self._scan(branch)
        for schema in self.family(branch.value):
            properties = schema.get("properties")
            if isinstance(properties, dict) and word in properties:
                for own in self.family(properties[word]):
                    values = [own["const"]] if "const" in own else own.get("enum")
                    if isinstance(values, list) and values:
                        return [v for v in values if isinstance(v, str | int)]
        return None

    def _mapped(self, reference: Any, node: JsonNode, found: Iterable[JsonNode]) -> JsonNode | None:
        """Return what an entry of a mapping stands for: the name of a schema, or a reference."""
        for target in found:
            if target.place.path and target.place.path[-1] == reference:
                return target
        other = self.document.references.target(JsonNode({"$ref": reference}, node.place))
        return None if isinstance(other, BrokenReference) else other

    def tags_in(self, schema: Mapping[str, Any]) -> Tags | None:
        """Return the tags of a union, by its schema."""
        return self._tags.get(id(schema))

    def tags_of(self, schema: Any) -> Mapping[str, list[EnumValue]]:
        """Return the tags that unions know a schema by, by the property that holds them."""
        return self._own_tags.get(id(schema), {})

    # --- types that others extend ---------------------------------------------------------------

    def _note_subtypes(self, node: JsonNode) -> Iterator[JsonNode]:
        """Note the schemas that extend one by its discriminator, and yield them."""
        is_union = any(isinstance(node.value.get(key), list) for key in ("oneOf", "anyOf"))
        if not self._has_subtypes or is_union or "discriminator" not in node.value:
            return
        found = self.document.subtypes.of(node)
        extending = [each for each in found.found if not _is_reference(each.value)]
        if extending:
            self._subtypes[id(node.value)] = [each.value for each in extending]
        for tag, target in found.mapped:
            if self._own_values(target, found.word) is None:
                tags = self._own_tags.setdefault(id(target.value), {})
                tags.setdefault(found.word, []).append(tag)
        yield from extending

    def subtypes_of(self, schema: Any) -> list[Any]:
        """Return the schemas one of which is meant where a schema is."""
        return self._subtypes.get(id(schema), [])

    # --- what is only read, or only written -----------------------------------------------------

    def is_hidden(self, schema: Any) -> bool:
        """Return whether a property of this schema does not travel in this direction."""
        return any(isinstance(s, dict) and s.get(self._hiding) is True for s in self.family(schema))

    def hidden_in(self, schema: Any) -> set[str]:
        """Return the properties that a schema may require and the JSON lacks all the same."""
        return self._hidden.get(id(schema), set())

    def family(self, schema: Any) -> list[Any]:
        """Return the schemas that all hold where ``schema`` does: itself, ``$ref``, ``allOf``."""
        found: dict[int, Any] = {}
        waiting = [schema]
        while waiting:
            each = waiting.pop()
            if not isinstance(each, dict) or id(each) in found:
                continue
            found[id(each)] = each
            if "$ref" in each:
                waiting.append(self.target_of(each))
                if not self.document.has_ref_siblings:
                    continue
            members = each.get("allOf")
            waiting.extend(members if isinstance(members, list) else ())
        return list(found.values())

    def _note_hidden(self, schema: Any) -> None:
        if "required" not in schema and "allOf" not in schema:
            return
        family = self.family(schema)
        names = {
            name
            for each in family
            if isinstance(each.get("properties"), dict)
            for name, inner in each["properties"].items()
            if self.is_hidden(inner)
        }
        if names:
            for each in family:
                self._hidden.setdefault(id(each), set()).update(names)

    # --- what it is made of ---------------------------------------------------------------------

    def hash(self, schema: Any) -> str:
        """Return the hash of a schema, of everything it leads to, and of how they are read."""
        found = {id(schema): schema}
        waiting = [schema]
        while waiting:
            for target in self._led_to(waiting.pop()):
                if id(target) not in found:
                    found[id(target)] = target
                    waiting.append(target)
        rest = sorted(self._own_hash(each) for each in found.values() if each is not schema)
        tags = dict(self.tags_of(schema))
        return canonical_hash(
            [self.document.version, self._hiding, tags, self._own_hash(schema), rest]
        )

    def _own_hash(self, schema: Any) -> str:
        """Return the hash of what is written in one place."""
        if id(schema) not in self._hashes:
            # Not canonical: a description in YAML may say ``.nan``.
            self._hashes[id(schema)] = text_hash(json.dumps(schema, sort_keys=True))
        return self._hashes[id(schema)]

    def _led_to(self, schema: Any) -> list[Any]:
        """Return the schemas that are referred to from inside another."""
        known = self._leads.get(id(schema))
        if known is None:
            known = self._leads[id(schema)] = []
            for inner in _mappings(schema):
                if id(inner) in self._targets:
                    known.append(self._targets[id(inner)].value)
                known.extend(self.subtypes_of(inner))
        return known


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and "$ref" in value


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings inside a JSON value."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
