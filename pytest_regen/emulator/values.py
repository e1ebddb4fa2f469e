"""Replies, faults and received requests as values, and the error that a refusal is."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

_ERRORS = range(400, 600)

FORBID = {"extra": "forbid"}
"""Read from a file, a value has no keys that it has no field for."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of the emulated model."""

    __pydantic_config__: ClassVar = FORBID
    name: str
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmulatedReply:
    """The emulated model's reply to one request.

    Tokens are estimated from ``text``, ``thinking`` and ``tools``. A reply is cut at the request's
    ``max_tokens`` and at the first of its ``stop_sequences``.
    """

    __pydantic_config__: ClassVar = FORBID
    text: str = ""
    stop_reason: str = "end_turn"
    """``end_turn`` becomes ``tool_use`` if ``tools`` are given."""
    thinking: str | None = None
    """With ``None`` a model whose thinking is on thinks without tokens."""
    output_tokens: int | None = None
    """Reported as given; the text is then not cut at ``max_tokens``."""
    delay: float = 0.0
    """Seconds before the first byte of the response."""
    chunks: int | Sequence[str] | None = None
    """Text deltas of a stream: characters per delta, or the exact pieces; uneven by default."""
    chunk_delay: float = 0.0
    """Seconds between two events of a stream."""
    tools: Sequence[ToolUse | Mapping[str, Any]] = ()
    """Tool calls; a mapping with ``name`` and ``input`` becomes a ``ToolUse``."""
    category: str | None = None
    """For refusals: ``cyber``, ``bio``, … or ``None``."""
    explanation: str | None = None
    """For refusals: the explanation."""
    check_schema: bool = True
    """Whether text that breaks the request's ``output_config.format`` is an error of the script."""

    def __post_init__(self) -> None:
        """Check the pieces and the tool uses.

        Raises:
            ValueError: ``chunks`` is below 1, or has pieces that do not add up to the text, or an
                item of ``tools`` is no tool use.
        """
        # Made once already here, because a mistake is told where it stands, not at a request.
        _ = self.tool_uses
        if isinstance(self.chunks, int) and self.chunks < 1:
            raise ValueError(f"a delta holds at least 1 character, not {self.chunks}")
        pieces = None if isinstance(self.chunks, int) else self.chunks
        if pieces is not None and "".join(pieces) != self.text:
            raise ValueError("the pieces must join to the text")

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """``tools``, each as a ``ToolUse``."""
        try:
            return tuple(t if isinstance(t, ToolUse) else ToolUse(**t) for t in self.tools)
        except TypeError as error:
            raise ValueError(f"a tool use has a name and an input: {error}") from error


FaultKind = Literal["status", "drop", "cut", "unfinished", "error_event", "expire"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure instead of a reply.

    - ``status``: an error response with ``status``.
    - ``drop``: the connection is closed before the first byte.
    - ``cut``: the connection is closed in the middle of ``reply``.
    - ``unfinished``: a stream that ends cleanly, but before its message does; without streaming,
      ``cut``.
    - ``error_event``: a stream that ends in ``event: error``; without streaming, ``status``.
    - ``expire``: in a batch, a request that was not processed in 24 hours; elsewhere, ``status``.

    In a batch, a fault of another kind is a result of type ``errored``.
    """

    __pydantic_config__: ClassVar = FORBID
    status: int = 529
    kind: FaultKind = "status"
    type: str | None = None
    """``error.type``; by default derived from ``status``."""
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
    """The reply that was being sent when the stream was cut."""
    after: int = 1
    """How many text deltas of ``reply`` still arrive."""

    def __post_init__(self) -> None:
        """Check the status.

        Raises:
            ValueError: it is not that of an error.
        """
        if self.status not in _ERRORS:
            raise ValueError(f"a fault has a status from 400 to 599, not {self.status}")


@dataclass(frozen=True, slots=True)
class BatchStep:
    """What happens to a call that creates a batch, and to its batch."""

    __pydantic_config__: ClassVar = FORBID
    seconds: float | None = None
    """How long the batch takes; ``None``: as long as the emulator's ``batch_seconds`` say."""
    fault: Fault | None = None
    """``status``: the call is refused, and there is no batch. Any other kind: there is one, and
    the answer that says so never arrives, or only half of it."""
    unlisted: float = 0.0
    """Seconds for which no other call sees the batch, as if the API were still busy creating it."""
    times: int = 1
    """How many calls in a row."""


ResponderResult = str | EmulatedReply | Fault
Responder = Callable[..., ResponderResult]
"""Called as ``responder(body, headers=headers)``, or ``responder(body)`` if it takes no headers."""


@dataclass(slots=True)
class ReceivedRequest:
    """A request as it arrived, without the key that came with it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name; credentials and cookies are left out."""
    body: Any = None
    """The JSON body; ``None`` if there is none or it is not JSON."""
    at: float = field(default_factory=time.time, compare=False)
    """When it had arrived whole, in seconds since the epoch, by the system's clock."""
    notes: list[str] = field(default_factory=list, compare=False)
    """What was let through unchecked, because the SDK that is installed has no type for it."""
    query: Mapping[str, str] = field(default_factory=dict)
    id: str = field(default="", compare=False)
    """The ``request-id`` of its response."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a streamed body."""

    data: bytes
    delay: float = 0.0
    """Seconds to wait before it is sent."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response: ``parts`` if it is streamed, else ``body``."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: Sequence[Part] | None = None
    delay: float = 0.0
    """Seconds before the first byte."""
    end: Literal["whole", "cut", "drop"] = "whole"
    """``cut``: the connection ends inside the body; ``drop``: before the status line."""
    on_start: Callable[[], None] | None = None
    """Called when the first byte is about to be sent."""


class ApiError(Exception):
    """The API refuses a request, as if a script had said so.

    Args:
        problem: the whole fault, or its message.
        status: HTTP status.
        fields: others of the fault.
    """

    def __init__(self, problem: str | Fault, status: int = 400, **fields: Any) -> None:
        super().__init__(problem)
        if isinstance(problem, str):
            problem = Fault(status, message=problem, **fields)
        self.fault = problem


def dump(value: object) -> bytes:
    """Return ``value`` as compact JSON in UTF-8; lone surrogates are escaped."""
    # As UTF-8 like the API; a lone surrogate has no bytes there, and its replacement is an escape.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")
