"""What can go wrong with a request, as the status, code and words of an answer."""

import logging
import traceback
from collections.abc import Mapping
from http import HTTPStatus

from pytest_regen.errors import (
    BudgetError,
    InvalidContextError,
    MissingKeyError,
    ReaskedError,
    RefusedError,
    RegenError,
    RejectedRequestError,
    ReplyFormatError,
    SealError,
    SealExpiredError,
    SealMissingError,
    TransportError,
)


class Problem(Exception):  # noqa: N818 - an answer to be sent, no defect of the program
    """Ends a request with an answer that says why; never carries the text of an exception.

    Args:
        status: of the answer.
        code: stable name of the problem, in capitals.
        message: one sentence for a person.
        where: JSON pointer of the field at fault.
        retry_after: whole seconds after which it makes sense to try again.
        headers: further headers of the answer.
        details: further members of the answer.
    """

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        message: str,
        *,
        where: str | None = None,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message
        self.where = where
        self.retry_after = retry_after
        self.details = dict(details or {})
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["retry-after"] = str(retry_after)

    def as_json(self, request_id: str) -> dict[str, object]:
        """Return the members of the answer."""
        members: dict[str, object] = {
            "error": self.message,
            "code": self.code,
            "request_id": request_id,
        }
        if self.where is not None:
            members["where"] = self.where
        if self.retry_after is not None:
            members["retry_after"] = self.retry_after
        return members | self.details


_BAD, _UNAVAILABLE = HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE
_REASKED = ("REASKED", "The model asked again instead of writing.")
_OUT_OF_REACH = "The model could not be reached. Try again in a moment."
_OF_MODEL: tuple[tuple[type[RegenError], HTTPStatus, str, str], ...] = (
    (ReaskedError, _BAD, *_REASKED),
    (ReplyFormatError, _BAD, "UNUSABLE_REPLY", "The model's reply could not be used."),
    (RefusedError, _BAD, "MODEL_REFUSED", "The model declined to answer this."),
    (RejectedRequestError, _BAD, "MODEL_REJECTED", "The model's service rejected the request."),
    (MissingKeyError, _UNAVAILABLE, "MODEL_NOT_CONFIGURED", "No model is configured here."),
    (TransportError, _UNAVAILABLE, "MODEL_UNAVAILABLE", _OUT_OF_REACH),
    (BudgetError, _UNAVAILABLE, "BUDGET_SPENT", "The budget of this server is spent."),
    (RegenError, _BAD, "MODEL_FAILED", "The model gave no answer."),
)
"""The first that fits decides."""
_CONTEXT = frozenset({"conversationContext", "conversation_context"})
"""Names under which a context is read; its other names are read as these."""
_RETRY_AFTER = {"MODEL_UNAVAILABLE": 5}


def of_model(error: RegenError) -> Problem:
    """Return the answer to a turn that failed: 502, or 503 where trying again may help."""
    for kind, status, code, message in _OF_MODEL:
        if isinstance(error, kind):
            return Problem(status, code, message, retry_after=_RETRY_AFTER.get(code))
    raise AssertionError("the last entry fits every error")


def second_question() -> Problem:
    """Return the answer to a second turn of an agent that asks once more: 502."""
    return Problem(_BAD, *_REASKED)


def of_seal(error: SealError) -> Problem:
    """Return the answer to a context that nothing vouches for: 403."""
    if isinstance(error, SealExpiredError):
        message = "The questions are too old to be answered. Start again from the description."
    elif isinstance(error, SealMissingError):
        message = "The context has no seal. Send back the one that came with the questions."
    else:
        message = "The context is not the one that came with the questions. Start again."
    return Problem(HTTPStatus.FORBIDDEN, error.code, message)


def invalid(error: InvalidContextError) -> Problem:
    """Return the answer to a request of the wrong form: 422, with each place at fault."""
    problems = [{"where": where, "why": why} for where, why in error.problems]
    where, why = error.problems[0] if error.problems else ("", "it is not valid")
    code = error.code if where.partition(".")[0] in _CONTEXT else "INVALID_REQUEST"
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        code,
        f"{where}: {why}" if where else why,
        where=where,
        details={"problems": problems},
    )


logger = logging.getLogger("pytest_regen.server")


def log_failure(request_id: str, error: BaseException, problem: Problem | None = None) -> None:
    """Log one line for what was foreseen, and for anything else where in the code it happened.

    Args:
        request_id: the one that the client was given.
        error: what was raised; of its text nothing is logged above DEBUG.
        problem: what the client is answered.
    """
    answer = f"{problem.status.value} {problem.code}" if problem else "500 INTERNAL"
    kinds = " from ".join(type(cause).__name__ for cause in _chain(error))
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
