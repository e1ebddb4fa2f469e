"""Usage errors as people see them: three lines, without a traceback of ours."""

import pytest

__all__ = ["is_told_whole", "told_whole", "usage_error"]

_WHOLE = "pytest_regen_told_whole"


def usage_error(what: str, *, why: str = "", hint: str) -> pytest.UsageError:
    """Return pytest's own error with our three lines: what happened, why, and what to do next."""
    from pytest_regen.errors import UsageError  # noqa: PLC0415 - not paid where nothing is wrong

    return told_whole(str(UsageError(what, why=why, hint=hint)))


def told_whole(text: str) -> pytest.UsageError:
    """Return pytest's own error; its text is all there is to show of it."""
    error = pytest.UsageError(text)
    setattr(error, _WHOLE, True)
    return error


def is_told_whole(error: BaseException | None) -> bool:
    """Return whether an error is one of these: lines of ours would tell nobody more."""
    return getattr(error, _WHOLE, False)
