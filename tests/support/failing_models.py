"""Models that fail: cut by limits, deaf to corrections, broken on the wire."""

from collections.abc import Callable, Mapping
from typing import Any

from reference_writer import ReferenceWriter
from reference_writer_request import text_of

from pytest_regen.emulator import EmulatedReply, Fault

Body = dict[str, Any]
Responder = Callable[[Body], str | EmulatedReply | Fault]
FIRST_LIMIT = 8_192
OVERLOADED = Fault(status=529, retry_after_ms=1)


def said_before(body: Mapping[str, Any]) -> str:
    """Return what the assistant's turns of a request hold."""
    return "".join(
        text_of(message["content"])
        for message in body["messages"]
        if message["role"] == "assistant"
    )


def cut(text: str, part: float) -> EmulatedReply:
    """Return the beginning of a reply that a limit cut."""
    return EmulatedReply(text[: int(len(text) * part)], stop_reason="max_tokens")


class Truncating:
    """Cuts its replies by the limits they are asked with.

    Args:
        pieces: how many replies are cut before one is whole.
    """

    def __init__(self, pieces: int) -> None:
        self._left = pieces
        self._write = ReferenceWriter()

    def __call__(self, body: Body) -> str | EmulatedReply:
        """Return the next piece."""
        text = self._write(body)
        self._left -= 1
        return text if self._left < 0 else cut(text, 0.3)


class InTurn:
    """Gives one answer after the other, then correct pages."""

    def __init__(self, *answers: str | EmulatedReply | Fault | Responder) -> None:
        self._answers = list(answers)

    def __call__(self, body: Body) -> str | EmulatedReply | Fault:
        """Return the next answer."""
        if not self._answers:
            return ReferenceWriter()(body)
        answer = self._answers.pop(0)
        return answer(body) if callable(answer) else answer


def deaf(mistake: str, victim: int = 0) -> Responder:
    """Return a writer that makes a mistake whatever the correction says."""

    def write(body: Body) -> str:
        user = text_of(body["messages"][0]["content"])
        asked = user[user.index("OUTPUT MODE: ") :]
        request = {**body, "messages": [{"role": "user", "content": asked}]}
        return ReferenceWriter(mistake=mistake, victim=victim)(request)

    return write
