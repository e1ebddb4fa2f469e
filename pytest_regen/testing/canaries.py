"""Conversations with a token of its own in every leaf, so that what is lost can be named."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_regen.context.requests import ClarificationRequest, parse_request

__all__ = ["CanaryFlow", "canary_flows", "flow_with", "text_leaves", "variants"]

_INFERRED: Final[Mapping[str, object]] = {
    "detected_location": "?",
    "detected_scope": "local",
    "detected_target_type": "government",
    "location_confidence": 0.31,
    "scope_confidence": 0.62,
    "target_type_confidence": 0.73,
    "reasoning": "?",
    "detected_urgency": "recent",
    "urgency_confidence": 0.84,
    "detected_ask": "?",
}
_PLACE_AND_CHOICE: Final[Mapping[str, object]] = {
    "original_description": "?",
    "questions_asked": [
        {
            "id": "?",
            "question": "?",
            "type": "location_picker",
            "location_level": "city",
            "required": True,
            "placeholder": "?",
            "prefilled_location": "?",
            "suggested_locations": ["?", "?"],
        },
        {
            "id": "?",
            "question": "?",
            "type": "multiple_choice",
            "placeholder": "?",
            "options": [{"id": "?", "label": "?"}, {"id": "?", "label": "?"}],
            "allow_other": True,
        },
    ],
    "inferred_context": _INFERRED,
    "answers": [
        {"kind": "place", "label": "?", "city": "?", "state": "?", "country": "?"},
        {"kind": "choice", "selected": [0], "other": "?"},
    ],
}
_TEXT: Final[Mapping[str, object]] = {
    "original_description": "?",
    "questions_asked": [{"id": "?", "question": "?", "type": "open_text", "placeholder": "?"}],
    "inferred_context": _INFERRED,
    "answers": [{"kind": "text", "text": "?"}],
}

_OTHERWISE: Final[Mapping[str, tuple[tuple[str | int, ...], object]]] = {
    "questions_asked.0.location_level": (("questions_asked", 0, "location_level"), "state"),
    "questions_asked.0.required": (("questions_asked", 0, "required"), False),
    "questions_asked.1.allow_other": (("questions_asked", 1, "allow_other"), False),
    "answers.1.selected": (("answers", 1, "selected"), [1]),
    "inferred_context.detected_scope": (("inferred_context", "detected_scope"), "state"),
    "inferred_context.detected_target_type": (
        ("inferred_context", "detected_target_type"),
        "corporate",
    ),
    "inferred_context.detected_urgency": (("inferred_context", "detected_urgency"), "ongoing"),
    "inferred_context.location_confidence": (("inferred_context", "location_confidence"), 0.11),
    "inferred_context.scope_confidence": (("inferred_context", "scope_confidence"), 0.12),
    "inferred_context.target_type_confidence": (
        ("inferred_context", "target_type_confidence"),
        0.13,
    ),
    "inferred_context.urgency_confidence": (("inferred_context", "urgency_confidence"), 0.14),
}
"""Leaves that hold no text, and another value for each."""


@dataclass(frozen=True, slots=True)
class CanaryFlow:
    """A second turn whose texts are tokens."""

    wire: Mapping[str, Any]
    """The request as JSON, ``answers`` as a list in the order of the questions."""
    tokens: Mapping[str, str]
    """By the path of the leaf."""

    @property
    def request(self) -> ClarificationRequest:
        """The request."""
        return _request(self.wire)

    @property
    def skipped(self) -> ClarificationRequest:
        """The request of somebody who skipped every question."""
        return _request({**self.wire, "answers": []})

    @property
    def blank(self) -> ClarificationRequest:
        """The request of somebody who sent back nothing but blanks."""
        keys = [question["id"] for question in self.wire["questions_asked"]]
        return _request({**self.wire, "answers": dict.fromkeys(keys, " \t\u200b")})

    @property
    def first(self) -> ClarificationRequest:
        """The request of the first turn."""
        return parse_request({"message": self.wire["original_description"]})


def canary_flows(mark: str = "") -> tuple[CanaryFlow, CanaryFlow]:
    """Return two second turns that hold questions of every type between them.

    Args:
        mark: part of every token; random by default, so that nothing an agent remembers from an
            earlier check can pass for what it was given.
    """
    mark = mark or secrets.token_hex(4)
    first = _flow(_PLACE_AND_CHOICE, f"k{mark}a")
    return first, _flow(_TEXT, f"k{mark}b")


def _flow(template: Mapping[str, object], mark: str) -> CanaryFlow:
    tokens: dict[str, str] = {}
    wire = _filled(template, "", tokens, mark)
    return CanaryFlow(wire, tokens)


def _filled(value: object, path: str, tokens: dict[str, str], mark: str) -> Any:  # noqa: ANN401 - JSON
    if value == "?":
        tokens[path] = f"{mark}{len(tokens):02d}z"
        return tokens[path]
    if isinstance(value, Mapping):
        return {k: _filled(v, f"{path}.{k}".strip("."), tokens, mark) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, f"{path}.{i}", tokens, mark) for i, v in enumerate(value)]
    return value


def variants(
    flow: CanaryFlow,
) -> Iterator[tuple[str, ClarificationRequest, ClarificationRequest]]:
    """Yield two requests that differ in one leaf without text, and its path, for each of them."""
    for path, (keys, value) in _OTHERWISE.items():
        if _has(flow.wire, keys):
            wire: Any = flow.wire
            if path.endswith("allow_other"):
                # Words of one's own are no answer where they are not allowed.
                wire = _with(wire, ("answers", 1, "other"), None)
            yield path, _request(wire), _request(_with(wire, keys, value))


def text_leaves(flow: CanaryFlow) -> tuple[str, ...]:
    """Return the paths of the flow's leaves that hold text."""
    return tuple(flow.tokens)


def flow_with(flow: CanaryFlow, texts: Mapping[str, str]) -> ClarificationRequest:
    """Return the flow's request with other texts in the leaves named by their paths."""
    wire: Any = flow.wire
    for path, text in texts.items():
        keys = tuple(int(key) if key.isdigit() else key for key in path.split("."))
        wire = _with(wire, keys, text)
    return _request(wire)


def _has(value: Any, keys: tuple[str | int, ...]) -> bool:  # noqa: ANN401 - JSON
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError):
            return False
    return True


def _with(value: Any, keys: tuple[str | int, ...], new: object) -> Any:  # noqa: ANN401 - JSON
    if not keys:
        return new
    copy: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copy[keys[0]] = _with(copy[keys[0]], keys[1:], new)
    return copy


def _request(wire: Mapping[str, Any]) -> ClarificationRequest:
    answers = wire["answers"]
    if isinstance(answers, list):
        pairs = zip(wire["questions_asked"], answers, strict=False)
        answers = {q["id"]: _answer(q, answer) for q, answer in pairs}
    context = {**wire, "answers": answers}
    return parse_request({"message": wire["original_description"], "conversationContext": context})


def _answer(question: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer whose selected options, given by their number, are named by their id."""
    if "selected" not in answer:
        return answer
    options = question["options"]
    return {**answer, "selected": [options[number]["id"] for number in answer["selected"]]}
