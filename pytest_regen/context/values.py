"""A clarification as values: questions, inferences, answers, and what came of a turn.

Strict, bounded and frozen. Names are read in snake_case and in camelCase.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from pytest_regen.context.answers import answer_problem, spelled_out
from pytest_regen.context.text import is_blank

__all__ = [
    "MAX_ANSWER",
    "MAX_DESCRIPTION",
    "MAX_ID",
    "MAX_LABEL",
    "MAX_QUESTION",
    "MAX_QUESTIONS",
    "MAX_REASONING",
    "SCHEMA_VERSION",
    "Answer",
    "Ask",
    "ChoiceAnswer",
    "ClarificationAnswers",
    "ClarificationQuestion",
    "ConversationContext",
    "Generate",
    "InferredContext",
    "LocationLevel",
    "Option",
    "PlaceAnswer",
    "QuestionType",
    "Scope",
    "TargetType",
    "TextAnswer",
    "TurnResult",
    "Value",
    "said",
]

SCHEMA_VERSION: Final = 1
MAX_DESCRIPTION: Final = 4_000
"""Characters; so are the other limits of texts."""
MAX_QUESTION: Final = 300
MAX_ANSWER: Final = 1_000
MAX_REASONING: Final = 1_000
MAX_LABEL: Final = 200
"""Of an option, a place, a placeholder."""
MAX_ID: Final = 64
MAX_QUESTIONS: Final = 2
MAX_SUGGESTIONS: Final = 5
MIN_OPTIONS: Final = 2
MAX_OPTIONS: Final = 4
MAX_SUBJECT: Final = 80
MAX_TOPICS: Final = 5

QuestionType = Literal["location_picker", "open_text", "multiple_choice"]
LocationLevel = Literal["city", "state", "country"]
Scope = Literal["local", "state", "national", "international"]
TargetType = Literal["government", "corporate", "institutional", "other"]
Urgency = Literal["breaking", "recent", "ongoing", "structural"]


def said(text: str) -> str:
    """Return ``text``, unless it is blank; a pydantic validator."""
    if is_blank(text):
        raise PydanticCustomError("blank", "Text must not be blank")
    return text


def _tuple(value: object) -> object:
    # JSON has no tuples, and strict models take nothing else for one.
    return tuple(value) if isinstance(value, list) else value


_Id = Annotated[str, Field(max_length=MAX_ID), AfterValidator(said)]
_Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(said)]
_Confidence = Annotated[float, Field(ge=0, le=1)]
_List = BeforeValidator(_tuple)


class Value(BaseModel):
    """What the values of a clarification share: strict, frozen, closed, silent about its input."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        populate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=to_camel),
    )


class Option(Value):
    """One answer that a multiple-choice question offers."""

    id: _Id
    label: _Label


_OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "location_picker": frozenset({"location_level", "prefilled_location", "suggested_locations"}),
    "open_text": frozenset(),
    "multiple_choice": frozenset({"options", "allow_other"}),
}
_TYPED: Final = frozenset[str]().union(*_OF_TYPE.values())


class ClarificationQuestion(Value):
    """A question that the agent asks; which fields it may carry follows from its ``type``."""

    id: _Id
    question: Annotated[str, Field(max_length=MAX_QUESTION), AfterValidator(said)]
    type: QuestionType
    required: bool = False
    """Whether a page waits for an answer before it goes on. Skipping is possible all the same."""
    placeholder: _Label | None = None
    location_level: LocationLevel | None = None
    """Of a location picker, which has one always; ``city`` where it was not said."""
    prefilled_location: _Label | None = None
    """Of a location picker: what stands in it at first."""
    suggested_locations: Annotated[
        tuple[_Label, ...] | None, _List, Field(min_length=1, max_length=MAX_SUGGESTIONS)
    ] = None
    """Of a location picker: guesses, shown as buttons."""
    options: Annotated[
        tuple[Option, ...] | None, _List, Field(min_length=MIN_OPTIONS, max_length=MAX_OPTIONS)
    ] = None
    """Of a multiple choice, which has two to four always."""
    allow_other: bool | None = None
    """Of a multiple choice: whether words of one's own are an answer; true where not said."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        given = {key: value for key, value in data.items() if value is not None}
        kind = given.get("type")
        if kind == "location_picker" and "locationLevel" not in given:
            given.setdefault("location_level", "city")
        if kind == "multiple_choice" and "allowOther" not in given:
            given.setdefault("allow_other", True)
        return given

    @model_validator(mode="after")
    def _typed(self) -> Self:
        foreign = sorted((_TYPED - _OF_TYPE[self.type]) & self.model_fields_set)
        if foreign:
            raise _problem("not_of_type", f"A question of type {self.type} has no {foreign[0]}")
        if self.type == "multiple_choice":
            _check_options(self.options)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}


def _check_options(options: tuple[Option, ...] | None) -> None:
    if options is None:
        raise _problem("options_missing", "A multiple choice needs 2 to 4 options")
    for what in ("id", "label"):
        if len({getattr(option, what) for option in options}) < len(options):
            raise _problem("options_repeated", f"Two options have the same {what}")


def _problem(code: str, message: str) -> PydanticCustomError:
    # Braces in a message are placeholders; what is filled in stays as it is.
    return PydanticCustomError(code, "{problem}", {"problem": message})


def _without_empty(data: object) -> object:
    """Leave out what is named without being filled: ``null``, blank text, empty lists."""
    if not isinstance(data, Mapping):
        return data
    return {key: value for key, value in data.items() if not _is_empty(value)}


def _is_empty(value: object) -> bool:
    return is_blank(value) if isinstance(value, str) else value is None or value in ([], ())


class InferredContext(Value):
    """What the agent made of the description."""

    detected_location: _Label | None = None
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


class TextAnswer(Value):
    """An answer in words, to an ``open_text`` question."""

    kind: Literal["text"] = "text"
    text: Annotated[str, Field(max_length=MAX_ANSWER), AfterValidator(said)]


class PlaceAnswer(Value):
    """A place, to a ``location_picker`` question."""

    kind: Literal["place"] = "place"
    label: _Label
    """As shown: ``San Francisco, CA``."""
    city: _Label | None = None
    state: _Label | None = None
    country: _Label | None = None


class ChoiceAnswer(Value):
    """Options chosen by id, words of one's own, or both, to a ``multiple_choice`` question."""

    kind: Literal["choice"] = "choice"
    selected: Annotated[tuple[_Id, ...], _List, Field(max_length=MAX_OPTIONS)] = ()
    other: Annotated[str, Field(max_length=MAX_ANSWER), AfterValidator(said)] | None = None


Answer = Annotated[TextAnswer | PlaceAnswer | ChoiceAnswer, Field(discriminator="kind")]
ClarificationAnswers = dict[str, Answer]
"""Answers by question id. A question without an entry was skipped."""

_Questions = Annotated[tuple[ClarificationQuestion, ...], _List, Field(max_length=MAX_QUESTIONS)]


def _check_ids(questions: tuple[ClarificationQuestion, ...]) -> tuple[ClarificationQuestion, ...]:
    if len({question.id for question in questions}) < len(questions):
        raise _problem("ids_repeated", "Two questions share an id")
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
    answers: Annotated[ClarificationAnswers, Field(max_length=MAX_QUESTIONS)] = {}

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
            problem = answer_problem(question, found.get(question.id))
            if problem:
                raise _problem("wrong_answer", problem)
        return found

    def answered(self, answers: Mapping[str, object]) -> Self:
        """Return this context with other answers.

        Raises:
            pydantic.ValidationError: they do not fit the questions.
        """
        wire = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**wire, "answers": dict(answers)})


class Ask(Value):
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


class Generate(Value):
    """The agent wrote."""

    model_config = ConfigDict(alias_generator=None)

    needs_clarification: Literal[False] = False
    subject_line: Annotated[str, Field(max_length=MAX_SUBJECT), AfterValidator(said)]
    core_message: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    topics: Annotated[tuple[_Label, ...], _List, Field(max_length=MAX_TOPICS)] = ()
    url_slug: Annotated[
        str, Field(max_length=MAX_LABEL, pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")
    ] = ""
    voice_sample: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    detected_ask: Annotated[str, Field(max_length=MAX_ANSWER)] | None = None
    inferred_context: InferredContext = InferredContext()

    _filled = model_validator(mode="before")(_without_empty)


TurnResult = Ask | Generate
