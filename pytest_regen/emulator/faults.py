"""What goes wrong on request, as a response."""

from collections.abc import Sequence

from pytest_regen.emulator.streaming import TEXT_DELTA, event
from pytest_regen.emulator.values import Fault
from pytest_regen.emulator.wire import (
    ERROR_TYPES,
    ApiError,
    HttpResponse,
    Part,
    error_response,
)

__all__ = ["dropped", "fault_error", "fault_headers", "status_fault", "stopped_early"]

_MESSAGES = {
    401: "invalid x-api-key",
    413: "Request exceeds the maximum size",
    429: "This request would exceed the rate limit of your organization.",
    500: "Internal server error",
    529: "Overloaded",
}


def status_fault(fault: Fault, request_id: str) -> HttpResponse:
    """Return the error response that ``fault`` describes."""
    if fault.body is not None:
        headers = {"content-type": "text/plain", **fault_headers(fault)}
        return HttpResponse(fault.status, headers, fault.body.encode(), delay=fault.delay)
    response = error_response(fault_error(fault), request_id)
    return HttpResponse(response.status, response.headers, response.body, delay=fault.delay)


def dropped(fault: Fault) -> HttpResponse:
    """Return the response that never begins."""
    return HttpResponse(fault.status, delay=fault.delay, end="drop")


def stopped_early(parts: Sequence[Part], fault: Fault, request_id: str) -> tuple[Part, ...]:
    """Return the parts that still arrive of a stream, and its error event if it ends in one."""
    kept: list[Part] = []
    said = 0
    for part in parts:
        is_text = TEXT_DELTA in part.data
        if is_text and said == fault.after:
            break
        if part.data.startswith(b"event: content_block_stop") and said == fault.after > 0:
            break
        if part.data.startswith(b"event: message_delta"):
            break
        said += is_text
        kept.append(part)
    if fault.kind == "error_event":
        kept.append(Part(event("error", fault_error(fault).envelope(request_id))))
    return tuple(kept)


def fault_headers(fault: Fault) -> dict[str, str]:
    """Return the headers by which a fault tells the client what to do next."""
    headers = {str(name).lower(): str(value) for name, value in fault.headers.items()}
    if fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    if fault.should_retry is not None:
        headers["x-should-retry"] = str(fault.should_retry).lower()
    return headers


def fault_error(fault: Fault) -> ApiError:
    """Return the error that ``fault`` describes."""
    return ApiError(
        fault.message or _MESSAGES.get(fault.status, "An emulated fault."),
        status=fault.status,
        type_=fault.type or ERROR_TYPES.get(fault.status),
        headers=fault_headers(fault),
        error_code=fault.error_code,
    )
