"""A schema as structured output by the API takes it: every object closed, nothing it would drop."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from pytest_regen.errors import UsageError

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


def closed_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the JSON Schema of ``adapter`` with every object closed.

    Raises:
        UsageError: the schema would not survive: an object of free form could then hold nothing,
            and bounds are refused. The hint in the prompt works with any schema.
    """
    schema: dict[str, Any] = _closed(adapter.json_schema())
    problems = list(_problems(schema, "the reply"))
    if problems:
        raise UsageError(
            "the response type does not survive structured output",
            why="; ".join(problems),
            hint="leave structured_output off: the schema is then told in the prompt and "
            "replies are validated here",
        )
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


def _problems(node: Any, where: str) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        for inner in node:
            yield from _problems(inner, where)
    if not isinstance(node, Mapping):
        return
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        yield f"{where} is an object of free form"
    for keyword in sorted(_REFUSED & node.keys()):
        yield f"{where} has {keyword}, which the API refuses"
    for key, inner in node.items():
        if key in ("properties", "$defs"):
            for name, child in inner.items():
                yield from _problems(child, name)
        elif key not in ("enum", "const", "default", "examples"):
            yield from _problems(inner, where)
