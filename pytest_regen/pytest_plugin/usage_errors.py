"""Usage errors as people see them: three lines, without a traceback of ours."""

import pytest

__all__ = ["PluginUsageError", "usage_error"]


class PluginUsageError(pytest.UsageError):
    """An option, ini value or mark of ours is wrong; the text is all there is to show."""


def usage_error(what: str, *, why: str = "", hint: str) -> PluginUsageError:
    """Return pytest's own error with our three lines: what happened, why, and what to do next."""
    from pytest_regen.errors import UsageError  # noqa: PLC0415 - not paid where nothing is wrong

    return PluginUsageError(str(UsageError(what, why=why, hint=hint)))
