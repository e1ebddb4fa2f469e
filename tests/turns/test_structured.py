"""Structured replies: found in any text, validated, asked for again."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError, field_validator
from tables import each

from pytest_regen.errors import RefusedError, ReplyFormatError
from pytest_regen.turns import (
    Reply,
    ScriptedProvider,
    agenerate_object_with_repair,
    extract_json,
    generate_object_with_repair,
    parse_json_with_schema,
    schema_to_prompt_hint,
)
from pytest_regen.turns.reply_text import complete_items


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
        f"~~~json\n{GOOD}\n~~~",
        f"Here it is: {GOOD} I hope it helps.",
        f"Replace {{x}} in this: {GOOD}",
        f"{GOOD}\n\nRun it:\n\n```bash\necho {{}}\n```",
        f"```text\nNothing yet.\n```\nNow:\n```json\n{GOOD}\n```",
        f'{{"b": 2}}\n{GOOD}',
        '{"a": 1,}',
        f'{{"a": 7, "b": [\n```json\n{GOOD}\n```',
        f"An open {{ in prose, an open [ too, and then {GOOD}",
    ],
)
def test_the_value_is_found_wherever_it_stands(text: str) -> None:
    """Fences of any kind, prose with brackets, other values and other fences hide nothing.

    Requirement 1, parseJsonWithSchema: fences and prose around it.
    """
    assert parse_json_with_schema(text, Answer) == Answer(a=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('prose [2] then {"a": 1}', '{"a": 1}'),
        ('{"a": 1} no, {"a": 2}', '{"a": 2}'),
        ('<think>{"a": 1, "b": 2}</think>{"a": 1}', '{"a": 1}'),
        ("<think>no JSON here</think> just words ", "just words"),
        ('x {"a": {"b": 1}} y', '{"a": {"b": 1}}'),
        ("  just words ", "just words"),
        ('{"code": "```json\\n{}\\n```"}', '{"code": "```json\\n{}\\n```"}'),
    ],
)
def test_extraction_takes_the_largest_whole_value(text: str, expected: str) -> None:
    """To its own closing bracket, of equal ones the last; where there is none, the text as it is.

    What is thought aloud is no text.
    """
    assert extract_json(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "   ", "I cannot do that.", '{"a": 1', '{"a": NaN}', "{'a': 1}", '[{"a": 1}, {"a": 2'],
)
def test_text_without_a_whole_value_is_an_error(text: str) -> None:
    """Nothing, prose, half a value, NaN and Python's spelling raise; a part is never taken.

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


def test_a_wrapper_is_not_opened() -> None:
    """A value inside another one is a part of it, even where it alone would fit."""
    with pytest.raises(ReplyFormatError):
        parse_json_with_schema('{"result": {"a": 1}}', Answer)


def test_any_type_adapter_is_a_schema() -> None:
    assert parse_json_with_schema("Numbers: [1, 2]", TypeAdapter(list[int])) == [1, 2]
    assert parse_json_with_schema("```json\n7\n```", TypeAdapter(int)) == 7


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
PROSE = st.text(alphabet="abc .,:-\n", max_size=30)


@given(JSON.filter(lambda v: isinstance(v, dict)), PROSE, PROSE, st.booleans())
def test_any_object_survives_any_prose(value: Any, before: str, after: str, fenced: bool) -> None:  # noqa: FBT001 - drawn
    """An object is found again among words, fenced or not, whatever its strings hold."""
    text = json.dumps(value, indent=1)
    wrapped = f"{before}\n```json\n{text}\n```\n{after}" if fenced else f"{before}{text}{after}"

    assert json.loads(extract_json(wrapped)) == value


@given(JSON.filter(lambda v: isinstance(v, dict) and v), st.data())
def test_a_cut_object_is_never_taken_for_whole(value: Any, data: st.DataObject) -> None:
    """No proper prefix of an object yields a value, not even a part that is whole by itself."""
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text) - 1))

    with pytest.raises(ReplyFormatError):
        parse_json_with_schema(text[:cut], TypeAdapter(Any))


def test_complete_items_of_a_cut_list_are_saved() -> None:
    """Items that ended before the cut are kept, the one that was cut is not."""
    text = '{"note": [{"x": 0}], "scenarios": [{"a": 1}, {"a": {"b": "]}"}}, {"a": 3'

    assert complete_items(text, "scenarios") == [{"a": 1}, {"a": {"b": "]}"}}]
    assert complete_items("nothing", "scenarios") == []


def test_the_hint_holds_the_schema_after_a_blank_line() -> None:
    """It can be appended to any message, and the schema in it is JSON.

    Requirement 1, schemaToPromptHint.
    """
    hint = schema_to_prompt_hint(Answer)

    assert hint.startswith("\n\n")
    assert json.loads(extract_json(hint))["properties"]["a"]["type"] == "integer"


def test_the_hint_says_nothing_that_versions_of_pydantic_differ_in() -> None:
    """Recorded requests hold the hint; what is said by silence as well is left out, values stay."""

    class Loose(BaseModel):
        kind: Literal["one"]
        free: dict[str, Any] = {"additionalProperties": True, "const": 1, "enum": [1]}
        either: dict[str, Any] | None = None

    hint = json.loads(extract_json(schema_to_prompt_hint(Loose)))
    kind, free = hint["properties"]["kind"], hint["properties"]["free"]

    assert (kind["const"], "enum" in kind) == ("one", False)
    assert "additionalProperties" not in free
    assert hint["properties"]["either"]["anyOf"] == [{"type": "null"}, {"type": "object"}]
    assert free["default"] == {"additionalProperties": True, "const": 1, "enum": [1]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Literal["a", "b"], Literal["b", "a"]),
        (Literal["a", 1], Literal[1, "a"]),
        (dict[str, int | str], dict[str, str | int]),
    ],
)
def test_the_order_of_choices_is_nothing_in_a_hint(one: Any, other: Any) -> None:
    """Types that are equal are exchanged for each other by ``typing``, as long as it remembers."""
    hints = {schema_to_prompt_hint(TypeAdapter(each)) for each in (one, other)}

    assert one == other
    assert len(hints) == 1


def test_a_schema_beyond_json_schema_gets_a_plain_hint() -> None:
    """What cannot be described is asked for in words."""

    class Odd(BaseModel, arbitrary_types_allowed=True):
        value: Callable[[], int]

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


def test_what_a_type_says_beyond_its_schema_is_repaired_as_well() -> None:
    """A validator of its own is told to the model in its own words."""

    class Even(Answer):
        @field_validator("a")
        @classmethod
        def _is_even(cls, value: int) -> int:
            if value % 2:
                raise ValueError(f"{value} is odd")
            return value

    provider = ScriptedProvider([GOOD, '{"a": 2}'])

    assert generate_object_with_repair(provider, Even, prompt="Even?").output.a == 2
    assert "a: Value error, 1 is odd" in provider.requests[1].messages[-1].content
    with pytest.raises(ReplyFormatError, match="does not fit"):
        parse_json_with_schema(GOOD, Even)


def test_the_last_error_is_raised_when_repairs_are_used_up() -> None:
    provider = ScriptedProvider(["no", "no!", '{"a": []}'])

    with pytest.raises(ReplyFormatError, match="does not fit"):
        generate_object_with_repair(provider, Answer, prompt="Count.")


def test_an_empty_reply_is_repaired_without_an_empty_message() -> None:
    """The API refuses empty messages, so that silence is shown in words."""
    provider = ScriptedProvider(["", GOOD])

    assert generate_object_with_repair(provider, Answer, prompt="Count.").repair_attempts == 1
    assert all(message.content.strip() for message in provider.requests[1].messages)


def test_a_reply_cut_beyond_continuation_is_not_repaired() -> None:
    """Asking again for what is too long would only be cut again."""
    provider = ScriptedProvider([Reply('{"x": "', "max_tokens")] * 9)

    with pytest.raises(ReplyFormatError) as caught:
        generate_object_with_repair(provider, Answer, prompt="Count.")

    assert caught.value.is_truncated
    assert len(provider.requests) == 4


def test_a_refusal_is_not_repaired() -> None:
    provider = ScriptedProvider([Reply("", "refusal"), GOOD])

    with pytest.raises(RefusedError):
        generate_object_with_repair(provider, Answer, prompt="Count.")

    assert len(provider.requests) == 1


def test_the_asynchronous_twin_does_the_same() -> None:
    class Plain:
        def __init__(self) -> None:
            self.inner = ScriptedProvider(["no", GOOD])

        def send(self, request: Any) -> Reply:
            return self.inner.send(request)

    for provider in (ScriptedProvider(["no", GOOD]), Plain()):
        found = asyncio.run(agenerate_object_with_repair(provider, Answer, prompt="Count."))
        assert (found.output, found.repair_attempts) == (Answer(a=1), 1)
