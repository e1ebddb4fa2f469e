"""A clarification as values: what was inferred, what was answered, the results of a turn.

Strict, bounded and frozen. Names are read in snake_case and in camelCase.
"""

from collections.abc import Mapping, Sequence
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
from pydantic_core import PydanticCustomError

from pytest_regen.context.questions import (
    MAX_ANSWER,
    MAX_LABEL,
    Answer,
    AsTuple,
    ChoiceAnswer,
    ClarificationQuestion,
    Label,
    Value,
    as_data,
    is_blank,
    is_empty,
    not_blank,
    problem,
    trim,
)

DELIMITER: Final = "|||"
"""Between the parts of a multiple choice that was sent as one string."""

_KINDS: Final = {"open_text": "text", "location_picker": "place", "multiple_choice": "choice"}
_ALL_KINDS: Final = ("skipped", *_KINDS.values())
_LONGEST_FLAT: Final = 8_000
"""A longer string is not taken apart, only refused."""


def expand_answers(given: object, questions: Sequence[ClarificationQuestion]) -> object:
    """Return ``given`` with every string made a typed answer, and what was skipped left out.

    Raises:
        PydanticCustomError: a question that was never asked is with_answers.
    """
    if not isinstance(given, Mapping):
        return given
    asked = {question.id: question for question in questions}
    found: dict[object, object] = {}
    for key, value in given.items():
        if key not in asked:
            raise PydanticCustomError(
                "unknown_question",
                "An answer to a question that was not asked; asked were {asked}",
                {"asked": ", ".join(map(as_data, asked)) or "none"},
            )
        answer = _typed_answer(asked[key], value)
        if not _is_skipped(answer):
            found[key] = answer
    return found


def _typed_answer(question: ClarificationQuestion, value: object) -> object:
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if not _is_nothing(item)}
    if not isinstance(value, str):
        return value
    if is_blank(value):
        return None
    if question.type == "open_text":
        return {"kind": "text", "text": value}
    if question.type == "location_picker":
        return {"kind": "place", "label": value}
    return _choice(question, value)


def _choice(question: ClarificationQuestion, value: str) -> Mapping[str, object]:
    if len(value) > _LONGEST_FLAT:
        return {"kind": "choice", "other": value}
    by_name = {option.id: option.id for option in question.options or ()}
    by_name |= {option.label: option.id for option in question.options or ()}
    parts = [trim(part) for part in value.split(DELIMITER) if not is_blank(part)]
    selected = [by_name[part] for part in parts if part in by_name]
    words = [part for part in parts if part not in by_name]
    # Words may hold the delimiter; it is theirs again.
    other = {"other": f" {DELIMITER} ".join(words)} if words else {}
    return {"kind": "choice", "selected": list(dict.fromkeys(selected)), **other} if parts else {}


def _is_nothing(value: object) -> bool:
    if isinstance(value, str):
        return is_blank(value)
    return value is None or value in ([], ())


def _is_skipped(answer: object) -> bool:
    """Return whether a question was skipped: no answer, only its kind, or nothing chosen."""
    if answer is None:
        return True
    if isinstance(answer, Mapping):
        return not answer or (answer.get("kind") in _ALL_KINDS and len(answer) == 1)
    return (getattr(answer, "selected", None), getattr(answer, "other", "")) == ((), None)


def answer_problem(question: ClarificationQuestion, answer: Answer | None) -> str | None:
    """Return why ``answer`` does not fit ``question``, or ``None``."""
    if answer is None:
        return None
    if answer.kind != _KINDS[question.type]:
        return (
            f"The answer to {as_data(question.id)} is of kind {answer.kind!r}; "
            f"a question of type {question.type} takes {_KINDS[question.type]!r}"
        )
    problem = _choice_problem(question, answer) if answer.kind == "choice" else None
    return f"The answer to {as_data(question.id)} {problem}" if problem else None


def _choice_problem(question: ClarificationQuestion, answer: ChoiceAnswer) -> str | None:
    if not {option.id for option in question.options or ()}.issuperset(answer.selected):
        return "selects an option that was not offered"
    if len(set(answer.selected)) < len(answer.selected):
        return "selects an option twice"
    if answer.other is not None and not question.allow_other:
        return "has words of its own, which the question does not allow"
    return None


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
    """Leave out members without a value: ``null``, blank text, empty lists."""
    if not isinstance(data, Mapping):
        return data
    return {key: value for key, value in data.items() if not is_empty(value)}


class InferredContext(Value):
    """What the agent inferred from the description."""

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

    ``answers`` are given as typed answers, or shorter, as one string per question; blank ones
    and ``{"kind": "skipped"}`` are left out, so that equal contexts are equal values.
    """

    model_config = ConfigDict(alias_generator=AliasGenerator(alias=to_camel))

    schema_version: Literal[1] = SCHEMA_VERSION
    original_description: Annotated[
        str, Field(max_length=MAX_DESCRIPTION), AfterValidator(not_blank)
    ]
    questions_asked: Annotated[_Questions, AfterValidator(_check_ids)]
    inferred_context: InferredContext
    answers: Annotated[ClarificationAnswers, Field(max_length=MAX_QUESTIONS)] = Field(
        default_factory=dict
    )

    @field_validator("answers", mode="before")
    @classmethod
    def _expand(cls, given: object, info: ValidationInfo) -> object:
        questions = info.data.get("questions_asked")
        return given if questions is None else expand_answers(given, questions)

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

    def with_answers(self, answers: Mapping[str, object]) -> Self:
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

    def with_notes(self, *notes: str) -> Self:
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
    subject_line: Annotated[str, Field(max_length=MAX_SUBJECT), AfterValidator(not_blank)]
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


Dimension = Literal["location", "scope", "target_type"]

CONFIDENT: Final = 0.7
"""From here on a dimension needs no question."""

_MOST: Final = 2


def _confidences(inferred: InferredContext) -> dict[Dimension, float]:
    return {
        "location": inferred.location_confidence,
        "scope": inferred.scope_confidence,
        "target_type": inferred.target_type_confidence,
    }


def overall_confidence(inferred: InferredContext) -> float:
    """Return the mean of the three dimensions; urgency does not count."""
    values = _confidences(inferred).values()
    return sum(values) / len(values)


def meets_confidence_threshold(inferred: InferredContext, threshold: float = CONFIDENT) -> bool:
    """Return whether every dimension, not their mean, reaches ``threshold``."""
    return all(value >= threshold for value in _confidences(inferred).values())


def least_confident_dimensions(inferred: InferredContext) -> tuple[Dimension, ...]:
    """Return at most two dimensions below ``CONFIDENT``, the least confident first."""
    below = [(value, name) for name, value in _confidences(inferred).items() if value < CONFIDENT]
    # Sorting is stable: of equals, the one named first in InferredContext comes first.
    return tuple(name for _, name in sorted(below, key=lambda pair: pair[0])[:_MOST])
