"""Answers as callers send them, spelled out by the question they belong to."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic_core import PydanticCustomError

from pytest_regen.context.questions import Answer, ChoiceAnswer, ClarificationQuestion
from pytest_regen.context.text import as_data, is_blank, trimmed

__all__ = ["DELIMITER", "answer_problem", "spelled_out"]

DELIMITER: Final = "|||"
"""Between the parts of a multiple choice that was sent as one string."""

_KINDS: Final = {"open_text": "text", "location_picker": "place", "multiple_choice": "choice"}
_ALL_KINDS: Final = ("skipped", *_KINDS.values())
_LONGEST_FLAT: Final = 8_000
"""A longer string is not taken apart, only refused."""


def spelled_out(given: object, questions: Sequence[ClarificationQuestion]) -> object:
    """Return ``given`` with every string made a typed answer, and what was skipped left out.

    Raises:
        PydanticCustomError: a question that was never asked is answered.
    """
    if not isinstance(given, Mapping):
        return given
    asked = {question.id: question for question in questions}
    found: dict[object, object] = {}
    for key, value in given.items():
        if key not in asked:
            raise PydanticCustomError(
                "unknown_question",
                "An answer to a question that was not asked; asked were {asked}",
                {"asked": ", ".join(map(as_data, asked)) or "none"},
            )
        answer = _typed(asked[key], value)
        if not _is_skipped(answer):
            found[key] = answer
    return found


def _typed(question: ClarificationQuestion, value: object) -> object:
    if isinstance(value, Mapping):
        return {key: said for key, said in value.items() if not _is_nothing(said)}
    if not isinstance(value, str):
        return value
    if is_blank(value):
        return None
    if question.type == "open_text":
        return {"kind": "text", "text": value}
    if question.type == "location_picker":
        return {"kind": "place", "label": value}
    return _choice(question, value)


def _choice(question: ClarificationQuestion, value: str) -> Mapping[str, object]:
    if len(value) > _LONGEST_FLAT:
        return {"kind": "choice", "other": value}
    by_name = {option.id: option.id for option in question.options or ()}
    by_name |= {option.label: option.id for option in question.options or ()}
    parts = [trimmed(part) for part in value.split(DELIMITER) if not is_blank(part)]
    selected = [by_name[part] for part in parts if part in by_name]
    words = [part for part in parts if part not in by_name]
    # Words may hold the delimiter; it is theirs again.
    other = {"other": f" {DELIMITER} ".join(words)} if words else {}
    return {"kind": "choice", "selected": list(dict.fromkeys(selected)), **other} if parts else {}


def _is_nothing(value: object) -> bool:
    if isinstance(value, str):
        return is_blank(value)
    return value is None or value in ([], ())


def _is_skipped(answer: object) -> bool:
    """Return whether nothing was said: no answer, no more than its kind, or nothing chosen."""
    if answer is None:
        return True
    if isinstance(answer, Mapping):
        return not answer or (answer.get("kind") in _ALL_KINDS and len(answer) == 1)
    return (getattr(answer, "selected", None), getattr(answer, "other", "")) == ((), None)


def answer_problem(question: ClarificationQuestion, answer: Answer | None) -> str | None:
    """Return why ``answer`` does not fit ``question``, or ``None``."""
    if answer is None:
        return None
    if answer.kind != _KINDS[question.type]:
        return (
            f"The answer to {as_data(question.id)} is of kind {answer.kind!r}; "
            f"a question of type {question.type} takes {_KINDS[question.type]!r}"
        )
    problem = _choice_problem(question, answer) if answer.kind == "choice" else None
    return f"The answer to {as_data(question.id)} {problem}" if problem else None


def _choice_problem(question: ClarificationQuestion, answer: ChoiceAnswer) -> str | None:
    if not {option.id for option in question.options or ()}.issuperset(answer.selected):
        return "selects an option that was not offered"
    if len(set(answer.selected)) < len(answer.selected):
        return "selects an option twice"
    if answer.other is not None and not question.allow_other:
        return "has words of its own, which the question does not allow"
    return None
