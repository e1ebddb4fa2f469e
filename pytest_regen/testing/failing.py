"""What tests of generated code say with: a failure whose content is the feedback."""

from collections.abc import Sequence
from typing import NoReturn

from pytest_regen.validation.issues import Issue

__all__ = ["Feedback", "FeedbackError", "fail"]

Feedback = Issue | str
"""An issue, or a correction in words."""


class FeedbackError(AssertionError):
    """The assertion that ``fail`` raises; carries what a model is told when it is asked again."""

    def __init__(self, feedback: Sequence[Feedback]) -> None:
        super().__init__("\n".join(_line(item) for item in feedback))
        self.feedback = tuple(feedback)

    def __reduce__(self) -> tuple[object, ...]:
        return FeedbackError, (self.feedback,)


def fail(
    *, issues: Sequence[Issue] | Issue = (), corrections: Sequence[str] | str = ()
) -> NoReturn:
    """Fail the test; with ``--regen``, ask for the unit again with exactly this as the feedback.

    Args:
        issues: what is wrong, with its place; ``Issue.of(code, message, type_name=…, page=…)``.
        corrections: what is wrong, in words.

    Raises:
        FeedbackError: always; an ``AssertionError``.
        TypeError: neither was given, so that there is nothing to say.
    """
    __tracebackhide__ = True
    found = (issues,) if isinstance(issues, Issue) else tuple(issues)
    words = (corrections,) if isinstance(corrections, str) else tuple(corrections)
    if not found and not words:
        raise TypeError("pytest_regen.fail() needs issues= or corrections=")
    raise FeedbackError((*found, *words))


def _line(item: Feedback) -> str:
    if isinstance(item, str):
        return item
    place = f"{item.type_name}: " if item.type_name else ""
    return f"[{item.code}] {place}{item.message}"
