"""The last view: the subject line and what came with it."""

from pytest_regen.context.questions import (
    Answer,
    ClarificationQuestion,
    PlaceAnswer,
    TextAnswer,
)
from pytest_regen.context.values import ConversationContext, Generate
from pytest_regen.html import Child, Html, element, isolated
from pytest_regen.server.page.layout import framed, written

__all__ = ["result_page"]


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
            element("h1", isolated(result.subject_line), id="title", tabindex="-1", class_="line"),
            element("p", isolated(result.core_message), class_="core")
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
    items = [element("li", isolated(topic)) for topic in result.topics]
    return element("ul", items, class_="topics", aria_label="Topics")


def _row(term: str, text: str | None) -> Child:
    return (element("dt", term), element("dd", isolated(text))) if text else None


def _told(context: ConversationContext | None) -> Html | None:
    """Return each question with the answer as it was told, so that nobody is misquoted."""
    if context is None or not context.questions_asked:
        return None
    rows = [
        (element("dt", isolated(question.question)), element("dd", answer))
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
        return isolated(answer.text)
    if isinstance(answer, PlaceAnswer):
        parts = [part for part in (answer.city, answer.state, answer.country) if part]
        small = element("small", isolated(", ".join(parts))) if parts else None
        return (isolated(answer.label), small)
    labels = {option.id: option.label for option in question.options or ()}
    said = [labels[key] for key in answer.selected]
    said += [f"“{answer.other}”"] if answer.other else []
    return element("ul", [element("li", isolated(one)) for one in said])


def _sent(sent: str | None) -> Html | None:
    if sent is None:
        return None
    return element(
        "details",
        (element("summary", "What the model was given"), element("pre", sent, tabindex="0")),
        class_="sent",
    )
