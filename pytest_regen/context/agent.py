"""An agent that asks at most once and keeps nothing between its turns."""

import copy
import warnings
from collections.abc import Mapping
from functools import partial, reduce
from operator import getitem
from typing import Annotated, Any, Final

from pydantic import PlainValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from pytest_regen.context.prompts import (
    SUBJECT_LINE_PROMPT,
    render_context,
    render_description,
    render_legacy,
    scope_problem,
)
from pytest_regen.context.requests import ClarificationRequest, list_problems, place_name
from pytest_regen.context.values import Ask, Generate, TurnResult
from pytest_regen.errors import ReaskedError, ReplyFormatError
from pytest_regen.turns.exchange import TurnExchange
from pytest_regen.turns.steps import Steps
from pytest_regen.turns.structured import ObjectWithRepair, object_steps, parse_json_with_schema
from pytest_regen.turns.values import Message, Provider, TurnRequest

_REASKED: Final = "reasked"
_WRITE_NOW: Final = (
    "The person has answered or skipped your questions. Do not ask again: reply with one JSON "
    "object in which needs_clarification is false, and with the finished text."
)


def _result(value: Any, *, may_ask: bool) -> TurnResult:
    """Return the result in a JSON value, members that are not asked for left out.

    Raises:
        ValidationError: what is wrong with its form; or where that is right, with its meaning.
    """
    if not isinstance(value, dict):
        raise _validation_error("object_type", "Input should be an object")
    flag = value.get("needs_clarification")
    # Because a question that may not be asked is not to be mended, its form does not matter.
    asks = flag is True or (
        flag is not False
        and bool(value.get("clarification_questions"))
        and not value.get("subject_line")
    )
    if asks and not may_ask:
        raise _validation_error(_REASKED, "asks again")
    form: type[Ask | Generate] = Ask if asks else Generate
    # A copy, because the reader of replies tries the same value in other places.
    draft = copy.deepcopy(value)
    extra: list[tuple[int | str, ...]] = []
    try:
        form.model_validate(draft)
    except ValidationError as error:
        extra += [fault["loc"] for fault in error.errors() if fault["type"] == "extra_forbidden"]
    for *way, last in extra:
        reduce(getitem, way, draft).pop(last)
    result = form.model_validate(draft)
    contradiction = scope_problem(result) if isinstance(result, Ask) else None
    if contradiction:
        raise _validation_error("scope", contradiction)
    return result.with_notes(
        *(f"left out {place_name(place)}, which is not asked for" for place in extra)
    )


def _validation_error(kind: str, why: str) -> ValidationError:
    fault = PydanticCustomError(kind, "{why}", {"why": why})
    return ValidationError.from_exception_data("reply", [{"type": fault, "input": None}])


# Built once, because building an adapter takes longer than reading a reply.
_FORMS: Final[Mapping[bool, TypeAdapter[TurnResult]]] = {
    may_ask: TypeAdapter(Annotated[TurnResult, PlainValidator(partial(_result, may_ask=may_ask))])
    for may_ask in (True, False)
}


def read_reply(text: str, *, may_ask: bool = True) -> TurnResult:
    """Return the result in a reply's text.

    Args:
        text: a model's reply; the largest JSON value in it that is a result counts. Members
            that are not part of a result are left out; the result's ``notes`` name them.
        may_ask: whether questions are an answer.

    Raises:
        ReplyFormatError: it is neither questions nor a text, or contradicts itself; ``problem``
            names the faults of the value that comes nearest.
        ReaskedError: it asks, and may not, whatever else is wrong with the question.
    """
    try:
        return parse_json_with_schema(text, _FORMS[may_ask])
    except ReplyFormatError as error:
        if not isinstance(error.__cause__, ValidationError):
            raise
        if any(problem["type"] == _REASKED for problem in error.__cause__.errors()):
            raise ReaskedError(
                "the model asks again where it has to write",
                text=text,
                problem="Your reply asks again.",
                asks=_WRITE_NOW,
                why="a second turn has the answers, or knows that they were skipped",
                hint="use another model, or say in the system prompt that it has to write now",
            ) from None
        # Told by list_problems, because names are the model's own and become part of a prompt.
        problems = list_problems(error.__cause__)
        lines = [f"- {place}: {why}" if place else f"- {why}" for place, why in problems]
        error.problem = "\n".join(("The JSON does not match the form described:", *lines))
        raise


_MAX_TOKENS: Final = 4_096
# More would be paid for in vain, because a model that errs three times goes on.
_REPAIRS: Final = 2


def prompt_of(request: ClarificationRequest) -> str:
    """Return the user prompt of a turn. The first of these that is there decides it.

    The conversation context, which makes everything else of the request void; the legacy answers;
    the description.
    """
    if request.conversation_context is not None:
        return render_context(request.conversation_context)
    if request.legacy_answers is not None:
        return render_legacy(request.message, request.legacy_answers)
    return render_description(request.message)


class ClarifyingAgent:
    """Answers a description with questions or with a subject line; a second turn only with that.

    Nothing is kept between turns: what a model is sent follows from the request alone.
    A reply that cannot be used is asked for again, up to twice, after the same prompt, with what
    is wrong with it.

    Args:
        provider: who answers.
        model: the model asked for; the provider's own by default.
        system: the system prompt; it has to ask for replies of the same form.
        max_tokens: upper limit of a reply; the rest of one that is cut there is asked for.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        model: str = "",
        system: str = SUBJECT_LINE_PROMPT,
        max_tokens: int = _MAX_TOKENS,
    ) -> None:
        self.provider = provider
        self._model = model
        self._system = system
        self._max_tokens = max_tokens

    def turn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn.

        Returns:
            ``Ask``, on a first turn only, or ``Generate``.

        Raises:
            ReaskedError: the model asks on a second turn, also after two requests to write.
            ReplyFormatError: three replies in a row cannot be used.
            RefusedError: the model declined.
            ProviderError: there is no reply.
        """
        _warn_of_legacy(request)
        return TurnExchange(self.provider).run(self._steps(request)).output

    async def aturn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn without blocking the event loop; as ``turn``."""
        _warn_of_legacy(request)
        return (await TurnExchange(self.provider).arun(self._steps(request))).output

    def _steps(self, request: ClarificationRequest) -> Steps[ObjectWithRepair[TurnResult]]:
        first = TurnRequest(
            self._system,
            (Message("user", prompt_of(request)),),
            model=self._model,
            max_tokens=self._max_tokens,
        )
        may_ask = not request.is_second_turn
        return object_steps(
            first, lambda text: read_reply(text, may_ask=may_ask), max_repairs=_REPAIRS
        )


def _warn_of_legacy(request: ClarificationRequest) -> None:
    if request.legacy_answers is not None:
        warnings.warn(
            "clarification_answers without conversation_context: the model does not see what was "
            "asked; send conversation_context",
            DeprecationWarning,
            stacklevel=3,
        )
