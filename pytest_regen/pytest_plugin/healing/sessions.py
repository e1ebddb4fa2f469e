"""A failing test of a session: its sessions are told why, and the body is called again.

Nothing is written and, without leave on the command line, nothing is sent: the next turn comes
from the test's cassette or from a provider of the project. So the marker alone is enough.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from pytest_regen.errors import BudgetError, NoProgressError, RegenError, UsageError
from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
from pytest_regen.pytest_plugin.healing.feedback import failure_of, feedback_of, is_feedback
from pytest_regen.pytest_plugin.items import findings_json
from pytest_regen.pytest_plugin.sessions import SessionMaker, Tested, TestedScenarioSession
from pytest_regen.pytest_plugin.stash import CASSETTE, SESSION_MAKERS
from pytest_regen.pytest_plugin.summary import Heal, Outcome, add_heal, tokens_in
from pytest_regen.sessions import ScenarioCorrection, ScenarioFeedback
from pytest_regen.testing.failures import FeedbackError
from pytest_regen.turns.values import Usage
from pytest_regen.validation.issues import Issue

__all__ = ["call_with_feedback", "routed"]


_ABOUT_SCENARIOS = ("corrections", "discarded_scenarios", "probe_scenarios", "untested_tools")
"""Fields of feedback that only a session with scenarios can take."""


def routed(
    feedback: ScenarioFeedback, sessions: Iterable[Tested]
) -> list[tuple[Tested, ScenarioFeedback]]:
    """Return each session that is to take another turn, with what it is told.

    A correction goes to the session that has the scenario, a discard likewise or to those that
    have its tool, probes and untested tools to those that have the tool. Notes and changed rules
    name nothing and go to all. A session that has not answered yet has nothing to mend.

    Returns:
        The parts; none where no session has answered.

    Raises:
        UsageError: there is something that no session can take, or nothing that asks for a turn.
    """
    answered = [one for one in sessions if one.has_answered]
    sets = [one for one in answered if isinstance(one, TestedScenarioSession)]
    if not answered:
        return []
    _check_takers(feedback, sets)
    owners = [_owners(one, sets) for one in feedback.corrections]
    parts: list[tuple[Tested, ScenarioFeedback]] = []
    for session in answered:
        if not isinstance(session, TestedScenarioSession):
            parts.append((session, _words_of(feedback)))
            continue
        mine = [
            one
            for one, who in zip(feedback.corrections, owners, strict=True)
            if any(owner is session for owner in who)
        ]
        parts.append((session, _part(feedback, session, mine, sets)))
    asking = [(one, part) for one, part in parts if part.asks_for_replacements]
    if not asking:
        raise UsageError(
            "the feedback asks for nothing",
            why="probes and changed rules are hints, of which nothing is to be written anew",
            hint="say what is wrong: corrections, discarded_scenarios, untested_tools or notes",
        )
    return asking


def _check_takers(feedback: ScenarioFeedback, sets: Sequence[TestedScenarioSession]) -> None:
    given = [name for name in _ABOUT_SCENARIOS if getattr(feedback, name)]
    if given and not sets:
        raise UsageError(
            f"no session of the test can take {given[0]}",
            why="they are about scenarios, and the test has none of scenario_session().scenarios()",
            hint="say it in words: pytest_regen.fail(corrections=['…'])",
        )
    for tool in feedback.untested_tools:
        if not any(one.has_tool(tool) for one in sets):
            raise UsageError(
                f"no session of the test has a tool {'/'.join(tool)}",
                why="its scenarios would be asked of nobody",
                hint="name a tool of the annotations",
            )


def _owners(
    correction: ScenarioCorrection, sets: Sequence[TestedScenarioSession]
) -> list[TestedScenarioSession]:
    """Return the sessions whose set has the scenario that a correction is about.

    Raises:
        UsageError: there is none, or the same words name different scenarios of several.
    """
    found = [(one, named) for one in sets if (named := one.named(correction)) is not None]
    said = repr(correction.scenario_description)
    if not found:
        raise UsageError(
            f"no session of the test has a scenario {said}"
            + (f" with the id {correction.id}" if correction.id else ""),
            why="a correction that names nothing would be lost",
            hint="give it the scenario_id or the request of a scenario in the set",
        )
    if len({named.id for _, named in found}) > 1:
        raise UsageError(
            f"{len(found)} sessions of the test have a scenario {said}",
            why="correcting them together would break the right ones",
            hint="give the correction the scenario_id of the one it is about",
        )
    return [one for one, _ in found]


def _part(
    feedback: ScenarioFeedback,
    session: TestedScenarioSession,
    corrections: Sequence[ScenarioCorrection],
    sets: Sequence[TestedScenarioSession],
) -> ScenarioFeedback:
    """Return what of ``feedback`` a session with scenarios is told."""
    discards = []
    for discarded in feedback.discarded_scenarios:
        scenario = discarded.scenario
        holders = [one for one in sets if one.holds(scenario)]
        # A call of an unknown tool is no one's by its tool; whoever wrote it has it in its set.
        having = holders or [one for one in sets if one.has_tool(scenario.request.tool)] or sets
        if any(one is session for one in having):
            discards.append(discarded)
    return feedback.model_copy(
        update={
            "corrections": tuple(corrections),
            "discarded_scenarios": tuple(discards),
            "probe_scenarios": tuple(
                one for one in feedback.probe_scenarios if session.has_tool(one.request.tool)
            ),
            "untested_tools": tuple(filter(session.has_tool, feedback.untested_tools)),
        }
    )


def _words_of(feedback: ScenarioFeedback) -> ScenarioFeedback:
    """Return what of ``feedback`` a session without scenarios is told."""
    rules = (f"The rules were changed: {change}" for change in feedback.rule_changes)
    return ScenarioFeedback(notes=(*feedback.notes, *rules))


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
    return _Spent(sum(maker.tally.calls for maker in makers), usage)


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
