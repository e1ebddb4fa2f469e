"""Which session of a test is told which part of its feedback."""

from collections.abc import Iterable, Sequence

from pytest_regen.errors import UsageError
from pytest_regen.pytest_plugin.session_handles import Tested, TestedScenarioSession
from pytest_regen.sessions import ScenarioCorrection, ScenarioFeedback

__all__ = ["routed"]

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
