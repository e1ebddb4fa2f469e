"""Scenarios in one call: without memory, or from an artifact where nothing has changed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regen.errors import StoreWriteError
from pytest_regen.sessions.artifacts import (
    Artifact,
    checked_path,
    read_artifact,
    write_artifact,
)
from pytest_regen.sessions.memory import checked_handwritten, checked_tools
from pytest_regen.sessions.scenario_session import ScenarioGeneratorSession, scenario_input_hash
from pytest_regen.sessions.values import TestScenario, ToolAnnotation
from pytest_regen.turns.values import Provider

__all__ = [
    "ScenarioGenerationResult",
    "generate_scenarios",
    "generate_test_scenarios",
]


@dataclass(frozen=True, slots=True)
class ScenarioGenerationResult:
    """What ``generate_test_scenarios`` returns."""

    scenarios: tuple[TestScenario, ...]
    input_hash: str
    session: ScenarioGeneratorSession | None = None
    """To regenerate with; ``None`` where the artifact was used and nobody was asked."""
    untested_tools: tuple[tuple[str, str], ...] = ()
    """Tools that were asked for twice, and that no scenario tests all the same."""


def generate_scenarios(
    system: str,
    annotations: Sequence[ToolAnnotation],
    handwritten: Sequence[TestScenario] = (),
    *,
    provider: Provider,
    **settings: Any,  # noqa: ANN401 - as ScenarioGeneratorSession takes them
) -> list[TestScenario]:
    """Return handwritten and generated scenarios, in one go and without a session to go on with.

    Args:
        system: the system prompt.
        annotations: the tools.
        handwritten: scenarios of people; returned first.
        provider: who answers.
        **settings: the other arguments of ``ScenarioGeneratorSession``, which lists the errors.
    """
    session = ScenarioGeneratorSession(
        system, annotations, handwritten, provider=provider, **settings
    )
    return session.generate()


def generate_test_scenarios(
    system: str,
    annotations: Sequence[ToolAnnotation],
    handwritten: Sequence[TestScenario] = (),
    *,
    provider: Provider,
    artifact: str | os.PathLike[str] | None = None,
    **settings: Any,  # noqa: ANN401 - as above
) -> ScenarioGenerationResult:
    """Return the scenarios of ``artifact`` if nothing they depend on has changed, else new ones.

    A session exists only on a miss. A set that failed its verification is a miss, too.

    Args:
        system: the system prompt.
        annotations: the tools.
        handwritten: scenarios of people; returned first.
        provider: who answers.
        artifact: where the scenarios are kept; ``None`` keeps nothing.
        **settings: the other arguments of ``ScenarioGeneratorSession``, which lists the errors.

    Raises:
        StoreWriteError: the artifact cannot be written, which is looked at first; scenarios that
            were generated are in the result that is its attribute ``unkept``.
    """
    tools, own = checked_tools(annotations), checked_handwritten(handwritten)
    input_hash = scenario_input_hash(system, tools, own, **settings)
    path = None if artifact is None else checked_path(artifact)
    stored = read_artifact(path) if path else None
    if stored and stored.input_hash == input_hash and stored.status != "failed":
        untested = _untested(tools, stored.scenarios)
        return ScenarioGenerationResult(stored.scenarios, input_hash, untested_tools=untested)
    session = ScenarioGeneratorSession(system, tools, own, provider=provider, **settings)
    scenarios = tuple(session.generate())
    result = ScenarioGenerationResult(scenarios, input_hash, session, _untested(tools, scenarios))
    if path:
        try:
            write_artifact(path, Artifact(input_hash, "generated", scenarios))
        except StoreWriteError as error:
            error.unkept = result
            raise
    return result


def _untested(
    tools: Sequence[ToolAnnotation], scenarios: Sequence[TestScenario]
) -> tuple[tuple[str, str], ...]:
    tested = {one.request.tool for one in scenarios}
    return tuple(one.tool for one in tools if one.tool not in tested)
