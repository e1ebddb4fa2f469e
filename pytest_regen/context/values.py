"""A clarification as values: what was inferred, what was answered, the results of a turn.

Closed, bounded and frozen. Names are read in snake_case and in camelCase.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr

from pytest_regen.context.conversation import Conversation, check_ids
from pytest_regen.context.questions import (
    MAX_ANSWER,
    MAX_LABEL,
    Answer,
    ClarificationQuestion,
    Label,
    Sparse,
    not_blank,
)

MAX_DESCRIPTION: Final = 4_000
"""Characters; so are the other limits of texts."""
MAX_REASONING: Final = 1_000
MAX_QUESTIONS: Final = 2
MAX_SUBJECT: Final = 80
MAX_TOPICS: Final = 5

Scope = Literal["local", "state", "national", "international"]
TargetType = Literal["government", "corporate", "institutional", "other"]
Urgency = Literal["breaking", "recent", "ongoing", "structural"]


# Strict, because "0.8" and true are slips of a model, which it should be told.
_Confidence = Annotated[float, Field(ge=0, le=1, strict=True)]


class InferredContext(Sparse):
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


ClarificationAnswers = dict[str, Answer]
"""Answers by question id. A question without an entry was skipped."""

_Questions = Annotated[tuple[ClarificationQuestion, ...], Field(max_length=MAX_QUESTIONS)]


class ConversationContext(Conversation[ClarificationQuestion, Answer]):
    """Everything the second turn needs, held by the caller.

    ``answers`` are given as typed answers, or shorter, as one string per question; blank ones
    and ``{"kind": "skipped"}`` are left out, so that equal contexts are equal values.
    """

    original_description: Annotated[
        str, Field(max_length=MAX_DESCRIPTION), AfterValidator(not_blank)
    ]
    questions_asked: _Questions
    inferred_context: InferredContext
    # None, because this agent asks once.
    earlier_rounds: tuple[()] = ()


class _Result(Sparse):
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

    # Without camelCase, because the system prompt fixes the names of a reply.
    model_config = ConfigDict(alias_generator=None)

    needs_clarification: Literal[True] = True
    questions: Annotated[
        _Questions,
        Field(min_length=1, alias="clarification_questions"),
        AfterValidator(check_ids),
    ]
    inferred_context: InferredContext = InferredContext()


class Generate(_Result):
    """The agent wrote."""

    model_config = ConfigDict(alias_generator=None)

    needs_clarification: Literal[False] = False
    subject_line: Annotated[str, Field(max_length=MAX_SUBJECT), AfterValidator(not_blank)]
    core_message: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    topics: Annotated[tuple[Label, ...], Field(max_length=MAX_TOPICS)] = ()
    url_slug: Annotated[
        str, Field(max_length=MAX_LABEL, pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")
    ] = ""
    voice_sample: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    detected_ask: Annotated[str, Field(max_length=MAX_ANSWER)] | None = None
    inferred_context: InferredContext = InferredContext()


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
    # Because sorting is stable, of equals the one named first in InferredContext comes first.
    return tuple(name for _, name in sorted(below, key=lambda pair: pair[0])[:_MOST])
