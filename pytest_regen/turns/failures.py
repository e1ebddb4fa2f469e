"""What went wrong with a turn, worded once for the SDK's path and the replayed one."""

from collections.abc import Mapping
from typing import Any, Final

from pytest_regen.errors import ProviderError, RejectedRequestError, TransportError
from pytest_regen.turns.secrets import scrub_text

__all__ = [
    "RATE_LIMITED",
    "connection_failure",
    "is_paid",
    "is_retried",
    "is_retried_status",
    "is_spend_limit",
    "status_failure",
    "timeout_failure",
]

_NEXT: Final[Mapping[int, str]] = {
    400: "correct what the reason names; on the command line, --dry-run shows the request",
    401: "check the key: set ANTHROPIC_API_KEY to one that is valid for this address",
    402: "check the billing of the account the key belongs to",
    403: "use a key whose workspace may do this",
    404: "check the model's name (--model, or model in [tool.pytest-regen])",
    413: "send less at once: lower --fields-per-page",
    429: "wait, then run the command again; what was finished before is kept",
    529: "wait a moment, then run the command again; what was finished before is kept",
}
_NEXT_REJECTED = "correct the request; on the command line, --dry-run shows it"
_NEXT_AGAIN = "run the command again; what was finished before is kept"

_WORDS: Final[Mapping[int, str]] = {
    400: "refused the request as malformed",
    401: "did not accept the key",
    402: "refused for a billing reason",
    403: "does not allow this with the key at hand",
    404: "does not know what was asked for",
    408: "gave up waiting for the request",
    409: "reported a conflict",
    413: "refused the request as too large",
    422: "could not process the request",
    429: "limits the rate of requests",
    500: "failed inside",
    503: "is not available",
    504: "timed out inside",
    529: "is overloaded",
}

RATE_LIMITED: Final = 429
"""Too many requests: the status under which the API says that a spend limit is reached."""

_TRANSIENT = frozenset({408, 409, 425, RATE_LIMITED, 499})
_RETRIED = frozenset({408, 409, RATE_LIMITED})
_SERVER_ERROR = 500
_TYPE_STATUS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 504,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}


def status_failure(status: int, body: object, *, model: str, address: str) -> ProviderError:
    """Return the error for an answer with an error status, or an error inside a stream.

    Args:
        status: HTTP status; 200 where the error came inside a stream.
        body: decoded JSON of the answer, or its text.
        model: model asked.
        address: host the request went to.
    """
    kind, message = _envelope(body)
    # An error inside a stream arrives under the status 200 of the response it interrupts.
    real = _TYPE_STATUS.get(kind, _SERVER_ERROR) if status < 400 else status  # noqa: PLR2004
    what = f"{address} {_WORDS.get(real, 'answered with an error')} (HTTP {real}, model {model!r})"
    why = scrub_text(f"{kind}: {message}" if kind else message)
    if is_spend_limit(body):
        return RejectedRequestError(
            f"{address} refuses further requests: a spend limit is reached (HTTP {real})",
            status=real,
            why=why,
            hint="raise the limit in the console, or wait until the limit's period ends",
        )
    if real in _TRANSIENT or real >= _SERVER_ERROR:
        return TransportError(what, why=why, hint=_NEXT.get(real, _NEXT_AGAIN))
    return RejectedRequestError(what, status=real, why=why, hint=_NEXT.get(real, _NEXT_REJECTED))


def timeout_failure(seconds: float, *, model: str, address: str) -> ProviderError:
    """Return the error for a reply that did not come in time."""
    return TransportError(
        f"{address} did not answer within {seconds:g} s (model {model!r})",
        why="the request timed out, and so did its retries",
        hint="run the command again, or give it longer: AnthropicProvider(timeout=...)",
    )


def connection_failure(reason: str, *, model: str, address: str) -> ProviderError:
    """Return the error for a connection that was never made, or dropped."""
    return TransportError(
        f"{address} could not be reached (model {model!r})",
        why=scrub_text(reason) or "the connection was dropped",
        hint="check the network and ANTHROPIC_BASE_URL, then run the command again",
    )


def is_paid(reason: str) -> bool:
    """Whether a connection broke, or was given up, while the answer was awaited or on its way.

    What the request took is then unknown, and not nothing.

    Args:
        reason: what the HTTP client says, its kind of error first.
    """
    is_underway = reason.startswith(("ReadError", "ReadTimeout", "RemoteProtocolError"))
    return is_underway and "without sending a response" not in reason


def is_spend_limit(body: object) -> bool:
    """Whether the answer says that money, not speed, is the limit; waiting cannot help."""
    return "spend_limit_reached" in _error_code(body)


def is_retried(status: int, headers: Mapping[str, str], body: object) -> bool:
    """Whether the SDK sends the request again after this answer.

    Args:
        status: HTTP status.
        headers: response headers, names in lower case.
        body: decoded JSON of the answer, or its text.
    """
    if status == RATE_LIMITED and is_spend_limit(body):
        return False
    asked = headers.get("x-should-retry")
    if asked in {"true", "false"}:
        return asked == "true"
    return is_retried_status(status)


def is_retried_status(status: int) -> bool:
    """Whether the SDK asks again after an answer of this status, unless the answer says not to."""
    return status in _RETRIED or status >= _SERVER_ERROR


def _envelope(body: object) -> tuple[str, str]:
    error = _error(body)
    if error is None:
        text = body if isinstance(body, str) else ""
        return "", " ".join(text.split())[:200]
    return str(error.get("type") or ""), str(error.get("message") or "")


def _error(body: object) -> Mapping[str, Any] | None:
    error = body.get("error") if isinstance(body, Mapping) else None
    return error if isinstance(error, Mapping) else None


def _error_code(body: object) -> str:
    details = (_error(body) or {}).get("details")
    return str(details.get("error_code") or "") if isinstance(details, Mapping) else ""
