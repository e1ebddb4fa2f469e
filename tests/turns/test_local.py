"""Providers without a network, by name, and from the environment."""

import asyncio
import functools
import sys
from pathlib import Path

import pytest
from tables import each
from turn_values import turn

from pytest_regen.errors import MissingKeyError, ProviderError, TransportError, UsageError
from pytest_regen.turns import (
    CallableProvider,
    DryRunProvider,
    Message,
    Reply,
    ScriptedProvider,
    load_provider,
    provider_from_environment,
)


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


class Writer:
    """Has a method that answers."""

    def write(self, _: list[dict[str, str]]) -> str:
        """Return nothing of interest."""
        return "done"


def half(_first: str, _messages: list[dict[str, str]]) -> str:
    return "done"


def test_who_answers_is_what_was_asked_and_never_a_default_of_ours() -> None:
    """A method, a partial function: each is named; a name given wins, or that of a whole reply."""
    whole = Reply("half", stop_reason="max_tokens", model="mine")

    names = [
        CallableProvider(fn).send(turn()).model
        for fn in (Writer().write, functools.partial(half, "x"), lambda _: Reply("done"))
    ]

    assert names[:2] == [f"{__name__}:Writer.write", f"{__name__}:half"]
    assert names[2].endswith("<lambda>")
    assert CallableProvider(Writer().write, model="mine").send(turn()).model == "mine"
    assert CallableProvider(lambda _: whole).send(turn()) is whole


def test_what_a_function_raises_or_returns_is_told() -> None:
    """An error of ours passes; what is no text is one."""
    mine = TransportError("down", hint="wait")

    def down(_: list[dict[str, str]]) -> str:
        raise mine

    with pytest.raises(TransportError) as caught:
        CallableProvider(down).send(turn())
    with pytest.raises(TransportError, match="returned dict"):
        CallableProvider(lambda _: {"text": "x"}).send(turn())  # type: ignore[arg-type,return-value]  # the mistake

    assert caught.value is mine


def test_a_coroutine_function_is_awaited() -> None:
    async def model(_: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return "later"

    provider = CallableProvider(model)

    assert asyncio.run(provider.asend(turn())).text == "later"
    assert provider.send(turn()).text == "later"


def test_a_script_is_followed_in_order() -> None:
    """Strings, replies and exceptions each do what they are; requests are kept; it can run out."""
    whole = Reply("b", stop_reason="refusal")
    provider = ScriptedProvider(["a", whole, TransportError("down", hint="wait")])

    assert provider.send(turn("1")).text == "a"
    assert provider.send(turn("2")) is whole
    with pytest.raises(TransportError, match="down"):
        provider.send(turn("3"))
    assert [r.messages[0].content for r in provider.requests] == ["1", "2", "3"]
    with pytest.raises(ProviderError, match="3 replies, and request 4"):
        provider.send(turn())


def test_a_script_may_be_a_function_but_no_string() -> None:
    """A string is a sequence of letters, which nobody means."""
    provider = ScriptedProvider(lambda request: request.messages[0].content.upper())

    assert [asyncio.run(provider.asend(turn(t))).text for t in "ab"] == ["A", "B"]
    with pytest.raises(UsageError, match="list"):
        ScriptedProvider("hello")


def test_a_dry_run_says_that_it_is_one() -> None:
    """The placeholder cannot be mistaken for generated code."""
    reply = DryRunProvider().send(turn())

    assert "no code was generated" in reply.text
    assert reply.usage.total_tokens == 0


SOURCE = """
from pytest_regen.turns import Reply

class Echo:
    def send(self, request):
        return Reply("class")

class Needy(Echo):
    def __init__(self, key): ...

ready = Echo()

def make():
    return Echo()

def model(messages):
    return messages[-1]["content"]

number = 3

class namespace:
    inner = ready
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"providers_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(SOURCE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def test_a_reference_names_a_provider(module: str) -> None:
    """An instance, what makes one, or a function from messages to text."""
    names = ("ready", "Echo", "make", "model", "namespace.inner")
    said = [load_provider(f"{module}:{name}").send(turn("hi")).text for name in names]

    assert said == ["class", "class", "class", "hi", "class"]
    assert str(Path.cwd()) not in sys.path


@each(
    ("reference", "told"),
    [
        ("{}:number", "is not a provider"),
        ("{}:Needy", "is not a provider"),
        ("{}:ehco", "Echo"),
        ("no_such_module:x", "no_such_module"),
        ("module", "module:attribute"),
        (":x", "module:attribute"),
        ("openai:", "names no model"),
    ],
)
def test_what_is_no_provider_is_refused(module: str, reference: str, told: str) -> None:
    """The message names what was found and what would do."""
    with pytest.raises(UsageError, match=told):
        load_provider(reference.format(module))


def test_the_environment_makes_the_real_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its key the ways to others are named."""
    with pytest.raises(MissingKeyError, match=r"export ANTHROPIC_API_KEY.*ollama:MODEL"):
        provider_from_environment()

    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/")
    assert provider_from_environment("m").base_url == "http://127.0.0.1:1"
