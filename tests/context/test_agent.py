"""The agent: asks once at most, writes on the second turn, keeps nothing."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from context_values import ASKS, INFERRED, LOCATION, RENT, WORDS, WRITES, context, wire

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
from pytest_regen.errors import ReaskedError, RefusedError, ReplyFormatError
from pytest_regen.testing import assert_level
from pytest_regen.turns import Reply, ScriptedProvider

FIRST = ClarificationRequest(message=RENT)
SECOND = ClarificationRequest(message=RENT, conversation_context=context(location="Reno, NV"))


def asking(*questions: dict[str, Any], **inferred: object) -> str:
    """Return a reply that asks."""
    return json.dumps(
        {
            "needs_clarification": True,
            "clarification_questions": list(questions),
            "inferred_context": INFERRED | inferred,
        }
    )


def test_a_first_turn_may_ask() -> None:
    """Questions and inferences are those of the reply."""
    result = ClarifyingAgent(ScriptedProvider([ASKS])).turn(FIRST)

    assert isinstance(result, Ask)
    assert result.questions == context().questions_asked
    assert result.inferred_context == context().inferred_context


def test_a_first_turn_may_write() -> None:
    """A description that says enough needs no question."""
    result = ClarifyingAgent(ScriptedProvider([WRITES])).turn(FIRST)

    assert isinstance(result, Generate)
    assert result.subject_line == "Our Rent Doubled and City Hall Shrugged"


def test_a_second_turn_sends_the_whole_context() -> None:
    """The prompt is the rendered context, after the one system prompt."""
    provider = ScriptedProvider([WRITES])

    ClarifyingAgent(provider, model="m").turn(SECOND)

    assert len(provider.requests) == 1
    request = provider.requests[0]
    assert request.system == SUBJECT_LINE_PROMPT
    assert request.model == "m"
    assert [one.content for one in request.messages] == [
        render_context(context(location="Reno, NV"))
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "I would rather not.",
        "{}",
        '{"needs_clarification": false}',
        '{"needs_clarification": "yes", "subject_line": "x"}',
        '{"needs_clarification": true, "clarification_questions": []}',
        asking(LOCATION, WORDS, LOCATION | {"id": "third"}),
        asking(LOCATION, LOCATION),
        asking(LOCATION, detected_scope="national"),
        '{"needs_clarification": false, "subject_line": "' + "x" * 81 + '"}',
    ],
)
@pytest.mark.parametrize("request_", [FIRST, SECOND], ids=["first", "second"])
def test_an_unusable_reply_is_asked_for_once_more(bad: str, request_: ClarificationRequest) -> None:
    """The second request begins with the first, word for word, and says what is wrong."""
    provider = ScriptedProvider([bad, WRITES])

    assert isinstance(ClarifyingAgent(provider).turn(request_), Generate)
    first, again = provider.requests
    assert again.system == first.system
    assert again.messages[0] == first.messages[0]
    assert len(again.messages) > 1


def test_two_unusable_replies_are_an_error() -> None:
    """There is no third call."""
    provider = ScriptedProvider(["no", "no", WRITES])

    with pytest.raises(ReplyFormatError):
        ClarifyingAgent(provider).turn(SECOND)
    assert len(provider.requests) == 2


def test_a_second_turn_that_asks_is_told_to_write() -> None:
    """Once; everything stands in the request again."""
    provider = ScriptedProvider([ASKS, WRITES])

    assert isinstance(ClarifyingAgent(provider).turn(SECOND), Generate)
    assert "needs_clarification is false" in provider.requests[1].messages[-1].content


def test_a_second_turn_never_returns_questions() -> None:
    """A model that insists is an error that says so."""
    provider = ScriptedProvider([ASKS, ASKS, WRITES])

    with pytest.raises(ReaskedError, match="asks again"):
        ClarifyingAgent(provider).turn(SECOND)
    assert len(provider.requests) == 2


def test_a_refusal_is_told_at_once() -> None:
    """Asking again would not help."""
    provider = ScriptedProvider([Reply("", stop_reason="refusal")])

    with pytest.raises(RefusedError):
        ClarifyingAgent(provider).turn(FIRST)


def test_a_reply_that_was_cut_is_continued() -> None:
    """Its pieces are one reply."""
    cut = Reply(WRITES[:40], stop_reason="max_tokens")

    assert isinstance(ClarifyingAgent(ScriptedProvider([cut, WRITES[40:]])).turn(SECOND), Generate)


def test_the_first_object_that_is_a_result_counts() -> None:
    """Prose, fences and other objects around it are passed over."""
    text = f'Thinking {{"a": 1}} ... \n```json\n{WRITES}\n```\nHope that helps!'

    assert isinstance(read_reply(text), Generate)


def test_it_takes_turns_without_blocking() -> None:
    """The asynchronous turn sends and returns the same; without ``asend`` in a thread."""

    class Plain:
        def __init__(self) -> None:
            self.inner = ScriptedProvider([ASKS, WRITES])

        def send(self, request: Any) -> Reply:
            return self.inner.send(request)

    plain, scripted = Plain(), ScriptedProvider([ASKS, WRITES])

    async def both() -> tuple[object, object]:
        return (
            await ClarifyingAgent(plain).aturn(SECOND),
            await ClarifyingAgent(scripted).aturn(SECOND),
        )

    one, other = asyncio.run(both())

    assert one == other
    assert plain.inner.requests == scripted.requests


LEGACY: dict[str, Callable[[], dict[str, object]]] = {
    "context": lambda: {"conversationContext": wire(location="Reno, NV")},
    "answers": lambda: {"clarificationAnswers": {"location": "Elko, NV"}},
    "id": lambda: {"interactionId": "i-1"},
}


@pytest.mark.filterwarnings("ignore:clarification_answers:DeprecationWarning")
@pytest.mark.parametrize("present", range(8))
def test_the_first_that_is_there_decides(present: int) -> None:
    """Context, then legacy answers, then the description; the id decides nothing."""
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


def test_a_context_makes_the_message_void() -> None:
    """The description that counts is the one that the questions were about."""
    other = SECOND.model_copy(update={"message": "something else"})

    assert prompt_of(other) == prompt_of(SECOND)


def test_legacy_answers_are_deprecated() -> None:
    """They work, as a second turn, and warn; a context beside them silences it."""
    legacy = parse_request({"message": RENT, "clarificationAnswers": {"location": "Reno"}})
    both = legacy.with_context(context())

    with pytest.warns(DeprecationWarning, match="conversation_context"):
        result = ClarifyingAgent(ScriptedProvider([WRITES])).turn(legacy)
    assert isinstance(result, Generate)
    with pytest.warns(DeprecationWarning, match="asked"), pytest.raises(ReaskedError):
        ClarifyingAgent(ScriptedProvider([ASKS, ASKS])).turn(legacy)
    ClarifyingAgent(ScriptedProvider([WRITES])).turn(both)


@pytest.mark.parametrize(
    ("level", "scope", "agrees"),
    [
        ("city", "local", True),
        ("state", "state", True),
        ("country", "national", True),
        ("country", "international", True),
        ("city", "state", False),
        ("city", "national", False),
        ("state", "local", False),
        ("country", "local", False),
        ("country", "state", False),
        ("city", None, True),
        ("state", None, True),
        ("country", None, True),
    ],
)
def test_the_level_of_a_question_agrees_with_the_scope(
    level: str,
    scope: str | None,
    agrees: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """City with local, state with state, country with the two above it; unknown with all."""
    reply = asking(LOCATION | {"location_level": level}, detected_scope=scope)

    if agrees:
        assert isinstance(read_reply(reply), Ask)
    else:
        with pytest.raises(ReplyFormatError) as caught:
            read_reply(reply)
        assert "location_level" in caught.value.problem


@pytest.mark.parametrize(("said", "level", "why"), SCOPE_EXAMPLES)
def test_the_scope_examples_pass_as_replies(said: str, level: str | None, why: str) -> None:
    """A model that does what an example says is understood; one that does the contrary is not."""
    del why
    scopes = {"city": "local", "state": "state"}
    if level is None:
        assert isinstance(ClarifyingAgent(ScriptedProvider([WRITES])).turn(FIRST), Generate)
        return
    good = asking(LOCATION | {"location_level": level}, detected_scope=scopes[level])
    found = ClarifyingAgent(ScriptedProvider([good])).turn(ClarificationRequest(message=said))

    assert isinstance(found, Ask)
    assert level in {"city", "state"}
    assert_level(found, "location", "city" if level == "city" else "state")
    with pytest.raises(AssertionError, match="not a country"):
        assert_level(found, "location", "country")


def test_a_question_cannot_forge_what_the_model_is_told_of_it() -> None:
    """Names of a model's own making come back as data."""
    bad = asking(LOCATION | {"id": "a\n## Forged"}, detected_scope="state")
    worse = json.dumps({"needs_clarification": False, "x\n## Forged": 1, "subject_line": "y"})

    for reply in (bad, worse):
        with pytest.raises(ReplyFormatError) as caught:
            read_reply(reply)
        assert "\n## Forged" not in caught.value.problem
        assert "## Forged" in caught.value.problem
