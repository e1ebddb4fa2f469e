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
Tags = Mapping[str, Mapping[str, Any]]

FORMAT_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
}
"""The least and the greatest integer of a format."""

_NUMBER: Final = (int, float)
_COPIED: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), int),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), int),
    "multipleOf": _NUMBER,
    "enum": list,
    "pattern": str,
}
"""Keywords that are taken as they stand, with the kinds of values that they may have."""
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
                _forbid(schema, str(error))
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
        target = self._followed(node)
        key = id(target.value)
        if not isinstance(target.value, dict):
            return target.value is not False
        # What a reference leads to is read for all who refer to it, and not as a part of this one.
        inside = family if target is node else frozenset[int]()
        subtypes = self._subtypes(target)
        is_open = bool(subtypes) and family.isdisjoint(id(each.value) for each in subtypes)
        is_open = is_open and key not in family
        if (key, is_open) not in self._made:
            schema = self._made[key, is_open] = {}
            self._read[key] = target.value
            if is_open:
                # A list of references, to be read like any other schema.
                schema["anyOf"] = [self._of(each, frozenset()) for each in subtypes]
            else:
                self._waiting.append((target, schema, inside | {key}))
        return self._made[key, is_open]

    def _followed(self, node: JsonNode) -> JsonNode:
        """Return where a reference leads to that has no say of its own."""
        passed = set()
        while isinstance(node.value, dict) and "$ref" in node.value:
            if self._document.has_ref_siblings and not node.value.keys() <= _ONLY_REFERS:
                break
            target = self._document.references.target(node)
            if isinstance(target, BrokenReference) or id(target.value) in passed:
                return JsonNode(True, node.place)  # noqa: FBT003 - the schema ``true``
            passed.add(id(target.value))
            node = target
        return node

    def _subtypes(self, node: JsonNode) -> list[JsonNode]:
        """Return the schemas that extend one by its discriminator."""
        value = node.value
        if not self._has_subtypes or "discriminator" not in value or value.keys() & {*_UNIONS}:
            return []
        extending = self._document.subtypes.of(node).found
        return [each for each in extending if "$ref" not in each.value]

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
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in value:
                _forbid(schema, f"{keyword} at {node.place} is not followed")
                return
        schema.update(_scalars(value))
        if "allOf" in value or "required" in value:
            self._note_hidden(node)
        parts = self._parts(node, family)
        self._structure(node, schema)
        for keyword in _UNIONS:
            parts += self._union(node, keyword)
        tags = self.tags.get(id(value))
        if tags:
            properties = {name: {"enum": values} for name, values in tags.items()}
            parts.append({"properties": properties, "required": list(tags)})
        if parts:
            schema["allOf"] = parts

    def _parts(self, node: JsonNode, family: frozenset[int]) -> list[Any]:
        """Return what holds as well: the target of a reference, and the parts of ``allOf``."""
        value = node.value
        parts = []
        if "$ref" in value:
            reference = JsonNode({"$ref": value["$ref"]}, node.place)
            self._read[id(reference.value)] = reference.value
            parts.append(self._of(reference, family))
        return parts + [self._of(part, family) for part in node.entries("allOf")]

    def _structure(self, node: JsonNode, schema: dict[str, Any]) -> None:
        """Put in what is said of properties and items."""
        value, nowhere = node.value, frozenset[int]()
        if isinstance(value.get("required"), list):
            names = [name for name in value["required"] if isinstance(name, str)]
            schema["required"] = names
            self._requiring.append((id(value), names))
        for keyword in _SINGLE:
            if isinstance(value.get(keyword), dict | bool):
                schema[keyword] = self._of(node.child(keyword), nowhere)
        for keyword in ("properties", "patternProperties", "dependentSchemas"):
            if isinstance(value.get(keyword), dict):
                inner = node.child(keyword)
                schema[keyword] = {
                    name: self._of(inner.child(name), nowhere)
                    for name in inner.value
                    if keyword != "properties" or not self._is_hidden(inner.child(name))
                }
        if "patternProperties" in schema:
            patterns = schema["patternProperties"]
            schema["patternProperties"] = {to_python(p).pattern: patterns[p] for p in patterns}
        if isinstance(value.get("dependentRequired"), dict):
            schema["dependentRequired"] = value["dependentRequired"]
        is_old_tuple = isinstance(value.get("items"), list)  # as it was written before 2020-12
        first, following = (
            ("items", "additionalItems") if is_old_tuple else ("prefixItems", "items")
        )
        if isinstance(value.get(first), list):
            schema["prefixItems"] = [self._of(each, nowhere) for each in node.entries(first)]
        if isinstance(value.get(following), dict | bool):
            schema["items"] = self._of(node.child(following), nowhere)

    def _union(self, node: JsonNode, keyword: str) -> Iterator[dict[str, Any]]:
        """Yield a union as a schema of its own, if there is one."""
        branches = list(node.entries(keyword))
        constants = [
            each.value["const"]
            for each in branches
            if isinstance(each.value, dict) and _ONLY_CONSTANT >= each.value.keys() >= {"const"}
        ]
        if constants and len(constants) == len(branches):
            # How documents write enums with titles: many branches are slow to try one by one.
            yield {"enum": constants}
        elif branches:
            # A tag tells branches apart that overlap; and what was merged often is two at once.
            is_merged = any(isinstance(branch, JsonNode) for branch in node.value[keyword])
            is_loose = is_merged or "discriminator" in node.value
            options = [self._of(each, frozenset()) for each in branches]
            yield {"anyOf" if is_loose else keyword: options}

    # --- what is only read, or only written -----------------------------------------------------

    def _is_hidden(self, node: JsonNode) -> bool:
        """Return whether a property of this schema does not travel in this direction."""
        return any(each.value.get(self._hiding) is True for each in self._family(node))

    def _note_hidden(self, node: JsonNode) -> None:
        """Note what a schema may require although the JSON lacks it, for all its parts."""
        parts = list(self._family(node))
        names = {
            name
            for part in parts
            if isinstance(part.value.get("properties"), dict)
            for name in part.value["properties"]
            if self._is_hidden(part.child("properties").child(name))
        }
        for part in parts if names else ():
            self._hidden.setdefault(id(part.value), set()).update(names)

    def _family(self, node: JsonNode) -> Iterator[JsonNode]:
        """Yield the schemas that all hold where one does: itself, ``$ref``, ``allOf``."""
        passed, waiting = set(), [node]
        while waiting:
            each = waiting.pop()
            if not isinstance(each.value, dict) or id(each.value) in passed:
                continue
            passed.add(id(each.value))
            if "$ref" in each.value:
                target = self._document.references.target(each)
                waiting += [target] if isinstance(target, JsonNode) else []
                if not self._document.has_ref_siblings:
                    continue
            yield each
            waiting += each.entries("allOf")


def _forbid(schema: dict[str, Any], reason: str) -> None:
    """Let a schema allow nothing: what needs it cannot be drawn, what does not is drawn without."""
    schema.clear()
    schema.update({"not": {}, "$comment": reason})


def _scalars(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schema says of values that hold no others."""
    schema: dict[str, Any] = {
        key: value[key]
        for key, kind in _COPIED.items()
        if isinstance(value.get(key), kind)
        and not isinstance(value[key], bool)
        and value[key] != []
    }
    if schema.get("multipleOf", 1) <= 0:
        del schema["multipleOf"]
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
    if "pattern" in schema:
        to_python(schema["pattern"])  # or it cannot be read, and the schema is forbidden
    return schema


def reason_in(schema: Any) -> str:
    """Return why some schema that another leads to allows nothing; empty where none is so."""
    passed: dict[int, Any] = {}
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict) and id(each) not in passed:
            passed[id(each)] = each
            if each.get("not") == {} and "$comment" in each:
                return str(each["$comment"])
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return ""
