"""The first view: one box for the description."""

from pytest_regen.context.values import MAX_DESCRIPTION
from pytest_regen.html import Html, element
from pytest_regen.server.page.layout import NAME, alert, framed

__all__ = ["start_page"]


def start_page(message: str = "", *, problem: str | None = None, invalid: bool = False) -> Html:
    """Return the page that asks what should change.

    Args:
        message: what stands in the box.
        problem: why the last attempt went no further.
        invalid: whether the description itself is the reason.
    """
    hint = element(
        "p",
        (
            "In your own words, angry ones included. ",
            element("span", id="count", data_limit=MAX_DESCRIPTION),
        ),
        class_="hint",
        id="message-hint",
    )
    form = element(
        "form",
        (
            element("label", "What is going wrong, and where?", for_="message"),
            _box(message, invalid=invalid, focused=problem is None),
            hint,
            element("div", element("button", "Write a subject line"), class_="actions"),
        ),
        method="post",
        action="/subject",
    )
    view = (
        element("h1", "Say what should change", id="title", tabindex="-1"),
        alert(problem),
        form,
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
        maxlength=MAX_DESCRIPTION,
        required=True,
        dir="auto",
        aria_describedby="message-hint alert" if invalid else "message-hint",
        aria_invalid="true" if invalid else None,
        autofocus=focused,
    )
