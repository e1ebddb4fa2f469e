"""What a fault sends: error responses, streams that end early, headers about retries."""

from collections.abc import Sequence
from http import HTTPStatus
from http.client import responses
from typing import Any, Literal

from pytest_regen.emulator.messages import TEXT_DELTA, event
from pytest_regen.emulator.values import Fault, HttpResponse, Part, dump

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def envelope(fault: Fault, request_id: str) -> dict[str, Any]:
    """Return the error body, with the id of the request."""
    is_ours = fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    error: dict[str, Any] = {
        "type": fault.type
        or _TYPES.get(fault.status, "api_error" if is_ours else "invalid_request_error"),
        "message": fault.message or responses.get(fault.status, "Overloaded"),
    }
    if fault.error_code is not None:
        error["details"] = {"error_code": fault.error_code}
    return {"type": "error", "error": error, "request_id": request_id}


def error_response(fault: Fault, request_id: str) -> HttpResponse:
    """Return the error response that ``fault`` describes."""
    kind, body = "application/json", dump(envelope(fault, request_id))
    if fault.body is not None:
        kind, body = "text/plain", fault.body.encode()
    headers = {"content-type": kind, **fault_headers(fault)}
    end: Literal["drop", "whole"] = "drop" if fault.kind == "drop" else "whole"
    return HttpResponse(fault.status, headers, body, delay=fault.delay, end=end)


def stop_early(parts: Sequence[Part], fault: Fault, request_id: str) -> tuple[Part, ...]:
    """Return the parts of a stream that still arrive, with its error event if it ends in one."""
    texts = [number for number, part in enumerate(parts) if TEXT_DELTA in part.data]
    # Before the first text, or behind as many of them; the two events that end it never arrive.
    ends = [*texts[:1], *(number + 1 for number in texts), len(parts) - 2]
    arriving = list(parts[: ends[min(fault.after, len(ends) - 1)]])
    if fault.kind == "error_event":
        arriving.append(Part(event("error", envelope(fault, request_id))))
    return tuple(arriving)


def fault_headers(fault: Fault) -> dict[str, str]:
    """Return the headers of a fault that tell the client whether and when to retry."""
    # Every recorded 400 had this header, although clients do not retry those anyway.
    headers = {"x-should-retry": "false"} if fault.status == HTTPStatus.BAD_REQUEST else {}
    headers |= {name.lower(): value for name, value in fault.headers.items()}
    if fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    if fault.should_retry is not None:
        headers["x-should-retry"] = str(fault.should_retry).lower()
    return headers
