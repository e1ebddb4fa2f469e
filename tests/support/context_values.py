"""Conversations for tests: the flow about rent, and somebody's support desk."""

import json
from typing import Any

from pytest_regen.context import (
    Conversation,
    ConversationContext,
    Question,
    Value,
    parse_context,
)

RENT = "rent is out of control in my city"
LOCATION: dict[str, Any] = {
    "id": "location",
    "question": "Which city?",
    "type": "location_picker",
    "location_level": "city",
    "required": True,
}
FRAMING: dict[str, Any] = {
    "id": "framing",
    "question": "Which is closer?",
    "type": "multiple_choice",
    "options": [
        {"id": "hikes", "label": "rent hikes"},
        {"id": "cap", "label": "no rent cap"},
        {"id": "repairs", "label": "bad repairs"},
    ],
}
WORDS: dict[str, Any] = {"id": "words", "question": "What happened?", "type": "open_text"}
INFERRED: dict[str, Any] = {
    "detected_location": None,
    "detected_scope": "local",
    "detected_target_type": "government",
    "location_confidence": 0.1,
    "scope_confidence": 0.8,
    "target_type_confidence": 0.7,
    "reasoning": "No city named.",
}
ASKS = json.dumps(
    {
        "needs_clarification": True,
        "clarification_questions": [LOCATION],
        "inferred_context": INFERRED,
    }
)
WRITES = json.dumps(
    {"needs_clarification": False, "subject_line": "Our Rent Doubled and City Hall Shrugged"}
)


def wire(*questions: dict[str, Any], **answers: object) -> dict[str, Any]:
    """Return a context as JSON, about rent."""
    return {
        "originalDescription": RENT,
        "questionsAsked": list(questions or (LOCATION,)),
        "inferredContext": INFERRED,
        "answers": answers,
    }


def context(*questions: dict[str, Any], **answers: object) -> ConversationContext:
    """Return a context about rent."""
    return parse_context(wire(*questions, **answers))


class TicketQuestion(Question):
    """A question of the support desk."""

    options: tuple[str, ...] = ()

    def answer_problem(self, answer: "TicketAnswer") -> str | None:
        """Return why an answer is none of the options."""
        fits = not self.options or answer.text in self.options
        return None if fits else "is none of the options"


class TicketAnswer(Value):
    """An answer to the support desk."""

    text: str


class Facts(Value):
    """What the support desk inferred."""

    product: str


class Ticket(Conversation[TicketQuestion, TicketAnswer]):
    """A conversation of somebody's own: a product, rounds, an attachment."""

    inferred_context: Facts
    attachment: str | None = None
