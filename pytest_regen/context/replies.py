"""A model's reply, read as what it is to be: questions, or the text asked for."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from pytest_regen.context.requests import named_problems
from pytest_regen.context.scope import scope_problem
from pytest_regen.context.values import Ask, Generate, TurnResult

__all__ = ["Defect", "read_reply"]


class Defect(str):
    """What is wrong with a reply, in words for the model that is asked again."""

    __slots__ = ()


def read_reply(text: str) -> TurnResult | Defect:
    """Return what ``text`` says, or what is wrong with it."""
    defect = Defect("it holds no JSON object")
    for value in _objects(text):
        if "needs_clarification" in value:
            found = _result(value)
            if not isinstance(found, Defect):
                return found
            defect = found
        else:
            defect = Defect("needs_clarification is missing")
    return defect


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        if isinstance(value, dict):
            yield value
        start = text.find("{", end)


def _result(value: Mapping[str, Any]) -> TurnResult | Defect:
    model: type[Ask | Generate] = Ask if value["needs_clarification"] is True else Generate
    try:
        result = model.model_validate(value)
    except ValidationError as error:
        return Defect("; ".join(f"{place}: {why}" for place, why in named_problems(error)))
    problem = scope_problem(result) if isinstance(result, Ask) else None
    return Defect(problem) if problem else result
