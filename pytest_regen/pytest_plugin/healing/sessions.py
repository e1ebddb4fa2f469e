"""A failing test of a session: its sessions get feedback, and the body is called again.

Nothing is written and, without leave on the command line, nothing is sent: the next turn comes
from the test's cassette or from a provider of the project. So the marker alone is enough.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_regen.errors import BudgetError, NoProgressError, RegenError, UsageError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing.feedback import failure_of, feedback_of, is_feedback
from pytest_regen.pytest_plugin.items import findings_json
from pytest_regen.pytest_plugin.sessions import (
    ReplayableScenarioSession,
    ReplayableSession,
    SessionMaker,
)
from pytest_regen.pytest_plugin.stash import CASSETTE, SESSION_MAKERS
from pytest_regen.pytest_plugin.summary import HealReport, Outcome, add_heal, tokens_in
from pytest_regen.pytest_plugin.transcripts import conversation_of
from pytest_regen.sessions import ScenarioCorrection, ScenarioFeedback
from pytest_regen.testing.failures import FeedbackError
from pytest_regen.turns.values import Cost, Usage
from pytest_regen.validation.issues import Issue

_ABOUT_SCENARIOS = ("corrections", "discarded_scenarios", "probe_scenarios", "untested_tools")
"""Fields of feedback that only a session with scenarios can take."""


def route_feedback(
    feedback: ScenarioFeedback, sessions: Iterable[ReplayableSession]
) -> list[tuple[ReplayableSession, ScenarioFeedback]]:
    """Return each session that is to take another turn, with its part of the feedback.

    A correction goes to the session that has the scenario, a discard likewise or to those that
    have its tool, probes and untested tools to those that have the tool. Notes and changed rules
    name nothing and go to all. A session that has not answered yet has nothing to repair.

    Returns:
        The parts; none where no session has answered.

    Raises:
        UsageError: there is something that no session can take, or nothing that asks for a turn.
    """
    answered = [session for session in sessions if session.has_answered]
    sets = [session for session in answered if isinstance(session, ReplayableScenarioSession)]
    if not answered:
        return []
    _check_takers(feedback, sets)
    owners = [_owners(correction, sets) for correction in feedback.corrections]
    parts: list[tuple[ReplayableSession, ScenarioFeedback]] = []
    for session in answered:
        if not isinstance(session, ReplayableScenarioSession):
            parts.append((session, _words_of(feedback)))
            continue
        mine = [
            correction
            for correction, holders in zip(feedback.corrections, owners, strict=True)
            if any(holder is session for holder in holders)
        ]
        parts.append((session, _part(feedback, session, mine, sets)))
    asking = [(session, part) for session, part in parts if part.asks_for_replacements]
    if not asking:
        raise UsageError(
            "the feedback asks for nothing",
            why="probes and changed rules are hints, of which nothing is to be written anew",
            hint="say what is wrong: corrections, discarded_scenarios, untested_tools or notes",
        )
    return asking


def _check_takers(feedback: ScenarioFeedback, sets: Sequence[ReplayableScenarioSession]) -> None:
    given = [name for name in _ABOUT_SCENARIOS if getattr(feedback, name)]
    if given and not sets:
        raise UsageError(
            f"no session of the test can take {given[0]}",
            why="they are about scenarios, and the test has none of scenario_session().scenarios()",
            hint="say it in words: pytest_regen.fail(corrections=['…'])",
        )
    for tool in feedback.untested_tools:
        if not any(session.has_tool(tool) for session in sets):
            raise UsageError(
                f"no session of the test has a tool {'/'.join(tool)}",
                why="no session would be asked for its scenarios",
                hint="name a tool of the annotations",
            )


def _owners(
    correction: ScenarioCorrection, sets: Sequence[ReplayableScenarioSession]
) -> list[ReplayableScenarioSession]:
    """Return the sessions whose set has the scenario that a correction is about.

    Raises:
        UsageError: there is none, or the same words name different scenarios of several.
    """
    found = [
        (session, scenario)
        for session in sets
        if (scenario := session.find_scenario(correction)) is not None
    ]
    description = repr(correction.scenario_description)
    if not found:
        raise UsageError(
            f"no session of the test has a scenario {description}"
            + (f" with the id {correction.id}" if correction.id else ""),
            why="a correction that names nothing would be lost",
            hint="give it the scenario_id or the request of a scenario in the set",
        )
    if len({scenario.id for _, scenario in found}) > 1:
        raise UsageError(
            f"{len(found)} sessions of the test have a scenario {description}",
            why="correcting them together would break the right ones",
            hint="give the correction the scenario_id of the one it is about",
        )
    return [session for session, _ in found]


def _part(
    feedback: ScenarioFeedback,
    session: ReplayableScenarioSession,
    corrections: Sequence[ScenarioCorrection],
    sets: Sequence[ReplayableScenarioSession],
) -> ScenarioFeedback:
    """Return the part of ``feedback`` for a session with scenarios."""
    discards = []
    for discarded in feedback.discarded_scenarios:
        scenario = discarded.scenario
        holders = [other for other in sets if other.has_scenario(scenario)]
        holders = holders or [other for other in sets if other.has_tool(scenario.request.tool)]
        # A call of an unknown tool belongs to no session by its tool, so all of them hear of it.
        if any(holder is session for holder in holders or sets):
            discards.append(discarded)
    return feedback.model_copy(
        update={
            "corrections": tuple(corrections),
            "discarded_scenarios": tuple(discards),
            "probe_scenarios": tuple(
                probe for probe in feedback.probe_scenarios if session.has_tool(probe.request.tool)
            ),
            "untested_tools": tuple(filter(session.has_tool, feedback.untested_tools)),
        }
    )


def _words_of(feedback: ScenarioFeedback) -> ScenarioFeedback:
    """Return the part of ``feedback`` for a session without scenarios."""
    rules = (f"The rules were changed: {change}" for change in feedback.rule_changes)
    return ScenarioFeedback(notes=(*feedback.notes, *rules))


@dataclass(frozen=True, slots=True)
class _Retry:
    """What came of calling an item again."""

    failure: BaseException | None
    """The failure that stands; ``None`` where the item passes now."""
    calls: int = 1
    """Calls of the body, the first included."""
    stop: str = "attempts"
    why: str = ""
    """What stood in the way of a further turn."""


@dataclass(frozen=True, slots=True)
class _Totals:
    """Requests and tokens of all sessions of an item."""

    calls: int
    usage: Usage


def heal_sessions(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Call a failing item again with its failure as feedback; return the failure that is left.

    ``None`` means that it passes now. One that no reply could fix ends it, see ``is_feedback``.
    """
    makers: list[SessionMaker] = item.stash[SESSION_MAKERS]
    before = _totals(makers)
    retry = _retry(item, failure, makers)
    if retry.calls > 1 or retry.why:
        add_heal(item, _heal_of(item, failure, retry, before, _totals(makers)))
    return retry.failure


def _retry(item: pytest.Item, failure: BaseException, makers: Sequence[SessionMaker]) -> _Retry:
    """Call the body again, until it passes or no feedback is left."""
    attempts = choices_of(item.config).attempts(regen_mark(item).attempts)
    retry = _Retry(failure)
    while retry.failure is not None and is_feedback(retry.failure) and retry.calls < attempts:
        try:
            if not _send_feedback(makers, _feedback(item, retry.failure)):
                break
        except UsageError as error:
            return _stop(retry, error)
        found = failure_of(item)
        retry = replace(retry, calls=retry.calls + 1)
        if isinstance(found, NoProgressError | BudgetError | UsageError):
            # The turn was not made, so that the failure before it still stands.
            return _stop(retry, found)
        retry = replace(retry, failure=found)
    return retry


def _send_feedback(makers: Sequence[SessionMaker], feedback: ScenarioFeedback | None) -> bool:
    """Give the sessions their feedback; return whether any of them got some.

    Raises:
        UsageError: there is something that no session can take.
    """
    sessions = [session for maker in makers for session in maker.sessions]
    parts = route_feedback(feedback, sessions) if feedback is not None else []
    if not parts:
        return False
    for maker in makers:
        maker.rewind([session for session, _ in parts])
    for session, part in parts:
        session.give_feedback(part)
    return True


def _stop(retry: _Retry, error: RegenError) -> _Retry:
    """Return that no further turn was made, and say so below the failure that is left."""
    if retry.failure is not None:
        retry.failure.add_note(f"\nNo further turn: {error}")
    stop = "budget" if isinstance(error, BudgetError) else "unfixable"
    if isinstance(error, NoProgressError):
        stop = "no_progress"
    return replace(retry, stop=stop, why="\n".join(filter(None, (error.what, error.why))))


def _feedback(item: pytest.Item, failure: BaseException) -> ScenarioFeedback | None:
    """Return the feedback of a failure; ``None`` where the marker's codes leave nothing."""
    if isinstance(failure, FeedbackError) and failure.scenarios is not None:
        return failure.scenarios
    notes = tuple(_words(note) for note in feedback_of(item, failure))
    return ScenarioFeedback(notes=notes) if notes else None


def _words(note: Issue | str) -> str:
    if isinstance(note, str):
        return note
    return f"[{note.code}] {note.message}" + (f"\n{note.detail}" if note.detail else "")


def _totals(makers: Sequence[SessionMaker]) -> _Totals:
    usage = Usage()
    for maker in makers:
        for session in maker.sessions:
            usage += session.usage
    return _Totals(sum(maker.tally.calls for maker in makers), usage)


def _transcript(item: pytest.Item, retry: _Retry) -> list[dict[str, Any]]:
    """Return what the sessions of an item said, and what it fails with now."""
    left = feedback_of(item, retry.failure) if retry.failure is not None else ()
    makers: list[SessionMaker] = item.stash[SESSION_MAKERS]
    said = [
        talk for maker in makers for session in maker.sessions for talk in session.conversations
    ]
    return conversation_of(said, left, item.config, passes=retry.failure is None)


def _heal_of(
    item: pytest.Item, failure: BaseException, retry: _Retry, before: _Totals, after: _Totals
) -> HealReport:
    outcome: Outcome = "regenerated" if retry.failure is None else "failed"
    if retry.calls == 1:
        outcome = "skipped"
    cassette = item.stash.get(CASSETTE, None)
    calls = after.calls - before.calls
    was, now = before.usage, after.usage
    is_emulated = calls > 0 and cassette is not None and cassette.emulated
    spent = now.cost and now.cost - (was.cost or Cost())
    return HealReport(
        item.nodeid,
        outcome,
        stop_reason="clean" if retry.failure is None else retry.stop,
        attempts=retry.calls,
        calls=calls,
        tokens_in=tokens_in(now) - tokens_in(was),
        tokens_out=(now.output_tokens or 0) - (was.output_tokens or 0),
        cache_read=(now.cache_read_tokens or 0) - (was.cache_read_tokens or 0),
        cache_write=(now.cache_write_tokens or 0) - (was.cache_write_tokens or 0),
        transcript=_transcript(item, retry),
        why=retry.why,
        emulated=is_emulated,
        cost=(spent and not is_emulated and spent.json) or "",
        findings=findings_json(feedback_of(item, failure)),
    )
