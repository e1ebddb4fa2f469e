"""What a responder hands to the emulator, and what the emulator keeps of a request."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")

__all__ = [
    "EmulatedReply",
    "Fault",
    "FaultKind",
    "ReceivedRequest",
    "Responder",
    "Said",
    "ToolUse",
]


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
