"""The pytest plugin as a table of contents: hooks in the order in which pytest calls them.

Every run of every suite that has the package installed passes through here, so that whatever is
not needed to find out that there is nothing to do is imported inside the hooks.
"""

import gc
import sys
from collections.abc import Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.pytest_plugin import fixtures, options, stash

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.places import Selection

_SELECTION: "pytest.StashKey[Selection]" = pytest.StashKey()
"""The places of the run; there only where the run uses the plugin at all."""
_REPORTED: "pytest.StashKey[bool]" = pytest.StashKey()
"""Whether somebody reads more than the terminal."""
_WATCHED: "pytest.StashKey[bool]" = pytest.StashKey()
"""Whether modules of units are watched, which tests import and healing writes."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register options and ini values; those of pytest-recording where no other plugin is."""
    options.add_options(parser)
    pluginmanager.register(fixtures, "regen-fixtures")
    # Where a conftest loads this plugin all others are there, but for those that it names itself.
    plugins = pluginmanager.list_name_plugin()
    conftests = [plugin for name, plugin in plugins if name.endswith("conftest.py")]
    names: list[str] = []
    for conftest in conftests:
        value = getattr(conftest, "pytest_plugins", ())
        names += [value] if isinstance(value, str) else value
    decides = bool(conftests) and stash.VCR_PLUGINS.keys().isdisjoint(names)
    _serve_recording(pluginmanager, decides=decides)


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
    if manager.has_plugin(stash.RECORDING_PLUGIN) or stash.other_vcr_plugin(manager) is not None:
        return
    # Looked for and not imported, because every run of every suite would pay for the import.
    may_be_loaded = (
        not manager.is_blocked(name) and find_spec(module.partition(".")[0]) is not None
        for module, name in stash.VCR_PLUGINS.items()
    )
    if decides or not any(may_be_loaded):
        from pytest_regen.pytest_plugin import recording_plugin

        manager.register(recording_plugin, stash.RECORDING_PLUGIN)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    from pytest_regen.pytest_plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers."""
    for line in options.MARKERS:
        config.addinivalue_line("markers", line)
    # Again, because a plugin that a conftest loads has missed the hook for initial conftests.
    _serve_recording(config.pluginmanager, decides=True)


@pytest.hookimpl(optionalhook=True)  # A hook of pytest-xdist.
def pytest_configure_node(node: Any) -> None:
    """Give every worker the same ledger, so that all spend from one budget, and the arguments."""
    if node.config.option.regen_budget is not None:
        node.workerinput["regen_ledger"] = str(stash.make_ledger(node.config))
    if node.config.option.regen_heal:
        # A worker gets options as values; a trial begins with what was typed.
        node.workerinput["regen_args"] = [str(arg) for arg in node.config.invocation_params.args]


@pytest.hookimpl(optionalhook=True)  # A hook of pytest-xdist.
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker noted about cassettes."""
    notes = getattr(node, "workeroutput", {}).get("regen_cassettes")
    if notes:
        from pytest_regen.pytest_plugin.recording.log import cassette_log

        cassette_log(node.config).take_over(notes)


# First, so that arguments that name stores are gone before anything looks for such files.
@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Check the choices, and take the arguments that name stores out of pytest's hands."""
    config, manager = session.config, session.config.pluginmanager
    is_worker = hasattr(config, "workerinput")
    # What ran in this process before, as with pytester, is no matter of this run.
    if levels := sys.modules.get("pytest_regen.sandbox.levels"):
        levels.forget_used_level()
    if not options.is_used(config):
        if not is_worker:
            manager.register(_Watch(config), "regen-watch")
        return
    # What was imported stays until the end of the run. Importing more begins searches for garbage,
    # which take a quarter of its time.
    gc.freeze()
    from pytest_regen.pytest_plugin import choices, places, project

    chosen = choices.choices_of(config)
    selection, config.args = places.select(config)
    config.stash[_SELECTION] = selection
    places.refuse_unmatched(chosen.only, selection, config)
    has_kinds = options.has_kinds(config)
    if has_kinds and config.option.regen_heal:
        from pytest_regen.pytest_plugin import loaded

        files = project.kinds_of(config).files.items()
        loaded.loaded_modules(config, [path for path, kind in files if kind.is_imported])
        config.stash[_WATCHED] = True
    config.stash[_REPORTED] = choices.is_reported(config)
    if is_worker:
        return
    from pytest_regen.pytest_plugin.summary import RunLog

    log = RunLog(config, chosen)
    if has_kinds:
        from pytest_regen.units.opening import unmarked_kinds

        # Their tests are not there either, which would tell.
        unmarked = unmarked_kinds(project.kinds_of(config))
        log.notes += [f"note: {what}; next: pytest-regen init" for what in unmarked]
    manager.register(log, "regen-log")
    if config.stash[_REPORTED]:
        from pytest_regen.pytest_plugin.report_log import ReportLog

        manager.register(ReportLog(config, selection, log), "regen-report")


class _Watch:
    """Begins the log of a run without stores and options once a marked test has something to log.

    A test of a session needs no option, only its mark and a recording or a provider.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look for the record of an item."""
        manager = self._config.pluginmanager
        if stash.RECORD_KEY in report.__dict__ and not manager.has_plugin("regen-log"):
            from pytest_regen.pytest_plugin.choices import choices_of
            from pytest_regen.pytest_plugin.summary import RunLog

            log = RunLog(self._config, choices_of(self._config))
            manager.register(log, "regen-log")
            log.pytest_runtest_logreport(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the places to what pytest collects at the top."""
    report = yield
    selection = collector.config.stash.get(_SELECTION, None)
    if selection and isinstance(collector, pytest.Session):
        from pytest_regen.pytest_plugin.items import PlaceNode

        report.result = list(report.result or ())
        for path, names in selection.items():
            report.result.append(PlaceNode.from_parent(collector, path=path, selected=names))
    return report


# A wrapper, and first: the list is taken before any plugin deselects, read after all have marked.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Note who uses which cassette, with the marks of all hooks, before any test is deselected."""
    collected = list(items)
    result = yield
    if any(map(stash.uses_cassette, collected)):
        from pytest_regen.pytest_plugin.recording.log import cassette_log

        cassette_log(config).claim(collected)
    return result


# The hook itself, because a generator around it would cost every test of every suite.
pytest_runtest_setup = pytest.hookimpl(wrapper=True)(fixtures.setup_with_marked_fixtures)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Look at the marks again when a fixture of a wider scope is there."""
    result = yield
    if fixturedef.scope != "function":
        fixtures.recheck_marks(request.config)
    return result


# Last of the wrappers: whatever other plugins do around a call, they do around all calls of it.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Heal a failing item within its call, inside every other plugin's wrapper."""
    try:
        return (yield)
    # Both, because what pytest.fail raises is no Exception.
    except (Exception, pytest.fail.Exception) as error:
        if not stash.is_regen_item(item):
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
    if call.excinfo is not None and stash.SESSION_MAKERS in item.stash:
        from pytest_regen.pytest_plugin.healing.retry import trim_traceback

        call.excinfo = trim_traceback(item, call.excinfo)
    report = yield
    config = item.config
    error = call.excinfo.value if call.excinfo else None
    if options.is_plain(error):
        report.longrepr = str(error)
    if report.when == "call":
        item.stash[stash.CALL_OUTCOME] = report.outcome
        is_on_old_module = False
        if _WATCHED in config.stash:
            from pytest_regen.pytest_plugin.loaded import loaded_modules

            is_on_old_module = loaded_modules(config).note(item)
        if is_on_old_module or stash.is_regen_item(item):
            from pytest_regen.pytest_plugin.summary import attach

            attach(item, report)
    if config.stash.get(_REPORTED, False) and (
        stash.is_regen_item(item) or stash.uses_cassette(item)
    ):
        from pytest_regen.pytest_plugin.report_log import describe

        describe(item, report, error)
    return report
