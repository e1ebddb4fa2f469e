"""Failures of tests whose content is feedback to the model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_regen.validation.issues import Feedback, Issue

if TYPE_CHECKING:
    from pytest_regen.sessions import ItemFeedback, ScenarioFeedback


class FeedbackError(AssertionError):
    """The assertion that ``fail`` raises; carries the feedback for the next request."""

    def __init__(
        self,
        feedback: Sequence[Feedback],
        scenarios: "ScenarioFeedback | ItemFeedback[Any] | None" = None,
    ) -> None:
        super().__init__("\n".join(_line(item) for item in feedback))
        self.feedback = tuple(feedback)
        self.scenarios = scenarios
        """The feedback for a session of scenarios or items, as it was given."""

    def __reduce__(self) -> tuple[object, ...]:
        return FeedbackError, (self.feedback, self.scenarios)


def fail(
    *,
    issues: Sequence[Issue] | Issue = (),
    corrections: Sequence[str] | str = (),
    feedback: "ScenarioFeedback | ItemFeedback[Any] | None" = None,
) -> NoReturn:
    """Fail the test; with ``--regen``, ask for the unit again with exactly this as the feedback.

    A session of the fixtures ``generator_session``, ``item_session`` and ``scenario_session`` is
    asked again without that option, where the test is marked ``@pytest.mark.regen(attempts=N)``.

    Args:
        issues: what is wrong, with its place; ``Issue.of(code, message, type_name=…, page=…)``.
        corrections: what is wrong, in words.
        feedback: what is wrong with scenarios or items, for a session of such.

    Raises:
        FeedbackError: always; an ``AssertionError``.
        TypeError: neither was given, so that there is nothing to say.
    """
    __tracebackhide__ = True
    problems = (issues,) if isinstance(issues, Issue) else tuple(issues)
    words = (corrections,) if isinstance(corrections, str) else tuple(corrections)
    error = FeedbackError((*problems, *words))
    if feedback is not None:
        sent = feedback.with_notes((*map(_line, problems), *words))
        error = FeedbackError(tuple(sent.lines()), sent)
    if not str(error).strip():
        raise TypeError("pytest_regen.fail() needs issues=, corrections= or feedback=, not empty")
    raise error


def _line(item: Feedback) -> str:
    if isinstance(item, str):
        return item
    place = f"{item.type_name}: " if item.type_name else ""
    return f"[{item.code}] {place}{item.message}"
