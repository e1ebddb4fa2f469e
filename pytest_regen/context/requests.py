"""Requests of callers, read strictly: what is wrong is refused by name."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Generic, Self, TypeVar, overload

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from pytest_regen.context.conversation import Conversation
from pytest_regen.context.questions import MAX_ANSWER, MAX_ID, MAX_LABEL, Value, as_data, not_blank
from pytest_regen.context.values import MAX_DESCRIPTION, MAX_QUESTIONS, ConversationContext
from pytest_regen.errors import InvalidContextError

C = TypeVar("C", bound=Conversation[Any, Any])
R = TypeVar("R", bound="ConversationRequest[Any]")
_Model = TypeVar("_Model", bound=BaseModel)
# Bounds of a message, because names and reasons quote what a caller wrote.
_LONGEST_NAME: Final = 64
_LONGEST_REASON: Final = 300
_MOST_PROBLEMS: Final = 20
_MESSAGE: Final = AliasChoices("message", "description")


class ConversationRequest(Value, Generic[C]):
    """One turn as a caller requests it: the first with a message, the next with a conversation.

    ``conversationContext`` may leave its description to ``message``, and be called
    ``clarificationContext``: the data flow of requirement 3 has it so.
    """

    # Members name their aliases themselves, because some have four.
    model_config = ConfigDict(alias_generator=AliasGenerator())

    message: Annotated[
        str,
        Field(validation_alias=_MESSAGE),
        AfterValidator(not_blank),
    ]
    """The description. A context brings its own, which is the one the model is shown."""
    conversation_context: Annotated[
        C | None,
        Field(
            validation_alias=AliasChoices(
                "conversation_context",
                "conversationContext",
                "clarificationContext",
                "clarification_context",
            )
        ),
    ] = None
    # Bounded, because it is read before anything vouches for its sender.
    seal: Annotated[str, Field(max_length=2_000)] | None = None
    """What vouches for the context; see ``Sealer``."""
    interaction_id: Annotated[
        str | None,
        Field(
            max_length=MAX_LABEL,
            validation_alias=AliasChoices(
                "interaction_id",
                "interactionId",
                "previous_interaction_id",
                "previousInteractionId",
            ),
        ),
    ] = None
    """Which conversation this is. Opaque: nothing is remembered under it."""

    @field_validator("conversation_context", mode="before")
    @classmethod
    def _take_message(cls, context: object, info: ValidationInfo) -> object:
        # Not where message is at fault, because that fault is told already.
        names = {"originalDescription", "original_description"}
        if isinstance(context, Mapping) and "message" in info.data and not names & context.keys():
            return {**context, "original_description": info.data["message"]}
        return context

    @property
    def is_second_turn(self) -> bool:
        """Whether the agent has asked already."""
        return self.conversation_context is not None

    def with_context(self, context: C) -> Self:
        """Return the request of the turn that follows."""
        return self.model_copy(update={"conversation_context": context})


class ClarificationRequest(ConversationRequest[ConversationContext]):
    """One turn of requirement 3's agent, which has to write on the second."""

    message: Annotated[
        str,
        Field(max_length=MAX_DESCRIPTION, validation_alias=_MESSAGE),
        AfterValidator(not_blank),
    ]
    clarification_answers: Annotated[
        dict[
            Annotated[str, Field(max_length=MAX_ID)],
            Annotated[str, Field(max_length=MAX_ANSWER)] | None,
        ]
        | None,
        Field(
            max_length=2 * MAX_QUESTIONS,
            validation_alias=AliasChoices("clarification_answers", "clarificationAnswers"),
        ),
    ] = None
    """Deprecated: answers without the questions. Ignored where there is a context. Empty, they are
    those of somebody who skipped, if ``interaction_id`` says that there was something to skip."""

    @property
    def legacy_answers(self) -> Mapping[str, str | None] | None:
        """Answers that came without a context; ``None`` where there is one, or no second turn."""
        if self.conversation_context is not None:
            return None
        if not self.clarification_answers and self.interaction_id is None:
            return None
        return self.clarification_answers

    @property
    def is_second_turn(self) -> bool:
        """Whether the agent has asked already, so that it has to write now."""
        return super().is_second_turn or self.legacy_answers is not None


@overload
def parse_context(data: object) -> ConversationContext: ...
@overload
def parse_context(data: object, model: type[C]) -> C: ...
def parse_context(
    data: object, model: type[Conversation[Any, Any]] = ConversationContext
) -> Conversation[Any, Any]:
    """Return the conversation of type ``model`` that ``data``, JSON as Python values, describes.

    Raises:
        InvalidContextError: it describes none; names each place at fault.
    """
    return _parse(model, data, "the conversation context")


@overload
def parse_request(data: object) -> ClarificationRequest: ...
@overload
def parse_request(data: object, model: type[R]) -> R: ...
def parse_request(
    data: object, model: type[ConversationRequest[Any]] = ClarificationRequest
) -> ConversationRequest[Any]:
    """Return the request of type ``model`` that ``data``, JSON as Python values, describes.

    Raises:
        InvalidContextError: it describes none; names each place at fault.
    """
    return _parse(model, data, "the request")


def _parse(model: type[_Model], data: object, what: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = list_problems(error)
        where, why = problems[0]
        raise InvalidContextError(
            f"{what} is not valid: {where or what}: {why}",
            problems=problems,
            why=f"{error.error_count()} problems in all" if error.error_count() > 1 else "",
            hint="send what the first turn returned, unchanged, with answers to its questions",
        ) from None


def list_problems(error: ValidationError) -> tuple[tuple[str, str], ...]:
    """Return what is wrong as pairs of the place and the reason, values left out."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    # Because pydantic counts only items without faults, a list with one seems too short as well.
    inside = {problem["loc"][:-depth] for problem in problems for depth in (1, 2, 3)}
    problems = [
        problem
        for problem in problems
        if problem["type"] != "too_short" or problem["loc"] not in inside
    ]
    return tuple(
        (place_name(problem["loc"]), _safe(problem["msg"], _LONGEST_REASON))
        for problem in problems[:_MOST_PROBLEMS]
    )


def place_name(place: tuple[int | str, ...]) -> str:
    """Return a place in JSON as one word: ``questions_asked.0.id``; no name in it as it stands."""
    return ".".join(_safe(str(part)) for part in place)


def _safe(text: str, longest: int = _LONGEST_NAME) -> str:
    # Names, and tags that a reason quotes, are the caller's: of any length, of any characters.
    safe = as_data(text[:longest])[1:-1].replace('\\"', '"')
    return safe if len(text) <= longest else f"{safe}…"
