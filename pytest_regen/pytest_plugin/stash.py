"""Which items are ours, and what hooks and fixtures leave on them for each other."""

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun, Scrub
    from pytest_regen.cassettes.clients.vcr_run import VcrRun


OUR_MARKS = frozenset({"cassette", "regen"})


def mark_names(item: pytest.Item) -> set[str]:
    """Return the names of an item's marks."""
    names: set[str] = set()
    node: Any = item
    # By hand, because every test of a suite is asked, and most nodes have no marks.
    while node is not None:
        if node.own_markers:
            names.update(mark.name for mark in node.own_markers)
        node = node.parent
    return names


def is_regen_item(item: pytest.Item) -> bool:
    """Return whether an item is marked ``regen``, as those of stores and units are."""
    return "regen" in mark_names(item)


def uses_cassette(item: pytest.Item) -> bool:
    """Return whether an item uses a cassette, by a mark or a fixture."""
    # The mark alone is enough: without the fixture its test would send what is to be replayed.
    return "cassette" in getattr(item, "fixturenames", ()) or not mark_names(item).isdisjoint(
        ("cassette", "vcr")
    )


RECORDING_PLUGIN = "regen-recording"
"""Name under which the marks, fixtures and options of pytest-recording are registered."""

VCR_PLUGINS = {"pytest_recording.plugin": "recording", "pytest_vcr": "vcr"}
"""Other plugins that serve tests marked ``vcr``: their modules, and the names to block them by."""


def other_vcr_plugin(manager: pytest.PytestPluginManager) -> str | None:
    """Return the module of another plugin that is loaded and serves tests marked ``vcr``."""
    loaded = ((name, sys.modules.get(name)) for name in VCR_PLUGINS)
    return next((name for name, module in loaded if module and manager.is_registered(module)), None)


TRIAL_PLUGIN = "pytest_regen.pytest_plugin.healing.trial_plugin"
"""Module that a process loads which calls one test about a candidate."""

TRIAL_VARIABLE = "PYTEST_REGEN_TRIAL"
"""Environment variable that tells such a process what it is about, as JSON."""


RECORD_KEY = "regen_record"
"""Attribute of a report that carries the record of its item."""


AHEAD: pytest.StashKey[Any] = pytest.StashKey()
"""The items of this process that are worked on ahead of their turn: ``healing.ahead.Ahead``."""


# Fixtures of cassettes end after the call, and pytest tells a fixture nothing of it. Whether to
# keep what was recorded, and whether to mind what was not played, they read here.
CALL_OUTCOME: pytest.StashKey[str] = pytest.StashKey()
"""What the test itself did: one that skipped or was expected to fail was ``skipped``."""

CASSETTE: "pytest.StashKey[CassetteRun]" = pytest.StashKey()
"""The cassette that an item has in use."""

VCR_RUN: "pytest.StashKey[VcrRun]" = pytest.StashKey()
"""The cassette that a test marked ``vcr`` has in use."""

SESSION_MAKERS: pytest.StashKey[list[Any]] = pytest.StashKey()
"""Makers of the sessions of an item, which take their next turn when the item fails."""


def used_sandbox() -> tuple[str, bool]:
    """Return the level of the sandbox that verdicts of this run came from, and whether code ran."""
    levels = sys.modules.get("pytest_regen.sandbox.levels")
    level = levels.used_level() if levels else None
    return (level, levels.has_run()) if levels and level else ("", False)


def notes_on_models() -> tuple[str, ...]:
    """Return what SDKs have warned of the models that were asked, since the last call."""
    sdk = sys.modules.get("pytest_regen.turns.sdk")
    return tuple(sdk.notes.popitem()[0] for _ in tuple(sdk.notes)) if sdk else ()


def make_ledger(config: pytest.Config) -> Path:
    """Return the file in which all workers of this run note what they spend."""
    if _LEDGER not in config.stash:
        folder = tempfile.mkdtemp(prefix="pytest-regen-")
        config.stash[_LEDGER] = Path(folder) / "budget"
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    return config.stash[_LEDGER]


_LEDGER: pytest.StashKey[Path] = pytest.StashKey()
"""Made for the first worker, and the same for all."""


_SCRUBBER: "pytest.StashKey[Scrub | None]" = pytest.StashKey()
"""Kept, for the hook may be dear: each cassette and each report asks for it."""


def scrubber_of(config: pytest.Config) -> "Scrub | None":
    """Return what the hook ``pytest_regen_scrubbers`` takes out, as one function made once a run.

    ``None`` where the project takes nothing out.
    """
    if _SCRUBBER not in config.stash:
        answers = config.hook.pytest_regen_scrubbers(config=config)
        scrubbers: list[Scrub] = [scrubber for answer in answers for scrubber in answer or ()]

        def scrub(text: str) -> str:
            for scrubber in scrubbers:
                text = scrubber(text)
            return text

        config.stash[_SCRUBBER] = scrub if scrubbers else None
    return config.stash[_SCRUBBER]
