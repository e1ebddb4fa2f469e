"""What hooks and fixtures leave on an item for each other."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun, Scrub
    from pytest_regen.cassettes.clients.vcr_run import VcrRun


__all__ = [
    "CALL_FAILED",
    "CALL_PASSED",
    "CASSETTE",
    "RECORD_KEY",
    "SESSION_MAKERS",
    "VCR_RUN",
    "drop_ledger",
    "make_ledger",
    "scrubber_of",
    "worker_ledger",
]


RECORD_KEY = "regen_record"
"""Attribute of a report that carries what its item has to tell."""

CALL_FAILED: pytest.StashKey[bool] = pytest.StashKey()
"""Whether the test itself failed: one that skipped or was expected to fail did not."""

CALL_PASSED: pytest.StashKey[bool] = pytest.StashKey()
"""Whether the test itself passed, for fixtures that end after it."""

CASSETTE: "pytest.StashKey[CassetteRun]" = pytest.StashKey()
"""The cassette that an item has in use."""

VCR_RUN: "pytest.StashKey[VcrRun]" = pytest.StashKey()
"""The cassette that a test marked ``vcr`` has in use."""

SESSION_MAKERS: pytest.StashKey[list[Any]] = pytest.StashKey()
"""What made the sessions of an item; they take their next turn when the item fails."""


_LEDGER: pytest.StashKey[Path] = pytest.StashKey()


def make_ledger(config: pytest.Config) -> Path:
    """Return the file in which all workers of this run note what they spend."""
    if _LEDGER not in config.stash:
        config.stash[_LEDGER] = Path(tempfile.mkdtemp(prefix="pytest-regen-")) / "budget"
    return config.stash[_LEDGER]


def drop_ledger(config: pytest.Config) -> None:
    """Remove the ledger, if this process made one."""
    ledger = config.stash.get(_LEDGER, None)
    if ledger is not None:
        shutil.rmtree(ledger.parent, ignore_errors=True)


def worker_ledger(config: pytest.Config) -> Path | None:
    """Return the ledger that the controller handed to this worker; none without workers."""
    given: str | None = getattr(config, "workerinput", {}).get("regen_ledger")
    return Path(given) if given else None


_SCRUBBER: "pytest.StashKey[Scrub | None]" = pytest.StashKey()


def scrubber_of(config: pytest.Config) -> "Scrub | None":
    """Return what the hook ``pytest_regen_scrubbers`` takes out, as one function made once a run.

    ``None`` where the project takes nothing out.
    """
    if _SCRUBBER not in config.stash:
        answers = config.hook.pytest_regen_scrubbers(config=config)
        config.stash[_SCRUBBER] = _chain([one for answer in answers for one in answer or ()])
    return config.stash[_SCRUBBER]


def _chain(scrubbers: "list[Scrub]") -> "Scrub | None":
    def scrub(text: str) -> str:
        for one in scrubbers:
            text = one(text)
        return text

    return scrub if scrubbers else None
