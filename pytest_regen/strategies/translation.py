"""Schemas of a document as JSON Schema 2020-12, so that ``jsonschema`` decides what is allowed.

What OpenAPI and older drafts write in their own way is rewritten once: ``nullable``, limits that
are exclusive by a boolean, tuples, integer formats, what is only read or only written. What is no
keyword, or has a value that none can have, is left out.

References become the very mapping that they lead to: a schema that contains itself does so in
memory, and is followed only as deep as a value is.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pytest_regen.documents.document import Document
from pytest_regen.documents.ir import usual_format
from pytest_regen.documents.places import JsonNode
from pytest_regen.documents.reading import BrokenReference
from pytest_regen.strategies.patterns import UnreadablePatternError, to_python

Direction = Literal["response", "request"]
"""Which way the JSON goes: a server never answers with what is only written."""

FORMAT_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
}
"""The least and the greatest integer of a format."""

_NUMERIC: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "minContains", "maxContains"),
)
_SINGLE: Final = (
    *("additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_ONLY_REFERS: Final = frozenset({"$ref", "description", "summary", "title"})
_ONLY_CONSTANT: Final = frozenset({"const", "title", "description", "deprecated"})
_UNIONS: Final = ("oneOf", "anyOf")
_HIDING: Final[Mapping[Direction, str]] = {"response": "writeOnly", "request": "readOnly"}


class Translation:
    """The schemas of one document, each translated once.

    Args:
        document: where they stand.
        direction: what does not travel that way is left out.
        has_subtypes: whether a schema with a discriminator stands for those that extend it.
    """

    def __init__(
        self, document: Document, *, direction: Direction = "response", has_subtypes: bool = True
    ) -> None:
        self._document = document
        self._hiding = _HIDING[direction]
        self._has_subtypes = has_subtypes
        self._is_old = document.version.startswith(("2", "3.0"))
        self.tags: dict[int, dict[str, list[Any]]] = {}
        """By identity of a schema: the values that a property has there, as a union says."""
        self._made: dict[tuple[int, bool], dict[str, Any]] = {}
        self._read: dict[int, Any] = {}
        """Schemas as they were read, by identity: they have to stay for it to mean them."""
        self._hidden: dict[int, set[str]] = {}
        self._requiring: list[tuple[int, list[str]]] = []
        self._waiting: list[tuple[JsonNode, dict[str, Any], frozenset[int]]] = []

    def schema(self, node: JsonNode) -> Any:
        """Return a schema that a type was read from: a mapping, or a boolean."""
        # Written for a type it is that type, not one of those that extend it.
        translated = self._of(node, frozenset({id(node.value)}))
        while self._waiting:
            inner, schema, family = self._waiting.pop()
            try:
                self._fill(inner, schema, family)
            except UnreadablePatternError as error:
                # What needs it cannot be drawn, what does not is drawn without.
                schema.clear()
                schema.update({"not": {}, "$comment": str(error)})
        while self._requiring:
            # Only now is it known what all schemas that hold together hide.
            key, names = self._requiring.pop()
            names[:] = [name for name in names if name not in self._hidden.get(key, ())]
        return translated

    def add_tags(self) -> None:
        """Note what the discriminators of the document make of the schemas that they map to."""
        for node in self._document.named_schemas.values():
            subtypes = self._document.subtypes.of(node)
            for value, target in subtypes.mapped:
                words = self.tags.setdefault(id(target.value), {})
                words.setdefault(subtypes.word, []).append(value)

    def _of(self, node: JsonNode, family: frozenset[int]) -> Any:
        """Return the translation of a schema; it is filled in later.

        Args:
            node: the schema.
            family: schemas that hold for the same value and are written around it.
        """
        target, passed = node, set()
        # Where a reference leads to that has no say of its own.
        while isinstance(target.value, dict) and "$ref" in target.value:
            if self._document.has_ref_siblings and not target.value.keys() <= _ONLY_REFERS:
                break
            found = self._document.references.target(target)
            # In a circle nothing is said, because each waits for the others.
            if isinstance(found, BrokenReference) or id(found.value) in passed:
                return True
            passed.add(id(found.value))
            target = found
        key = id(target.value)
        if not isinstance(target.value, dict):
            return target.value is not False
        # What a reference leads to is read for all who refer to it, and not as a part of this one.
        inside = family if target is node else frozenset[int]()
        subtypes: list[JsonNode] = []
        is_apart = "discriminator" in target.value and not target.value.keys() & {*_UNIONS}
        if is_apart and self._has_subtypes:
            # Schemas that extend this one by its discriminator.
            extending = self._document.subtypes.of(target).found
            subtypes = [subtype for subtype in extending if "$ref" not in subtype.value]
        identities = {key, *(id(subtype.value) for subtype in subtypes)}
        # Not inside itself, because a subtype that extends it would lead back here without end.
        is_open = bool(subtypes) and family.isdisjoint(identities)
        if (key, is_open) not in self._made:
            schema = self._made[key, is_open] = {}
            self._read[key] = target.value
            if is_open:
                # A list of references, to be read like any other schema.
                schema["anyOf"] = [self._of(subtype, frozenset()) for subtype in subtypes]
            else:
                self._waiting.append((target, schema, inside | {key}))
        return self._made[key, is_open]

    # --- one schema -----------------------------------------------------------------------------

    def _fill(self, node: JsonNode, schema: dict[str, Any], family: frozenset[int]) -> None:
        value = node.value
        if self._is_old and True in (value.get("nullable"), value.get("x-nullable")):
            if value.get("additionalProperties") is False and "properties" not in value:
                schema["type"] = ["null"]  # OpenAPI 3.0 has no other word for it.
                return
            # Whatever else the schema says; last, because the simplest value shows more than null.
            inner: dict[str, Any] = {}
            schema["anyOf"] = [inner, {"type": ["null"]}]
            schema = inner
        schema.update(_scalars(value))
        if "allOf" in value or "required" in value:
            # For all its parts, because one may require what is a property of another.
            together = list(self._family(node))
            hidden = {
                name
                for part in together
                if isinstance(part.value.get("properties"), dict)
                for name in part.value["properties"]
                if self._is_hidden(part.child("properties").child(name))
            }
            for part in together:
                self._hidden.setdefault(id(part.value), set()).update(hidden)
        self._structure(node, schema)
        parts: list[Any] = []
        if "$ref" in value:
            parts.append(self._of(JsonNode({"$ref": value["$ref"]}, node.place), family))
        parts += [self._of(part, family) for part in node.entries("allOf")]
        for keyword in _UNIONS:
            parts += self._union(node, keyword)
        tags = self.tags.get(id(value))
        if tags:
            properties = {name: {"enum": values} for name, values in tags.items()}
            parts.append({"properties": properties, "required": list(tags)})
        if parts:
            schema["allOf"] = parts

    def _structure(self, node: JsonNode, schema: dict[str, Any]) -> None:
        """Put in what is said of properties and items."""
        # Of no family, because what stands in a property is another value.
        value, nowhere = node.value, frozenset[int]()
        if isinstance(value.get("required"), list):
            names = [name for name in value["required"] if isinstance(name, str)]
            schema["required"] = names
            self._requiring.append((id(value), names))
        for keyword in _SINGLE:
            if isinstance(value.get(keyword), dict | bool):
                schema[keyword] = self._of(node.child(keyword), nowhere)
        if isinstance(value.get("properties"), dict):
            inner = node.child("properties")
            schema["properties"] = {
                name: self._of(inner.child(name), nowhere)
                for name in inner.value
                if not self._is_hidden(inner.child(name))
            }
        if isinstance(value.get("patternProperties"), dict):
            inner = node.child("patternProperties")
            schema["patternProperties"] = {
                to_python(pattern).pattern: self._of(inner.child(pattern), nowhere)
                for pattern in inner.value
            }
        if isinstance(value.get("dependentRequired"), dict):
            schema["dependentRequired"] = value["dependentRequired"]
        first, following = "prefixItems", "items"
        if isinstance(value.get("items"), list):  # as tuples were written before 2020-12
            first, following = "items", "additionalItems"
        if isinstance(value.get(first), list):
            schema["prefixItems"] = [self._of(item, nowhere) for item in node.entries(first)]
        if isinstance(value.get(following), dict | bool):
            schema["items"] = self._of(node.child(following), nowhere)

    def _union(self, node: JsonNode, keyword: str) -> Iterator[dict[str, Any]]:
        """Yield a union as a schema of its own, if there is one."""
        branches = list(node.entries(keyword))
        constants = [
            branch.value["const"]
            for branch in branches
            if isinstance(branch.value, dict) and _ONLY_CONSTANT >= branch.value.keys() >= {"const"}
        ]
        if constants and len(constants) == len(branches):
            # How documents write enums with titles: many branches are slow to try one by one.
            yield {"enum": constants}
        elif branches:
            # A tag tells branches apart that overlap; and what was merged often is two at once.
            is_merged = any(isinstance(branch, JsonNode) for branch in node.value[keyword])
            is_loose = is_merged or "discriminator" in node.value
            options = [self._of(branch, frozenset()) for branch in branches]
            yield {"anyOf" if is_loose else keyword: options}

    # --- what is only read, or only written -----------------------------------------------------

    def _is_hidden(self, node: JsonNode) -> bool:
        """Return whether a property of this schema does not travel in this direction."""
        return any(part.value.get(self._hiding) is True for part in self._family(node))

    def _family(self, node: JsonNode) -> Iterator[JsonNode]:
        """Yield the schemas that all hold where one does: itself, ``$ref``, ``allOf``."""
        passed, waiting = set(), [node]
        while waiting:
            part = waiting.pop()
            if not isinstance(part.value, dict) or id(part.value) in passed:
                continue
            passed.add(id(part.value))
            if "$ref" in part.value:
                target = self._document.references.target(part)
                waiting += [target] if isinstance(target, JsonNode) else []
                if not self._document.has_ref_siblings:
                    continue
            yield part
            waiting += part.entries("allOf")


def _scalars(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schema says of values that hold no others."""
    schema: dict[str, Any] = {
        key: value[key]
        for key in _NUMERIC
        if isinstance(value.get(key), int | float) and not isinstance(value[key], bool)
    }
    if isinstance(value.get("enum"), list) and value["enum"]:
        schema["enum"] = value["enum"]
    if "const" in value:
        schema["const"] = value["const"]
    if value.get("uniqueItems") is True:
        schema["uniqueItems"] = True
    names = value.get("type") or []
    names = names if isinstance(names, list) else [names]
    names = ["string" if name == "file" else name for name in names]
    if names and all(isinstance(name, str) and name in _TYPES for name in names):
        schema["type"] = names
    for limit in ("minimum", "maximum"):
        exclusive = f"exclusive{limit.capitalize()}"
        if value.get(exclusive) is True and limit in schema:
            schema[exclusive] = schema.pop(limit)
    if isinstance(value.get("format"), str):
        schema["format"] = usual_format(value["format"])
        if schema["format"] in FORMAT_RANGES and "string" not in names:
            low, high = FORMAT_RANGES[schema["format"]]
            schema["minimum"] = max(schema.get("minimum", low), low)
            schema["maximum"] = min(schema.get("maximum", high), high)
    if isinstance(value.get("pattern"), str):
        schema["pattern"] = value["pattern"]
        to_python(value["pattern"])  # because what cannot be read forbids the schema
    return schema


def reason_in(schema: Any) -> str:
    """Return why some schema that another leads to allows nothing; empty where none is so."""
    passed: set[int] = set()
    waiting = [schema]
    for inner in waiting:
        if isinstance(inner, dict | list) and id(inner) not in passed:
            passed.add(id(inner))
            if isinstance(inner, dict) and inner.get("not") == {} and "$comment" in inner:
                return str(inner["$comment"])
            waiting += inner.values() if isinstance(inner, dict) else inner
    return ""
