"""Whether a failing item is called again, and what for: its sessions, or the types it is about."""

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.cassettes.own_lines import own_lines
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS

__all__ = ["left_after_healing", "without_our_lines"]


def left_after_healing(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Return the failure that is left of an item marked ``regen``; ``None`` if it passes now.

    Sessions take their next turn without an option, because nothing is written. With a debugger
    nothing is healed: whoever asked for it wants to see the failure. ``pytest.xfail`` and
    ``pytest.exit`` say themselves what is to become of the item.
    """
    if isinstance(failure, pytest.xfail.Exception | pytest.exit.Exception):
        return failure
    if getattr(item.config.option, "usepdb", False) or not _may_call_again(item):
        return failure
    if item.stash.get(SESSION_MAKERS, None):
        from pytest_regen.pytest_plugin.healing.sessions import (  # noqa: PLC0415 - rare
            call_with_feedback,
        )

        return call_with_feedback(item, failure)
    return _left_of_types(item, failure)


def _left_of_types(item: pytest.Item, failure: BaseException) -> BaseException | None:
    if not (item.config.option.regen_heal or item.config.option.regen_dry_run):
        return failure
    from pytest_regen.pytest_plugin.choices import choices_of  # noqa: PLC0415 - rare

    choices = choices_of(item.config)
    if not (choices.heal or choices.dry_run):
        return failure
    from pytest_regen.pytest_plugin.healing.types import call_again  # noqa: PLC0415 - rare

    return call_again(item, failure)


def _may_call_again(item: pytest.Item) -> bool:
    # pytest-rerunfailures starts the whole item again; healing it twice would pay twice.
    return getattr(item, "execution_count", 1) <= 1 and not item.get_closest_marker("xfail")


def without_our_lines(
    item: pytest.Item, failure: pytest.ExceptionInfo[BaseException]
) -> pytest.ExceptionInfo[BaseException]:
    """Return how a test of a session failed, to the last line of the project.

    Our own lines below it, and errors of libraries that ours is about, tell a reader nothing.
    ``--full-trace`` shows them.
    """
    error = failure.value
    if not isinstance(error, RegenError) or item.config.option.fulltrace:
        return failure
    lines = own_lines(item, error.__traceback__)
    if lines is None:
        return failure
    error.__cause__, error.__suppress_context__ = None, True
    return pytest.ExceptionInfo.from_exception(error.with_traceback(lines))
