"""The views of the page: the description, the questions, and the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_regen.context.questions import Answer, ClarificationQuestion, PlaceAnswer, TextAnswer
from pytest_regen.context.values import MAX_DESCRIPTION, ConversationContext, Generate
from pytest_regen.server.page.fields import (
    SAVED,
    FieldState,
    SavedAnswer,
    dump_saved,
    question_field,
)
from pytest_regen.server.page.html import Child, Html, element, isolate
from pytest_regen.server.page.layout import (
    NAME,
    alert,
    description_quote,
    page_frame,
    previous_answers,
)


def start_page(
    message: str = "",
    *,
    problem: str | None = None,
    invalid: bool = False,
    saved: Sequence[SavedAnswer] = (),
) -> Html:
    """Return the page that asks what should change.

    Args:
        message: what stands in the box.
        problem: why the last attempt went no further.
        invalid: whether the description itself is the reason.
        saved: answers that were given before.
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
            element("input", type="hidden", name=SAVED, value=dump_saved(saved)) if saved else None,
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
        previous_answers([(answer.question, answer.summary) for answer in saved]),
    )
    return page_frame(NAME, view, announced="Ready for your description.")


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
class FormState:
    """What the page holds for the next turn, in hidden fields."""

    context: ConversationContext
    """Without answers."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Hidden fields by name: the context as it is sent back, and its seal."""


def questions_page(
    state: FormState,
    fields: Sequence[FieldState] = (),
    *,
    problem: str | None = None,
    left: Sequence[tuple[str, str]] = (),
) -> Html:
    """Return the page that asks.

    Args:
        state: the first turn.
        fields: what already stands in the fields, question by question.
        problem: why the last attempt went no further.
        left: questions and answers of before that fit nowhere here.
    """
    questions = state.context.questions_asked
    entries = [*fields, *[FieldState()] * len(questions)]
    form = element(
        "form",
        (
            [element("input", type="hidden", name=n, value=v) for n, v in state.fields.items()],
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
            _reasoning(state.context.inferred_context.reasoning),
            _actions(),
        ),
        method="post",
        action="/subject/answers",
        novalidate=True,
    )
    view = (
        element("h1", _title(questions), id="title", tabindex="-1"),
        alert(problem or _still_needed(questions, entries), focused=problem is not None),
        form,
        previous_answers(left),
        description_quote(state.context.original_description),
    )
    count = len(questions)
    return page_frame(
        _title(questions),
        view,
        announced=f"{count} question{'s' if count > 1 else ''} to answer or to skip.",
    )


def _still_needed(
    questions: Sequence[ClarificationQuestion], entries: Sequence[FieldState]
) -> str | None:
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
    prompt: str | None = None,
) -> Html:
    """Return the page that shows the result.

    Args:
        result: what the agent wrote.
        description: what the person wrote.
        context: questions and answers as the model read them, where there were any.
        prompt: the whole text the model was given, where it is to be shown.
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
        _answers_given(context),
        description_quote(description),
    )
    return page_frame(
        "Your subject line",
        (view, _prompt_details(prompt)),
        announced=f"Your subject line: {result.subject_line}",
    )


def _topics(result: Generate) -> Html | None:
    if not result.topics:
        return None
    items = [element("li", isolate(topic)) for topic in result.topics]
    return element("ul", items, class_="topics", aria_label="Topics")


def _row(term: str, text: str | None) -> Child:
    return (element("dt", term), element("dd", isolate(text))) if text else None


def _answers_given(context: ConversationContext | None) -> Html | None:
    """Return each question with its answer, word for word as the model read it."""
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
    chosen = [labels[key] for key in answer.selected]
    chosen += [f"“{answer.other}”"] if answer.other else []
    return element("ul", [element("li", isolate(label)) for label in chosen])


def _prompt_details(prompt: str | None) -> Html | None:
    if prompt is None:
        return None
    return element(
        "details",
        (element("summary", "What the model was given"), element("pre", prompt, tabindex="0")),
        class_="sent",
    )
