"""What is not asked again, and what the error says instead."""

import pytest
from pydantic import BaseModel

from pytest_regen.errors import ReplyFormatError
from pytest_regen.sessions import GeneratorSession
from pytest_regen.turns import Reply, ScriptedProvider, generate_object_with_repair


class Answer(BaseModel):
    """What replies are to be."""

    number: int


def session(*lines: str | Reply) -> tuple[ScriptedProvider, GeneratorSession[Answer]]:
    provider = ScriptedProvider(lines)
    return provider, GeneratorSession("x", Answer, provider=provider, max_repairs=6)


def small(answer: Answer) -> list[str]:
    return [f"{answer.number} is too large"] if answer.number > 1 else []


@pytest.mark.parametrize("stubborn", ['{"number": 7}', "No."])
def test_a_reply_is_not_sent_back_twice_with_the_same_words(stubborn: str) -> None:
    """Whatever is wrong with it; the error says so, and that more repairs would not help."""
    provider, talk = session(*[stubborn] * 7)

    with pytest.raises(ReplyFormatError) as caught:
        talk.ask("How many?", check=small)

    assert len(provider.requests) == 2
    assert "the model gave the same reply again" in caught.value.why
    assert "max_repairs" not in caught.value.hint


def test_another_wrong_reply_is_sent_back() -> None:
    provider, talk = session('{"number": 7}', '{"number": 6}', '{"number": 1}')

    assert talk.ask("How many?", check=small).number == 1
    assert len(provider.requests) == 3


def test_the_same_reply_for_another_reason_is_sent_back() -> None:
    found = iter([["too large"], ["still too large"], []])
    _, talk = session(*['{"number": 7}'] * 3)

    assert talk.ask("How many?", check=lambda _: next(found)).number == 7


def test_an_empty_reply_is_asked_for_again() -> None:
    _, talk = session("", "", '{"number": 1}')

    assert talk.ask("How many?").number == 1


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply("", stop_reason="tool_use"), "the model called a tool instead of answering"),
        (
            Reply('{"num', stop_reason="model_context_window_exceeded"),
            "prompt and reply fill the model's window",
        ),
    ],
    ids=["tool", "window"],
)
def test_the_error_names_what_ended_the_reply(reply: Reply, told: str) -> None:
    """Not only that it is empty, or no whole JSON value."""
    _, talk = session(*[reply] * 7)

    with pytest.raises(ReplyFormatError, match=told):
        talk.ask("How many?")


def test_repairs_that_are_used_up_are_no_reason_to_try_them() -> None:
    provider = ScriptedProvider(['{"number": "a"}', '{"number": "b"}', '{"number": "c"}'])

    with pytest.raises(ReplyFormatError) as caught:
        generate_object_with_repair(provider, Answer, prompt="How many?")

    assert "2 repairs did not help" in caught.value.why
    assert "generate_object_with_repair" not in caught.value.hint
    assert "raise max_repairs" in caught.value.hint
