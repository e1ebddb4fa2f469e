"""Structured output: the reply satisfies the schema, or the script is told where it does not."""

from typing import Any

import pytest
from emulator_requests import api, body, said, send
from tables import each

from pytest_regen.emulator.schemas import mismatch
from pytest_regen.emulator.values import EmulatedReply

PET = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z]"},
        "kind": {"enum": ["cat", "dog", None]},
        "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Friend"}, "minItems": 1},
        "weight": {"type": ["number", "null"]},
        "species": {"const": "pet"},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"Friend": {"allOf": [{"type": "string"}]}},
}


@each(
    ("value", "problem"),
    [
        ({"name": "Ada"}, ""),
        ({"name": "Ada", "kind": None, "age": 3, "friends": ["x"], "weight": 2}, ""),
        ({}, "$.name is missing"),
        ({"name": "ada"}, "$.name does not match ^[A-Z]"),
        ({"name": "Ada", "kind": "Cat"}, "$.kind is"),
        ({"name": "Ada", "age": "3"}, "$.age matches no branch"),
        ({"name": "Ada", "age": True}, "$.age matches no branch"),
        ({"name": "Ada", "friends": []}, "$.friends has 0 items"),
        ({"name": "Ada", "friends": ["x", 1]}, "$.friends[1] is 1, not string"),
        ({"name": "Ada", "weight": "2"}, '$.weight is "2", not number or null'),
        ({"name": "Ada", "species": "x"}, '$.species is "x", not "pet"'),
        ({"name": "Ada", "more": 1}, "$.more is not in the schema"),
        ([], "$ is [], not object"),
    ],
)
def test_where_a_value_breaks_the_schema(value: Any, problem: str) -> None:
    """The first place and the reason, nothing where all is well."""
    found = mismatch(value, PET, PET)

    assert found.startswith(problem)
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (EmulatedReply('{"name":"Ada"}'), 200),
        (EmulatedReply('{"name":"ada"}'), 500),
        (EmulatedReply("no JSON"), 500),
        (EmulatedReply('{"name":"ada"}', check_schema=False), 200),
        (EmulatedReply("I cannot.", stop_reason="refusal"), 200),
        (EmulatedReply('{"na', stop_reason="max_tokens"), 200),
    ],
)
def test_only_a_finished_reply_is_held_to_the_schema(reply: EmulatedReply, status: int) -> None:
    """Refusals, truncations and replies that are meant to break it pass."""
    config = {"format": {"type": "json_schema", "schema": PET}}
    response = send(api(reply), body(output_config=config))

    assert response.status == status
    if status == 500:
        assert "breaks output_config.format" in said(response)["error"]["message"]
        assert response.headers["x-should-retry"] == "false"
