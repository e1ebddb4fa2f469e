"""JSON amid prose: a part of something badly written is never taken for the whole."""

import json
from typing import Any

import pytest
from pydantic import BaseModel
from tables import each

from pytest_regen.errors import ReplyFormatError
from pytest_regen.turns import parse_json_with_schema


class Part(BaseModel):
    """A type that holds values of itself: a part fits as well as the whole."""

    name: str = "x"
    inner: "Part | None" = None


PART = '{"name": "part"}'


@each(
    "text",
    [
        f'{{\n // the outer\n "name": "outer", "inner": {PART}\n}}',
        f'{{ ... "inner": {PART}}}',
        f"{{1: {PART}}}",
        f"{{{PART}}}",
        f'[ // first\n {PART}, {{"name": "b"}}]',
        f"{{“name”: “outer”, “inner”: {PART}}}",
        f"{{'name': 'outer', 'inner': {PART}}}",
        f'{{ // cut\n "name": "outer", "inner": {PART}, "na',
        f'{{"name": ["a", "b"}}, "inner": {PART}}}',
        f'{{"name": "a"], "inner": {PART}}}',
    ],
)
def test_a_part_of_a_badly_written_value_is_not_taken(text: str) -> None:
    """Comments, other quotes, bare keys and brackets that do not pair up make the whole unusable.

    The model is then asked to write it again.
    """
    with pytest.raises(ReplyFormatError):
        parse_json_with_schema(text, Part)


@pytest.mark.parametrize(
    "text",
    [
        f"see [1] and {{this}}: {PART}",
        f"[note }} and {PART}",
        f"an open {{ and\n```json\n{PART}\n```\na closed }} too",
        f"see [the docs](https://example.com/{{id}}) for {PART}",
    ],
)
def test_prose_in_brackets_hides_nothing_after_it(text: str) -> None:
    """A pair of brackets in prose ends where it closes; one that nothing closes is a character."""
    assert parse_json_with_schema(text, Part) == Part(name="part")


def test_brackets_that_nothing_closes_take_no_time_to_speak_of() -> None:
    """Each is read to the end of the text, and so there is an end to that."""
    with pytest.raises(ReplyFormatError):
        parse_json_with_schema("[a" * 100_000, Part)


class Answer(BaseModel):
    """What is asked for."""

    names: list[str]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('Using [1] I say {"names": 3}', "- names: Input should be a valid array"),
        ('{"names": 3} as in [1]', "- names: Input should be a valid array"),
        (
            'Of {} or {"n": 1} I take {"names": ["a", 2]}',
            "- names.1: Input should be a valid string",
        ),
        ("[1] and [2]", "- the value: Input should be an object"),
    ],
)
def test_of_several_values_the_nearest_one_is_told_about(text: str, told: str) -> None:
    """The model is shown what is wrong with what it meant, not with a number in its prose."""
    with pytest.raises(ReplyFormatError) as caught:
        parse_json_with_schema(text, Answer)

    assert told in caught.value.problem


FULL = '{"names": ["ann", "bob", "cleo"]}'


@each(
    "text",
    [
        f'An example of the format is {{"names": []}}.\n{FULL}',
        f"{FULL}\nor, in short, {{'names': []}}",
        f'{{"names": ["ann", "bob", "cleO"]}}\nNo, spelled rightly:\n{FULL}',
        f'<think>{{"names": ["x"]}} no</think>{FULL}',
        f'<THINKING>\n{{"names": ["x", "y", "z", "and many more"]}}\n</Thinking>\n{FULL}',
        f"<think>first</think>\n<think>then {FULL} or so</think>\n```json\n{FULL}\n```",
        f'I would say {{"names": ["x", "y", "z", "and more"]}}.\n</think>\n\n{FULL}',
        '["ann", "bob", "cleo"]',
        'The list:\n```json\n["ann", "bob", "cleo"]\n```',
    ],
)
def test_the_answer_is_told_from_drafts_examples_and_thinking(text: str) -> None:
    """The largest value that fits; of about equal ones the last; never one thought aloud.

    A list stands for the object whose only list it is.
    """
    assert parse_json_with_schema(text, Answer).names == ["ann", "bob", "cleo"]


@pytest.mark.parametrize("text", [f"<think>{FULL}", f"<think>\n{FULL}\n</think>\n", "<think>"])
def test_nothing_but_thinking_is_no_answer(text: str) -> None:
    with pytest.raises(ReplyFormatError):
        parse_json_with_schema(text, Answer)


@pytest.mark.parametrize(
    "names", [["<think>"], ["<think>a</think>", "</thinking>"], ["a\n<think>\nb"], ["\n</think>\n"]]
)
def test_the_tags_in_a_string_are_text(names: list[str]) -> None:
    text = json.dumps({"names": names})
    for reply in (text, f"Here: {text}", f"```json\n{text}\n```", f"<think>so</think>\n{text}"):
        assert parse_json_with_schema(reply, Answer).names == names


class TwoLists(BaseModel):
    """An object that a list alone does not tell."""

    names: list[str] = []
    numbers: list[int] = []


@pytest.mark.parametrize("schema", [TwoLists, dict[str, list[str]]])
def test_a_list_does_not_stand_for_an_object_with_other_lists(schema: Any) -> None:
    """Nobody could say which one it is."""
    with pytest.raises(ReplyFormatError):
        parse_json_with_schema('["ann"]', schema)
