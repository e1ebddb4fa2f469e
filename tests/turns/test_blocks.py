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
def test_thinking_and_calls_of_tools_are_kept_in_order(
    way: str, limit: int, tmp_path: Path
) -> None:
    """As the API has them, and as a recording plays them; the text is what it was."""
    path = tmp_path / "c.yaml"
    with Emulator(lambda _: ANSWER) as api, use_cassette(path, mode="once"):
        provider = AnthropicProvider(api_key=KEY, base_url=api.base_url)
        reply = ask(provider, way, limit=limit)
    with use_cassette(path, answers_turns=way == "send"):
        again = ask(AnthropicProvider(base_url="http://127.0.0.1:9"), "send", limit=limit)

    thinking, text, look, rest = reply.blocks
    assert (reply.text, reply.stop_reason) == ("I look.", "tool_use")
    assert (thinking["type"], text["text"]) == ("thinking", "I look.")
    assert thinking["signature"]
    assert (look["name"], look["input"], look["type"]) == ("look", CALL["input"], "tool_use")
    assert (rest["name"], rest["input"]) == ("rest", {})
    assert again.blocks == reply.blocks


def test_blocks_go_back_as_they_came() -> None:
    """Text alone is a string, so that requests are what they were."""
    with Emulator(lambda _: EmulatedReply("Seen.", thinking="Well.")) as api:
        provider = AnthropicProvider(api_key=KEY, base_url=api.base_url)
        first = ask(provider, "send")
        said = Message("assistant", first.text, "5m", blocks=first.blocks)
        plain = Message("assistant", "Hello.", blocks=())
        look = Message("user", "Look.")
        ask(provider, "send", look, said, look, plain, look)

    sent, bare = (api.requests[-1].body["messages"][number]["content"] for number in (1, 3))
    assert sent[0] == first.blocks[0]
    assert sent[1] == {**first.blocks[1], "cache_control": {"type": "ephemeral"}}
    assert bare == "Hello."


CALLS = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("way", "thinking"), [("send", "reasoning_content"), ("asend", "reasoning")]
)
def test_chat_completions_keep_theirs(way: str, thinking: str) -> None:
    """Beside the text stand members of the message: they are blocks, and members again."""
    said = Said("I look.", "tool_calls", more={thinking: "Where?", "tool_calls": CALLS})
    with chat_service(said) as service:
        provider = OpenAIProvider("m", api_key=KEY, base_url=f"{service.address}/v1")
        reply = ask(provider, way)
        back = Message("assistant", reply.text, blocks=reply.blocks)
        ask(provider, way, Message("user", "Look."), back, Message("user", "And?"))
        ollama = ask(OllamaProvider("m", base_url=service.address), "send")

    thought, text, call = reply.blocks
    assert (reply.text, reply.stop_reason, text["text"]) == ("I look.", "tool_use", "I look.")
    assert thought == {"type": thinking, thinking: "Where?"}
    assert call == CALLS[0]
    assert service.requests[1].body["messages"][2] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": CALLS,
        thinking: "Where?",
    }
    assert (ollama.stop_reason, ollama.blocks[-1]) == ("tool_use", CALLS[0])
