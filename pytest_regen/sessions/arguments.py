"""What a tool has against the arguments of a request, by its input schema."""

import json
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_regen.extras import needs
from pytest_regen.sessions.scenarios import ScenarioRequest, ToolAnnotation

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

# A schema that says nothing about other names is closed here, because a misspelt argument would
# otherwise pass as one more.
_CLOSED_BY = ("additionalProperties", "unevaluatedProperties")
_SHOWN = 300
"""Characters of a problem that are shown: a message holds the value, which may be long."""


def argument_problems(request: ScenarioRequest, annotation: ToolAnnotation) -> tuple[str, ...]:
    """Return what is wrong with the arguments of ``request`` by the input schema of the tool.

    A name that the schema does not list is unknown unless the schema says that others may be
    there; in objects inside only where it says that they may not. A tool without a schema of its
    arguments has no objections.

    Raises:
        MissingExtraError: jsonschema is not installed.
    """
    if not annotation.input_schema:
        return ()
    validator = _validator(json.dumps(annotation.input_schema))
    problems: dict[str, None] = {}
    # Servers publish what is no JSON Schema: references that lead elsewhere, types that do not
    # exist. What cannot be known has no objections, because a false alarm costs a paid reply.
    with suppress(Exception):
        for error in validator.iter_errors(request.arguments):
            name = error.json_path.removeprefix("$").removeprefix(".")
            place = f"the argument {name!r}" if name else "the arguments"
            problems[f"{place}: {error.message:.{_SHOWN}}"] = None
    return tuple(problems)


@lru_cache(maxsize=256)
def _validator(text: str) -> "Draft202012Validator":
    with needs("openapi", "tools with an input schema"):
        from jsonschema import Draft202012Validator
        from referencing import Registry

    schema = json.loads(text)
    if not any(keyword in schema for keyword in _CLOSED_BY):
        schema["unevaluatedProperties"] = False
    # An empty registry, because jsonschema would fetch what a reference to an address names.
    return Draft202012Validator(schema, registry=Registry())
