"""Providers without a network."""

import asyncio
import functools
from typing import TYPE_CHECKING

import pytest
from turn_values import turn

from pytest_regen.errors import ProviderError, TransportError, UsageError
from pytest_regen.turns import (
    CallableProvider,
    DryRunProvider,
    Message,
    Provider,
    Reply,
    ScriptedProvider,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_function_sees_the_conversation_and_returns_text() -> None:
    seen: list[dict[str, str]] = []

    def model(messages: list[dict[str, str]]) -> str:
        seen.extend(messages)
        return "done"

    reply = CallableProvider(model).send(
        turn(messages=(Message("user", "a"), Message("assistant", "b"), Message("user", "c")))
    )

    name = "test_a_function_sees_the_conversation_and_returns_text.<locals>.model"
    assert reply == Reply("done", stop_reason="", model=f"{__name__}:{name}")
    assert [m["role"] for m in seen] == ["system", "user", "assistant", "user"]
    assert seen[0]["content"] == "You are terse."


def test_a_function_may_return_a_whole_reply() -> None:
    reply = Reply("half", stop_reason="max_tokens", model="mine")

    assert CallableProvider(lambda _: reply).send(turn()) is reply


class Writer:
    """Can be called."""

    def __call__(self, _: list[dict[str, str]]) -> str:
        """Return nothing of interest."""
        return "done"

    def write(self, messages: list[dict[str, str]]) -> str:
        """Return the same."""
        return self(messages)


def test_who_answers_is_what_was_asked_and_never_a_default_of_ours() -> None:
    """A method, an object, a partial function: each is named; a name given wins."""
    writer = Writer()
    named: dict[str, Callable[[list[dict[str, str]]], str]] = {
        f"{__name__}:Writer.write": writer.write,
        f"{__name__}:Writer": writer,
        f"{__name__}:half": functools.partial(half, "x"),
    }

    for name, fn in named.items():
        assert CallableProvider(fn).send(turn()).model == name
    assert CallableProvider(writer, model="mine").send(turn()).model == "mine"
    assert CallableProvider(lambda _: Reply("done")).send(turn()).model.endswith("<lambda>")


def half(_first: str, _messages: list[dict[str, str]]) -> str:
    return "done"


def test_an_error_of_ours_passes_through_a_function() -> None:
    mine = TransportError("down", hint="wait")

    def down(_: list[dict[str, str]]) -> str:
        raise mine

    with pytest.raises(TransportError) as caught:
        CallableProvider(down).send(turn())

    assert caught.value is mine


def test_a_function_that_returns_no_text_is_told() -> None:
    with pytest.raises(TransportError, match="returned dict"):
        CallableProvider(lambda _: {"text": "x"}).send(turn())  # type: ignore[arg-type,return-value]  # the mistake


def test_a_coroutine_function_is_awaited() -> None:
    async def model(_: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return "later"

    provider = CallableProvider(model)

    assert asyncio.run(provider.asend(turn())).text == "later"
    assert provider.send(turn()).text == "later"


def test_a_script_is_followed_in_order() -> None:
    """Strings, replies and exceptions each do what they are; requests are kept."""
    whole = Reply("b", stop_reason="refusal")
    provider = ScriptedProvider(["a", whole, TransportError("down", hint="wait")])

    assert provider.send(turn("1")).text == "a"
    assert provider.send(turn("2")) is whole
    with pytest.raises(TransportError, match="down"):
        provider.send(turn("3"))
    assert [r.messages[0].content for r in provider.requests] == ["1", "2", "3"]


def test_a_script_that_runs_out_says_so() -> None:
    provider = ScriptedProvider(["a"])
    provider.send(turn())

    with pytest.raises(ProviderError, match="1 replies, and request 2"):
        provider.send(turn())


def test_a_script_may_be_a_function() -> None:
    provider = ScriptedProvider(lambda request: request.messages[0].content.upper())

    assert [asyncio.run(provider.asend(turn(t))).text for t in "ab"] == ["A", "B"]


def test_one_string_is_no_script() -> None:
    """A string is a sequence of letters, which nobody means."""
    with pytest.raises(UsageError, match="list"):
        ScriptedProvider("hello")


def test_a_dry_run_says_that_it_is_one() -> None:
    """The placeholder cannot be mistaken for generated code."""
    reply = DryRunProvider().send(turn())

    assert "no code was generated" in reply.text
    assert reply.usage.total_tokens == 0


@pytest.mark.parametrize(
    "provider", [CallableProvider(lambda _: ""), ScriptedProvider([]), DryRunProvider()]
)
def test_each_is_a_provider(provider: object) -> None:
    assert isinstance(provider, Provider)
