"""The first view: one box for the description."""

from collections.abc import Sequence

from pytest_regen.context.values import MAX_DESCRIPTION
from pytest_regen.html import Html, element
from pytest_regen.server.page.keeping import KEPT, Kept, written_kept
from pytest_regen.server.page.layout import NAME, alert, answered_before, framed

__all__ = ["start_page"]


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
