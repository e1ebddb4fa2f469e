"""The second view: the questions, all on one screen, and the way past them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_regen.context.questions import ClarificationQuestion
from pytest_regen.context.values import ConversationContext
from pytest_regen.html import Html, element, isolated
from pytest_regen.server.page.fields import Filled, question_field
from pytest_regen.server.page.layout import alert, answered_before, framed, written

__all__ = ["Held", "questions_page"]


@dataclass(frozen=True, slots=True)
class Held:
    """What the page holds for the next turn, in hidden fields."""

    context: ConversationContext
    """Without answers."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Hidden fields by name: the context as it is sent back, and its seal."""


def questions_page(
    held: Held,
    filled: Sequence[Filled] = (),
    *,
    problem: str | None = None,
    left: Sequence[tuple[str, str]] = (),
) -> Html:
    """Return the page that asks.

    Args:
        held: the first turn.
        filled: what already stands in the fields, question by question.
        problem: why the last attempt went no further.
        left: questions and answers of before that fit nowhere here.
    """
    questions = held.context.questions_asked
    entries = [*filled, *[Filled()] * len(questions)]
    form = element(
        "form",
        (
            [element("input", type="hidden", name=n, value=v) for n, v in held.fields.items()],
            # Enter in any field continues: the first button of a form is its default.
            element(
                "button",
                "Continue",
                name="action",
                value="answer",
                class_="visually-hidden",
                tabindex="-1",
                aria_hidden="true",
            ),
            [
                question_field(number, question, entry)
                for number, (question, entry) in enumerate(zip(questions, entries, strict=False))
            ],
            _reasoning(held.context.inferred_context.reasoning),
            _actions(),
        ),
        method="post",
        action="/subject/answers",
        novalidate=True,
    )
    view = (
        element("h1", _title(questions), id="title", tabindex="-1"),
        alert(problem or _left_open(questions, entries), focused=problem is not None),
        form,
        answered_before(left),
        written(held.context.original_description),
    )
    count = len(questions)
    return framed(
        _title(questions),
        view,
        announced=f"{count} question{'s' if count > 1 else ''} to answer or to skip.",
    )


def _left_open(questions: Sequence[ClarificationQuestion], entries: Sequence[Filled]) -> str | None:
    """Return one sentence for all answers that something is wrong with."""
    wrong = [
        f"“{question.question}”"
        for question, entry in zip(questions, entries, strict=False)
        if entry.problem
    ]
    if not wrong:
        return None
    return (
        f"{'This still needs' if len(wrong) == 1 else 'These still need'} you: {', '.join(wrong)}"
    )


def _title(questions: Sequence[ClarificationQuestion]) -> str:
    return "One question first" if len(questions) == 1 else "Two questions first"


def _reasoning(reasoning: str | None) -> Html | None:
    if not reasoning:
        return None
    return element(
        "details",
        (element("summary", "Why this is asked"), element("p", isolated(reasoning))),
    )


def _actions() -> Html:
    return element(
        "div",
        (
            element("button", "Continue", name="action", value="answer"),
            element(
                "button",
                "Skip and use your best guess",
                name="action",
                value="skip",
                class_="quiet",
            ),
        ),
        class_="actions",
    )
