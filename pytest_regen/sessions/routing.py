"""Feedback sent to the conversation that has the tool it is about."""

from collections.abc import Iterator, Sequence

from pytest_regen.sessions.branches import Branch
from pytest_regen.sessions.values import ScenarioFeedback, ScenarioRequest

__all__ = ["route"]


def route(
    feedback: ScenarioFeedback, branches: Sequence[Branch]
) -> Iterator[tuple[Branch, ScenarioFeedback]]:
    """Yield each branch that has something to replace, with its part of ``feedback``.

    Notes and changed rules name no tool and go to all. What is about a tool that no branch has
    (a call of an unknown tool, discarded) goes to the first.
    """
    owners = {tool: number for number, branch in enumerate(branches) for tool in branch.key}

    def is_of(number: int, request: ScenarioRequest | None) -> bool:
        return (owners.get(request.tool, 0) if request else 0) == number

    for number, branch in enumerate(branches):
        part = feedback.model_copy(
            update={
                "corrections": tuple(
                    one for one in feedback.corrections if is_of(number, one.request)
                ),
                "discarded_scenarios": tuple(
                    one
                    for one in feedback.discarded_scenarios
                    if is_of(number, one.scenario.request)
                ),
                "probe_scenarios": tuple(
                    one for one in feedback.probe_scenarios if is_of(number, one.request)
                ),
            }
        )
        if part.asks_for_replacements:
            yield branch, part
