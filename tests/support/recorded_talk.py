"""A test of five turns with a cassette, for projects of the plugin, and who answers it."""

from collections.abc import Mapping

TALK = """
    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    PROMPTS = ["first", "second", "third", "fourth", "fifth"]

    def test_talk(cassette):
        provider, said = AnthropicProvider(), []
        for prompt in PROMPTS:
            said.append(Message("user", prompt))
            request = TurnRequest("", tuple(said), "claude-sonnet-5-5", 100)
            said.append(Message("assistant", provider.send(request).text))
"""
CHANGED = TALK.replace('"third"', '"third, reworded"')
FILE = "cassettes/test_talk/test_talk.yaml"


def say(body: Mapping[str, object], *, headers: Mapping[str, str]) -> str:
    """Answer with the number of messages sent."""
    assert headers
    messages = body["messages"]
    assert isinstance(messages, list)
    return f"reply {len(messages)}"
