"""Whether a request is one that its tool takes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.sessions.values import ScenarioRequest, ToolAnnotation

__all__ = ["argument_problems"]


def argument_problems(request: ScenarioRequest, annotation: ToolAnnotation) -> tuple[str, ...]:
    """Return what the tool's input schema has against the arguments of ``request``.

    Names, required arguments and enums are looked at. Types are not: tools convert them, and a
    false alarm costs a paid reply. A tool without a schema of its arguments has no objections.
    """
    return tuple(_problems(request.arguments, annotation.input_schema or {}))


def _problems(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    known = schema.get("properties")
    if not isinstance(known, Mapping) or not known:
        return
    if not schema.get("additionalProperties"):
        for name in arguments:
            if name not in known:
                yield f"the argument {name!r} does not exist; there are {', '.join(sorted(known))}"
    for name in schema.get("required") or ():
        if name not in arguments:
            yield f"the argument {name!r} is required"
    for name, value in arguments.items():
        if isinstance(known.get(name), Mapping):
            yield from _enum_problems(name, value, known[name])


def _enum_problems(name: str, value: Any, schema: Mapping[str, Any]) -> Iterator[str]:  # noqa: ANN401 - JSON
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(allowed, list) and not _among(value, allowed):
        told = ", ".join(canonical_json(one) for one in allowed)
        yield f"the argument {name!r} is {canonical_json(value)}; it takes {told}"
    items = schema.get("items")
    if isinstance(items, Mapping) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _enum_problems(f"{name}[{number}]", item, items)


def _among(value: Any, allowed: list[Any]) -> bool:  # noqa: ANN401 - JSON
    # True is not 1, as it would be in Python.
    return any(canonical_json(value) == canonical_json(one) for one in allowed)
