"""A failing test of a session: its sessions are told why, and the body is called again.

Nothing is written and, without leave on the command line, nothing is sent: the next turn comes
from the test's cassette or from a provider of the project. So the marker alone is enough.
"""

import pytest

from pytest_regen.errors import BudgetError, NoProgressError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.feedback import feedback_of
from pytest_regen.pytest_plugin.marks import regen_mark
from pytest_regen.pytest_plugin.records import Heal, add_heal
from pytest_regen.pytest_plugin.session_fixtures import SESSIONS
from pytest_regen.pytest_plugin.session_handles import Sessions
from pytest_regen.sessions import ScenarioFeedback
from pytest_regen.testing.failing import FeedbackError
from pytest_regen.turns.values import Usage
from pytest_regen.validation.issues import Issue

__all__ = ["call_with_feedback"]

_AssertionFailure = (AssertionError, pytest.fail.Exception)


def call_with_feedback(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Call a failing item again with its failure as feedback; return the failure that is left.

    ``None`` means that it passes now. Errors other than failed assertions are nobody's feedback.
    """
    made = item.stash[SESSIONS]
    attempts = choices_of(item.config).attempts(regen_mark(item).attempts)
    before = _totals(made)
    left: BaseException | None = failure
    calls, stop = 1, "attempts"
    while isinstance(left, _AssertionFailure) and calls < attempts:
        feedback = _feedback(item, left)
        if feedback is None or not any(one.sessions for one in made):
            break
        for sessions in made:
            sessions.rewind(feedback)
        calls += 1
        found = _failure_of(item)
        if isinstance(found, NoProgressError | BudgetError):
            # The turn was not made, so that the failure before it still stands.
            left.add_note(f"\nNo further turn: {found}")
            stop = "no_progress" if isinstance(found, NoProgressError) else "budget"
            break
        left = found
    if calls > 1:
        heal = _heal(before, _totals(made))
        heal.unit, heal.attempts = item.nodeid, calls
        heal.outcome = "regenerated" if left is None else "failed"
        heal.stop_reason = "clean" if left is None else stop
        add_heal(item, heal)
    return left


def _failure_of(item: pytest.Item) -> BaseException | None:
    try:
        item.runtest()
    except (Exception, pytest.fail.Exception) as error:
        if isinstance(error, pytest.xfail.Exception | pytest.skip.Exception):
            raise
        return error
    return None


def _feedback(item: pytest.Item, failure: BaseException) -> ScenarioFeedback | None:
    """Return what a failure tells a session; ``None`` where the marker's codes leave nothing."""
    if isinstance(failure, FeedbackError) and failure.scenarios is not None:
        return failure.scenarios
    said = feedback_of(item, failure)
    notes = tuple(_words(one) for one in said)
    return ScenarioFeedback(notes=notes) if notes else None


def _words(one: Issue | str) -> str:
    if isinstance(one, str):
        return one
    return f"[{one.code}] {one.message}" + (f"\n{one.detail}" if one.detail else "")


def _totals(made: list[Sessions]) -> tuple[int, Usage]:
    usage = Usage()
    for sessions in made:
        for session in sessions.sessions:
            usage += session.usage
    return sum(sessions.provider.calls for sessions in made), usage


def _heal(before: tuple[int, Usage], after: tuple[int, Usage]) -> Heal:
    was, now = before[1], after[1]
    return Heal(
        "",
        "failed",
        calls=after[0] - before[0],
        tokens_in=_written(now) - _written(was),
        tokens_out=(now.output_tokens or 0) - (was.output_tokens or 0),
        cache_read=(now.cache_read_tokens or 0) - (was.cache_read_tokens or 0),
    )


def _written(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.cache_write_tokens or 0)
