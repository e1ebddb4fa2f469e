"""A model's reply, read as what it is to be: questions, or the text asked for."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Discriminator, Tag, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from pytest_regen.context.requests import named_problems
from pytest_regen.context.scope import scope_problem
from pytest_regen.context.values import Ask, Generate, TurnResult
from pytest_regen.errors import ReaskedError, ReplyFormatError
from pytest_regen.turns.structured import parse_json_with_schema

__all__ = ["read_reply"]

_WRITE_NOW: Final = (
    "The person has answered or skipped your questions. Do not ask again: reply with one JSON "
    "object in which needs_clarification is false, and with the finished text."
)


def _consistent(ask: Ask) -> Ask:
    problem = scope_problem(ask)
    if problem:
        raise PydanticCustomError("scope", "{problem}", {"problem": problem})
    return ask


def _kind(value: Any) -> str | None:  # noqa: ANN401 - anything that JSON holds
    asks = value.get("needs_clarification") if isinstance(value, Mapping) else None
    if isinstance(asks, bool):
        return "ask" if asks else "generate"
    return None


_RESULT: Final[TypeAdapter[TurnResult]] = TypeAdapter(
    Annotated[
        Annotated[Ask, AfterValidator(_consistent), Tag("ask")]
        | Annotated[Generate, Tag("generate")],
        Discriminator(
            _kind,
            custom_error_type="needs_clarification",
            custom_error_message="needs_clarification must be true or false",
        ),
    ]
)


def read_reply(text: str, *, may_ask: bool = True) -> TurnResult:
    """Return what ``text`` says.

    Args:
        text: a model's reply; the largest JSON value in it that is a result counts.
        may_ask: whether questions are an answer.

    Raises:
        ReplyFormatError: it is neither questions nor a text, or contradicts itself.
        ReaskedError: it asks, and may not.
    """
    try:
        result = parse_json_with_schema(text, _RESULT)
    except ReplyFormatError as error:
        if isinstance(error.__cause__, ValidationError):
            # Names are the model's own, and become part of a prompt: none as it stands.
            found = [f"- {place}: {why}" for place, why in named_problems(error.__cause__)]
            error.problem = "\n".join(("The JSON does not match the form described:", *found))
        raise
    if isinstance(result, Ask) and not may_ask:
        raise ReaskedError(
            "the model asks again where it has to write",
            text=text,
            problem="Your reply asks again.",
            asks=_WRITE_NOW,
            why="a second turn has the answers, or knows that they were skipped",
            hint="use another model, or say in the system prompt that it has to write now",
        )
    return result
