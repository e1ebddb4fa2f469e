"""JSON amid prose: a part of something badly written is never taken for the whole."""

import json

import pytest
from pydantic import BaseModel
from tables import each

from pytest_regen.errors import ReplyFormatError
from pytest_regen.turns import parse_json_with_schema


class Part(BaseModel):
    """A type that holds values of itself: a part fits as well as the whole."""

    name: str = "x"
    inner: "Part | None" = None
    names: list[str] = []
    more: list[str] = []


PART = '{"name": "part"}'


@each(
    "text",
    [
        f'{{\n // the outer\n "name": "outer", "inner": {PART}\n}}',
        f'{{ // cut\n "name": "outer", "inner": {PART}, "na',
        f'{{"name": ["a", "b"}}, "inner": {PART}}}',
        # Each is read to the end of the text, and so there is an end to that.
        "[a" * 100_000,
        # What is thought aloud is no answer.
        f"<think>\n{PART}\n</think>\n",
        # Nobody could say which of its lists a list stands for.
        '["part"]',
    ],
)
def test_a_part_of_a_badly_written_value_is_not_taken(text: str) -> None:
    """Comments, other quotes, bare keys and brackets that do not pair up make the whole unusable.

    The model is then asked to write it again.
    """
    with pytest.raises(ReplyFormatError):
        parse_json_with_schema(text, Part)


class Answer(BaseModel):
    """What is asked for."""

    names: list[str]


@each(
    ("text", "told"),
    [
        ('Using [1] I say {"names": 3}', "- names: Input should be a valid array"),
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
        f'{{"names": ["ann", "bob", "cleO"]}}\nNo, spelled rightly:\n{FULL}',
        f'<THINKING>\n{{"names": ["x", "y", "z", "and many more"]}}\n</Thinking>\n{FULL}',
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


@each(
    "names", [["<think>"], ["<think>a</think>", "</thinking>"], ["a\n<think>\nb"], ["\n</think>\n"]]
)
def test_the_tags_in_a_string_are_text(names: list[str]) -> None:
    text = json.dumps({"names": names})
    for reply in (text, f"Here: {text}", f"```json\n{text}\n```", f"<think>so</think>\n{text}"):
        assert parse_json_with_schema(reply, Answer).names == names
