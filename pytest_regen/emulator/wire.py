"""Requests and responses as the core sees them: no socket, no thread."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "ApiError",
    "End",
    "HttpRequest",
    "HttpResponse",
    "Part",
    "dump",
    "error_response",
    "json_response",
]

End = Literal["whole", "cut", "drop"]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    414: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class ApiError(Exception):
    """The API answers with an error envelope.

    Args:
        message: ``error.message``.
        status: HTTP status.
        type_: ``error.type``; follows from ``status`` where not given.
        headers: further response headers.
        error_code: ``error.details.error_code``.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type_: str | None = None,
        headers: Mapping[str, str] | None = None,
        error_code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type_ or ERROR_TYPES.get(status, "api_error")
        self.headers = dict(headers or {})
        self.error_code = error_code

    def envelope(self, request_id: str) -> dict[str, Any]:
        """Return the error body, which names the request it answers."""
        error: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.error_code is not None:
            error["details"] = {"error_code": self.error_code}
        return {"type": "error", "error": error, "request_id": request_id}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request: path without query, headers by lower-case name, body as bytes."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    id: str = "req_emu"

    @property
    def host(self) -> str:
        """Host and port by which the client knows this server."""
        return self.headers.get("host", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a streamed body."""

    data: bytes
    delay: float = 0.0
    """Seconds to wait before it is sent."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response: ``parts`` where it is streamed, else ``body``."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: Sequence[Part] | None = None
    delay: float = 0.0
    """Seconds before the first byte."""
    end: End = "whole"
    """``cut``: the connection ends inside the body; ``drop``: before the status line."""
    on_start: Callable[[], None] | None = None
    """Called when the first byte is about to be sent."""


def dump(value: object) -> bytes:
    """Return ``value`` as compact JSON in UTF-8; what UTF-8 cannot say is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def json_response(value: object, *, status: int = 200) -> HttpResponse:
    """Return a response whose body is ``value`` as JSON."""
    return HttpResponse(status, {"content-type": "application/json"}, dump(value))


def error_response(error: ApiError, request_id: str) -> HttpResponse:
    """Return the response that says ``error``."""
    # Sent with every 400 that was recorded, though clients do not retry one anyway.
    hopeless = {"x-should-retry": "false"} if error.status == 400 else {}  # noqa: PLR2004 - bad request
    headers = {"content-type": "application/json", **hopeless, **error.headers}
    return HttpResponse(error.status, headers, dump(error.envelope(request_id)))
