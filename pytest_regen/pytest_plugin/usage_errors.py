"""Usage errors as pytest shows them: one line, without a traceback of ours."""

import pytest

from pytest_regen.errors import UsageError

__all__ = ["usage_error"]


def usage_error(what: str, *, why: str = "", hint: str) -> pytest.UsageError:
    """Return pytest's own error with our three lines: what happened, why, and what to do next."""
    return pytest.UsageError(str(UsageError(what, why=why, hint=hint)))
