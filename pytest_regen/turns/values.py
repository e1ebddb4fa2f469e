"""A turn with a model as values: one request and its reply.

Standard library only: a replayed turn must not pay for pydantic or an SDK.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

from pytest_regen.text import plural

_BYTES_PER_TOKEN = 3.5
"""Prose has about four bytes per token; JSON and code have fewer. The estimate errs high."""

Role = Literal["user", "assistant"]
CacheTtl = Literal["5m", "1h"]
Block = Mapping[str, Any]
"""A content block as an API has it: text, thinking, a call of a tool."""


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
    blocks: tuple[Block, ...] = ()
    """Sent in place of the text where there are any: those of a reply, as they came."""


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


def size_of(request: TurnRequest) -> int:
    """Return the tokens of ``request``, estimated."""
    contents = (str(m.blocks) if m.blocks else m.content for m in request.messages)
    return sum(map(estimate_tokens, (request.system, *contents)))


_LEAST_SHOWN = Decimal("0.0001")


def dollars(cost: Decimal) -> str:
    """Return an amount as people read it: ``$1,240``, ``$0.19``, ``$0.0042``.

    Two digits that count of less than ten cents; whole dollars from a hundred on.
    """
    if cost >= 100:
        return f"${cost:,.0f}"
    if not cost or cost >= Decimal("0.095"):
        return f"${cost:.2f}"
    return f"${max(cost, _LEAST_SHOWN):.{1 - max(cost, _LEAST_SHOWN).adjusted()}f}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What requests cost, each priced by itself: a token of a long prompt may cost more."""

    usd: Decimal | None = None
    """US dollars; ``None`` where nothing was paid, or no price is known."""
    unpriced: Counter[str] = field(default_factory=Counter)
    """Requests that the sum lacks, because their price is not known, by model."""

    def __add__(self, other: "Cost") -> "Cost":
        """Return the sum."""
        return Cost(_plus(self.usd, other.usd), self.unpriced + other.unpriced)

    def __sub__(self, other: "Cost") -> "Cost":
        """Return what came after ``other``; nothing where nothing was paid since."""
        usd = (self.usd or Decimal(0)) - (other.usd or Decimal(0))
        return Cost(usd or None, self.unpriced - other.unpriced)

    def __str__(self) -> str:
        return "" if self.usd is None else f"about {dollars(self.usd)}{self.missing}"

    @property
    def missing(self) -> str:
        """What the sum lacks, in words."""
        lacks = (f"{plural(n, 'call')} of {model}" for model, n in sorted(self.unpriced.items()))
        return "".join(f", without {calls}" for calls in lacks)

    @property
    def json(self) -> str | None:
        """The sum as JSON has it, as text; ``None`` where it lacks anything."""
        return None if self.usd is None or self.unpriced else f"{self.usd:.4f}"


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
    cost: Cost | None = field(default=None, compare=False, repr=False, kw_only=True)
    """What it cost; ``None`` before its requests are priced."""
    requests: tuple["Usage", ...] = field(default=(), compare=False, repr=False, kw_only=True)
    """Those that it is the sum of, until they are priced."""

    @property
    def counts(self) -> dict[str, int]:
        """The counts that are known, by name."""
        counts = ((name, getattr(self, name)) for name in TOKENS)
        return {name: count for name, count in counts if count is not None}

    @property
    def cache_write_tokens(self) -> int | None:
        """Tokens written to the cache, whatever their lifetime."""
        return _plus(self.cache_write_5m_tokens, self.cache_write_1h_tokens)

    @property
    def total_tokens(self) -> int:
        """Every token that passed through the model; what a budget counts."""
        return sum(self.counts.values())

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum, field by field; unknown plus known is known."""
        counts = (_plus(getattr(self, name), getattr(other, name)) for name in TOKENS)
        cost = _plus(self.cost, other.cost)
        # None beside a cost, because they would be priced a second time.
        requests = () if cost else (*self._unpriced, *other._unpriced)
        return Usage(*counts, cost=cost, requests=requests)

    @property
    def _unpriced(self) -> tuple["Usage", ...]:
        return self.requests or ((self,) if self.total_tokens else ())

    def priced(self, price: "Callable[[Usage], Decimal | None]", model: str) -> "Usage":
        """Return the same with its cost: each request is priced by itself, none of them twice.

        Args:
            price: returns what one request costs in US dollars; ``None`` where that is not known.
            model: that was asked, for those without a price.
        """
        if self.cost is not None:
            return self
        cost = Cost()
        for usage in self.requests or (self,):
            usd = price(usage)
            cost += Cost(usd, Counter({model: 1} if usd is None else {}))
        return replace(self, cost=cost, requests=())


TOKENS: Final = tuple(count.name for count in fields(Usage) if count.compare)
"""The counts of a ``Usage``, in the order of its fields."""

_N = TypeVar("_N", int, Decimal, Cost)


def _plus(left: _N | None, right: _N | None) -> _N | None:
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
    refusal: str = ""
    """Why the model declined, where the API says so: a category, an explanation."""
    blocks: tuple[Block, ...] = field(default=(), repr=False)
    """All content, in order and as it came, where it is more than text: thinking, tool calls."""

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
    """Return who answers, as ``module:name``; ``None`` for the Messages API, live or replayed."""
    # A provider of this package has an attribute reference; any other is named by its class.
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
