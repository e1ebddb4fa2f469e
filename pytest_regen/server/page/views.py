"""The first view: one box for the description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_regen.context.questions import Answer, ClarificationQuestion, PlaceAnswer, TextAnswer
from pytest_regen.context.values import MAX_DESCRIPTION, ConversationContext, Generate
from pytest_regen.html import Child, Html, element, isolate
from pytest_regen.server.page.fields import KEPT, Filled, Kept, question_field, written_kept
from pytest_regen.server.page.layout import NAME, alert, answered_before, framed, written

__all__ = ["Held", "questions_page", "result_page", "start_page"]


def start_page(
    message: str = "",
    *,
    problem: str | None = None,
    invalid: bool = False,
    kept: Sequence[Kept] = (),
) -> Html:
    """Return the page that asks what should change.

    Args:
        message: what stands in the box.
        problem: why the last attempt went no further.
        invalid: whether the description itself is the reason.
        kept: answers that were given before.
    """
    hint = element(
        "p",
        (
            element("span", "In your own words, angry ones included."),
            element("span", f"At most {MAX_DESCRIPTION:,} characters", id="count", class_="count"),
        ),
        class_="hint",
        id="message-hint",
    )
    form = element(
        "form",
        (
            element("input", type="hidden", name=KEPT, value=written_kept(kept)) if kept else None,
            element("label", "What is going wrong, and where?", for_="message"),
            _box(message, invalid=invalid, focused=problem is None),
            hint,
            element("div", element("button", "Write a subject line"), class_="actions"),
        ),
        method="post",
        action="/subject",
        # The browser's own bubble would be in its language, not in that of the page.
        novalidate=True,
    )
    view = (
        element("h1", "Say what should change", id="title", tabindex="-1"),
        element(
            "p",
            "You get one line that says it, after two questions at most. For example: "
            "“Our Rent Doubled and City Hall Shrugged”.",
            class_="lead",
        ),
        alert(problem),
        form,
        answered_before([(one.question, one.said) for one in kept]),
    )
    return framed(NAME, view, announced="Ready for your description.")


def _box(message: str, *, invalid: bool, focused: bool) -> Html:
    return element(
        "textarea",
        # A browser drops one line end at the start of the box.
        "\n" + message,
        id="message",
        name="message",
        rows="6",
        data_limit=MAX_DESCRIPTION,
        required=True,
        dir="auto",
        aria_describedby="message-hint alert" if invalid else "message-hint",
        aria_invalid="true" if invalid else None,
        autofocus=focused,
    )


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
        (element("summary", "Why this is asked"), element("p", isolate(reasoning))),
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


def result_page(
    result: Generate,
    *,
    description: str,
    context: ConversationContext | None = None,
    sent: str | None = None,
) -> Html:
    """Return the page that shows the result.

    Args:
        result: what the agent wrote.
        description: what the person wrote.
        context: questions and answers as the model was told them, where there were any.
        sent: the whole text the model was given, where it is to be shown.
    """
    card = element(
        "article",
        (
            element("h1", isolate(result.subject_line), id="title", tabindex="-1", class_="line"),
            element("p", isolate(result.core_message), class_="core")
            if result.core_message
            else None,
            _topics(result),
            element(
                "dl",
                (
                    _row("In your words", result.voice_sample),
                    _row("What you ask for", result.detected_ask),
                    _row("End of its web address", result.url_slug and f"/{result.url_slug}"),
                ),
            ),
            element(
                "div",
                (
                    # Shown by the script, which makes it work.
                    element(
                        "button",
                        "Copy the subject line",
                        type="button",
                        data_copies="title",
                        hidden=True,
                    ),
                    element(
                        "a", "Write another", href="/", class_="button quiet", data_forgets=True
                    ),
                ),
                class_="actions",
            ),
        ),
        class_="result",
    )
    view = (
        element("p", "Your subject line", class_="eyebrow"),
        card,
        _told(context),
        written(description),
    )
    return framed(
        "Your subject line",
        (view, _sent(sent)),
        announced=f"Your subject line: {result.subject_line}",
    )


def _topics(result: Generate) -> Html | None:
    if not result.topics:
        return None
    items = [element("li", isolate(topic)) for topic in result.topics]
    return element("ul", items, class_="topics", aria_label="Topics")


def _row(term: str, text: str | None) -> Child:
    return (element("dt", term), element("dd", isolate(text))) if text else None


def _told(context: ConversationContext | None) -> Html | None:
    """Return each question with the answer as it was told, so that nobody is misquoted."""
    if context is None or not context.questions_asked:
        return None
    rows = [
        (element("dt", isolate(question.question)), element("dd", answer))
        for question in context.questions_asked
        for answer in (_answer(question, context.answers.get(question.id)),)
    ]
    return element(
        "section",
        (element("h2", "The model was told"), element("dl", rows)),
        class_="told",
    )


def _answer(question: ClarificationQuestion, answer: Answer | None) -> Child:
    if answer is None:
        return element("span", "skipped", class_="skipped")
    if isinstance(answer, TextAnswer):
        return isolate(answer.text)
    if isinstance(answer, PlaceAnswer):
        parts = [part for part in (answer.city, answer.state, answer.country) if part]
        small = element("small", isolate(", ".join(parts))) if parts else None
        return (isolate(answer.label), small)
    labels = {option.id: option.label for option in question.options or ()}
    said = [labels[key] for key in answer.selected]
    said += [f"“{answer.other}”"] if answer.other else []
    return element("ul", [element("li", isolate(one)) for one in said])


def _sent(sent: str | None) -> Html | None:
    if sent is None:
        return None
    return element(
        "details",
        (element("summary", "What the model was given"), element("pre", sent, tabindex="0")),
        class_="sent",
    )
