"""Clarifications for tests: the flow about rent, and strategies for every other."""

import json
from typing import Any

from hypothesis import strategies as st

from pytest_regen.context import (
    Conversation,
    ConversationContext,
    Question,
    Value,
    is_blank,
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


def texts(longest: int) -> st.SearchStrategy[str]:
    """Texts that say something, whatever else they hold: controls, marks, forged structure."""
    anything = st.text(max_size=min(longest, 60))
    pieces = st.sampled_from(
        ("\n## Forged", "```", "</a>", '"', "\\", "|||", "\u202e", "\u2028", "- x", "Human:", "\r")
    )
    mixed = st.lists(st.one_of(anything, pieces), min_size=1, max_size=4).map("".join)
    return mixed.map(lambda text: text[:longest]).filter(lambda text: not is_blank(text))


def _optional(longest: int) -> st.SearchStrategy[str | None]:
    return st.none() | texts(longest)


def _levels() -> st.SearchStrategy[str]:
    return st.sampled_from(("city", "state", "country"))


@st.composite
def questions(draw: st.DrawFn, number: int = 0) -> dict[str, Any]:
    """One question as JSON."""
    common = {
        "id": f"{draw(texts(40))}{number}",
        "question": draw(texts(300)),
        "required": draw(st.booleans()),
        "placeholder": draw(_optional(200)),
    }
    kind = draw(st.sampled_from(("open_text", "location_picker", "multiple_choice")))
    if kind == "location_picker":
        common |= {
            "location_level": draw(_levels()),
            "prefilled_location": draw(_optional(200)),
            "suggested_locations": draw(st.none() | st.lists(texts(200), min_size=1, max_size=3)),
        }
    if kind == "multiple_choice":
        names = draw(st.lists(texts(40), min_size=2, max_size=4))
        common |= {
            "options": [
                {"id": f"{name}{at}", "label": f"{name} {at}"} for at, name in enumerate(names)
            ],
            "allow_other": draw(st.booleans()),
        }
    return {**common, "type": kind}


@st.composite
def answers(draw: st.DrawFn, question: dict[str, Any]) -> dict[str, Any]:
    """One answer that fits a question, as JSON; possibly none."""
    if draw(st.booleans()) and draw(st.booleans()):
        return {"kind": "skipped"}
    if question["type"] == "open_text":
        return {"kind": "text", "text": draw(texts(1000))}
    if question["type"] == "location_picker":
        parts = {name: draw(_optional(200)) for name in ("city", "state", "country")}
        return {"kind": "place", "label": draw(texts(200)), **parts}
    ids = [option["id"] for option in question["options"]]
    selected = draw(st.lists(st.sampled_from(ids), unique=True))
    other = draw(_optional(1000)) if question["allow_other"] else None
    return {"kind": "choice", "selected": selected, "other": other}


@st.composite
def inferences(draw: st.DrawFn) -> dict[str, Any]:
    """Inferences as JSON."""
    sure = st.floats(0, 1)
    return {
        "detected_location": draw(_optional(200)),
        "detected_scope": draw(
            st.sampled_from((None, "local", "state", "national", "international"))
        ),
        "detected_target_type": draw(
            st.sampled_from((None, "government", "corporate", "institutional", "other"))
        ),
        "location_confidence": draw(sure),
        "scope_confidence": draw(sure),
        "target_type_confidence": draw(sure),
        "reasoning": draw(_optional(1000)),
        "detected_urgency": draw(st.sampled_from((None, "breaking", "recent"))),
        "urgency_confidence": draw(st.none() | sure),
        "detected_ask": draw(_optional(1000)),
    }


@st.composite
def wires(draw: st.DrawFn) -> dict[str, Any]:
    """A valid context as JSON."""
    asked = [draw(questions(number)) for number in range(draw(st.integers(1, 2)))]
    return {
        "originalDescription": draw(texts(4000)),
        "questionsAsked": asked,
        "inferredContext": draw(inferences()),
        "answers": {question["id"]: draw(answers(question)) for question in asked},
    }


def contexts() -> st.SearchStrategy[ConversationContext]:
    """Valid contexts."""
    return wires().map(parse_context)


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of a JSON value by their path, those that are ``None`` left out."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        return {} if value is None else {path: value}
    found: dict[str, Any] = {}
    for key, inner in pairs:
        found |= leaves(inner, f"{path}/{key}")
    return found
