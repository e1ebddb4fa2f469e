"""JSON schemas of structured output: which ones the API accepts, and whether a reply fits."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_regen.emulator.values import ApiError, EmulatedReply
from pytest_regen.turns.wire import EMULATOR_NAME

_MAX_OPTIONAL = 24
_MAX_UNIONS = 16
_FORMATS = {
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
}
_KEYWORDS = {
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "examples",
    "format",
    "items",
    "minItems",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
}
_KEYWORD_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("$defs", "definitions", "properties", "items"), (dict,)),
    **dict.fromkeys(("anyOf", "allOf", "enum", "required"), (list,)),
    **dict.fromkeys(("$ref", "format", "pattern"), (str,)),
    "minItems": (int,),
    "type": (str, list),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def check_schemas(schemas: Iterable[tuple[str, object]]) -> None:
    """Check that the API would compile the schemas of one request, which share its limits.

    Args:
        schemas: each with its place in the request.

    Raises:
        ApiError: 400, naming what is not supported.
    """
    optional = unions = 0
    for where, schema in schemas:
        if not isinstance(schema, dict):
            raise ApiError(f"{where}: Input should be an object")
        for node in _nodes(schema):
            _check_node(node, schema, where)
            optional += len(set(node.get("properties") or {}) - set(node.get("required") or ()))
            unions += "anyOf" in node or isinstance(node.get("type"), list)
        _check_recursion(schema, where)
        _check_complexity(where, optional, unions)


def _check_complexity(where: str, optional: int, unions: int) -> None:
    if optional > _MAX_OPTIONAL:
        raise ApiError(
            f"{where}: Schema has {optional} optional properties; at most {_MAX_OPTIONAL} are "
            "supported. Schema is too complex for compilation."
        )
    if unions > _MAX_UNIONS:
        raise ApiError(
            f"{where}: Schema has {unions} properties with union types; at most {_MAX_UNIONS} are "
            "supported. Schema is too complex for compilation."
        )


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield ``schema`` and every schema inside it; references are not followed."""
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        yield node
        for key in ("properties", "$defs", "definitions"):
            waiting.extend(node.get(key, {}).values())
        for key in ("anyOf", "allOf"):
            waiting.extend(node.get(key, ()))
        if "items" in node:
            waiting.append(node["items"])


def _check_node(node: Mapping[str, Any], root: Mapping[str, Any], where: str) -> None:
    _check_keywords(node, where)
    kind = node.get("type")
    unknown = sorted(set(node) - _KEYWORDS)
    if unknown:
        raise ApiError(f"{where}: For '{kind}' type, {', '.join(unknown)} is not supported")
    if kind == "object" and node.get("additionalProperties") is not False:
        raise ApiError(
            f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )
    if node.get("minItems", 0) not in {0, 1}:
        raise ApiError(
            f"{where}: For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        )
    if "format" in node and node["format"] not in _FORMATS:
        raise ApiError(f"{where}: For 'string' type, format '{node['format']}' is not supported")
    if any(isinstance(value, dict | list) for value in node.get("enum") or ()):
        raise ApiError(f"{where}: Enum values must be strings, numbers, booleans or null")
    if "$ref" in node and _target(root, node["$ref"]) is None:
        raise ApiError(f"{where}: $ref '{node['$ref']}' is not a definition of this schema")
    if any("$ref" in part for part in node.get("allOf") or () if isinstance(part, dict)):
        raise ApiError(f"{where}: $ref inside allOf is not supported")


def _check_keywords(node: object, where: str) -> None:
    """Check the types of keyword values, so that other checks can rely on them."""
    if not isinstance(node, dict):
        raise ApiError(f"{where}: a schema should be an object, not {json.dumps(node)[:60]}")
    for keyword, types in _KEYWORD_TYPES.items():
        if keyword in node and not isinstance(node[keyword], types):
            raise ApiError(f"{where}: '{keyword}' is malformed")
    kinds = node.get("type", [])
    if any(kind not in list(_TYPES) for kind in (kinds if isinstance(kinds, list) else [kinds])):
        raise ApiError(f"{where}: type {json.dumps(kinds)[:60]} is not supported")
    if not all(isinstance(name, str) for name in node.get("required", ())):
        raise ApiError(f"{where}: 'required' is malformed")
    try:
        re.compile(node.get("pattern", ""))
    except re.error as error:
        raise ApiError(f"{where}: pattern is malformed: {error}") from error


def _target(root: Mapping[str, Any], reference: object) -> Mapping[str, Any] | None:
    found = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", str(reference))
    if not found:
        return None
    target = (root.get(found[1]) or {}).get(found[2].replace("~1", "/").replace("~0", "~"))
    return target if isinstance(target, dict) else None


def _check_recursion(root: Mapping[str, Any], where: str) -> None:
    """Refuse recursive definitions."""
    used = {
        reference: {str(node["$ref"]) for node in _nodes(target) if "$ref" in node}
        for node in _nodes(root)
        if (reference := str(node.get("$ref"))) and (target := _target(root, reference))
    }
    for start in used:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for following in used.get(waiting.pop(), set()) - seen:
                seen.add(following)
                waiting.append(following)
        if start in seen:
            raise ApiError(f"{where}: Circular reference detected in schema definitions: {start}")


def check_answer(body: Mapping[str, Any], reply: EmulatedReply) -> None:
    """Check that a reply keeps the promise of structured output.

    Refusals and truncated replies promise nothing, and ``check_schema=False`` turns this off.

    Raises:
        ApiError: 500, without a retry: the script is wrong.
    """
    wanted = (body.get("output_config") or {}).get("format")
    if not wanted or not reply.check_schema or reply.stop_reason != "end_turn":
        return
    if body.get("max_tokens") == 0 or reply.tools:
        return
    schema = wanted["schema"]
    try:
        problem = mismatch(json.loads(reply.text), schema, schema)
    except ValueError as error:
        problem = f"it is no JSON ({error})"
    if problem:
        raise ApiError(
            f"{EMULATOR_NAME}: the scripted reply breaks output_config.format: "
            f"{problem}. Say check_schema=False if that is meant.",
            status=500,
            headers={"x-should-retry": "false"},
        )


def mismatch(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str = "$") -> str:
    """Return where and why ``value`` breaks ``schema``; empty if it does not."""
    if "$ref" in schema:
        return mismatch(value, _target(root, schema["$ref"]) or {}, root, at)
    branches = schema.get("anyOf")
    if branches and all(mismatch(value, branch, root, at) for branch in branches):
        return f"{at} matches no branch of anyOf"
    problems = [mismatch(value, branch, root, at) for branch in schema.get("allOf") or ()]
    problems.append(_scalar_mismatch(value, schema, at))
    if isinstance(value, dict):
        problems.append(_object_mismatch(value, schema, root, at))
    if isinstance(value, list):
        problems.append(_array_mismatch(value, schema, root, at))
    return next(filter(None, problems), "")


def _scalar_mismatch(value: object, schema: Mapping[str, Any], at: str) -> str:
    kinds = schema.get("type")
    names = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if names and not any(_is_a(value, name) for name in names):
        return f"{at} is {json.dumps(value)[:60]}, not {' or '.join(names)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is {json.dumps(value)[:60]}, not one of {json.dumps(schema['enum'])[:200]}"
    if "const" in schema and value != schema["const"]:
        return f"{at} is {json.dumps(value)[:60]}, not {json.dumps(schema['const'])}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{at} does not match {schema['pattern']}"
    return ""


def _is_a(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, ()))


def _object_mismatch(
    value: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str
) -> str:
    properties = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            return f"{at}.{name} is missing"
    for name, inner in value.items():
        if name not in properties:
            if schema.get("additionalProperties") is False:
                return f"{at}.{name} is not in the schema"
        elif problem := mismatch(inner, properties[name], root, f"{at}.{name}"):
            return problem
    return ""


def _array_mismatch(
    value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str
) -> str:
    if len(value) < schema.get("minItems", 0):
        return f"{at} has {len(value)} items, fewer than {schema['minItems']}"
    for number, inner in enumerate(value):
        if problem := mismatch(inner, schema.get("items") or {}, root, f"{at}[{number}]"):
            return problem
    return ""
