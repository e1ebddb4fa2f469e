"""Requests of callers, read strictly: what is wrong is refused by name."""

from collections.abc import Mapping
from typing import Annotated, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from pytest_regen.context.questions import MAX_ANSWER, MAX_ID, MAX_LABEL, Value, as_data, not_blank
from pytest_regen.context.values import MAX_DESCRIPTION, MAX_QUESTIONS, ConversationContext
from pytest_regen.errors import InvalidContextError

_Model = TypeVar("_Model", bound=BaseModel)
_LONGEST_NAME: Final = 64
_LONGEST_REASON: Final = 300
_MOST_PROBLEMS: Final = 20
_PARTIAL = "clarificationContext"


def _either(*names: str) -> AliasChoices:
    return AliasChoices(*names)


class ClarificationRequest(Value):
    """One turn as a caller requests it: the first with a description, the second with a context.

    Names are those of the requirement, in either case; ``message`` may be called ``description``,
    and ``clarificationContext``, which may leave the description to ``message``, is read as
    ``conversationContext``.
    """

    model_config = ConfigDict(alias_generator=AliasGenerator())

    message: Annotated[
        str,
        Field(max_length=MAX_DESCRIPTION, validation_alias=_either("message", "description")),
        AfterValidator(not_blank),
    ]
    """The description. A context brings its own, which is the one the model is shown."""
    conversation_context: Annotated[
        ConversationContext | None,
        Field(validation_alias=_either("conversation_context", "conversationContext")),
    ] = None
    seal: Annotated[str, Field(max_length=2_000)] | None = None
    """What vouches for the context; see ``Sealer``."""
    interaction_id: Annotated[
        str | None,
        Field(
            max_length=MAX_LABEL,
            validation_alias=_either(
                "interaction_id",
                "interactionId",
                "previous_interaction_id",
                "previousInteractionId",
            ),
        ),
    ] = None
    """Which conversation this is. Opaque: nothing is remembered under it."""
    clarification_answers: Annotated[
        dict[
            Annotated[str, Field(max_length=MAX_ID)],
            Annotated[str, Field(max_length=MAX_ANSWER)] | None,
        ]
        | None,
        Field(
            max_length=2 * MAX_QUESTIONS,
            validation_alias=_either("clarification_answers", "clarificationAnswers"),
        ),
    ] = None
    """Deprecated: answers without the questions. Ignored where there is a context. Empty, they are
    those of somebody who skipped, if ``interaction_id`` says that there was something to skip."""

    @model_validator(mode="before")
    @classmethod
    def _rename_context(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        for name in (_PARTIAL, "clarification_context"):
            if data.get(name) is not None:
                return _with_context(dict(data), name)
        return data

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
        return self.conversation_context is not None or self.legacy_answers is not None

    def with_context(self, context: ConversationContext) -> Self:
        """Return the request of the turn that follows."""
        return self.model_copy(update={"conversation_context": context})


def _with_context(data: dict[object, object], name: str) -> dict[object, object]:
    context = data.pop(name)
    if isinstance(context, Mapping) and "original_description" not in context:
        message = data.get("message", data.get("description"))
        context = {"originalDescription": message, **context}
    if "conversationContext" in data or "conversation_context" in data:
        # Left in place, both are refused as one too many.
        return {**data, name: context}
    return {**data, "conversationContext": context}


def parse_context(data: object) -> ConversationContext:
    """Return the context that ``data``, JSON as Python values, describes.

    Raises:
        InvalidContextError: it describes none; names each place at fault.
    """
    return _parse(ConversationContext, data, "the conversation context")


def parse_request(data: object) -> ClarificationRequest:
    """Return the request that ``data``, JSON as Python values, describes.

    Raises:
        InvalidContextError: it describes none; names each place at fault.
    """
    return _parse(ClarificationRequest, data, "the request")


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
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(
        (place_name(problem["loc"]), _safe(problem["msg"], _LONGEST_REASON))
        for problem in found[:_MOST_PROBLEMS]
    )


def place_name(place: tuple[int | str, ...]) -> str:
    """Return a place in JSON as one word: ``questions_asked.0.id``; no name in it as it stands."""
    return ".".join(_safe(str(part)) for part in place)


def _safe(text: str, longest: int = _LONGEST_NAME) -> str:
    # Names, and tags that a reason quotes, are the caller's: of any length, of any characters.
    safe = as_data(text[:longest])[1:-1].replace('\\"', '"')
    return safe if len(text) <= longest else f"{safe}…"
