"""The fixtures that the marks of a test ask for.

A test gets those fixtures when it is set up, not when it is collected: until then hooks, other
plugins and fixtures of a wider scope may add marks, and pytest-recording reads them as late.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from functools import partial

import pytest

from pytest_regen.pytest_plugin.stash import OUR_MARKS

__all__ = [
    "RECORDING_PLUGIN",
    "VCR_PLUGINS",
    "other_vcr_plugin",
    "recheck_marks",
    "setup_with_marked_fixtures",
]

RECORDING_PLUGIN = "regen-recording"
"""Name under which the marks, fixtures and options of pytest-recording are registered."""

VCR_PLUGINS = {"pytest_recording.plugin": "recording", "pytest_vcr": "vcr"}
"""Other plugins that serve tests marked ``vcr``: their modules, and the names to block them by."""

_VCR_MARKS = frozenset({"vcr", "block_network", "default_cassette", "allowed_hosts"})
_FIXTURES = ("cassette", "block_network", "vcr")
"""Marks with a fixture of the same name, in the order in which those are set up."""


_SET_UP: pytest.StashKey[pytest.Item] = pytest.StashKey()
"""The test that is being set up."""


def other_vcr_plugin(manager: pytest.PytestPluginManager) -> str | None:
    """Return the module of another plugin that is loaded and serves tests marked ``vcr``."""
    loaded = ((name, sys.modules.get(name)) for name in VCR_PLUGINS)
    return next((name for name, module in loaded if module and manager.is_registered(module)), None)


def setup_with_marked_fixtures(item: pytest.Item) -> Generator[None, object, object]:
    """Wrap the set-up of a test, so that it has the fixtures which its marks ask for by then.

    Raises:
        pytest.UsageError: a mark was added when it could no longer be honoured; without its
            fixture the test would send what is to be replayed.
    """
    if getattr(item, "fixturenames", None) is None:
        # What has no fixtures, such as an item of a linter, sends nothing that is recorded.
        return (yield)
    own = vars(item).get("setup")
    # Hooks of the set-up that come after this one may still add marks; pytest's own comes last,
    # and calls this.
    vars(item)["setup"] = partial(_set_up, item, item.setup)
    try:
        result = yield
    finally:
        del vars(item)["setup"]
        if own is not None:
            vars(item)["setup"] = own
    _refuse_late_marks(item)
    return result


def recheck_marks(config: pytest.Config) -> None:
    """Give the test that is being set up what marks ask for that a fixture has added."""
    item = config.stash.get(_SET_UP, None)
    if item is not None:
        _add_fixtures(item)


def _set_up(item: pytest.Item, original: Callable[[], None]) -> None:
    # pytest gives all cases of a parametrised test one list.
    names: list[str] = list(getattr(item, "fixturenames", ()))
    vars(item)["fixturenames"] = names
    item.config.stash[_SET_UP] = item
    try:
        _add_fixtures(item)
        original()
    finally:
        del item.config.stash[_SET_UP]


_SERVED: pytest.StashKey[list[pytest.Mark]] = pytest.StashKey()
"""The marks that a test has the fixtures of."""


def _marks(item: pytest.Item) -> list[pytest.Mark]:
    """Return the marks that ask for something that is served here."""
    marks = [
        mark for mark in item.iter_markers() if mark.name in OUR_MARKS or mark.name in _VCR_MARKS
    ]
    if marks and not _serves_vcr_marks(item.config):
        return [mark for mark in marks if mark.name in OUR_MARKS]
    return marks


def _add_fixtures(item: pytest.Item) -> None:
    """Put the fixtures that the test's marks ask for where automatic ones would be.

    In place: pytest may be on its way through the list.
    """
    marks, config = _marks(item), item.config
    item.stash[_SERVED] = marks
    names: list[str] = item.fixturenames  # type: ignore[attr-defined]  # of those that have some
    asked = {mark.name for mark in marks}
    if "cassette" in names:
        asked.add("cassette")
    # pytest-recording has the same option, and does the same itself.
    if getattr(config.option, "block_network", False) and _serves_vcr_marks(config):
        asked.add("block_network")
    if not asked:
        return
    if asked & OUR_MARKS:
        from pytest_regen.pytest_plugin.mark_checks import check_late_marks

        check_late_marks(item)
    if "regen" in asked and config.option.regen_heal and "regen_provider" not in names:
        # A test's own one is to be heard.
        names.append("regen_provider")
    _ask_first(item, names, [name for name in _FIXTURES if name in asked])


def _serves_vcr_marks(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin(RECORDING_PLUGIN)


def _ask_first(item: pytest.Item, names: list[str], wanted: Sequence[str]) -> None:
    """Put fixtures first among those of the test itself.

    What another fixture of the test sends while it is set up is theirs, too. One that the test
    names itself would otherwise come after the automatic ones.
    """
    names[:] = [name for name in names if name not in wanted]
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    at = next((n for n, name in enumerate(names) if not _is_wider(name, known)), len(names))
    names[at:at] = wanted


def _is_wider(name: str, known: dict[str, Sequence[pytest.FixtureDef[object]]]) -> bool:
    return name in known and known[name][-1].scope != "function"


def _refuse_late_marks(item: pytest.Item) -> None:
    served, found = item.stash.get(_SERVED, []), _marks(item)
    if not found:
        return
    names, there = {mark.name for mark in found}, getattr(item, "funcargs", None)
    late = [mark for mark in found if mark not in served and _is_needed_early(mark.name, names)]
    if there is not None:
        # pytest may have been past the place in its list where the fixture was put.
        late += [mark for mark in served if mark.name in _FIXTURES and mark.name not in there]
    if late:
        from pytest_regen.pytest_plugin.options import usage_error

        raise usage_error(
            f"{item.nodeid}: the mark {late[0].name} was added when the test was set up already",
            why="what its fixtures sent by then was neither recorded nor blocked",
            hint="add it in pytest_collection_modifyitems or pytest_runtest_setup, or write it "
            "above the test",
        )


def _is_needed_early(name: str, marks: set[str]) -> bool:
    """Whether a mark says something about the set-up of a test that has ``marks``."""
    match name:
        case "default_cassette":
            return "vcr" in marks
        case "allowed_hosts":
            return "block_network" in marks
        case _:
            return name in _FIXTURES
