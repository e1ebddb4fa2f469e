"""A turn with a model as values: one request and its reply.

Standard library only: a replayed turn must not pay for pydantic or an SDK.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

_BYTES_PER_TOKEN = 3.5
"""Prose has about four bytes per token; JSON and code have fewer. The estimate errs high."""

Role = Literal["user", "assistant"]
CacheTtl = Literal["5m", "1h"]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens ``text`` takes; the same on every machine, without a model."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return int((size + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN) if size else 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str
    cache: CacheTtl | None = None
    """Where set, a cache breakpoint stands on this message and lives that long."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What is asked of a model."""

    system: str
    messages: tuple[Message, ...]
    model: str
    max_tokens: int
    """Upper limit of the reply, in tokens."""
    response_schema: Mapping[str, Any] | None = None
    """JSON schema the reply must satisfy, for structured output by the API."""
    cache: CacheTtl | None = None
    """Where set, a cache breakpoint stands on the system prompt and lives that long."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn, as the Messages API counts them. ``None`` where it did not say."""

    input_tokens: int | None = None
    """Input that was neither read from nor written to the prompt cache."""
    output_tokens: int | None = None
    """Output, thinking included."""
    cache_read_tokens: int | None = None
    """Input read from the prompt cache."""
    cache_write_5m_tokens: int | None = None
    """Input written to the prompt cache for five minutes."""
    cache_write_1h_tokens: int | None = None
    """Input written to the prompt cache for an hour."""

    @property
    def cache_write_tokens(self) -> int | None:
        """Tokens written to the cache, whatever their lifetime."""
        known = [
            n for n in (self.cache_write_5m_tokens, self.cache_write_1h_tokens) if n is not None
        ]
        return sum(known) if known else None

    @property
    def total_tokens(self) -> int:
        """Every token that passed through the model; what a budget counts."""
        return sum(
            n or 0
            for n in (
                self.input_tokens,
                self.output_tokens,
                self.cache_read_tokens,
                self.cache_write_tokens,
            )
        )

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum, field by field; unknown plus known is known."""
        return Usage(
            _plus(self.input_tokens, other.input_tokens),
            _plus(self.output_tokens, other.output_tokens),
            _plus(self.cache_read_tokens, other.cache_read_tokens),
            _plus(self.cache_write_5m_tokens, other.cache_write_5m_tokens),
            _plus(self.cache_write_1h_tokens, other.cache_write_1h_tokens),
        )


def _plus(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a model: its text blocks joined, thinking left out."""

    text: str
    stop_reason: str = ""
    """As the Messages API words it: ``end_turn``, ``max_tokens``, ``stop_sequence``, ``tool_use``,
    ``pause_turn``, ``refusal``, ``model_context_window_exceeded``; empty where it is not known. A
    reply whose stream was cut never becomes a ``Reply``: the provider raises ``TransportError``."""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    id: str = ""

    @property
    def is_truncated(self) -> bool:
        """Whether the reply ended because a limit was reached, not because it was finished."""
        return self.stop_reason in {"max_tokens", "model_context_window_exceeded"}

    @property
    def is_refusal(self) -> bool:
        """Whether the model declined to answer."""
        return self.stop_reason == "refusal"


@runtime_checkable
class Provider(Protocol):
    """Anything that answers a request."""

    def send(self, request: TurnRequest) -> Reply:
        """Return the model's reply.

        Raises:
            ProviderError: there is no reply, and why.
            CassetteMissError: replay was asked for and this request was never recorded.
        """
        ...


def provider_reference(provider: object) -> str | None:
    """Return who answers, as ``module:name``; ``None`` for the Messages API, live or replayed.

    A provider of this package has an attribute ``reference``; any other is named by its class.
    """
    kind = type(provider)
    if kind.__module__.partition(".")[0] == "pytest_regen":
        reference: str | None = getattr(provider, "reference", None)
        return reference
    return f"{kind.__module__}:{kind.__qualname__}"


DEFAULT_MODEL = "claude-sonnet-5-5"

DEFAULT_MAX_TOKENS = 8_192
"""Upper limit of a reply, in tokens."""

SESSION_MAX_TOKENS = 16_384
"""Upper limit of a reply in a session, whose replies are sets of things rather than one."""
