"""Feedback sent to the conversation that has the tool it is about."""

from collections.abc import Mapping, Sequence

from pytest_regen.errors import NoProgressError
from pytest_regen.sessions.branches import Branch
from pytest_regen.sessions.memory import Memory
from pytest_regen.sessions.values import ScenarioFeedback, ScenarioRequest

__all__ = ["Part", "route"]

Part = tuple[Branch, ScenarioFeedback]
"""A conversation and what it is told."""


def route(
    feedback: ScenarioFeedback, branches: Sequence[Branch], memory: Memory
) -> tuple[Part, ...]:
    """Return each branch that has something to replace, with its part of ``feedback``.

    Notes and changed rules name no tool and go to all. What is about a tool that no branch has
    (a call of an unknown tool, discarded) goes to the first. A branch without anything to replace
    is not asked; the hints it would have got are part of its next turn.

    Raises:
        NoProgressError: all of it was told before.
        UsageError: a correction calls right what was said.
    """
    owners = {tool: owner for owner, branch in enumerate(branches) for tool in branch.key}
    known = memory.hinted(feedback).hints
    everything = feedback.model_copy(
        update={"probe_scenarios": known.probe_scenarios, "rule_changes": known.rule_changes}
    )
    parts = [
        (branch, memory.unsaid(_part(everything, owners, number), branch.address))
        for number, branch in enumerate(branches)
    ]
    asked = tuple((branch, part) for branch, part in parts if part.asks_for_replacements)
    if not asked:
        raise NoProgressError(
            "everything in this feedback was sent in an earlier turn",
            why="asking again in the same words would be answered as before",
            hint="stop here, or say what else is wrong",
        )
    return asked


def _part(
    feedback: ScenarioFeedback, owners: Mapping[tuple[str, str], int], number: int
) -> ScenarioFeedback:
    def is_own(request: ScenarioRequest | None) -> bool:
        return (owners.get(request.tool, 0) if request else 0) == number

    return feedback.model_copy(
        update={
            "corrections": tuple(one for one in feedback.corrections if is_own(one.request)),
            "discarded_scenarios": tuple(
                one for one in feedback.discarded_scenarios if is_own(one.scenario.request)
            ),
            "probe_scenarios": tuple(
                one for one in feedback.probe_scenarios if is_own(one.request)
            ),
            "untested_tools": tuple(
                tool for tool in feedback.untested_tools if owners.get(tool, 0) == number
            ),
        }
    )
