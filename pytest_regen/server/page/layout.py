"""What every view of the page shares: the frame, the alert, the description as it was written."""

from collections.abc import Sequence
from http import HTTPStatus

from pytest_regen.server.page.html import Child, Html, document, element, isolate

NAME = "Subject line"
_PROMISE = (
    "What you write goes to the language model that answers, and is not stored on this server; its "
    "log holds addresses, times and errors, and none of your words. This tab keeps your words "
    "until you close it, so that nothing is lost."
)
_ERRORS = {
    HTTPStatus.NOT_FOUND: ("There is no such page", "The address leads nowhere here."),
    HTTPStatus.METHOD_NOT_ALLOWED: (
        "There is nothing to see here",
        "This address takes what a form sends, and has no page of its own.",
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        "Something went wrong here",
        "It was not your fault. What you wrote is still on the page before: go back and try again.",
    ),
}
"""Titles and sentences for people."""


def page_frame(title: str, view: Child, *, announced: str) -> Html:
    """Return a whole page around one view.

    Args:
        title: of the window.
        view: what `main` holds.
        announced: what a screen reader says once the view has replaced another.
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
            element("p", _PROMISE),
        ),
    )
    return document("en", head, element("body", body))


def error_page(status: HTTPStatus, message: str, *, request_id: str = "") -> Html:
    """Return the page of whoever came to a place that is not there, or when something broke.

    Args:
        status: of the answer.
        message: what happened, where the status has no sentence of its own.
        request_id: under which it is logged, where somebody may want to look it up.
    """
    title, words = _ERRORS.get(status, ("This did not work", message))
    view = (
        element("h1", title, id="title", tabindex="-1"),
        element("p", words),
        element("p", ("Its number in the log: ", element("code", request_id)), class_="hint")
        if request_id and status >= HTTPStatus.INTERNAL_SERVER_ERROR
        else None,
        element("div", element("a", "To the start", href="/", class_="button"), class_="actions"),
    )
    return page_frame(title, view, announced=title)


def alert(message: str | None, *, focused: bool = True) -> Html | None:
    """Return a message that is announced, or nothing.

    Args:
        message: what happened.
        focused: whether it takes the focus, as it does where no field is at fault.
    """
    if message is None:
        return None
    return element(
        "p", message, class_="alert", role="alert", id="alert", tabindex="-1", autofocus=focused
    )


def previous_answers(answers: Sequence[tuple[str, str]]) -> Html | None:
    """Return questions and answers that can no longer be sent, to be read again."""
    if not answers:
        return None
    rows = [
        (element("dt", isolate(question)), element("dd", isolate(answer)))
        for question, answer in answers
    ]
    return element(
        "section", (element("h2", "You had answered"), element("dl", rows)), class_="told"
    )


def description_quote(description: str) -> Html:
    """Return what the person wrote, as a quotation, and a way back to where it can be changed."""
    back = element(
        "form",
        (
            element("input", type="hidden", name="message", value=description),
            element("button", "Start over with this text", class_="quiet small"),
        ),
        method="post",
        action="/subject/again",
    )
    return element(
        "section",
        (element("h2", "You wrote"), element("blockquote", isolate(description)), back),
        class_="written",
    )
