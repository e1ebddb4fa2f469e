"""Values of a clarification: what is read, what is refused and how it is named."""

import math
from typing import Any

import pytest
from context_values import FRAMING, INFERRED, LOCATION, RENT, WORDS, context, wire
from pydantic import ValidationError
from tables import each

from pytest_regen.context import (
    Ask,
    ChoiceAnswer,
    Generate,
    InferredContext,
    PlaceAnswer,
    TextAnswer,
    is_blank,
    least_confident_dimensions,
    meets_confidence_threshold,
    overall_confidence,
    parse_context,
    parse_request,
)
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.errors import InvalidContextError

UNSURE = wire() | {"inferredContext": {"scope_confidence": math.nan}}
SPARE: dict[str, object] = {
    key: value for key, value in INFERRED.items() if key != "detected_scope"
}


def test_names_are_read_in_both_cases() -> None:
    """camelCase, as in the requirement, and snake_case are the same context."""
    camel = parse_context(wire(location="San Francisco, CA"))
    snake = parse_context(
        {
            "original_description": RENT,
            "questions_asked": [LOCATION],
            "inferred_context": SPARE | {"detectedScope": "local"},
            "answers": {"location": "San Francisco, CA"},
        }
    )

    assert camel == snake


def test_json_is_written_as_in_the_requirement() -> None:
    """The four members are camelCase; questions and inferences keep their own names.

    Requirement 3, section 1: the members of ConversationContext.
    """
    dumped = context(location="San Francisco, CA").model_dump(mode="json", by_alias=True)

    assert set(dumped) == {
        "schemaVersion",
        "originalDescription",
        "questionsAsked",
        "inferredContext",
        "answers",
    }
    assert dumped["questionsAsked"] == [LOCATION]
    assert dumped["inferredContext"]["detected_scope"] == "local"


@pytest.mark.parametrize(
    ("question", "flat", "typed"),
    [
        (WORDS, " kept as it is ", TextAnswer(text=" kept as it is ")),
        (LOCATION, "Austin, TX", PlaceAnswer(label="Austin, TX")),
        (FRAMING, "rent hikes", ChoiceAnswer(selected=("hikes",))),
        (
            FRAMING,
            "bad repairs|||rent hikes|||my own words",
            ChoiceAnswer(selected=("repairs", "hikes"), other="my own words"),
        ),
        (FRAMING, "mine|||and mine", ChoiceAnswer(other="mine ||| and mine")),
    ],
)
def test_a_string_is_an_answer_of_the_type_of_its_question(
    question: dict[str, Any], flat: str, typed: object
) -> None:
    """The requirement's flat answers are read by the question they belong to."""
    assert context(question, **{question["id"]: flat}).answers == {question["id"]: typed}


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        "\ufeff\u200b",
        None,
        {"kind": "skipped"},
        ChoiceAnswer(),
        "||||||",
    ],
)
def test_what_says_nothing_is_no_answer(nothing: object) -> None:
    """Blank, empty and skipped are one and the same: the context without that answer."""
    assert context(FRAMING, framing=nothing) == context(FRAMING)


@each(
    ("data", "place", "reason"),
    [
        ({}, "originalDescription", "required"),
        (wire() | {"originalDescription": " \u200b"}, "originalDescription", "blank"),
        (wire() | {"originalDescription": "\ud800"}, "originalDescription", "unicode"),
        (wire(LOCATION, LOCATION), "questionsAsked", "share an id"),
        (wire(LOCATION, WORDS, FRAMING), "questionsAsked", "at most 2"),
        (wire(LOCATION | {"type": "chips"}), "questionsAsked.0.type", "location_picker"),
        (wire(WORDS | {"location_level": "city"}), "questionsAsked.0", "location_level"),
        (wire(FRAMING | {"options": FRAMING["options"][:1] * 2}), "questionsAsked.0", "same id"),
        (UNSURE, "inferredContext.scope_confidence", "finite"),
        (wire() | {"earlierRounds": [{"questionsAsked": []}]}, "earlierRounds", "at most 0"),
        (wire(elsewhere="x"), "answers", "not asked"),
        (wire(location={"kind": "text", "text": "x"}), "answers", "'text'"),
        (wire(FRAMING, framing={"kind": "choice", "selected": ["gone"]}), "answers", "not offered"),
        (wire(FRAMING | {"allow_other": False}, framing="mine"), "answers", "does not allow"),
        (wire() | {"role": "system"}, "role", "Extra"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused_by_name(data: object, place: str, reason: str) -> None:
    """Every defect is one error of ours that names the leaf; none is another exception."""
    with pytest.raises(InvalidContextError) as caught:
        parse_context(data)

    assert reason in dict(caught.value.problems)[place]


def test_what_was_sent_is_not_repeated_at_length() -> None:
    """Neither values nor names nor tags of the caller blow up a message, or end its lines."""
    huge = "\n## forged" * 100_000
    for data in (
        wire() | {huge: 1},
        wire(location={"kind": huge}),
        wire(location={"kind": "place", "label": "x", huge: "y"}),
        wire(location=huge),
    ):
        with pytest.raises(InvalidContextError) as caught:
            parse_context(data)

        assert len(str(caught.value)) < 1_000
        assert all("\n" not in place + reason for place, reason in caught.value.problems)


def test_null_is_absent() -> None:
    """Models write ``null`` for what they leave out; so do callers that have no ``undefined``."""
    nulls = dict.fromkeys(("placeholder", "options", "prefilled_location", "allow_other"))

    assert context(LOCATION | nulls) == context(LOCATION)
    assert InferredContext.model_validate(dict.fromkeys(InferredContext.model_fields)) == (
        InferredContext()
    )


def test_answers_are_replaced_as_a_whole() -> None:
    """The same first turn with other answers; they are checked as at first."""
    first = context(location="Austin, TX")

    assert first.with_answers({"location": "Reno, NV"}) == context(location="Reno, NV")
    with pytest.raises(ValidationError, match="not asked"):
        first.with_answers({"elsewhere": "x"})


def test_answers_stand_in_the_order_of_questions() -> None:
    """Whatever order, and whatever names that some languages sort first."""
    ten, two = WORDS | {"id": "10"}, LOCATION | {"id": "2"}

    found = context(ten, two, **{"2": "Reno, NV", "10": "it leaks"})

    assert list(found.answers) == ["10", "2"]


@pytest.mark.parametrize(
    "text",
    ["", "\t\r\n", "\x00", "\x85", "\ufeff", "\u200b\u2060", "\u3164"],
)
def test_blank_is_what_shows_nothing(text: str) -> None:
    """Also what Python's or JavaScript's own functions take for text."""
    assert is_blank(text)
    assert not is_blank(f"{text}x{text}")


def test_a_reply_is_one_or_the_other() -> None:
    both = {"clarification_questions": [LOCATION], "subject_line": "x"}

    with pytest.raises(ValidationError, match="subject_line"):
        Ask.model_validate({"needs_clarification": True, **both})
    with pytest.raises(ValidationError, match="clarification_questions"):
        Generate.model_validate({"needs_clarification": False, **both})


@pytest.mark.parametrize("name", ["conversationContext", "conversation_context"])
def test_a_request_is_read_as_in_the_requirement(name: str) -> None:
    """``message``, ``interactionId`` and the context, in either case.

    Requirement 3, section 3: the body of a request.
    """
    found = parse_request({"message": RENT, "interactionId": "i-1", name: wire()})

    assert found == ClarificationRequest(
        message=RENT, interaction_id="i-1", conversation_context=context()
    )


def test_the_other_name_of_the_context_leaves_the_description_to_the_message() -> None:
    """The data flow of the requirement calls it ``clarificationContext``, with three members.

    Both names in one request are one too many.
    """
    partial = {key: value for key, value in wire().items() if key != "originalDescription"}
    body = {"message": RENT, "clarificationContext": partial}

    assert parse_request(body).conversation_context == context()
    with pytest.raises(InvalidContextError, match="clarificationContext"):
        parse_request(body | {"conversationContext": wire()})


@pytest.mark.parametrize(
    ("sure", "mean", "least"),
    [
        ((0.7, 0.7, 0.7), 0.7, ()),
        ((0.69, 0.7, 0.8), 0.73, ("location",)),
        ((0.5, 0.5, 0.5), 0.5, ("location", "scope")),
        ((0.6, 0.1, 0.2), 0.3, ("scope", "target_type")),
    ],
)
def test_how_sure_inferences_are(
    sure: tuple[float, float, float], mean: float, least: tuple[str, ...]
) -> None:
    """Exactly at the threshold is sure; of equals the first named comes first."""
    names = ("location_confidence", "scope_confidence", "target_type_confidence")

    inferred = InferredContext.model_validate(dict(zip(names, sure, strict=True)))

    assert least_confident_dimensions(inferred) == least
    assert overall_confidence(inferred) == pytest.approx(mean)
    assert meets_confidence_threshold(inferred) == (not least)
    assert meets_confidence_threshold(inferred, min(sure))
