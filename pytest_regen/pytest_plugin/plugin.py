"""The pytest plugin as a table of contents: hooks in the order in which pytest calls them.

Every run of every suite that has the package installed passes through here, so that whatever is
not needed to find out that there is nothing to do is imported inside the hooks.
"""

import sys
from collections.abc import Generator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.pytest_plugin.fixtures import (
    anthropic_emulator,
    cassette,
    cassette_config,
    clarification_flow,
    generator_session,
    recheck_marks,
    regen_provider,
    regen_store,
    scenario_session,
    setup_with_marked_fixtures,
)
from pytest_regen.pytest_plugin.options import (
    add_markers,
    add_options,
    has_kinds,
    is_used,
)
from pytest_regen.pytest_plugin.stash import (
    AHEAD,
    CALL_FAILED,
    CALL_PASSED,
    RECORD_KEY,
    RECORDING_PLUGIN,
    SESSION_MAKERS,
    VCR_PLUGINS,
    forget_sandbox,
    is_regen_item,
    is_regen_node,
    other_vcr_plugin,
    our_marks,
    uses_cassette,
)

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.places import Selection

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
_WATCHED: "pytest.StashKey[bool]" = pytest.StashKey()
"""Whether modules of units are watched, which tests import and healing writes."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register options and ini values; those of pytest-recording where no other plugin is."""
    add_options(parser)
    _serve_recording(pluginmanager, decides=_is_of_a_conftest(pluginmanager))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Serve the marks of pytest-recording unless another plugin does: options are read next."""
    result = yield
    _serve_recording(early_config.pluginmanager, decides=True)
    return result


def _serve_recording(manager: pytest.PytestPluginManager, *, decides: bool) -> None:
    """Register the marks, fixtures and options of pytest-recording, if no other plugin has them.

    Args:
        manager: knows what is loaded.
        decides: whether it is too late for another plugin to be loaded; until then it may be,
            by an option, the environment, a conftest or because it is installed.
    """
    if manager.has_plugin(RECORDING_PLUGIN) or other_vcr_plugin(manager) is not None:
        return
    if decides or not any(_may_be_loaded(module, manager) for module in VCR_PLUGINS):
        from pytest_regen.pytest_plugin import recording_plugin

        manager.register(recording_plugin, RECORDING_PLUGIN)


def _may_be_loaded(module: str, manager: pytest.PytestPluginManager) -> bool:
    """Whether another plugin is installed, and nothing blocks it."""
    return (
        not manager.is_blocked(VCR_PLUGINS[module])
        and find_spec(module.partition(".")[0]) is not None
    )


def _is_of_a_conftest(manager: pytest.PytestPluginManager) -> bool:
    """Whether a conftest loads this plugin, and not another one after it."""
    loaded = [module for name, module in manager.list_name_plugin() if name.endswith("conftest.py")]
    others = [name for conftest in loaded for name in _plugins_of(conftest) if name in VCR_PLUGINS]
    return bool(loaded) and not others


def _plugins_of(conftest: object) -> Sequence[str]:
    named = getattr(conftest, "pytest_plugins", ())
    return (named,) if isinstance(named, str) else named


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    from pytest_regen.pytest_plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers."""
    add_markers(config)
    _serve_recording(config.pluginmanager, decides=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give every worker the same ledger, so that all spend from one budget, and the arguments."""
    if node.config.option.regen_budget is not None:
        from pytest_regen.pytest_plugin.stash import make_ledger

        node.workerinput["regen_ledger"] = str(make_ledger(node.config))
    if node.config.option.regen_heal:
        # A worker gets options as values; a trial begins with what was typed.
        node.workerinput["regen_args"] = [str(arg) for arg in node.config.invocation_params.args]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker noted about cassettes."""
    notes = getattr(node, "workeroutput", {}).get("regen_cassettes")
    if notes:
        from pytest_regen.pytest_plugin.recording.log import cassette_log

        cassette_log(node.config).take_over(notes)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Check the choices, and take the arguments that name stores out of pytest's hands."""
    config = session.config
    forget_sandbox()
    if not is_used(config):
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(_Watch(config), "regen-watch")
        return
    from pytest_regen.pytest_plugin.choices import choices_of, is_reported
    from pytest_regen.pytest_plugin.places import refuse_unmatched, select

    choices = choices_of(config)
    selection, config.args = select(config)
    config.stash[_SELECTION] = selection
    refuse_unmatched(choices.only, selection, config)
    if has_kinds(config) and config.option.regen_heal:
        from pytest_regen.pytest_plugin.loaded import watch_modules
        from pytest_regen.pytest_plugin.project import kinds_of

        watch_modules(config, kinds_of(config).files)
        config.stash[_WATCHED] = True
    if not hasattr(config, "workerinput"):
        from pytest_regen.pytest_plugin.summary import RunLog

        log = RunLog(config, choices)
        if has_kinds(config):
            from pytest_regen.pytest_plugin.project import notes_on_kinds

            log.notes += notes_on_kinds(config)
        config.pluginmanager.register(log, "regen-log")
        if sys.stdout.isatty():
            from pytest_regen.pytest_plugin.hyperlinks import code_links

            links = code_links(config, choices.settings.docs_url)
            log.links = links
            if links is not None:
                config.pluginmanager.register(links, "regen-links")
        if is_reported(config):
            from pytest_regen.pytest_plugin.report_log import report_to

            report_to(config, selection.names, log)


class _Watch:
    """Begins the log of a run without stores and options once a marked test has something to log.

    A test of a session needs no option, only its mark and a recording or a provider.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look for the record of an item."""
        if RECORD_KEY not in report.__dict__:
            return
        from pytest_regen.pytest_plugin.choices import choices_of
        from pytest_regen.pytest_plugin.summary import RunLog

        manager = self._config.pluginmanager
        log = manager.get_plugin("regen-log")
        if log is None:
            log = RunLog(self._config, choices_of(self._config))
            manager.register(log, "regen-log")
            log.pytest_runtest_logreport(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the stores to what pytest collects at the top; refuse marks that mean nothing."""
    report = yield
    marked = (
        []
        if is_regen_node(collector)
        else [
            node
            for node in report.result or ()
            if isinstance(node, pytest.Item) and our_marks(node)
        ]
    )
    if marked:
        from pytest_regen.pytest_plugin.mark_checks import wrong_marks

        wrong = wrong_marks(marked)
        if wrong:
            report.outcome, report.longrepr, report.result = "failed", wrong, []
    selection = collector.config.stash.get(_SELECTION, None)
    if selection and selection.names and isinstance(collector, pytest.Session):
        from pytest_regen.pytest_plugin.items import place_nodes

        report.result = [*(report.result or ()), *place_nodes(collector, selection)]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Note who uses which cassette, with the marks of all hooks, before any test is deselected."""
    collected = list(items)
    result = yield
    if any(map(uses_cassette, collected)):
        from pytest_regen.pytest_plugin.recording.log import cassette_log

        cassette_log(config).claim(collected)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Give a test the fixtures that its marks ask for by now."""
    ahead = item.config.stash.get(AHEAD, None)
    if ahead is not None and not ahead.knows(item):
        ahead.finish()
    return (yield from setup_with_marked_fixtures(item))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Look at the marks again when a fixture of a wider scope is there."""
    result = yield
    if fixturedef.scope != "function":
        recheck_marks(request.config)
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Heal a failing item within its call, inside every other plugin's wrapper."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        if not is_regen_item(item):
            raise
        failure: BaseException = error
    # Outside the handler, so that what is raised now has no older failure as its context.
    from pytest_regen.pytest_plugin.healing.retry import heal_item

    remaining = heal_item(item, failure)
    if remaining is not None:
        raise remaining
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send along what happened to the item."""
    if call.excinfo is not None and SESSION_MAKERS in item.stash:
        from pytest_regen.pytest_plugin.healing.retry import trim_traceback

        call.excinfo = trim_traceback(item, call.excinfo)
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, pytest.UsageError):
        from pytest_regen.pytest_plugin.options import is_plain

        if is_plain(error):
            report.longrepr = str(error)
    if report.when == "call":
        item.stash[CALL_PASSED], item.stash[CALL_FAILED] = report.passed, report.failed
    if is_regen_item(item) or _ran_on_old_module(item, report):
        from pytest_regen.pytest_plugin.summary import attach

        attach(item, report)
    if _SELECTION in item.config.stash and (is_regen_item(item) or uses_cassette(item)):
        from pytest_regen.pytest_plugin.choices import is_reported

        if is_reported(item.config):
            from pytest_regen.pytest_plugin.report_log import describe

            describe(item, report, error)
    return report


def _ran_on_old_module(item: pytest.Item, report: pytest.TestReport) -> bool:
    """Whether a test used a module as it was before it was healed; noted for the summary."""
    if report.when != "call" or _WATCHED not in item.config.stash:
        return False
    from pytest_regen.pytest_plugin.loaded import note_old

    return note_old(item)


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


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what is under way for items whose turn will not come."""
    ahead = session.config.stash.get(AHEAD, None)
    if ahead is not None:
        ahead.close()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the ledger of the budget."""
    if config.option.regen_budget is not None:
        from pytest_regen.pytest_plugin.stash import drop_ledger

        drop_ledger(config)
