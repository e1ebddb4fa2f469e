"""The fixtures of sessions. What they need is imported when a test asks for it."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.pytest_plugin.session_handles import (
        GeneratorSessions,
        ScenarioSessions,
        Sessions,
    )

__all__ = ["SESSIONS", "generator_session", "scenario_session"]

SESSIONS: "pytest.StashKey[list[Sessions]]" = pytest.StashKey()
"""What made the sessions of an item; they take their next turn when the item fails."""


@pytest.fixture
def generator_session(
    request: pytest.FixtureRequest, cassette: "CassetteRun"
) -> "GeneratorSessions":
    """Make a session whose turns are recorded: `generator_session(system=…, response=…).ask(…)`.

    With `@pytest.mark.regen(attempts=N)` a failing test is called again, and its last `ask` takes
    another turn in which the failure is the feedback.
    """
    from pytest_regen.pytest_plugin.session_handles import (  # noqa: PLC0415 - not if unused
        GeneratorSessions,
    )

    del cassette  # Wanted before the first turn, and by the session's provider, not by us.
    return GeneratorSessions(request)


@pytest.fixture
def scenario_session(request: pytest.FixtureRequest, cassette: "CassetteRun") -> "ScenarioSessions":
    """Make a scenario session: `scenario_session(system=…, annotations=…).scenarios()`.

    With `@pytest.mark.regen(attempts=N)` a failing test is called again, and `scenarios()` returns
    the set in which replacements, asked for with the failure as feedback, are merged.
    """
    from pytest_regen.pytest_plugin.session_handles import (  # noqa: PLC0415 - not if unused
        ScenarioSessions,
    )

    del cassette  # As above.
    return ScenarioSessions(request)
