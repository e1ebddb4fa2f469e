"""Replies that a limit cut: continued, begun again, or written on as something of its own."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tables import each

from pytest_regen.errors import ReplyFormatError
from pytest_regen.sources import extract_code
from pytest_regen.turns import (
    ObjectWithRepair,
    Reply,
    ScriptedProvider,
    generate_object_with_repair,
)
from pytest_regen.turns.reply_text import join_text


class Item(BaseModel):
    """A type that holds values of itself: a part fits as well as the whole."""

    name: str = "?"
    kids: "list[Item]" = []


WHOLE = '[{"name": "a"}, {"name": "b"}, {"name": "c"}]'
ITEMS = [Item(name=name) for name in "abc"]


def asked(schema: Any, *replies: str) -> tuple[ObjectWithRepair[Any], ScriptedProvider]:
    first, *rest = replies
    provider = ScriptedProvider([Reply(first, "max_tokens"), *rest])
    return generate_object_with_repair(provider, schema, prompt="Which?"), provider


@pytest.mark.parametrize(
    ("schema", "cut", "more"),
    [
        (list[Item], '[{"name": "a"}, {"name": "b"}, ', 'The rest:\n```json\n[{"name": "c"}]\n```'),
        (list[Item], '```json\n[{"name": "a"}, {"name": "b"}, ', '[{"name": "c"}]\n```'),
        (list[Item], '[{"name": "a"}, {"name": "b"}, ', '[{"name": "x"}, {"name": "c"}]'),
        (Item, '{"kids": [{"name": "a"}, {"name": "b", "ki', 'The rest:\n{"name": "b"}]}'),
    ],
)
def test_a_rest_of_its_own_is_not_the_whole(schema: Any, cut: str, more: str) -> None:
    """Taken alone it would drop what came before the cut; the model is asked for the whole."""
    whole = "{}" if schema is Item else "[]"
    found, provider = asked(schema, cut, more, whole)

    assert (found.text, found.repair_attempts) == (whole, 1)
    assert "The JSON value of the reply is broken" in provider.requests[2].messages[-1].content


@pytest.mark.parametrize(
    ("cut", "more"),
    [
        (WHOLE[:20], f"Again, from the beginning:\n```json\n{WHOLE}\n```"),
        ("Let me think ", f"of it.\n{WHOLE}"),
        (f"```json\n{WHOLE[:20]}", f"```json\n{WHOLE}\n```"),
        (f"As in [1]:\n{WHOLE[:20]}", f"{WHOLE[20:]}\nas in [2]."),
    ],
)
def test_a_reply_that_goes_on_or_begins_again_is_taken(cut: str, more: str) -> None:
    """However it is laid out: what stood before the cut is in it."""
    found, provider = asked(list[Item], cut, more)

    assert (found.output, found.repair_attempts) == (ITEMS, 0)
    assert len({request.max_tokens for request in provider.requests}) == 1
    assert len(provider.requests) == 2


@given(
    st.lists(st.builds(lambda name: {"name": name}, st.text('ab]}{["', max_size=4)), max_size=4),
    st.data(),
)
def test_no_continuation_loses_an_item_before_the_cut(
    value: list[dict[str, str]], data: st.DataObject
) -> None:
    """Continued with the rest, with all of it, or with the last items alone: all, or an error."""
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text) - 1))
    left = json.dumps(value[data.draw(st.integers(0, len(value))) :])
    mended = [text[cut:], text]
    more = data.draw(st.sampled_from([*mended, left, f"The rest:\n```json\n{left}\n```"]))
    provider = ScriptedProvider([Reply(text[:cut], "max_tokens"), more])
    said = [one for n, one in enumerate(value) if len(json.dumps(value[: n + 1])) - 1 <= cut]
    try:
        found = generate_object_with_repair(provider, list[Item], prompt="?", max_repairs=0)
    except ReplyFormatError:
        assert more not in mended
    else:
        names = [one.name for one in found.output]
        assert names[: len(said)] == [one["name"] for one in said]
        assert more not in mended or names == [one["name"] for one in value]


@each(
    "chatter",
    [
        "Continuing from where I left off:\n\n",
        "I will continue exactly where it stopped.\n\n```json\n",
        "<think>Where was I? At [1].</think>\n",
    ],
)
@each("place", [3, 16])
def test_what_is_said_before_going_on_is_no_part_of_it(chatter: str, place: int) -> None:
    """Wherever the cut is: between two items, in a key, in a string."""
    found, provider = asked(list[Item], WHOLE[:place], chatter + WHOLE[place:])

    assert found.output == ITEMS
    assert len(provider.requests) == 2


def test_thinking_that_the_limit_cut_is_no_part_of_the_reply() -> None:
    for more in (f" that is all.</think>\n{WHOLE}", WHOLE):
        found, _ = asked(list[Item], '<think>The first is [{"name": "x"}] and', more)

        assert found.output == ITEMS
        assert found.text.strip() == WHOLE


CODE = (
    "public class A\n{\n"
    + "".join(f"    public int Field{number} {{ get; set; }}\n\n" for number in range(6))
    + "}"
)


def test_code_that_was_cut_and_continued_is_joined() -> None:
    """Also with a fence that is opened again, and words before it."""
    more = "Continuing from where I left off:\n```csharp\n{}"
    for place in (match.end() for match in re.finditer(r"public int Fi|set; \}", CODE)):
        joined = join_text([f"Here it is:\n```csharp\n{CODE[:place]}", more.format(CODE[place:])])

        assert extract_code(joined) == CODE, (place, joined)


@each(
    ("pieces", "whole"),
    [
        (["a = 1  ", "# one"], "a = 1  # one"),
        (["a = ", " 1"], "a = 1"),
        (["if a:\n", "    b"], "if a:\n    b"),
        (["if a:\n", "\n    b"], "if a:\n    b"),
    ],
)
def test_white_space_at_the_seam_is_said_again(pieces: list[str], whole: str) -> None:
    """Or not: the API gets none at the end of what it is to go on from."""
    assert join_text(pieces) == whole
