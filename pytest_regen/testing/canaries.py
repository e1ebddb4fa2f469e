"""Conversations with a token of its own in every leaf, so that what is lost can be named."""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

from pytest_regen.context.questions import MAX_ANSWER, MAX_ID, MAX_LABEL, MAX_QUESTION
from pytest_regen.context.requests import ClarificationRequest, parse_request
from pytest_regen.context.values import MAX_DESCRIPTION, MAX_REASONING

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
_OPEN_QUESTION: Final[Mapping[str, object]] = {
    "id": "?",
    "question": "?",
    "type": "open_text",
    "placeholder": "?",
}
_TEXT: Final[Mapping[str, object]] = {
    "original_description": "?",
    "questions_asked": [_OPEN_QUESTION],
    "inferred_context": _INFERRED,
    "answers": [{"kind": "text", "text": "?"}],
}
_TWO_TEXTS: Final[Mapping[str, object]] = {
    **_TEXT,
    "questions_asked": [_OPEN_QUESTION, _OPEN_QUESTION],
    "answers": [{"kind": "text", "text": "?"}, {"kind": "text", "text": "?"}],
}
_LIMITS: Final[Mapping[str, int]] = {
    "original_description": MAX_DESCRIPTION,
    "question": MAX_QUESTION,
    "id": MAX_ID,
    "reasoning": MAX_REASONING,
    "detected_ask": MAX_ANSWER,
    "text": MAX_ANSWER,
    "other": MAX_ANSWER,
}
"""Characters of a leaf at most, by the last name of its path; of all others ``MAX_LABEL``."""

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


RequestWith = Callable[[str], ClarificationRequest]
"""From a mark to a request whose tokens have it."""


@dataclass(frozen=True, slots=True)
class CanaryFlow:
    """A second turn whose texts are tokens."""

    wire: Mapping[str, Any]
    """The request as JSON, ``answers`` as a list in the order of the questions."""
    tokens: Mapping[str, str]
    """By the path of the leaf: what it holds, or begins with where it is as long as it may be."""
    ends: Mapping[str, str]
    """By the path of the leaf: what it ends with; the token itself in a leaf that is not long."""

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

    def answering(self, *numbers: int) -> ClarificationRequest:
        """Return the request of somebody who answered these questions and skipped the others."""
        answers = [
            answer if number in numbers else None
            for number, answer in enumerate(self.wire["answers"])
        ]
        return _request({**self.wire, "answers": answers})


def new_mark() -> str:
    """Return a part of tokens that no agent has seen before."""
    return secrets.token_hex(4)


def canary_flows(
    mark: str = "", *, confidence: float | None = None, long: bool = False
) -> tuple[CanaryFlow, CanaryFlow]:
    """Return two second turns that hold questions of every type between them.

    Args:
        mark: part of every token; random by default, so that nothing an agent remembers from an
            earlier check can pass for what it was given.
        confidence: of every inference, instead of one of its own for each.
        long: every text is as long as it may be, with a token at either end.
    """
    mark = mark or new_mark()
    fill = _Filling(confidence, long=long)
    return fill.flow(_PLACE_AND_CHOICE, f"k{mark}a"), fill.flow(_TEXT, f"k{mark}b")


def flow_of_pairs(mark: str = "") -> CanaryFlow:
    """Return a second turn with two questions of one type, each with an answer in words."""
    return _Filling().flow(_TWO_TEXTS, f"k{mark or new_mark()}c")


class _Filling:
    """Puts tokens in the place of the question marks of a template."""

    def __init__(self, confidence: float | None = None, *, long: bool = False) -> None:
        self._confidence = confidence
        self._long = long
        self._mark = ""
        self._tokens: dict[str, str] = {}
        self._ends: dict[str, str] = {}

    def flow(self, template: Mapping[str, object], mark: str) -> CanaryFlow:
        self._mark, self._tokens, self._ends = mark, {}, {}
        return CanaryFlow(self._fill(template, ""), self._tokens, self._ends)

    def _fill(self, value: object, path: str) -> Any:
        if value == "?":
            return self._text(path)
        if isinstance(value, Mapping):
            return {k: self._fill(v, f"{path}.{k}".strip(".")) for k, v in value.items()}
        if isinstance(value, list):
            return [self._fill(v, f"{path}.{i}") for i, v in enumerate(value)]
        if self._confidence is not None and path.endswith("_confidence"):
            return self._confidence
        return value

    def _text(self, path: str) -> str:
        stem = f"{self._mark}{len(self._tokens):02d}"
        token = self._tokens[path] = self._ends[path] = f"{stem}z"
        if not self._long:
            return token
        end = self._ends[path] = f"{stem}y"
        room = _LIMITS.get(path.rpartition(".")[2], MAX_LABEL) - len(token) - len(end)
        # Words without meaning, which nothing would shorten or rewrite but a cut.
        filler = (" text" * (room // 5 + 1))[: room - 1] + " "
        return token + (filler.replace(" ", "-") if path.endswith("id") else filler) + end


def variants(number: int) -> Iterator[tuple[str, RequestWith, RequestWith]]:
    """Yield, for each leaf of a flow that holds no text, its path and two requests.

    They differ in that leaf, and take the mark of their tokens.

    Args:
        number: which of the two flows.
    """
    for path, (keys, value) in _OTHERWISE.items():
        if _has(canary_flows("-")[number].wire, keys):
            yield path, _Variant(number, path), _Variant(number, path, keys, value)


class _Variant:
    def __init__(
        self, number: int, path: str, keys: tuple[str | int, ...] = (), value: object = None
    ) -> None:
        self._number, self._path, self._keys, self._value = number, path, keys, value

    def __call__(self, mark: str) -> ClarificationRequest:
        wire: Any = canary_flows(mark)[self._number].wire
        if self._path.endswith("allow_other"):
            # Words of one's own are no answer where they are not allowed.
            wire = _with(wire, ("answers", 1, "other"), None)
        return _request(_with(wire, self._keys, self._value) if self._keys else wire)


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


def _has(value: Any, keys: tuple[str | int, ...]) -> bool:
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError):
            return False
    return True


def _with(value: Any, keys: tuple[str | int, ...], new: object) -> Any:
    if not keys:
        return new
    copy: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copy[keys[0]] = _with(copy[keys[0]], keys[1:], new)
    return copy


def _request(wire: Mapping[str, Any]) -> ClarificationRequest:
    answers = wire["answers"]
    if isinstance(answers, list):
        pairs = zip(wire["questions_asked"], answers, strict=False)
        answers = {q["id"]: _answer(q, answer) for q, answer in pairs if answer is not None}
    context = {**wire, "answers": answers}
    return parse_request({"message": wire["original_description"], "conversationContext": context})


def _answer(question: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer whose selected options, given by their number, are named by their id."""
    if "selected" not in answer:
        return answer
    options = question["options"]
    return {**answer, "selected": [options[number]["id"] for number in answer["selected"]]}


LeafTokens = Mapping[str, str]
"""Path of a leaf to the token in it."""

_TOKEN: Final = re.compile(r"k[0-9a-f]{8}[a-c]\d\dz")
_LABEL: Final = 24
"""Characters before a token that can be its label."""
_LETTERS: Final = 2
"""A label has more of them than a bullet or a quote."""


def find_misplaced(tokens: LeafTokens, prompt: str) -> list[str]:
    """Return the paths of the answers that stand with a question that is not theirs.

    Questions and answers are paired by their number. None is returned if any reading of the prompt
    pairs them rightly: question before answer, answer before question, or two lists of one order.
    """
    owners = {token: path for path, token in tokens.items()}
    found = [owners.get(match[0], "").split(".") for match in _TOKEN.finditer(prompt)]
    marks = [(path[0], path[1]) for path in found if path[0] in ("questions_asked", "answers")]
    order = [mark for mark, _ in groupby(marks)]
    questions = {number for kind, number in order if kind == "questions_asked"}
    answers = {number for kind, number in order if kind == "answers"}
    if not answers or not answers <= questions:
        return []
    readings = [
        _wrong_neighbours([("", ""), *order], backwards=True),
        _wrong_neighbours([*order, ("", "")], backwards=False),
    ]
    if all(reading is None for reading in readings):
        readings.append(_in_order(order))
    if any(reading == set() for reading in readings):
        return []
    wrong = next((reading for reading in readings if reading), answers)
    return [path for path in tokens if path.startswith("answers") and path.split(".")[1] in wrong]


def _wrong_neighbours(order: list[tuple[str, str]], *, backwards: bool) -> set[str] | None:
    """Return the answers whose neighbour is another question; ``None`` if one has none."""
    wrong = set()
    for one, two in pairwise(order):
        neighbour, mark = (one, two) if backwards else (two, one)
        if mark[0] != "answers":
            continue
        if neighbour[0] != "questions_asked":
            return None
        if neighbour[1] != mark[1]:
            wrong.add(mark[1])
    return wrong


def _in_order(order: list[tuple[str, str]]) -> set[str]:
    """Return the answers that do not stand in the order of their questions."""
    answers = list(dict.fromkeys(number for kind, number in order if kind == "answers"))
    asked = list(dict.fromkeys(number for kind, number in order if kind == "questions_asked"))
    wanted = [number for number in asked if number in answers]
    return {found for found, due in zip(answers, wanted, strict=True) if found != due}


def posing(tokens: LeafTokens, answered: str, skipped: str) -> Iterator[tuple[str, str]]:
    """Yield leaves that pose as an answer once the person skips, and the answer that they play.

    Args:
        tokens: of the conversation.
        answered: the prompt with answers.
        skipped: the same without any.
    """
    for path, answer, moved in _in_places_of_answers(tokens, answered, skipped):
        if not moved:
            yield path, answer


def exchanges(tokens: LeafTokens, answered: str, skipped: str) -> Iterator[tuple[str, str]]:
    """Yield inferences that change places with an answer as soon as there is one, and the answer.

    Args:
        tokens: of the conversation.
        answered: the prompt with answers.
        skipped: the same without any.
    """
    for path, answer, moved in _in_places_of_answers(tokens, answered, skipped):
        if moved:
            yield path, answer


def _in_places_of_answers(
    tokens: LeafTokens, answered: str, skipped: str
) -> Iterator[tuple[str, str, bool]]:
    """Yield leaves that have a label without answers which an answer has with them.

    The third value is whether the leaf has a label of its own, only with answers: it moved there.
    """
    answers = [path for path in tokens if path.startswith("answers")]
    for path in tokens:
        if path.startswith("answers") or path.endswith(".id"):
            continue
        mine, before = _labels(tokens[path], answered), _labels(tokens[path], skipped)
        if not mine:
            continue
        for answer in answers:
            if (before & _labels(tokens[answer], answered)) - mine:
                yield path, answer, not mine <= before
                break


def _labels(token: str, prompt: str) -> set[str]:
    """Return what stands before each place of a token, back to the token or line before it."""
    labels = set()
    for match in re.finditer(re.escape(token), prompt):
        before = _TOKEN.sub("\n", prompt[max(0, match.start() - 2 * _LABEL) : match.start()])
        label = before.rpartition("\n")[2][-_LABEL:]
        if sum(map(str.isalpha, label)) > _LETTERS:
            labels.add(label)
    return labels
