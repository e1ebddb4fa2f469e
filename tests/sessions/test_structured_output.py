"""Schemas that the API enforces: closed, or refused where they would not survive."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from pytest_regen.errors import UsageError
from pytest_regen.sessions import GeneratorSession
from pytest_regen.turns import ScriptedProvider


class Leaf(BaseModel):
    """An object in another one."""

    kind: Literal["leaf"] = "leaf"


class Tree(BaseModel):
    """What survives, in fields that are called as keywords are."""

    n: int
    type: str = ""
    items: list[Leaf] = []
    properties: list[float] = []
    words: list[str | int] = Field(default_factory=list, description="of any type")


def test_structured_output_closes_every_object() -> None:
    """The schema goes along with each request, and no object in it is open."""
    provider = ScriptedProvider(['{"n": 1}'])
    GeneratorSession("x", Tree, provider=provider, structured_output=True).ask("One?")

    schema: Any = provider.requests[0].response_schema
    objects = [schema, schema["$defs"]["Leaf"]]
    assert [one["additionalProperties"] for one in objects] == [False] * 2


class FreeForm(BaseModel):
    """A map, which would be left empty."""

    arguments: dict[str, str]


class Anything(BaseModel):
    """A field that may be an object as well."""

    name: str
    whatever: Any


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (FreeForm, "arguments is an object of free form"),
        (Anything, "whatever may be anything"),
    ],
)
def test_structured_output_refuses_what_would_not_survive(type_: Any, why: str) -> None:
    with pytest.raises(UsageError, match="structured output") as caught:
        GeneratorSession("x", type_, provider=ScriptedProvider([]), structured_output=True)

    assert why in caught.value.why
