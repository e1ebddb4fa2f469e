"""A schema as structured output by the API takes it: every object closed, nothing it would drop."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from pytest_regen.errors import UsageError
from pytest_regen.turns.structured import stable_schema

__all__ = ["closed_schema"]

_REFUSED = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "patternProperties",
    }
)
"""Keywords the API answers with an error."""
_SHAPES = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type"})
"""Keywords of which a schema has one, unless it allows anything."""


def closed_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the JSON Schema of ``adapter`` with every object closed.

    Raises:
        UsageError: the schema would not survive: an object of free form could then hold nothing,
            and bounds are refused. The hint in the prompt works with any schema.
    """
    # As pydantic says it: a stable schema does not tell an object that is open from one that is
    # not said to be closed.
    said = _closed(adapter.json_schema())
    problems = [
        f"{where} {problem}"
        for node, where in _schemas(said, "the reply")
        for problem in _problems(node)
    ]
    if problems:
        raise UsageError(
            "the response type does not survive structured output",
            why="; ".join(problems),
            hint="leave structured_output off: the schema is then told in the prompt and "
            "replies are validated here",
        )
    schema: dict[str, Any] = _closed(stable_schema(adapter))
    return schema


def _closed(node: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        return [_closed(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    found = {key: _closed(inner) for key, inner in node.items()}
    if found.get("type") == "object" and "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def _schemas(node: Mapping[str, Any], where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield ``node`` and every schema in it, each with the name of the field it belongs to."""
    yield node, where
    for key in ("properties", "$defs"):
        for name, inner in node.get(key, {}).items():
            yield from _schemas(inner, name)
    for key in ("allOf", "anyOf", "oneOf", "prefixItems"):
        for inner in node.get(key, ()):
            yield from _schemas(inner, where)
    if "items" in node:
        yield from _schemas(node["items"], where)


def _problems(node: Mapping[str, Any]) -> Iterator[str]:
    if not _SHAPES & node.keys():
        yield "may be anything"
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        yield "is an object of free form"
    for keyword in sorted(_REFUSED & node.keys()):
        yield f"has {keyword}, which the API refuses"
