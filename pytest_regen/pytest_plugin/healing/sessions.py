"""A failing test of a session: its sessions are told why, and the body is called again.

Nothing is written and, without leave on the command line, nothing is sent: the next turn comes
from the test's cassette or from a provider of the project. So the marker alone is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from pytest_regen.errors import BudgetError, NoProgressError, RegenError, UsageError
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import findings_json
from pytest_regen.pytest_plugin.healing.feedback import failure_of, feedback_of, is_feedback
from pytest_regen.pytest_plugin.healing.records import Heal, Outcome, add_heal, tokens_in
from pytest_regen.pytest_plugin.healing.routing import routed
from pytest_regen.pytest_plugin.marks import regen_mark
from pytest_regen.pytest_plugin.session_makers import SessionMaker
from pytest_regen.pytest_plugin.stash import CASSETTE, SESSION_MAKERS
from pytest_regen.sessions import ScenarioFeedback
from pytest_regen.testing.failing import FeedbackError
from pytest_regen.turns.values import Usage
from pytest_regen.validation.issues import Issue

__all__ = ["call_with_feedback"]


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of calling an item again."""

    left: BaseException | None
    """The failure that stands; ``None`` where the item passes now."""
    calls: int = 1
    """Calls of the body, the first included."""
    stop: str = "attempts"
    why: str = ""
    """What stood in the way of a further turn."""


@dataclass(frozen=True, slots=True)
class _Spent:
    """Requests and tokens of all sessions of an item."""

    calls: int
    usage: Usage


def call_with_feedback(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Call a failing item again with its failure as feedback; return the failure that is left.

    ``None`` means that it passes now. What no reply could mend ends it, see ``is_feedback``.
    """
    makers: list[SessionMaker] = item.stash[SESSION_MAKERS]
    before = _spent(makers)
    tried = _retried(item, failure, makers)
    if tried.calls > 1 or tried.why:
        add_heal(item, _heal_of(item, failure, tried, before, _spent(makers)))
    return tried.left


def _retried(item: pytest.Item, failure: BaseException, makers: Sequence[SessionMaker]) -> _Tried:
    """Call the body again, until it passes or there is nothing more to tell."""
    attempts = choices_of(item.config).attempts(regen_mark(item).attempts)
    tried = _Tried(failure)
    while tried.left is not None and is_feedback(tried.left) and tried.calls < attempts:
        try:
            if not _told(makers, _feedback(item, tried.left)):
                break
        except UsageError as error:
            return _stopped(tried, error)
        found = failure_of(item)
        tried = replace(tried, calls=tried.calls + 1)
        if isinstance(found, NoProgressError | BudgetError | UsageError):
            # The turn was not made, so that the failure before it still stands.
            return _stopped(tried, found)
        tried = replace(tried, left=found)
    return tried


def _told(makers: Sequence[SessionMaker], feedback: ScenarioFeedback | None) -> bool:
    """Tell the sessions what was wrong; return whether there was anything to tell anybody.

    Raises:
        UsageError: there is something that no session can take.
    """
    sessions = [session for maker in makers for session in maker.sessions]
    parts = routed(feedback, sessions) if feedback is not None else []
    if not parts:
        return False
    for maker in makers:
        maker.rewind([session for session, _ in parts])
    for session, part in parts:
        session.tell(part)
    return True


def _stopped(tried: _Tried, error: RegenError) -> _Tried:
    """Return that no further turn was made, and say so below the failure that is left."""
    if tried.left is not None:
        tried.left.add_note(f"\nNo further turn: {error}")
    stop = "budget" if isinstance(error, BudgetError) else "unfixable"
    if isinstance(error, NoProgressError):
        stop = "no_progress"
    return replace(tried, stop=stop, why="\n".join(filter(None, (error.what, error.why))))


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


def _spent(makers: Sequence[SessionMaker]) -> _Spent:
    usage = Usage()
    for maker in makers:
        for session in maker.sessions:
            usage += session.usage
    return _Spent(sum(maker.provider.calls for maker in makers), usage)


def _heal_of(
    item: pytest.Item, failure: BaseException, tried: _Tried, before: _Spent, after: _Spent
) -> Heal:
    outcome: Outcome = "regenerated" if tried.left is None else "failed"
    if tried.calls == 1:
        outcome = "skipped"
    cassette = item.stash.get(CASSETTE, None)
    calls = after.calls - before.calls
    was, now = before.usage, after.usage
    return Heal(
        item.nodeid,
        outcome,
        stop_reason="clean" if tried.left is None else tried.stop,
        attempts=tried.calls,
        calls=calls,
        tokens_in=tokens_in(now) - tokens_in(was),
        tokens_out=(now.output_tokens or 0) - (was.output_tokens or 0),
        cache_read=(now.cache_read_tokens or 0) - (was.cache_read_tokens or 0),
        why=tried.why,
        emulated=calls > 0 and cassette is not None and cassette.emulated,
        findings=findings_json(feedback_of(item, failure)),
    )
