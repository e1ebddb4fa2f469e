"""Requests for tests: one short turn with the given words."""

from typing import Any

from pytest_regen.turns.values import Message, TurnRequest

MODEL = "claude-sonnet-5-5"


def turn(text: str = "Say something.", **changes: Any) -> TurnRequest:
    """Return a request whose only message is ``text``."""
    options: dict[str, Any] = {
        "system": "You are terse.",
        "messages": (Message("user", text),),
        "model": MODEL,
        "max_tokens": 200,
    }
    return TurnRequest(**{**options, **changes})
