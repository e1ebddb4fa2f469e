"""What hooks and fixtures leave on an item for each other."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun
    from pytest_regen.cassettes.clients.vcr.run import VcrRun

__all__ = ["CALL_FAILED", "CALL_PASSED", "CASSETTE", "RECORD_KEY", "SESSION_MAKERS", "VCR_RUN"]

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
