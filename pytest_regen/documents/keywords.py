"""The keywords of one schema by themselves, without its references and compositions."""

from collections.abc import Mapping
from typing import Any, Final

from pytest_regen.documents.defects import DefectLog
from pytest_regen.documents.places import Node
from pytest_regen.documents.shapes import ANYTHING, Shape

__all__ = ["own_shape"]

_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_UNREAD: Final = ("not", "if", "dependentSchemas", "$dynamicRef")
_LABELS: Final = ("x-enumNames", "x-enum-varnames", "x-enumVarnames", "x-enum-names")


def own_shape(own: Mapping[str, Any], node: Node, log: DefectLog) -> Shape:
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
    own: Mapping[str, Any], node: Node, log: DefectLog
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
    own: Mapping[str, Any], node: Node, log: DefectLog
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
    own: Mapping[str, Any], values: list[Any], node: Node, log: DefectLog
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


def _properties(own: Mapping[str, Any], node: Node, log: DefectLog) -> dict[str, tuple[Node, ...]]:
    properties = own.get("properties")
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        log.error(node.place / "properties", "properties must be a mapping")
        return {}
    inner = node.child("properties")
    return {name: (inner.child(name),) for name in properties}


def _extra(own: Mapping[str, Any], node: Node) -> tuple[Node, ...]:
    found = []
    if isinstance(own.get("additionalProperties"), dict) and own["additionalProperties"]:
        found.append(node.child("additionalProperties"))
    if isinstance(own.get("patternProperties"), dict):
        patterns = node.child("patternProperties")
        found += [patterns.child(key) for key in sorted(patterns.value)]
    if len(found) > 1:
        return (Node({"anyOf": found}, node.place / "additionalProperties" / "anyOf"),)
    return tuple(found)


def _items(own: Mapping[str, Any], node: Node) -> tuple[Node, ...]:
    listed = [node.child("items")] if isinstance(own.get("items"), dict) else []
    tuple_key = "prefixItems" if "prefixItems" in own else "items"
    parts = [*node.entries(tuple_key), *listed]
    if not parts:
        return ()
    if len(parts) > 1:
        return (Node({"anyOf": parts}, node.place / "items" / "anyOf"),)
    return tuple(parts)


def _required(own: Mapping[str, Any], node: Node, log: DefectLog) -> frozenset[str]:
    required = own.get("required")
    if required is None:
        return frozenset()
    if not isinstance(required, list):
        log.review(node.place, "required must be a list of names; it is ignored")
        return frozenset()
    return frozenset(name for name in required if isinstance(name, str))
