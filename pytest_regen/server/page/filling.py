"""What a person put into the form, as answers to the questions."""

from collections.abc import Mapping, Sequence

from pytest_regen.context.questions import ClarificationQuestion
from pytest_regen.context.text import is_blank
from pytest_regen.server.gazetteer import Gazetteer
from pytest_regen.server.page.fields import Filled

__all__ = ["answers_of", "filled_in", "too_long", "unanswered"]

Form = Mapping[str, Sequence[str]]


def filled_in(form: Form, questions: Sequence[ClarificationQuestion]) -> tuple[Filled, ...]:
    """Return what stands in the fields of each question."""
    return tuple(
        Filled(
            text=_first(form, f"q{number}.text"),
            selected=tuple(form.get(f"q{number}.selected", ())),
            place=_first(form, f"q{number}.place") or "",
        )
        for number, _ in enumerate(questions)
    )


def answers_of(
    questions: Sequence[ClarificationQuestion], filled: Sequence[Filled], gazetteer: Gazetteer
) -> dict[str, object]:
    """Return the answers by question id, as a context takes them; what is blank was skipped."""
    return {
        question.id: _answer(question, entry, gazetteer)
        for question, entry in zip(questions, filled, strict=True)
    }


def unanswered(question: ClarificationQuestion, answer: object) -> bool:
    """Whether a question that has to be answered was not."""
    return question.required and answer is None


def too_long(length: int, limit: int) -> str:
    """Return what somebody is told whose text does not fit; counted in characters, not in bytes."""
    return (
        f"This has {length:,} characters, and at most {limit:,} fit. "
        f"Shorten it by {length - limit:,}."
    )


def _answer(
    question: ClarificationQuestion, filled: Filled, gazetteer: Gazetteer
) -> dict[str, object] | None:
    words = filled.text if filled.text is not None and not is_blank(filled.text) else None
    if question.type == "open_text":
        return None if words is None else {"kind": "text", "text": words}
    if question.type == "multiple_choice":
        return _choice(filled, words)
    marked = next((label for label in filled.selected if label), None)
    if marked is not None:
        suggested = marked in (question.suggested_locations or ())
        return _typed(marked) if suggested else _chosen(question, marked, gazetteer)
    if words is None:
        return None
    chosen = filled.place == words
    return _chosen(question, words, gazetteer) if chosen else _typed(words)


def _choice(filled: Filled, words: str | None) -> dict[str, object] | None:
    if not filled.selected and words is None:
        return None
    chosen: dict[str, object] = {"kind": "choice", "selected": list(filled.selected)}
    return chosen if words is None else {**chosen, "other": words}


def _typed(label: str) -> dict[str, object]:
    """Return a place as it was typed or suggested; which one it is remains to be understood."""
    return {"kind": "place", "label": label.strip()}


def _chosen(question: ClarificationQuestion, label: str, gazetteer: Gazetteer) -> dict[str, object]:
    """Return a place that was shown with all it lies in, and chosen."""
    known = gazetteer.labelled(label, level=question.location_level)
    if known is None:
        return _typed(label)
    parts = {"city": known.city, "state": known.state, "country": known.country}
    return {
        "kind": "place",
        "label": known.label,
        **{name: part for name, part in parts.items() if part is not None},
    }


def _first(form: Form, name: str) -> str | None:
    values = form.get(name, ())
    return values[0] if values else None
