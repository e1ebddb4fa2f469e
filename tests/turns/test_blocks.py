"""Replies that are more than text keep all of it, and it can be sent back: over real HTTP."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_service import Said, chat_service
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.emulator import EmulatedReply, Emulator
from pytest_regen.turns import AnthropicProvider, Message, OllamaProvider, OpenAIProvider, Reply
from pytest_regen.turns.replies import ReplyJournal

KEY = "opaque-key-of-a-gateway"
CALL = {"name": "look", "input": {"at": [1, {"deep": "ü"}]}}
ANSWER = EmulatedReply("I look.", thinking="Where?", tools=[CALL, {"name": "rest", "input": {}}])


def ask(provider: Any, way: str, *messages: Message, limit: int = 200) -> Reply:
    request = turn(messages=messages or (Message("user", "Look."),), max_tokens=limit)
    reply: Reply
    if way == "send":
        reply = provider.send(request)
        provider.close()
    else:
        reply = asyncio.run(provider.asend(request))
    return reply


@pytest.mark.parametrize("limit", [200, 30_000], ids=["whole", "stream"])
@pytest.mark.parametrize("way", ["send", "asend"])
def test_thinking_and_calls_of_tools_are_kept_in_order(way: str, limit: int) -> None:
    """As the API has them, whole or streamed; the text is what it was."""
    with Emulator(lambda _: ANSWER) as api:
        provider = AnthropicProvider(api_key=KEY, base_url=api.base_url)
        reply = ask(provider, way, limit=limit)

    thinking, text, look, rest = reply.blocks
    assert (reply.text, reply.stop_reason) == ("I look.", "tool_use")
    assert (thinking["type"], text["text"]) == ("thinking", "I look.")
    assert thinking["signature"]
    assert (look["name"], look["input"], look["type"]) == ("look", CALL["input"], "tool_use")
    assert (rest["name"], rest["input"]) == ("rest", {})


@pytest.mark.parametrize("limit", [200, 30_000], ids=["whole", "stream"])
@pytest.mark.parametrize("answers_turns", [True, False])
def test_a_recording_gives_the_same_blocks(
    tmp_path: Path, limit: int, *, answers_turns: bool
) -> None:
    with Emulator(lambda _: ANSWER) as api, use_cassette(tmp_path / "c.yaml", mode="once"):
        first = ask(AnthropicProvider(api_key=KEY, base_url=api.base_url), "send", limit=limit)
    with use_cassette(tmp_path / "c.yaml", answers_turns=answers_turns):
        again = ask(AnthropicProvider(base_url="http://127.0.0.1:9"), "send", limit=limit)

    assert again.blocks == first.blocks
    assert len(first.blocks) == 4


def test_blocks_go_back_as_they_came() -> None:
    with Emulator(lambda _: EmulatedReply("Seen.", thinking="Well.")) as api:
        provider = AnthropicProvider(api_key=KEY, base_url=api.base_url)
        first = ask(provider, "send")
        said = Message("assistant", first.text, "5m", blocks=first.blocks)
        ask(provider, "send", Message("user", "Look."), said, Message("user", "And now?"))

        [_, sent, _] = api.requests[-1].body["messages"]
    thinking, text = sent["content"]
    assert thinking == first.blocks[0]
    assert text == {**first.blocks[1], "cache_control": {"type": "ephemeral"}}


def test_a_reply_of_text_alone_has_no_blocks() -> None:
    """Sent back it is a string, so that requests are what they were."""
    said = Message("assistant", "Hello.", blocks=())
    with Emulator(lambda _: "Hello.") as api:
        provider = AnthropicProvider("claude-haiku-5-5", api_key=KEY, base_url=api.base_url)
        request = turn(messages=(Message("user", "a"), said, Message("user", "b")), model="")
        reply = provider.send(request)
        provider.close()

    assert reply.blocks == ()
    assert api.requests[0].body["messages"][1]["content"] == "Hello."


CALLS = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


@pytest.mark.parametrize("way", ["send", "asend"])
@pytest.mark.parametrize("thinking", ["reasoning_content", "reasoning"])
def test_chat_completions_keep_theirs(way: str, thinking: str) -> None:
    """Beside the text stand members of the message: they are blocks, and members again."""
    said = Said("I look.", "tool_calls", more={thinking: "Where?", "tool_calls": CALLS})
    with chat_service(said) as service:
        provider = OpenAIProvider("m", api_key=KEY, base_url=f"{service.address}/v1")
        reply = ask(provider, way)
        back = Message("assistant", reply.text, blocks=reply.blocks)
        ask(provider, way, Message("user", "Look."), back, Message("user", "And?"))

    thought, text, call = reply.blocks
    assert (reply.text, reply.stop_reason, text["text"]) == ("I look.", "tool_use", "I look.")
    assert thought == {"type": thinking, thinking: "Where?"}
    assert call == CALLS[0]
    assert service.requests[-1].body["messages"][2] == {
        "role": "assistant", "content": "I look.", "tool_calls": CALLS, thinking: "Where?",
    }  # fmt: skip


def test_so_does_ollama() -> None:
    """Its calls have no type and its reply ends as any other."""
    call = {"function": {"name": "look", "arguments": {"at": 1}}}
    with chat_service(Said("", more={"thinking": "Hm.", "tool_calls": [call]})) as service:
        reply = ask(OllamaProvider("m", base_url=service.address), "send")

    assert reply.stop_reason == "tool_use"
    assert reply.blocks == (
        {"type": "thinking", "thinking": "Hm."},
        {"type": "function", **call},
    )


def test_the_journal_keeps_blocks(tmp_path: Path) -> None:
    reply = Reply("a", "tool_use", blocks=({"type": "text", "text": "a"}, {"type": "x", "y": [1]}))
    with ReplyJournal.open(tmp_path) as journal:
        journal.add(turn(), None, reply)

    with ReplyJournal.open(tmp_path) as journal:
        assert journal.find(turn(), None) == reply
