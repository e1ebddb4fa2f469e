"""An agent that asks at most once and keeps nothing between its turns."""

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
from pytest_regen.context.values import MAX_QUESTIONS, Ask, Generate, TurnResult
from pytest_regen.errors import ReaskedError, ReplyFormatError
from pytest_regen.turns.exchange import TurnExchange
from pytest_regen.turns.steps import Steps
from pytest_regen.turns.structured import Parsed, object_steps, parse_json_with_schema
from pytest_regen.turns.values import Message, Provider, TurnRequest

_Fault = tuple[tuple[int | str, ...], str, str]
"""Where, of what type, and why."""

_Found = tuple[list[_Fault], TurnResult | None]

_REASKED: Final = "reasked"
_EXTRA: Final = "extra_forbidden"
_KEPT: Final = 40
_STAND_INS: Final = frozenset({"id", "question", "label", "subject_line"})
"""What cannot be taken out."""
_WRITE_NOW: Final = (
    "The person has answered or skipped your questions. Do not ask again: reply with one JSON "
    "object in which needs_clarification is false, and with the finished text."
)


_MOST_ROUNDS: Final = 8
"""Faults of the form hide those of what has to agree; this many layers are ample."""


def _result(value: Any, *, may_ask: bool) -> TurnResult:
    """Return the result in a JSON value.

    Raises:
        ValidationError: all that is wrong with it, in one.
    """
    if not isinstance(value, dict):
        raise _validation_error([((), "object_type", "Input should be an object")])
    faults: list[_Fault] = []
    flag = value.get("needs_clarification")
    if not isinstance(flag, bool):
        faults.append((("needs_clarification",), "bool", "must be true or false, without quotes"))
    asks = _asks(value)
    if asks and not may_ask:
        raise _validation_error([((), _REASKED, "asks again")])
    found, result = _repair_faults(value, Ask if asks else Generate)
    notes = [f"left out {place_name(at)}, which is not asked for" for at in _extra(found)]
    faults += [fault for fault in found if fault[1] != _EXTRA]
    contradiction = scope_problem(result) if isinstance(result, Ask) else None
    if contradiction:
        faults.append(((), "scope", contradiction))
    if faults or result is None:
        raise _validation_error(faults)
    return result.with_notes(*notes)


def _repair_faults(value: Mapping[str, Any], form: type[Ask | Generate]) -> _Found:
    """Return the faults of a value, and the value without them, if that is possible.

    Each fault is replaced by something valid, so that faults behind it are found as well.
    """
    faults: list[_Fault] = []
    draft = {**copy.deepcopy(dict(value)), "needs_clarification": form is Ask}
    for _ in range(_MOST_ROUNDS):
        try:
            return faults, form.model_validate(draft)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            # Without its type a question is replaced as a whole: after its members.
            for problem in sorted(found, key=lambda problem: problem["loc"][2:] == ("type",)):
                faults.append((problem["loc"], problem["type"], problem["msg"]))
                _replace(draft, problem["loc"], problem["type"])
    return faults, None


def _extra(faults: Sequence[_Fault]) -> Iterator[tuple[int | str, ...]]:
    return (place for place, kind, _ in faults if kind == _EXTRA)


def _asks(value: Mapping[str, Any]) -> bool:
    """Return whether a reply means to ask, also where its flag is missing or malformed."""
    flag = value.get("needs_clarification")
    if isinstance(flag, bool):
        return flag
    if isinstance(flag, str) and flag.strip().lower() in {"true", "false"}:
        return flag.strip().lower() == "true"
    return bool(value.get("clarification_questions")) and not value.get("subject_line")


def _validation_error(faults: Sequence[_Fault]) -> ValidationError:
    return ValidationError.from_exception_data(
        "reply",
        [
            {"type": PydanticCustomError(kind, "{why}", {"why": why}), "loc": place, "input": None}
            for place, kind, why in dict.fromkeys(faults)
        ],
    )


def _replace(draft: Any, place: tuple[int | str, ...], kind: str) -> None:
    """Replace what is wrong at ``place`` by something that fits, or take it out."""
    *way, last = place or ("",)
    draft = reduce(getitem, way, draft)
    if kind == _EXTRA:
        draft.pop(last)
    elif kind == "ids_repeated":
        for number, question in enumerate(draft[last][1:], start=1):
            question["id"] = f"{question['id'][:_KEPT]} {number}"
    elif last in {"clarification_questions", "questions"}:
        listed = draft.get(last)
        whole = isinstance(listed, list) and len(listed) > MAX_QUESTIONS
        draft[last] = listed[:MAX_QUESTIONS] if whole else [_question(0)]
    elif last == "options" and kind != "not_of_type":
        draft[last] = [_option(0), _option(1)]
    elif isinstance(last, int):
        draft[last] = _option(last) if "options" in way else _question(last)
    elif last == "type":
        draft |= dict.fromkeys(draft) | _question(0) | {"id": draft.get("id", "?")}
    elif last in _STAND_INS:
        draft[last] = f"{last} {way[-1] if way else ''}"
    elif isinstance(draft, dict):
        draft.pop(last, None)


def _question(number: int) -> dict[str, object]:
    return {"id": f"id {number}", "question": "?", "type": "open_text"}


def _option(number: int) -> dict[str, object]:
    return {"id": f"id {number}", "label": f"label {number}"}


_FORM: Final[TypeAdapter[TurnResult]] = TypeAdapter(
    Annotated[TurnResult, PlainValidator(partial(_result, may_ask=True))]
)
_FORM_OF_SECOND: Final[TypeAdapter[TurnResult]] = TypeAdapter(
    Annotated[TurnResult, PlainValidator(partial(_result, may_ask=False))]
)


def read_reply(text: str, *, may_ask: bool = True) -> TurnResult:
    """Return the result in a reply's text.

    Args:
        text: a model's reply; the largest JSON value in it that is a result counts. Members
            that are not part of a result are left out; the result's ``notes`` name them.
        may_ask: whether questions are an answer.

    Raises:
        ReplyFormatError: it is neither questions nor a text, or contradicts itself; ``problem``
            names every fault of the value that comes nearest.
        ReaskedError: it asks, and may not, whatever else is wrong with the question.
    """
    try:
        return parse_json_with_schema(text, _FORM if may_ask else _FORM_OF_SECOND)
    except ReplyFormatError as error:
        if not isinstance(error.__cause__, ValidationError):
            raise
        if any(problem["type"] == _REASKED for problem in error.__cause__.errors()):
            raise _reasked_error(text) from None
        # Names are the model's own, and become part of a prompt: none as it stands.
        problems = list_problems(error.__cause__)
        found = [f"- {place}: {why}" if place else f"- {why}" for place, why in problems]
        error.problem = "\n".join(("The JSON does not match the form described:", *found))
        raise


def _reasked_error(text: str) -> ReaskedError:
    return ReaskedError(
        "the model asks again where it has to write",
        text=text,
        problem="Your reply asks again.",
        asks=_WRITE_NOW,
        why="a second turn has the answers, or knows that they were skipped",
        hint="use another model, or say in the system prompt that it has to write now",
    )


_MAX_TOKENS: Final = 4_096
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
    A reply that cannot be used is asked for again, up to twice, after the same prompt, with all
    that is wrong with it.

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
        return TurnExchange(self.provider).run(self._steps(request)).value

    async def aturn(self, request: ClarificationRequest) -> TurnResult:
        """Take one turn without blocking the event loop; as ``turn``."""
        _warn_of_legacy(request)
        return (await TurnExchange(self.provider).arun(self._steps(request))).value

    def _steps(self, request: ClarificationRequest) -> Steps[Parsed[TurnResult]]:
        asked = TurnRequest(
            self._system,
            (Message("user", prompt_of(request)),),
            model=self._model,
            max_tokens=self._max_tokens,
        )
        may_ask = not request.is_second_turn
        return object_steps(
            asked, lambda text: read_reply(text, may_ask=may_ask), max_repairs=_REPAIRS
        )


def _warn_of_legacy(request: ClarificationRequest) -> None:
    if request.legacy_answers is not None:
        warnings.warn(
            "clarification_answers without conversation_context: the model does not see what was "
            "asked; send conversation_context",
            DeprecationWarning,
            stacklevel=3,
        )
