"""The pytest plugin as a table of contents: hooks in the order in which pytest calls them.

Every run of every suite that has the package installed passes through here, so that whatever is
not needed to find out that there is nothing to do is imported inside the hooks.
"""

from collections.abc import Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.pytest_plugin.fixtures import (
    CALL_PASSED,
    anthropic_emulator,
    cassette,
    cassette_config,
    clarification_flow,
    regen_provider,
    regen_store,
)
from pytest_regen.pytest_plugin.options import add_markers, add_options, is_used
from pytest_regen.pytest_plugin.session_fixtures import (
    SESSIONS,
    generator_session,
    scenario_session,
)

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.locate import Selection

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

_SELECTION: "pytest.StashKey[Selection]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register options and ini values; those of pytest-recording where it is not there."""
    add_options(parser)
    if pluginmanager.is_blocked("recording") or find_spec("pytest_recording") is None:
        from pytest_regen.pytest_plugin import recording_plugin  # noqa: PLC0415 - not beside it

        pluginmanager.register(recording_plugin, "regen-recording")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    from pytest_regen.pytest_plugin import hookspecs  # noqa: PLC0415 - a table of its own

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers."""
    add_markers(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - pytest-xdist's WorkerController
    """Give every worker the same ledger, so that all spend from one budget."""
    if node.config.option.regen_budget is not None:
        from pytest_regen.pytest_plugin.ledger import make_ledger  # noqa: PLC0415 - rarely used

        node.workerinput["regen_ledger"] = str(make_ledger(node.config))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - pytest-xdist's WorkerController
    """Take over what a worker has to say about cassettes."""
    said = getattr(node, "workeroutput", {}).get("regen_tapes")
    if said:
        from pytest_regen.pytest_plugin.tape_log import tape_log  # noqa: PLC0415 - cassettes only

        log = tape_log(node.config)
        log.add(said[0])
        log.drifted(said[1])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Check the choices, and take the arguments that name stores out of pytest's hands."""
    config = session.config
    if not is_used(config):
        return
    from pytest_regen.pytest_plugin.choices import choices_of  # noqa: PLC0415 - unused above
    from pytest_regen.pytest_plugin.locate import refuse_unmatched, select  # noqa: PLC0415 - same

    choices = choices_of(config)
    selection, config.args = select(config)
    refuse_unmatched(choices.only, selection, config)
    config.stash[_SELECTION] = selection
    if not hasattr(config, "workerinput"):
        from pytest_regen.pytest_plugin.summary import RunLog  # noqa: PLC0415 - same

        config.pluginmanager.register(RunLog(config, choices), "regen-log")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the stores to what pytest collects at the top."""
    report = yield
    selection = collector.config.stash.get(_SELECTION, None)
    if selection and selection.types and isinstance(collector, pytest.Session):
        from pytest_regen.pytest_plugin.nodes import store_nodes  # noqa: PLC0415 - stores only

        report.result = [*(report.result or ()), *store_nodes(collector, selection)]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--regen``, let a marked test's own ``regen_provider`` fixture be heard."""
    if any(map(_uses_cassettes, items)):
        from pytest_regen.pytest_plugin.tape_log import tape_log  # noqa: PLC0415 - cassettes only

        tape_log(config).claim(items)
    if config.option.regen_heal:
        for item in items:
            names: list[str] | None = getattr(item, "fixturenames", None)
            if names is not None and item.get_closest_marker("regen") is not None:
                names += {"regen_provider"}.difference(names)


def _uses_cassettes(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "cassette" in names or item.get_closest_marker("vcr") is not None


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Heal a failing item within its call, inside every other plugin's wrapper."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        option = item.config.option
        debugs = getattr(option, "usepdb", False)
        is_marked = item.get_closest_marker("regen") is not None
        asked = (option.regen_heal or option.regen_dry_run) and not debugs
        talks = bool(item.stash.get(SESSIONS, None)) and not debugs
        if not is_marked or not (asked or talks):
            raise
        failure: BaseException = error
    # Outside the handler, so that what is raised now has no older failure as its context.
    from pytest_regen.pytest_plugin.healing import (  # noqa: PLC0415 - rare
        call_again,
        may_heal,
        may_talk,
    )

    if talks:
        from pytest_regen.pytest_plugin.session_healing import (  # noqa: PLC0415 - rare
            call_with_feedback,
        )

        left = call_with_feedback(item, failure) if may_talk(item) else failure
    else:
        left = call_again(item, failure) if may_heal(item) else failure
    if left is not None:
        raise left
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send along what happened to the item."""
    report = yield
    if report.when == "call":
        item.stash[CALL_PASSED] = report.passed
    if item.get_closest_marker("regen") is not None:
        from pytest_regen.pytest_plugin.records import attach  # noqa: PLC0415 - our items only

        attach(item, report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Count a test that passed only after regeneration as an outcome of its own."""
    if report.when == "call" and report.passed:
        properties = getattr(report, "user_properties", ())
        # Lists under pytest-xdist, tuples without it.
        if any(tuple(entry) == ("regen.outcome", "regenerated") for entry in properties):
            return "regenerated", "G", ("REGENERATED", {"yellow": True})
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the ledger of the budget."""
    if config.option.regen_budget is not None:
        from pytest_regen.pytest_plugin.ledger import drop_ledger  # noqa: PLC0415 - rarely used

        drop_ledger(config)
