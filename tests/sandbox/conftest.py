"""The levels of the sandbox, for tests that are run at each."""

import pytest
from sandbox_levels import use_level

from pytest_regen.sandbox.levels import LEVELS, Level


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Level:
    """Each level that works here."""
    return use_level(request.param, monkeypatch)
