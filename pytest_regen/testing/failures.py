"""Failures of tests whose content is feedback to the model."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from pytest_regen.validation.issues import Feedback, Issue

if TYPE_CHECKING:
    from pytest_regen.sessions import ScenarioFeedback


class FeedbackError(AssertionError):
    """The assertion that ``fail`` raises; carries the feedback for the next request."""

    def __init__(
        self, feedback: Sequence[Feedback], scenarios: "ScenarioFeedback | None" = None
    ) -> None:
        super().__init__("\n".join(_line(item) for item in feedback))
        self.feedback = tuple(feedback)
        self.scenarios = scenarios
        """The feedback for a scenario session, as it was given."""

    def __reduce__(self) -> tuple[object, ...]:
        return FeedbackError, (self.feedback, self.scenarios)


def fail(
    *,
    issues: Sequence[Issue] | Issue = (),
    corrections: Sequence[str] | str = (),
    feedback: "ScenarioFeedback | None" = None,
) -> NoReturn:
    """Fail the test; with ``--regen``, ask for the unit again with exactly this as the feedback.

    A session of the fixtures ``generator_session`` and ``scenario_session`` is asked again
    without that option, where the test is marked ``@pytest.mark.regen(attempts=N)``.

    Args:
        issues: what is wrong, with its place; ``Issue.of(code, message, type_name=…, page=…)``.
        corrections: what is wrong, in words.
        feedback: what is wrong with scenarios, for a scenario session.

    Raises:
        FeedbackError: always; an ``AssertionError``.
        TypeError: neither was given, so that there is nothing to say.
    """
    __tracebackhide__ = True
    found = (issues,) if isinstance(issues, Issue) else tuple(issues)
    words = (corrections,) if isinstance(corrections, str) else tuple(corrections)
    if feedback is not None:
        sent = feedback.model_copy(update={"notes": (*feedback.notes, *map(_line, found), *words)})
        if sent.is_empty:
            raise TypeError("the feedback given to pytest_regen.fail() is empty")
        raise FeedbackError(tuple(_scenario_lines(sent)), sent)
    if not found and not words:
        raise TypeError("pytest_regen.fail() needs issues=, corrections= or feedback=")
    raise FeedbackError((*found, *words))


def _scenario_lines(feedback: "ScenarioFeedback") -> Iterator[str]:
    """Yield feedback about scenarios as a reader of the failure sees it."""
    for correction in feedback.corrections:
        was = f" is {correction.original_decision}, and" if correction.original_decision else ""
        yield f"{correction.scenario_description!r}{was} should be {correction.corrected_decision}"
    for discarded in feedback.discarded_scenarios:
        yield f"{discarded.scenario.description!r} can never pass: {discarded.rule}"
    for probe in feedback.probe_scenarios:
        yield f"not tested: {probe.request}"
    yield from (*feedback.rule_changes, *feedback.notes)


def _line(item: Feedback) -> str:
    if isinstance(item, str):
        return item
    place = f"{item.type_name}: " if item.type_name else ""
    return f"[{item.code}] {place}{item.message}"
