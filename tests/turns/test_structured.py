"""Structured replies: found in any text, validated, asked for again."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from tables import each

from pytest_regen.errors import RefusedError, ReplyFormatError
from pytest_regen.sessions import GeneratorSession
from pytest_regen.turns import (
    Reply,
    ScriptedProvider,
    agenerate_object_with_repair,
    extract_json,
    generate_object_with_repair,
    parse_json_with_schema,
    schema_to_prompt_hint,
)


class Answer(BaseModel):
    """What replies of these tests are to be."""

    a: int


GOOD = '{"a": 1}'


@each(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```{GOOD}```",
        f"Here it is: {GOOD} I hope it helps.",
        f"{GOOD}\n\nRun it:\n\n```bash\necho {{}}\n```",
        f'{{"b": 2}}\n{GOOD}',
        '{"a": 1,}',
        f"An open {{ in prose, an open [ too, see [1] and {{this}}, and then {GOOD}",
    ],
)
def test_the_value_is_found_wherever_it_stands(text: str) -> None:
    """Fences of any kind, prose with brackets, other values and other fences hide nothing.

    Requirement 1, parseJsonWithSchema: fences and prose around it.
    """
    assert parse_json_with_schema(text, Answer) == Answer(a=1)
    assert parse_json_with_schema(text, TypeAdapter(dict[str, int]))["a"] == 1


@each(
    ("text", "expected"),
    [
        ('{"a": 1} no, {"a": 2}', '{"a": 2}'),
        ("<think>no JSON here</think> just words ", "just words"),
        ('x {"a": {"b": 1}} y', '{"a": {"b": 1}}'),
        ('{"code": "```json\\n{}\\n```"}', '{"code": "```json\\n{}\\n```"}'),
    ],
)
def test_extraction_takes_the_largest_whole_value(text: str, expected: str) -> None:
    """To its own closing bracket, of equal ones the last; where there is none, the text as it is.

    What is thought aloud is no text.
    """
    assert extract_json(text) == expected


@each(
    "text",
    ["", "I cannot do that.", '{"a": 1', '{"a": NaN}', "{'a': 1}", '{"result": {"a": 1}}'],
)
def test_text_without_a_whole_value_is_an_error(text: str) -> None:
    """Nothing, prose, half a value, NaN and Python's spelling raise; no wrapper is opened.

    Requirement 1, parseJsonWithSchema: invalid JSON.
    """
    with pytest.raises(ReplyFormatError) as caught:
        parse_json_with_schema(text, Answer)

    assert isinstance(caught.value, ValueError)
    assert caught.value.text == text


def test_a_wrong_schema_is_told_with_the_place_and_the_validators_error() -> None:
    """The cause is pydantic's; the problem names the field in words for the model.

    Requirement 1, parseJsonWithSchema: another schema.
    """
    with pytest.raises(ReplyFormatError) as caught:
        parse_json_with_schema('{"a": "one"}', Answer)

    assert isinstance(caught.value.__cause__, ValidationError)
    assert "- a: Input should be a valid integer" in caught.value.problem


def test_the_hint_holds_the_schema_after_a_blank_line() -> None:
    """It can be appended to any message, and the schema in it is JSON.

    Requirement 1, schemaToPromptHint.
    """
    hint = schema_to_prompt_hint(Answer)

    assert hint.startswith("\n\n")
    assert json.loads(extract_json(hint))["properties"]["a"]["type"] == "integer"


def test_the_hint_says_nothing_that_versions_of_pydantic_differ_in() -> None:
    """Recorded requests hold the hint; what is said by silence as well is left out, values stay.

    ``typing`` exchanges types that are equal for each other, so the order of choices says nothing.
    """

    class Loose(BaseModel):
        kind: Literal["one"]
        choice: Literal["b", 1, "a"] = "a"
        free: dict[str, Any] = {"additionalProperties": True, "const": 1, "enum": [1]}
        either: dict[str, Any] | None = None

    class Odd(BaseModel, arbitrary_types_allowed=True):
        value: Callable[[], int]

    hint = json.loads(extract_json(schema_to_prompt_hint(Loose)))
    kind, free = hint["properties"]["kind"], hint["properties"]["free"]

    assert (kind["const"], "enum" in kind) == ("one", False)
    assert "additionalProperties" not in free
    assert hint["properties"]["choice"]["enum"] == ["a", "b", 1]
    assert hint["properties"]["either"]["anyOf"] == [{"type": "null"}, {"type": "object"}]
    assert free["default"] == {"additionalProperties": True, "const": 1, "enum": [1]}
    assert schema_to_prompt_hint(Odd) == "\n\nRespond with valid JSON only."


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_repairs_are_counted(bad: int) -> None:
    """A wrong reply is shown to the model with what is wrong, and the right one is returned.

    Requirement 1, decision 3: repairs belong to one request, whatever session it is part of.
    """
    provider = ScriptedProvider([*['{"a": "x"}', '{"a": "y"}'][:bad], GOOD])
    told: list[str] = []

    found = generate_object_with_repair(
        provider, Answer, prompt="Count.", system="Be exact.", on_progress=told.append
    )

    assert (found.output, found.repair_attempts) == (Answer(a=1), bad)
    assert {request.system for request in provider.requests} == {"Be exact."}
    assert [len(request.messages) for request in provider.requests] == [1, 3, 5][: bad + 1]
    assert told == [f"Repairing the reply ({n}/2)..." for n in range(1, bad + 1)]
    if bad:
        last = provider.requests[-1].messages
        assert "a: Input should be a valid integer" in last[-1].content
        assert [bool(message.cache) for message in last] == [*[False] * (2 * bad), True]


def test_silence_is_repaired_and_a_refusal_is_not() -> None:
    """The API refuses empty messages, so that silence is shown in words."""
    silent, refused = ScriptedProvider(["", GOOD]), ScriptedProvider([Reply("", "refusal"), GOOD])

    assert generate_object_with_repair(silent, Answer, prompt="Count.").repair_attempts == 1
    assert all(message.content.strip() for message in silent.requests[1].messages)
    with pytest.raises(RefusedError):
        generate_object_with_repair(refused, Answer, prompt="Count.")
    assert len(refused.requests) == 1


def test_a_reply_cut_beyond_continuation_is_not_repaired() -> None:
    """Asking again for what is too long would only be cut again."""
    provider = ScriptedProvider([Reply('{"x": "', "max_tokens")] * 9)

    with pytest.raises(ReplyFormatError) as caught:
        generate_object_with_repair(provider, Answer, prompt="Count.")

    assert caught.value.is_truncated
    assert len(provider.requests) == 4


def test_the_asynchronous_twin_does_the_same() -> None:
    class Plain:
        def __init__(self) -> None:
            self.inner = ScriptedProvider(["no", GOOD])

        def send(self, request: Any) -> Reply:
            return self.inner.send(request)

    for provider in (ScriptedProvider(["no", GOOD]), Plain()):
        found = asyncio.run(agenerate_object_with_repair(provider, Answer, prompt="Count."))
        assert (found.output, found.repair_attempts) == (Answer(a=1), 1)


@each("stubborn", ['{"a": "x"}', "No."])
def test_a_reply_is_not_sent_back_twice_with_the_same_words(stubborn: str) -> None:
    """Whatever is wrong with it; the error says so, and that more repairs would not help."""
    provider = ScriptedProvider([stubborn] * 7)

    with pytest.raises(ReplyFormatError) as caught:
        generate_object_with_repair(provider, Answer, prompt="Count.", max_repairs=6)

    assert len(provider.requests) == 2
    assert "the model gave the same reply again" in caught.value.why
    assert "max_repairs" not in caught.value.hint


@each(
    ("replies", "told", "hint"),
    [
        (
            [Reply("", stop_reason="tool_use")] * 7,
            "the model called a tool instead of answering",
            "",
        ),
        (
            [Reply('{"a', stop_reason="model_context_window_exceeded")],
            "prompt and reply fill the model's window",
            "",
        ),
        (['{"a": "x"}', '{"a": "y"}', '{"a": []}'], "2 repairs did not help", "raise max_repairs"),
    ],
)
def test_the_error_names_what_ended_the_repairs(replies: list[Any], told: str, hint: str) -> None:
    """Not only that a reply is empty, or no whole JSON value."""
    with pytest.raises(ReplyFormatError) as caught:
        generate_object_with_repair(ScriptedProvider(replies), Answer, prompt="Count.")

    assert told in str(caught.value)
    assert hint in caught.value.hint


def test_the_same_words_for_another_reason_are_sent_back() -> None:
    """Other words for the same one as well."""
    reasons = iter([["too large"], ["still too large"], ["still too large"], []])
    provider = ScriptedProvider([*['{"a": 7}'] * 2, '{"a": 6}', GOOD])
    talk = GeneratorSession("x", Answer, provider=provider, max_repairs=6)

    assert talk.ask("How many?", check=lambda _: next(reasons)).a == 1
    assert len(provider.requests) == 4
