"""What a responder hands to the emulator, and what the emulator keeps of a request."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "ApiError",
    "EmulatedReply",
    "End",
    "Fault",
    "FaultKind",
    "HttpRequest",
    "HttpResponse",
    "Part",
    "ReceivedRequest",
    "Responder",
    "Said",
    "ToolUse",
    "dump",
    "error_response",
    "json_response",
]


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool that the emulated model makes."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmulatedReply:
    """What the emulated model says to one request.

    Tokens are estimated from ``text``, ``thinking`` and ``tools``. A reply longer than the
    request's ``max_tokens`` is cut there, and ends at the first of its ``stop_sequences``.
    """

    text: str = ""
    stop_reason: str = "end_turn"
    """``end_turn`` becomes ``tool_use`` by itself where ``tools`` are given."""
    thinking: str | None = None
    """Where ``None``, a model whose thinking is on thinks nothing that costs tokens."""
    output_tokens: int | None = None
    """Reported as given; the text is then not cut at ``max_tokens``."""
    delay: float = 0.0
    """Seconds before the first byte of the response."""
    chunks: int | Sequence[str] | None = None
    """Text deltas of a stream: characters per delta, or the very pieces; uneven by default."""
    chunk_delay: float = 0.0
    """Seconds between two events of a stream."""
    tools: Sequence[ToolUse | Mapping[str, Any]] = ()
    """Calls of tools; a mapping with ``name`` and ``input`` stands for a ``ToolUse``."""
    category: str | None = None
    """Of a refusal: ``cyber``, ``bio``, … or ``None``."""
    explanation: str | None = None
    """Of a refusal, in words."""
    check_schema: bool = True
    """Whether text that breaks the request's ``output_config.format`` is a fault of the script."""

    def __post_init__(self) -> None:
        """Check the pieces and the tool uses.

        Raises:
            ValueError: ``chunks`` is below 1, or pieces that are empty or do not make the text.
            TypeError: one of ``tools`` is no tool use.
        """
        _ = self.tool_uses
        if isinstance(self.chunks, int):
            if self.chunks < 1:
                raise ValueError(f"a delta holds at least 1 character, not {self.chunks}")
        elif self.chunks is not None and (
            not all(self.chunks) or "".join(self.chunks) != self.text
        ):
            raise ValueError("the pieces must not be empty and must join to the text")

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """``tools``, each of them a ``ToolUse``."""
        return tuple(map(_tool_use, self.tools))


def _tool_use(said: object) -> ToolUse:
    if isinstance(said, ToolUse):
        return said
    if not isinstance(said, Mapping) or "name" not in said or set(said) - {"name", "input"}:
        raise TypeError(f"a tool use has a name and an input, not {said!r}")
    return ToolUse(**said)


FaultKind = Literal["status", "drop", "cut", "unfinished", "error_event"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong instead of a reply.

    - ``status``: an error response with ``status``.
    - ``drop``: the connection is closed before the first byte.
    - ``cut``: the connection is closed in the middle of ``reply``.
    - ``unfinished``: a stream that ends politely, but before its message does; not streamed, it
      is ``cut``.
    - ``error_event``: a stream that ends in ``event: error``; not streamed, it is ``status``.
    """

    status: int = 529
    kind: FaultKind = "status"
    type: str | None = None
    """``error.type``; follows from ``status`` where not given."""
    message: str | None = None
    error_code: str | None = None
    """``error.details.error_code``, as in ``enforced_spend_limit_reached``."""
    retry_after: float | str | None = None
    """Header ``retry-after``: seconds, or an HTTP date as text."""
    retry_after_ms: float | None = None
    should_retry: bool | None = None
    """Header ``x-should-retry``."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """Sent as plain text instead of the error envelope, as proxies do."""
    delay: float = 0.0
    """Seconds before the first byte, or before the connection is dropped."""
    reply: EmulatedReply = field(default_factory=lambda: EmulatedReply("An answer cut short."))
    """What had begun when the stream was cut."""
    after: int = 1
    """Text deltas of ``reply`` that still arrive."""

    def __post_init__(self) -> None:
        """Check what would break the response itself.

        Raises:
            ValueError: ``status`` is no error, or a header cannot be sent.
        """
        if not 400 <= self.status <= 599:  # noqa: PLR2004 - the errors of HTTP
            raise ValueError(f"a fault has a status from 400 to 599, not {self.status}")
        for name, value in (*self.headers.items(), ("retry-after", str(self.retry_after))):
            if not _HEADER.fullmatch(f"{name}:{value}"):
                raise ValueError(f"the header {name!r} cannot be sent with the value {value!r}")


Said = str | EmulatedReply | Fault
Responder = Callable[..., Said]
"""Called as ``responder(body, headers=headers)``, or ``responder(body)`` if it takes no more."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it arrived, without the key that came with it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name; credentials and cookies are left out."""
    body: Any
    """The JSON body, ``None`` where there is none or it is no JSON."""


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
