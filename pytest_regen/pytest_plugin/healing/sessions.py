"""A failing test of a session: its sessions get feedback, and the body is called again.

Nothing is written and, without leave on the command line, nothing is sent: the next turn comes
from the test's cassette or from a provider of the project. So the marker alone is enough.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pytest_regen.errors import BudgetError, NoProgressError, UsageError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing.feedback import failure_of, feedback_of, is_feedback
from pytest_regen.pytest_plugin.items import findings_json
from pytest_regen.pytest_plugin.sessions import (
    ReplayableItemSession,
    ReplayableScenarioSession,
    ReplayableSession,
    SessionMaker,
    conversation_in,
)
from pytest_regen.pytest_plugin.stash import CASSETTE, SESSION_MAKERS
from pytest_regen.pytest_plugin.summary import HealReport, Outcome, add_heal, tokens_of
from pytest_regen.pytest_plugin.transcripts import conversation_of
from pytest_regen.sessions import ItemFeedback, ScenarioFeedback
from pytest_regen.testing.failures import FeedbackError
from pytest_regen.text import plural
from pytest_regen.turns.values import Cost, Usage

_ABOUT = ("corrections", "discarded_scenarios", "probe_scenarios", "untested_tools")
_ABOUT_ITEMS = ("corrections", "discarded", "probes", "wanted")
"""Fields of feedback that only a session of such scenarios, or items, can take."""

AnyFeedback = ScenarioFeedback | ItemFeedback[Any]


def parts_of(
    feedback: AnyFeedback, sessions: Iterable[ReplayableSession]
) -> list[tuple[ReplayableSession, AnyFeedback]]:
    """Return each session that is to take another turn, with its part of the feedback.

    What is about scenarios or items needs the one session that has some; words go to all.
    A session that has not answered yet has nothing to repair.

    Returns:
        The parts; none where no session has answered.

    Raises:
        UsageError: there is something that no session can take, or nothing that asks for a turn.
    """
    answered = [session for session in sessions if session.turn_count]
    if not answered:
        return []
    is_of_items = isinstance(feedback, ItemFeedback)
    kind: type = ReplayableItemSession if is_of_items else ReplayableScenarioSession
    names = _ABOUT_ITEMS if is_of_items else _ABOUT
    fields = [name for name in names if getattr(feedback, name)]
    changes: Sequence[str] = getattr(feedback, "rule_changes", ())
    sets = [session for session in answered if isinstance(session, kind)]
    if fields and len(sets) != 1:
        what = "items" if is_of_items else "scenarios"
        raise UsageError(
            f"no session of the test can take {fields[0]}",
            why=f"they are about {what}, which {plural(len(sets), 'session')} of the test has",
            hint=f"make one {what[:-1]}_session() in the test, or say it in words: "
            "pytest_regen.fail(corrections=['…'])",
        )
    rules = (f"The rules were changed: {change}" for change in changes)
    words = ScenarioFeedback(notes=(*feedback.notes, *rules))
    parts = [(session, feedback if session in sets else words) for session in answered]
    asking = [(session, part) for session, part in parts if part.asks_for_replacements]
    if not asking:
        raise UsageError(
            "the feedback asks for nothing",
            why="probes and changed rules are hints: they ask for nothing new",
            hint="say what is wrong: corrections, discarded_scenarios, untested_tools or notes",
        )
    return asking


def heal_sessions(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Call a failing item again with its failure as feedback; return the failure that is left.

    ``None`` means that it passes now. One that no reply could fix ends it, see ``is_feedback``.
    """
    makers: list[SessionMaker] = item.stash[SESSION_MAKERS]
    attempts = choices_of(item.config).attempts(regen_mark(item).attempts)
    # Because what the body asked in its first call is not the price of healing.
    requests_before, usage_before = _spent(makers)
    attempt, stop, why = 1, "attempts", ""
    left: BaseException | None = failure
    while left is not None and is_feedback(left) and attempt < attempts:
        try:
            if not _send_feedback(makers, item, left):
                break
        except UsageError as error:
            result: BaseException | None = error
        else:
            attempt += 1
            result = failure_of(item)
        if isinstance(result, NoProgressError | BudgetError | UsageError):
            # The turn was not made, so that the failure before it still stands.
            left.add_note(f"\nNo further turn: {result}")
            stop = "budget" if isinstance(result, BudgetError) else "unfixable"
            stop = "no_progress" if isinstance(result, NoProgressError) else stop
            why = "\n".join(filter(None, (result.what, result.why)))
            break
        left = result
    if attempt == 1 and not why:
        return left
    requests, usage = _spent(makers)
    requests -= requests_before
    cassette = item.stash.get(CASSETTE, None)
    is_emulated = requests > 0 and cassette is not None and cassette.emulated
    # Not known as long as the price of any turn is not.
    cost = usage.cost and usage.cost - (usage_before.cost or Cost())
    outcome: Outcome = "regenerated" if left is None else "failed"
    findings = feedback_of(item, left) if left is not None else ()
    transcript = []
    if item.config.option.regen_report is not None:
        talks = [conversation_in(session) for maker in makers for session in maker.sessions]
        transcript = conversation_of(talks, findings, item.config, passes=left is None)
    before = tokens_of(usage_before)
    heal = HealReport(
        item.nodeid,
        "skipped" if attempt == 1 else outcome,
        stop_reason="clean" if left is None else stop,
        attempts=attempt,
        calls=requests,
        **{key: count - before[key] for key, count in tokens_of(usage).items()},
        transcript=transcript,
        why=why,
        emulated=is_emulated,
        cost_usd=cost.json if cost and not is_emulated else None,
        findings=findings_json(feedback_of(item, failure)),
    )
    add_heal(item, heal)
    return left


def _send_feedback(
    makers: Sequence[SessionMaker], item: pytest.Item, failure: BaseException
) -> bool:
    """Give the sessions what a test fails with; return whether any of them got some.

    Raises:
        UsageError: there is something that no session can take.
    """
    if isinstance(failure, FeedbackError) and failure.scenarios is not None:
        feedback: AnyFeedback = failure.scenarios
    else:
        notes = []
        for note in feedback_of(item, failure):
            if isinstance(note, str):
                notes.append(note)
            else:
                detail = f"\n{note.detail}" if note.detail else ""
                notes.append(f"[{note.code}] {note.message}{detail}")
        if not notes:
            return False  # The marker's codes leave nothing.
        feedback = ScenarioFeedback(notes=tuple(notes))
    parts = parts_of(feedback, [session for maker in makers for session in maker.sessions])
    if not parts:
        return False
    # All, before any gets feedback: rewinding drops what was not sent.
    for maker in makers:
        maker.rewind([session for session, _ in parts])
    for session, part in parts:
        session.give_feedback(part)
    return True


def _spent(makers: Sequence[SessionMaker]) -> tuple[int, Usage]:
    """Return the requests and the tokens of all sessions of an item."""
    usage = Usage()
    for maker in makers:
        for session in maker.sessions:
            usage += session.usage
    return sum(maker.tally.calls for maker in makers), usage
