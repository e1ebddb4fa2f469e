"""The last view: the subject line and what came with it."""

from pytest_regen.context.values import Generate
from pytest_regen.html import Child, Html, element, isolated
from pytest_regen.server.page.layout import framed, written

__all__ = ["result_page"]


def result_page(result: Generate, *, description: str, sent: str | None = None) -> Html:
    """Return the page that shows the result.

    Args:
        result: what the agent wrote.
        description: what the person wrote.
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
                    _row("Address", result.url_slug and f"/{result.url_slug}"),
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
                    element("a", "Write another", href="/", class_="button quiet"),
                ),
                class_="actions",
            ),
        ),
        class_="result",
    )
    view = (element("p", "Your subject line", class_="eyebrow"), card, written(description))
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


def _sent(sent: str | None) -> Html | None:
    if sent is None:
        return None
    return element(
        "details",
        (element("summary", "What the model was given"), element("pre", sent, tabindex="0")),
        class_="sent",
    )
