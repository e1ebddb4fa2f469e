"""What a fault sends: error responses, streams that end early, headers about retries."""

from collections.abc import Sequence

from pytest_regen.emulator.messages import TEXT_DELTA, event
from pytest_regen.emulator.values import ApiError, Fault, HttpResponse, Part, error_response

_MESSAGES = {
    401: "invalid x-api-key",
    413: "Request exceeds the maximum size",
    429: "This request would exceed the rate limit of your organization.",
    500: "Internal server error",
    529: "Overloaded",
}


def fault_error(fault: Fault) -> ApiError:
    """Return the error that ``fault`` describes."""
    return ApiError(
        fault.message or _MESSAGES.get(fault.status, "An emulated fault."),
        status=fault.status,
        type_=fault.type,
        headers=fault_headers(fault),
        error_code=fault.error_code,
    )


def status_fault(fault: Fault, request_id: str) -> HttpResponse:
    """Return the error response that ``fault`` describes."""
    if fault.body is None:
        return error_response(fault_error(fault), request_id, delay=fault.delay)
    headers = {"content-type": "text/plain", **fault_headers(fault)}
    return HttpResponse(fault.status, headers, fault.body.encode(), delay=fault.delay)


def stop_early(parts: Sequence[Part], fault: Fault, request_id: str) -> tuple[Part, ...]:
    """Return the parts of a stream that still arrive, with its error event if it ends in one."""
    kept: list[Part] = []
    deltas = 0
    for part in parts:
        is_text = TEXT_DELTA in part.data
        if is_text and deltas == fault.after:
            break
        if part.data.startswith(b"event: content_block_stop") and deltas == fault.after > 0:
            break
        # However many deltas may arrive, the message never ends.
        if part.data.startswith(b"event: message_delta"):
            break
        deltas += is_text
        kept.append(part)
    if fault.kind == "error_event":
        kept.append(Part(event("error", fault_error(fault).envelope(request_id))))
    return tuple(kept)


def fault_headers(fault: Fault) -> dict[str, str]:
    """Return the headers of a fault that tell the client whether and when to retry."""
    headers = {str(name).lower(): str(value) for name, value in fault.headers.items()}
    if fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    if fault.should_retry is not None:
        headers["x-should-retry"] = str(fault.should_retry).lower()
    return headers
