"""The levels of the sandbox: a test names the one that it is about, and is skipped without it."""

import pytest

from pytest_regen.errors import UsageError
from pytest_regen.sandbox.levels import VARIABLE, Level, strongest_level

__all__ = ["use_level"]


def use_level(level: Level, monkeypatch: pytest.MonkeyPatch) -> Level:
    """Let code run at a level; skip the test where it does not work."""
    monkeypatch.setenv(VARIABLE, level)
    try:
        return strongest_level()
    except UsageError:
        pytest.skip(f"the sandbox's level {level} does not work here")
