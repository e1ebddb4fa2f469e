"""What every view of the page shares: the frame, the alert, the description as it was written."""

from pytest_regen.html import Child, Html, document, element, isolated

__all__ = ["alert", "framed", "written"]

NAME = "Subject line"


def framed(title: str, view: Child, *, announced: str) -> Html:
    """Return a whole page around one view.

    Args:
        title: of the window.
        view: what `main` holds.
        announced: what a screen reader is told once the view has replaced another.
    """
    head = (
        element("meta", charset="utf-8"),
        element("title", title if title == NAME else f"{title} · {NAME}"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/page.css"),
        element("script", src="/static/page.js", type="module"),
    )
    body = (
        element("a", "Skip to the form", class_="skip-link", href="#stage"),
        element("header", element("a", NAME, href="/", class_="wordmark")),
        element("p", class_="visually-hidden", id="status", role="status", aria_live="polite"),
        element("main", view, id="stage", tabindex="-1", data_announced=announced),
        element(
            "footer",
            element("p", "Nothing you write is kept here: this page carries it from step to step."),
        ),
    )
    return document("en", head, element("body", body))


def alert(message: str | None) -> Html | None:
    """Return a message that takes the focus, or nothing."""
    if message is None:
        return None
    return element(
        "p", message, class_="alert", role="alert", id="alert", tabindex="-1", autofocus=True
    )


def written(description: str, *, again: bool = False) -> Html:
    """Return what the person wrote, as a quotation that cannot be edited any more.

    Args:
        description: what they wrote.
        again: whether a way to start over follows.
    """
    return element(
        "section",
        (
            element("h2", "You wrote"),
            element("blockquote", isolated(description)),
            element("a", "Start over", href="/") if again else None,
        ),
        class_="written",
    )
