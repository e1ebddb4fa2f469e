"""A scripted model for the subject line flow, and the application in front of it."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from pytest_regen.context import ClarifyingAgent, Sealer
from pytest_regen.context.sealing import SealPolicy
from pytest_regen.server import ServerSettings, create_app
from pytest_regen.turns import CallableProvider

KEY = b"a key that only the tests know. " * 2
MESSAGE = "rent is out of control in my city"

PLACE: dict[str, Any] = {
    "id": "location",
    "question": "Which city's rent is out of control?",
    "type": "location_picker",
    "location_level": "city",
    "required": True,
}
CHOICE: dict[str, Any] = {
    "id": "framing",
    "question": "Which one is closer?",
    "type": "multiple_choice",
    "options": [
        {"id": "landlord", "label": "my landlord keeps raising it"},
        {"id": "no_cap", "label": "the city never capped it"},
        {"id": "vacant", "label": "flats stand empty while we wait"},
    ],
}
WORDS: dict[str, Any] = {
    "id": "since",
    "question": "Since when?",
    "type": "open_text",
    "placeholder": "two years, since the new owner …",
}


def asking(*questions: dict[str, Any], **inferred: object) -> dict[str, Any]:
    """Return a reply that asks."""
    return {
        "needs_clarification": True,
        "clarification_questions": list(questions),
        "inferred_context": {
            "detected_scope": "local",
            "scope_confidence": 0.8,
            "reasoning": "Rent is decided where you live, and no city is named.",
            **inferred,
        },
    }


def writing(subject: str = "Our Rent Doubled and City Hall Shrugged") -> dict[str, Any]:
    """Return a reply that writes."""
    return {
        "needs_clarification": False,
        "subject_line": subject,
        "core_message": "The city council must cap how much a rent may rise within a year.",
        "topics": ["rent", "housing", "tenants"],
        "url_slug": "cap-the-rent",
        "voice_sample": "rent is out of control",
        "detected_ask": "cap the rent",
        "inferred_context": {"detected_scope": "local", "scope_confidence": 0.9},
    }


class Model:
    """Asks on a first turn, writes on a second; keeps every prompt it was sent.

    Args:
        questions: what it asks; without any it writes at once.
    """

    def __init__(self, *questions: dict[str, Any]) -> None:
        self.questions = questions
        self.prompts: list[str] = []

    def __call__(self, messages: Sequence[dict[str, str]]) -> str:
        """Return the reply to the last message."""
        prompt = messages[-1]["content"]
        self.prompts.append(prompt)
        second = "## User's Clarifications" in prompt or not self.questions
        return json.dumps(writing() if second else asking(*self.questions))


def app_of(
    model: Callable[[list[dict[str, str]]], Any],
    *,
    seal: SealPolicy | None = None,
    **options: Any,
) -> Starlette:
    """Return the application in front of a model."""
    options.setdefault("settings", ServerSettings(first_turns=(), second_turns=()))
    return create_app(
        ClarifyingAgent(CallableProvider(model)), seal=seal or Sealer({"test": KEY}), **options
    )


def client_of(model: Callable[[list[dict[str, str]]], Any], **options: Any) -> TestClient:
    """Return a client of that application, at home on loopback."""
    return TestClient(
        app_of(model, **options),
        base_url="http://127.0.0.1",
        raise_server_exceptions=False,
        follow_redirects=False,
    )


def second_turn(first: dict[str, Any], answers: object, message: str = MESSAGE) -> dict[str, Any]:
    """Return the body that answers the questions of a first turn."""
    body = {
        "message": message,
        "interactionId": first["interactionId"],
        "seal": first.get("seal"),
        "conversationContext": {
            "originalDescription": message,
            "questionsAsked": first["clarification_questions"],
            "inferredContext": first["inferred_context"],
            "answers": answers,
        },
    }
    return deepcopy(body)
