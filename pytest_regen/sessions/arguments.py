"""Whether a request is one that its tool takes, and whether it says what its roles depend on."""

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_regen.canonical import canonical_json
from pytest_regen.sessions.input_schema import InputSchema, among
from pytest_regen.sessions.values import ConditionalRoles, ScenarioRequest, ToolAnnotation

__all__ = ["argument_problems", "undecided_roles"]


def argument_problems(request: ScenarioRequest, annotation: ToolAnnotation) -> tuple[str, ...]:
    """Return what the tool's input schema has against the arguments of ``request``.

    Unknown names, required names, choices and types are looked at, in objects inside as well. A
    name that the schema does not list is unknown unless it says that others may be there; in
    objects inside only where it says that they may not. A tool without a schema of its arguments
    has no objections.
    """
    return tuple(InputSchema(annotation.input_schema or {}).problems(request.arguments))


def undecided_roles(request: ScenarioRequest, annotation: ToolAnnotation) -> tuple[str, ...]:
    """Return for which arguments of ``request`` default roles count, in words.

    That is where roles depend on the value of another argument, and it is missing or a value that
    no condition speaks of. The request is not wrong for that: default roles are the strictest, and
    whoever reads why it was decided so needs to know. Conditions on yes or no have two sides, the
    default one of them, and leave nothing undecided.
    """
    roles = {name: one for name, one in annotation.args.items() if name in request.arguments}
    return tuple(
        f"the roles of {name!r} depend on {missing}: the default ones count"
        for name, one in roles.items()
        if isinstance(one, ConditionalRoles)
        for missing in _undecided(one, request.arguments)
    )


def _undecided(roles: ConditionalRoles, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a choice of roles lacks, once; nothing where a condition holds."""
    conditions = [choice.condition for choice in roles.when]
    if any(_holds(one, arguments) for one in conditions):
        return
    for one in conditions:
        values = _values(one)
        if values and not any(isinstance(value, bool) for value in values):
            name, told = one["arg"], arguments.get(str(one["arg"]))
            is_ = "missing" if told is None else canonical_json(told)
            yield f"{name!r}, which is {is_}"
            return


def _values(condition: Mapping[str, Any]) -> list[Any]:
    found = condition.get("in", [condition["equals"]] if "equals" in condition else [])
    return list(found) if isinstance(found, list | tuple) else []


def _holds(condition: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    value = arguments.get(str(condition["arg"]))
    if "is" not in condition:
        return among(value, _values(condition))
    is_there, is_truthy = value is not None, isinstance(value, list | dict) or bool(value)
    answers = {"present": is_there, "absent": not is_there, "truthy": is_truthy}
    return answers.get(str(condition["is"]), not is_truthy)
