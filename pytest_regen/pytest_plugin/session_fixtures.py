"""The fixtures of sessions. What they need is imported when a test asks for it."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.pytest_plugin.session_makers import (
        GeneratorSessionMaker,
        ScenarioSessionMaker,
    )

__all__ = ["generator_session", "scenario_session"]


@pytest.fixture
def generator_session(
    request: pytest.FixtureRequest, cassette: "CassetteRun"
) -> "GeneratorSessionMaker":
    """Make a session whose turns are recorded: `generator_session(system=…, response=…).ask(…)`.

    With `@pytest.mark.regen(attempts=N)` a failing test is called again, and its last `ask` or
    `aask` takes another turn in which the failure is the feedback.
    """
    from pytest_regen.pytest_plugin.session_makers import (  # noqa: PLC0415 - not if unused
        GeneratorSessionMaker,
    )

    del cassette  # Wanted before the first turn, and by the session's provider, not by us.
    return GeneratorSessionMaker(request)


@pytest.fixture
def scenario_session(
    request: pytest.FixtureRequest, cassette: "CassetteRun"
) -> "ScenarioSessionMaker":
    """Make a scenario session: `scenario_session(system=…, annotations=…).scenarios()`.

    With `@pytest.mark.regen(attempts=N)` a failing test is called again, and `scenarios()`, or
    `ascenarios()`, returns the set in which replacements, asked for with the failure as feedback,
    are merged.
    """
    from pytest_regen.pytest_plugin.session_makers import (  # noqa: PLC0415 - not if unused
        ScenarioSessionMaker,
    )

    del cassette  # As above.
    return ScenarioSessionMaker(request)
