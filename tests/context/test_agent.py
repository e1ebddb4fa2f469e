"""The agent: asks once at most, writes on the second turn, keeps nothing."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from context_values import ASKS, FRAMING, INFERRED, LOCATION, RENT, WORDS, WRITES, context, wire
from tables import each

from pytest_regen.context import (
    SCOPE_EXAMPLES,
    SUBJECT_LINE_PROMPT,
    Ask,
    ClarificationRequest,
    ClarifyingAgent,
    Generate,
    parse_request,
    prompt_of,
    read_reply,
    render_context,
)
from pytest_regen.errors import ReaskedError, ReplyFormatError
from pytest_regen.turns import ScriptedProvider

FIRST = ClarificationRequest(message=RENT)
SECOND = ClarificationRequest(message=RENT, conversation_context=context(location="Reno, NV"))


def asking(*questions: dict[str, Any], **inferred: object) -> str:
    return json.dumps(
        {
            "needs_clarification": True,
            "clarification_questions": list(questions),
            "inferred_context": INFERRED | inferred,
        }
    )


def test_a_second_turn_sends_the_whole_context() -> None:
    """The prompt is the rendered context, after the one system prompt.

    Requirement 3, criterion 1: the agent gets the complete context.
    """
    provider = ScriptedProvider([WRITES])

    ClarifyingAgent(provider, model="m").turn(SECOND)

    assert len(provider.requests) == 1
    request = provider.requests[0]
    assert request.system == SUBJECT_LINE_PROMPT
    assert request.model == "m"
    assert [one.content for one in request.messages] == [
        render_context(context(location="Reno, NV"))
    ]


@each(
    "bad",
    [
        "I would rather not.",
        asking(LOCATION, WORDS, LOCATION | {"id": "third"}),
        '{"needs_clarification": false, "subject_line": "' + "x" * 81 + '"}',
    ],
)
@each("request_", [FIRST, SECOND], ids=["first", "second"])
def test_an_unusable_reply_is_asked_for_again(bad: str, request_: ClarificationRequest) -> None:
    """Twice; each request begins with the first, word for word, and says what is wrong."""
    patient = ScriptedProvider([bad, "{}", WRITES])
    in_vain = ScriptedProvider([bad, "{}", "no", WRITES])

    assert isinstance(ClarifyingAgent(patient).turn(request_), Generate)
    with pytest.raises(ReplyFormatError):
        ClarifyingAgent(in_vain).turn(request_)
    assert len(in_vain.requests) == 3
    first, *repairs = patient.requests
    for again in repairs:
        assert again.system == first.system
        assert again.messages[0] == first.messages[0]
        assert len(again.messages) > 1


@pytest.mark.parametrize(
    ("replies", "calls"),
    [
        ([ASKS, f"Attempt 2: {ASKS}", f"Attempt 3: {ASKS}", WRITES], 3),
        # In the same words, because telling it again would not help.
        ([ASKS, ASKS, WRITES], 2),
    ],
)
def test_a_second_turn_never_returns_questions(replies: list[str], calls: int) -> None:
    provider = ScriptedProvider(replies)

    with pytest.raises(ReaskedError, match="asks again"):
        ClarifyingAgent(provider).turn(SECOND)
    assert len(provider.requests) == calls


@pytest.mark.parametrize(
    "asks",
    [
        ASKS,
        asking(LOCATION | {"question": ""}),
        json.dumps({"clarification_questions": [LOCATION]}),
    ],
)
def test_asking_again_is_found_before_what_is_wrong_with_the_question(asks: str) -> None:
    """A question that may not be asked is not to be mended, but left."""
    provider = ScriptedProvider([asks, WRITES])

    assert isinstance(ClarifyingAgent(provider).turn(SECOND), Generate)
    correction = provider.requests[1].messages[-1].content
    assert "needs_clarification is false" in correction
    assert "questions.0" not in correction


@pytest.mark.parametrize(
    "text", [f"{ASKS} No: {WRITES}", f'Thinking {{"a": 1}} ... \n```json\n{WRITES}\n```\nVoilà!']
)
def test_the_first_object_that_is_a_result_counts(text: str) -> None:
    """Whoever asks in a draft and writes in the end has not asked again."""
    assert isinstance(read_reply(text, may_ask=False), Generate)


def test_it_takes_turns_without_blocking() -> None:
    """The asynchronous turn sends and returns the same."""
    one, other = (ScriptedProvider([ASKS, WRITES]) for _ in range(2))

    result = asyncio.run(ClarifyingAgent(one).aturn(SECOND))

    assert result == ClarifyingAgent(other).turn(SECOND)
    assert one.requests == other.requests


LEGACY: dict[str, Callable[[], dict[str, object]]] = {
    "context": lambda: {"conversationContext": wire(location="Reno, NV")},
    "answers": lambda: {"clarificationAnswers": {"location": "Elko, NV"}},
    "id": lambda: {"interactionId": "i-1"},
}


@pytest.mark.filterwarnings("ignore:clarification_answers:DeprecationWarning")
@pytest.mark.parametrize("present", range(8))
def test_the_first_that_is_there_decides(present: int) -> None:
    """Context, then legacy answers, then the description; the id decides nothing.

    Requirement 3, migration: conversationContext takes precedence.
    """
    names = [name for bit, name in enumerate(LEGACY) if present & 1 << bit]
    data: dict[str, object] = {"message": RENT}
    for name in names:
        data |= LEGACY[name]()
    request = parse_request(data)
    provider = ScriptedProvider([WRITES])
    ClarifyingAgent(provider).turn(request)
    prompt = provider.requests[0].messages[0].content

    assert ("## My Previous Analysis" in prompt) == ("context" in names)
    assert ("Elko" in prompt) == ("answers" in names and "context" not in names)
    assert "i-1" not in prompt
    assert request.is_second_turn == bool({"context", "answers"} & set(names))


def test_empty_legacy_answers_skip_only_what_was_asked() -> None:
    """With the id of a conversation they end it; without one there was no first turn."""
    alone = parse_request({"message": RENT, "clarificationAnswers": {}})
    skipped = parse_request({"message": RENT, "clarificationAnswers": {}, "interactionId": "i-1"})

    assert not alone.is_second_turn
    assert prompt_of(alone) == prompt_of(FIRST)
    assert skipped.is_second_turn
    assert "(User skipped clarification)" in prompt_of(skipped)


def test_legacy_answers_are_deprecated() -> None:
    """They work, as a second turn, and warn; a context beside them silences it.

    Requirement 3, migration: clarificationAnswers are kept.
    """
    legacy = parse_request({"message": RENT, "clarificationAnswers": {"location": "Reno"}})
    both = legacy.with_context(context())

    with pytest.warns(DeprecationWarning, match="conversation_context"):
        result = ClarifyingAgent(ScriptedProvider([WRITES])).turn(legacy)
    assert isinstance(result, Generate)
    with pytest.warns(DeprecationWarning, match="asked"), pytest.raises(ReaskedError):
        ClarifyingAgent(ScriptedProvider([ASKS] * 3)).turn(legacy)
    ClarifyingAgent(ScriptedProvider([WRITES])).turn(both)


@each(
    ("level", "scope", "fitting"),
    [
        ("city", "local", "city"),
        ("state", "state", "state"),
        ("country", "international", "country"),
        ("city", None, "city"),
        ("city", "state", "state"),
    ],
)
def test_the_level_of_a_question_agrees_with_the_scope(
    level: str, scope: str | None, fitting: str
) -> None:
    """City with local, state with state, country with the two above it; unknown with all."""
    reply = asking(LOCATION | {"location_level": level}, detected_scope=scope)

    if level == fitting:
        assert isinstance(read_reply(reply), Ask)
        return
    with pytest.raises(ReplyFormatError) as caught:
        read_reply(reply)
    assert f"asks for a {level}" in caught.value.problem
    assert f"to which location_level {fitting!r} belongs" in caught.value.problem


@pytest.mark.parametrize(("said", "level", "why"), SCOPE_EXAMPLES)
def test_the_scope_examples_pass_as_replies(said: str, level: str | None, why: str) -> None:
    """A model that does what an example says is understood.

    Requirement 3, criterion 2: the examples of scope inference.
    """
    del why
    scopes = {"city": "local", "state": "state"}
    reply = WRITES
    if level is not None:
        reply = asking(LOCATION | {"location_level": level}, detected_scope=scopes[level])
    result = ClarifyingAgent(ScriptedProvider([reply])).turn(ClarificationRequest(message=said))

    levels = [question.location_level for question in getattr(result, "questions", ())]
    assert levels == ([level] if level else [])


ASKING: dict[str, Any] = json.loads(ASKS)


def test_all_faults_of_the_form_come_in_one_message() -> None:
    """Each on a line, by its place."""
    reply = {
        **ASKING,
        "needs_clarification": "true",
        "clarification_questions": [LOCATION, {"id": "b", "question": 1, "type": "x"}],
        "inferred_context": INFERRED | {"detected_scope": "county"},
    }
    with pytest.raises(ReplyFormatError) as caught:
        read_reply(json.dumps(reply))

    assert [
        line.partition(": ")[0].lstrip("- ") for line in caught.value.problem.split("\n")[1:]
    ] == [
        "needs_clarification",
        "clarification_questions.1.question",
        "clarification_questions.1.type",
        "inferred_context.detected_scope",
    ]


def test_members_that_nobody_asked_for_are_left_out() -> None:
    """Of a reply, a question, an option, the inferences; a note names each."""
    options = [option | {"why": "x"} for option in FRAMING["options"]]
    question = FRAMING | {"options": options, "note": 1}
    inferred = INFERRED | {"detected_mood": "angry"}
    extra = {"clarification_questions": [question], "inferred_context": inferred, "notes": "mine"}
    asks = read_reply(json.dumps(ASKING | extra))

    plain = read_reply(json.dumps({**ASKING, "clarification_questions": [FRAMING]}))
    assert asks.model_dump() == plain.model_dump()
    assert [note.removeprefix("left out ").partition(",")[0] for note in asks.notes] == [
        "clarification_questions.0.options.0.why",
        "clarification_questions.0.options.1.why",
        "clarification_questions.0.options.2.why",
        "clarification_questions.0.note",
        "inferred_context.detected_mood",
        "notes",
    ]


def test_what_is_empty_is_not_there() -> None:
    """Empty lists and blank texts where a member may be missing are as good as none."""
    empty = {"suggested_locations": [], "placeholder": "", "options": [], "prefilled_location": " "}
    asks = read_reply(json.dumps({**ASKING, "clarification_questions": [LOCATION | empty]}))

    assert asks == read_reply(ASKS)


def test_a_question_cannot_forge_what_the_model_is_told_of_it() -> None:
    bad = asking(LOCATION | {"id": "a\n## Forged"}, detected_scope="state")
    extra = json.dumps({"needs_clarification": False, "x\n## Forged": 1, "subject_line": "y"})

    with pytest.raises(ReplyFormatError) as caught:
        read_reply(bad)
    for told in (caught.value.problem, *read_reply(extra).notes):
        assert "\n## Forged" not in told
        assert "## Forged" in told
