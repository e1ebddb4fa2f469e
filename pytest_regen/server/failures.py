"""Errors of the package as answers: a status, a stable code, words of ours, no exception's text."""

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
from pytest_regen.server.problems import Problem

__all__ = ["invalid", "of_model", "of_seal", "reasked"]

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


def reasked() -> Problem:
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
