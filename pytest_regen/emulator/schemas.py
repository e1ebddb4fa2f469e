"""JSON schemas of structured output."""

from collections.abc import Mapping
from typing import Any

from pytest_regen.emulator.values import EmulatedReply

__all__ = ["check_answer"]


def check_answer(body: Mapping[str, Any], reply: EmulatedReply) -> None:
    """Refuse a reply that breaks the format the request asks for."""
