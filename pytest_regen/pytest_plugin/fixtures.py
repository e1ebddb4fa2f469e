"""The fixtures, and how a test gets those that its marks ask for.

Each imports what it needs when a test asks for it. What marks ask for is given when a test is set
up, not when it is collected: until then hooks, other plugins and fixtures of a wider scope may add
marks, and pytest-recording reads them as late.
"""

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_regen.pytest_plugin.stash import OUR_MARKS, RECORDING_PLUGIN, mark_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.emulator import Emulator
    from pytest_regen.pytest_plugin.flows import Flows
    from pytest_regen.pytest_plugin.sessions import (
        GeneratorSessionMaker,
        ItemSessionMaker,
        ScenarioSessionMaker,
    )
    from pytest_regen.pytest_plugin.stores import StoreHandle
    from pytest_regen.turns.values import Provider


@pytest.fixture
def regen_store(request: pytest.FixtureRequest) -> "Callable[..., StoreHandle]":
    """Open a store: `regen_store(path=None)[type]` has `.source`, `.pages` and `.issues()`."""
    from pytest_regen.pytest_plugin.stores import StoreHandle

    return partial(StoreHandle, request.node)


@pytest.fixture
def regen_provider(request: pytest.FixtureRequest) -> "Provider":
    """Who answers when something is regenerated; override it to bring another model."""
    from pytest_regen.pytest_plugin.providers import default_provider

    return default_provider(request.node)


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

    The model's answers come from the test's cassette, and its prompts are compared with the
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

    return GeneratorSessionMaker(request, cassette)


@pytest.fixture
def item_session(request: pytest.FixtureRequest, cassette: "CassetteRun") -> "ItemSessionMaker":
    """Make a session of items of any type: `item_session(system=…, item=…, key=…).current()`.

    With `@pytest.mark.regen(attempts=N)` a failing test is called again, and `current()`, or
    `acurrent()`, returns the set in which what was wrong is replaced.
    """
    from pytest_regen.pytest_plugin.sessions import ItemSessionMaker

    return ItemSessionMaker(request, cassette)


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

    return ScenarioSessionMaker(request, cassette)


_VCR_MARKS = frozenset({"vcr", "block_network", "default_cassette", "allowed_hosts"})
_FIXTURES = ("cassette", "block_network", "vcr")
"""Marks with a fixture of the same name, in the order in which those are set up."""


_SET_UP: pytest.StashKey[pytest.Item] = pytest.StashKey()
"""The test that is being set up."""


def setup_with_marked_fixtures(item: pytest.Item) -> Generator[None, object, object]:
    """Wrap the set-up of a test, so that it has the fixtures which its marks ask for by then.

    Raises:
        pytest.UsageError: a mark was added when it could no longer be honoured; without its
            fixture the test would send what is to be replayed.
    """
    if getattr(item, "fixturenames", None) is None:
        # What has no fixtures, such as an item of a linter, sends nothing that is recorded.
        return (yield)
    config, attributes = item.config, vars(item)
    setup, set_by_others = item.setup, attributes.get("setup")

    def set_up() -> None:
        # pytest gives all cases of a parametrised test one list.
        attributes["fixturenames"] = list(getattr(item, "fixturenames", ()))
        config.stash[_SET_UP] = item
        try:
            if not recheck_marks(config).isdisjoint(OUR_MARKS):
                from pytest_regen.pytest_plugin.places import check_marks

                check_marks(item)
            setup()
        finally:
            del config.stash[_SET_UP]

    # Hooks of the set-up that come after this one may still add marks; pytest's own comes last,
    # and calls this.
    attributes["setup"] = set_up
    try:
        result = yield
    finally:
        del attributes["setup"]
        if set_by_others is not None:
            attributes["setup"] = set_by_others
    values, served = getattr(item, "funcargs", _FIXTURES), _served_marks(item)
    # A fixture of the test added it, or pytest was past the place in its list for the new one.
    late = [name for name in _FIXTURES if name in served and name not in values]
    if late:
        from pytest_regen.pytest_plugin.options import usage_error

        raise usage_error(
            f"{item.nodeid}: the mark {late[0]} was added when the test was set up already",
            why="what its fixtures sent by then was neither recorded nor blocked",
            hint="add it in pytest_collection_modifyitems or pytest_runtest_setup, or write it "
            "above the test",
        )
    return result


def recheck_marks(config: pytest.Config) -> set[str]:
    """Put the fixtures that marks of the test in set-up ask for where automatic ones would be.

    A fixture of a wider scope may have added marks since the last time. In place: pytest may be on
    its way through the list.

    Returns:
        The names of the marks and fixtures that are served here.
    """
    item = config.stash.get(_SET_UP, None)
    if item is None:
        return set()
    names: list[str] = item.fixturenames  # type: ignore[attr-defined]  # of those that have some
    asked = _served_marks(item)
    if "cassette" in names:
        asked.add("cassette")
    # pytest-recording has the same option, and does the same itself.
    if getattr(config.option, "block_network", False) and _serves_vcr_marks(config):
        asked.add("block_network")
    if "regen" in asked and config.option.regen_heal and "regen_provider" not in names:
        # A test's own one is to be heard.
        names.append("regen_provider")
    first = [name for name in _FIXTURES if name in asked]
    if not first:
        return asked
    # First among those of the test itself: what another fixture of the test sends while it is set
    # up is theirs, too. One that the test names itself would come after the automatic ones.
    names[:] = [name for name in names if name not in first]
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    wider = [name in definitions and definitions[name][-1].scope != "function" for name in names]
    place = next((number for number, is_wider in enumerate(wider) if not is_wider), len(names))
    names[place:place] = first
    return asked


def _served_marks(item: pytest.Item) -> set[str]:
    """Return the names of the marks that ask for something that is served here."""
    marks = mark_names(item)
    if not marks:
        # Most of thousands of tests have none.
        return marks
    names = OUR_MARKS | _VCR_MARKS if _serves_vcr_marks(item.config) else OUR_MARKS
    return marks & names


def _serves_vcr_marks(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin(RECORDING_PLUGIN)
