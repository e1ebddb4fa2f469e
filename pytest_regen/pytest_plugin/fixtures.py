"""The fixtures. Each imports what it needs when a test asks for it."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.emulator import Emulator
    from pytest_regen.pytest_plugin.flows import Flows
    from pytest_regen.pytest_plugin.sessions import GeneratorSessionMaker, ScenarioSessionMaker
    from pytest_regen.pytest_plugin.stores import StoreOpener
    from pytest_regen.turns.values import Provider

__all__ = [
    "anthropic_emulator",
    "cassette",
    "cassette_config",
    "clarification_flow",
    "generator_session",
    "regen_provider",
    "regen_store",
    "scenario_session",
]


@pytest.fixture
def regen_store(request: pytest.FixtureRequest) -> "StoreOpener":
    """Open a store: `regen_store(path=None)[type]` has `.source`, `.pages` and `.issues()`."""
    from pytest_regen.pytest_plugin.stores import StoreOpener

    return StoreOpener(request.node)


@pytest.fixture
def regen_provider(request: pytest.FixtureRequest) -> "Provider":
    """Who answers when something is regenerated; override it to bring another model."""
    from pytest_regen.pytest_plugin.providers import provider_of_run

    return provider_of_run(request.config)


@pytest.fixture
def anthropic_emulator(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Emulator]":
    """Run the Messages API on loopback and point `ANTHROPIC_BASE_URL` and a key at it."""
    from pytest_regen.emulator import Emulator

    with Emulator() as emulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulator.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-emulated")
        yield emulator


@pytest.fixture
def cassette_config() -> "Mapping[str, object]":
    """Arguments of the marker `cassette` for a module or folder; override it to give some."""
    return {}


@pytest.fixture
def cassette(
    request: pytest.FixtureRequest, cassette_config: "Mapping[str, object]"
) -> "Iterator[CassetteRun]":
    """Record or replay every turn of this test; see the marker `cassette`."""
    from pytest_regen.pytest_plugin.recording.fixture import cassette_in_use

    with cassette_in_use(request.node, cassette_config) as run:
        yield run


@pytest.fixture
def clarification_flow(
    request: pytest.FixtureRequest, cassette: "CassetteRun"
) -> "Iterator[Flows]":
    """Take a clarification turn by turn: `clarification_flow(agent).start(text)`, `.answer(…)`.

    The model's answers come from the test's cassette, and what it is told is held against the
    test's transcript.
    """
    from pytest_regen.pytest_plugin.flows import flows_of

    with flows_of(request, cassette) as flows:
        yield flows


@pytest.fixture
def generator_session(
    request: pytest.FixtureRequest, cassette: "CassetteRun"
) -> "GeneratorSessionMaker":
    """Make a session whose turns are recorded: `generator_session(system=…, response=…).ask(…)`.

    With `@pytest.mark.regen(attempts=N)` a failing test is called again, and its last `ask` or
    `aask` takes another turn in which the failure is the feedback.
    """
    from pytest_regen.pytest_plugin.sessions import GeneratorSessionMaker

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
    from pytest_regen.pytest_plugin.sessions import ScenarioSessionMaker

    del cassette  # As above.
    return ScenarioSessionMaker(request)
