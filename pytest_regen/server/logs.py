"""What the server writes down: that something failed, under which id and where; no words of people.

The text of an exception may hold what somebody wrote, or what a model said to it. It is logged at
the level DEBUG only.
"""

import logging
import traceback

from pytest_regen.errors import RegenError
from pytest_regen.server.problems import Problem

__all__ = ["WithoutSearch", "log_failure", "logger"]

logger = logging.getLogger("pytest_regen.server")


def log_failure(request_id: str, error: BaseException, problem: Problem | None = None) -> None:
    """Log one line for what was foreseen, and for anything else where in the code it happened.

    Args:
        request_id: which the client was told.
        error: what was raised; of its text nothing is logged above DEBUG.
        problem: what the client is answered.
    """
    answer = f"{problem.status.value} {problem.code}" if problem else "500 INTERNAL"
    kinds = " from ".join(type(one).__name__ for one in _chain(error))
    if isinstance(error, RegenError | Problem):
        logger.warning("request %s failed: %s (%s)", request_id, answer, kinds)
    else:
        frames = "".join(
            f"\n  {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        )
        logger.error("request %s failed: %s (%s)%s", request_id, answer, kinds, frames)
    logger.debug("request %s: what was raised", request_id, exc_info=error)


def _chain(error: BaseException) -> list[BaseException]:
    found = [error]
    while (cause := found[-1].__cause__ or found[-1].__context__) and cause not in found:
        found.append(cause)
    return found


class WithoutSearch(logging.Filter):
    """Takes the query off the addresses in uvicorn's log of requests: what somebody looked for."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the address; every line is kept."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                arg.partition("?")[0] if isinstance(arg, str) else arg for arg in record.args
            )
        return True
