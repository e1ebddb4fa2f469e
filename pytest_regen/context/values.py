"""A clarification as values: what was inferred, what was answered, what came of a turn.

Strict, bounded and frozen. Names are read in snake_case and in camelCase.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AliasGenerator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from pytest_regen.context.answers import answer_problem, spelled_out
from pytest_regen.context.questions import (
    MAX_ANSWER,
    MAX_LABEL,
    Answer,
    AsTuple,
    ClarificationQuestion,
    Label,
    Value,
    is_empty,
    problem,
    said,
)

__all__ = [
    "MAX_DESCRIPTION",
    "MAX_QUESTIONS",
    "MAX_REASONING",
    "SCHEMA_VERSION",
    "Ask",
    "ClarificationAnswers",
    "ConversationContext",
    "Generate",
    "InferredContext",
    "Scope",
    "TargetType",
    "TurnResult",
]

SCHEMA_VERSION: Final = 1
MAX_DESCRIPTION: Final = 4_000
"""Characters; so are the other limits of texts."""
MAX_REASONING: Final = 1_000
MAX_QUESTIONS: Final = 2
MAX_SUBJECT: Final = 80
MAX_TOPICS: Final = 5

Scope = Literal["local", "state", "national", "international"]
TargetType = Literal["government", "corporate", "institutional", "other"]
Urgency = Literal["breaking", "recent", "ongoing", "structural"]


_Confidence = Annotated[float, Field(ge=0, le=1)]


def _without_empty(data: object) -> object:
    """Leave out what is named without being filled: ``null``, blank text, empty lists."""
    if not isinstance(data, Mapping):
        return data
    return {key: value for key, value in data.items() if not is_empty(value)}


class InferredContext(Value):
    """What the agent made of the description."""

    detected_location: Label | None = None
    detected_scope: Scope | None = None
    detected_target_type: TargetType | None = None
    location_confidence: _Confidence = 0.0
    scope_confidence: _Confidence = 0.0
    target_type_confidence: _Confidence = 0.0
    reasoning: Annotated[str, Field(max_length=MAX_REASONING)] | None = None
    detected_urgency: Urgency | None = None
    urgency_confidence: _Confidence | None = None
    detected_ask: Annotated[str, Field(max_length=MAX_ANSWER)] | None = None
    """The demand, in the words of the description."""

    _filled = model_validator(mode="before")(_without_empty)


ClarificationAnswers = dict[str, Answer]
"""Answers by question id. A question without an entry was skipped."""

_Questions = Annotated[tuple[ClarificationQuestion, ...], AsTuple, Field(max_length=MAX_QUESTIONS)]


def _check_ids(questions: tuple[ClarificationQuestion, ...]) -> tuple[ClarificationQuestion, ...]:
    if len({question.id for question in questions}) < len(questions):
        raise problem("ids_repeated", "Two questions share an id")
    return questions


class ConversationContext(Value):
    """Everything the second turn needs, held by the caller.

    ``answers`` are given as typed answers or, as in the requirement, as one string per question;
    blank ones and ``{"kind": "skipped"}`` are left out, so that equal contexts are equal values.
    """

    model_config = ConfigDict(alias_generator=AliasGenerator(alias=to_camel))

    schema_version: Literal[1] = SCHEMA_VERSION
    original_description: Annotated[str, Field(max_length=MAX_DESCRIPTION), AfterValidator(said)]
    questions_asked: Annotated[_Questions, AfterValidator(_check_ids)]
    inferred_context: InferredContext
    answers: Annotated[ClarificationAnswers, Field(max_length=MAX_QUESTIONS)] = Field(
        default_factory=dict
    )

    @field_validator("answers", mode="before")
    @classmethod
    def _spelled_out(cls, given: object, info: ValidationInfo) -> object:
        questions = info.data.get("questions_asked")
        return given if questions is None else spelled_out(given, questions)

    @field_validator("answers", mode="after")
    @classmethod
    def _in_order(cls, answers: ClarificationAnswers, info: ValidationInfo) -> ClarificationAnswers:
        questions: tuple[ClarificationQuestion, ...] = info.data.get("questions_asked", ())
        found = {q.id: answers[q.id] for q in questions if q.id in answers}
        for question in questions:
            misfit = answer_problem(question, found.get(question.id))
            if misfit:
                raise problem("wrong_answer", misfit)
        return found

    def answered(self, answers: Mapping[str, object]) -> Self:
        """Return this context with other answers.

        Raises:
            pydantic.ValidationError: they do not fit the questions.
        """
        wire = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**wire, "answers": dict(answers)})


class _Result(Value):
    """What results share."""

    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the reply that this was read from, a sentence each."""
        return self._notes

    def noted(self, *notes: str) -> Self:
        """Return the same result with these notes."""
        copy = self.model_copy()
        copy._notes = notes  # noqa: SLF001 - of the same class
        return copy


class Ask(_Result):
    """The agent needs answers before it can write."""

    model_config = ConfigDict(alias_generator=None)

    needs_clarification: Literal[True] = True
    questions: Annotated[
        _Questions,
        Field(min_length=1, alias="clarification_questions"),
        AfterValidator(_check_ids),
    ]
    inferred_context: InferredContext = InferredContext()

    _filled = model_validator(mode="before")(_without_empty)


class Generate(_Result):
    """The agent wrote."""

    model_config = ConfigDict(alias_generator=None)

    needs_clarification: Literal[False] = False
    subject_line: Annotated[str, Field(max_length=MAX_SUBJECT), AfterValidator(said)]
    core_message: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    topics: Annotated[tuple[Label, ...], AsTuple, Field(max_length=MAX_TOPICS)] = ()
    url_slug: Annotated[
        str, Field(max_length=MAX_LABEL, pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")
    ] = ""
    voice_sample: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    detected_ask: Annotated[str, Field(max_length=MAX_ANSWER)] | None = None
    inferred_context: InferredContext = InferredContext()

    _filled = model_validator(mode="before")(_without_empty)


TurnResult = Ask | Generate
