"""Hooks that only runs with cassettes need: misses told as themselves, notes for the summary."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.errors import CassetteError, CassetteMissError
from pytest_regen.pytest_plugin.providers import CASSETTE
from pytest_regen.pytest_plugin.tape_log import tape_log
from pytest_regen.turns.interception import CassetteMiss

if TYPE_CHECKING:
    from pytest_regen.cassettes.vcr_compat import VcrRun

__all__ = ["VCR_RUN", "note", "note_drift", "tape_hooks"]

VCR_RUN: "pytest.StashKey[VcrRun]" = pytest.StashKey()
"""The cassette that a test marked ``vcr`` has in use."""

_NAME = "regen-tapes"


def tape_hooks(config: pytest.Config) -> None:
    """Register the hooks, once; the first test that uses a cassette calls this in its set-up."""
    if not config.pluginmanager.has_plugin(_NAME):
        config.pluginmanager.register(_TapeHooks(), _NAME)


def note(item: pytest.Item, line: str) -> None:
    """Keep a line for the summary at the end of the run."""
    tape_log(item.config).add([line])


def note_drift(item: pytest.Item, path: Path) -> None:
    """Remember that a cassette is not what the test asks for."""
    tape_log(item.config).drifted([os.path.relpath(path, item.config.rootpath)])


class _TapeHooks:
    """What happens around the call of a test whose cassette is in use."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail with the miss itself, whatever a client made of it on its way to the test."""
        error: BaseException | None = None
        try:
            result = yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except BaseException as caught:  # noqa: BLE001 - the miss itself is one
            error, result = caught, None
        run = item.stash.get(CASSETTE, None)
        missed = run.settled() if run is not None else None
        if run is not None and isinstance(missed or error, CassetteMissError):
            note_drift(item, run.path)
        if missed is None and error is not None and VCR_RUN in item.stash:
            # vcrpy's own exception may be handled, as in any suite; a test it fails is told.
            missed = item.stash[VCR_RUN].miss()
        if missed is not None:
            # Where the test noticed, its lines are the ones to show.
            raise missed.with_traceback(error.__traceback__ if error else None)
        if error is not None:
            raise error
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the line of the short summary start with what is missing, not with our class."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        error = error.error if isinstance(error, CassetteMiss) else error
        crash = getattr(report.longrepr, "reprcrash", None)
        if isinstance(error, CassetteError) and crash is not None:
            crash.message = str(error)
        return report
