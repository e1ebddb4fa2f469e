"""``examples/clarifying_agent`` as a process of its own, with the emulator for a model."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from pytest_regen.emulator import Emulator

EXAMPLE = Path(__file__).parents[2] / "examples" / "clarifying_agent"
KEY = "a key of thirty-two bytes or more"
MESSAGE = "rent is out of control in my city"
PLACE = {
    "id": "location",
    "question": "Which city is this about?",
    "type": "location_picker",
    "location_level": "city",
    "required": True,
}
CHOICE = {
    "id": "who",
    "question": "Who could change it?",
    "type": "multiple_choice",
    "options": [{"id": "council", "label": "The council"}, {"id": "state", "label": "The state"}],
    "allow_other": True,
}
WRITTEN = {
    "needs_clarification": False,
    "subject_line": "Our Rent Doubled and City Hall Shrugged",
    "core_message": "The council has to cap what rents may rise in a year.",
    "topics": ["rent", "housing"],
}


class Model:
    """Asks on a first turn, writes on a second one.

    Args:
        questions: asked on the first turn; without any it writes at once.

    Attributes:
        prompts: what it was told.
        prose: what it says instead, where it is not empty.
    """

    def __init__(self, *questions: dict[str, Any]) -> None:
        self.questions = questions
        self.prompts: list[str] = []
        self.prose = ""

    def __call__(self, body: dict[str, Any]) -> str:
        """Return the reply to a request."""
        content = body["messages"][0]["content"]
        self.prompts.append(content if isinstance(content, str) else content[0]["text"])
        if self.prose:
            return self.prose
        if self.questions and "## User's Clarifications" not in self.prompts[-1]:
            inferred = {
                "detected_scope": "local",
                "scope_confidence": 0.8,
                "reasoning": "A city.",
            }
            asks = {"needs_clarification": True, "clarification_questions": self.questions}
            return json.dumps(asks | {"inferred_context": inferred})
        return json.dumps(WRITTEN)


@contextmanager
def clarifying_service(
    model: Callable[[dict[str, Any]], Any],
    folder: Path = EXAMPLE,
    python: str = sys.executable,
    **environment: str,
) -> Iterator[str]:
    """Run the example while the block runs; yields its address."""
    with Emulator(model) as emulator, closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        variables = {
            **os.environ,
            "ANTHROPIC_BASE_URL": emulator.base_url,
            "ANTHROPIC_API_KEY": "none-needed",
            "SEAL_KEY": KEY,
            **environment,
        }
        words = [python, "-m", "uvicorn", "app:app", "--port", str(port)]
        quiet = ["--log-level", "warning"]
        running = subprocess.Popen([*words, *quiet], cwd=folder, env=variables)
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(address, running)
            yield address
        finally:
            running.terminate()
            running.wait(30)


def wait_for(address: str, running: subprocess.Popen[bytes]) -> None:
    """Wait until the service answers."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert running.poll() is None, "the service ended"
        try:
            httpx2.get(address)
        except httpx2.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the service does not answer")


def second_turn(first: dict[str, Any], answers: object, **changes: object) -> dict[str, Any]:
    """Return the request of a second turn, as a page makes it of the first answer."""
    return {
        "message": MESSAGE,
        "interactionId": first["interactionId"],
        "seal": first.get("seal"),
        "conversationContext": {
            "originalDescription": MESSAGE,
            "questionsAsked": first["clarification_questions"],
            "inferredContext": first["inferred_context"],
            "answers": answers,
        },
        **changes,
    }
