"""Schemas that the API enforces: closed, or refused where they would not survive."""

from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from pytest_regen.errors import UsageError
from pytest_regen.sessions import GeneratorSession
from pytest_regen.sessions.session import closed_schema
from pytest_regen.turns import ScriptedProvider


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Nothing(BaseModel):
    """No field at all."""


class Leaf(BaseModel):
    """An object in another one."""

    colour: Colour
    kind: Literal["leaf"] = "leaf"
    nothing: Nothing | None = None


class Tree(BaseModel):
    """What survives, in fields that are called as keywords are."""

    n: int
    type: str = ""
    items: list[Leaf] = []
    properties: list[float] = []
    words: list[str | int] = Field(default_factory=list, description="of any type")


def schema_sent(type_: Any, reply: str) -> dict[str, Any]:
    """Return the schema that goes along with a request."""
    provider = ScriptedProvider([reply])
    GeneratorSession("x", type_, provider=provider, structured_output=True).ask("One?")
    schema = provider.requests[0].response_schema
    assert schema is not None
    return dict(schema)


def test_structured_output_closes_every_object() -> None:
    """The schema goes along with each request, and no object in it is open."""
    schema = schema_sent(Tree, '{"n": 1}')

    objects = [schema, *(one for one in schema["$defs"].values() if one["type"] == "object")]
    assert [one["additionalProperties"] for one in objects] == [False] * 3


class FreeForm(BaseModel):
    """A map, which would be left empty."""

    arguments: dict[str, str]


class Anything(BaseModel):
    """A field that may be an object as well."""

    name: str
    whatever: Any


class Open(BaseModel, extra="allow"):
    """A model that keeps what it does not know."""

    name: str


class Around(BaseModel):
    """Holds one."""

    first: list[Open]


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (FreeForm, "arguments is an object of free form"),
        (Anything, "whatever may be anything"),
        (list[Any], "the reply may be anything"),
        (Around, "Open is an object of free form"),
    ],
)
def test_structured_output_refuses_what_would_not_survive(type_: Any, why: str) -> None:
    with pytest.raises(UsageError, match="structured output") as caught:
        GeneratorSession("x", type_, provider=ScriptedProvider([]), structured_output=True)

    assert why in caught.value.why


def test_a_model_that_forbids_more_is_closed_already() -> None:

    class Strict(BaseModel, extra="forbid"):
        name: str

    assert closed_schema(TypeAdapter(Strict))["additionalProperties"] is False
    assert closed_schema(TypeAdapter(list[int])) == {"items": {"type": "integer"}, "type": "array"}
