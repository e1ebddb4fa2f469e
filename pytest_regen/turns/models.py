"""Facts about models: how they differ, what they cache, and what a turn with one costs.

From the vendor's public documentation as of November 2026, for the client and the emulator alike.
Prices are those of genai-prices; nothing is fetched.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Literal

from pytest_regen.turns.values import Usage

if TYPE_CHECKING:
    from pytest_regen.settings import Price

Prices = Callable[[str], "Price | None"]
"""Returns the price of a model that a project names; it comes before that of the list."""

ModelLine = Literal["haiku", "sonnet", "opus", "fable", "mythos"]

_EPOCH = "1970-01-01T00:00:00Z"
_LOW_TO_HIGH = ("high", "low", "medium")
_WITH_MAX = ("high", "low", "max", "medium")
_WITH_XHIGH = ("high", "low", "max", "medium", "xhigh")


@dataclass(frozen=True, slots=True)
class Model:
    """One model and the rules that depend on it."""

    line: ModelLine
    version: tuple[int, int]
    created_at: str = _EPOCH
    """The epoch, where no date is published."""
    min_cacheable: int = 512
    """Fewest tokens of a prefix that is cached."""
    max_input: int = 1_000_000
    max_output: int = 128_000
    thinks_by_default: bool = False
    thinking_optional: bool = True
    """Whether ``thinking: {"type": "disabled"}`` is accepted."""
    forces_tools: bool = True
    """Whether ``tool_choice`` may be ``any`` or ``tool``."""
    binds_thinking: bool = False
    """Whether a thinking block is tied to the messages before it."""
    deprecated: bool = False

    @property
    def alias(self) -> str:
        """The name without a date."""
        return "-".join(("claude", self.line, *map(str, self.version))).removesuffix("-0")

    @property
    def id(self) -> str:
        """The name; until 4.5 with the date."""
        date = self.created_at.partition("T")[0].replace("-", "")
        return f"{self.alias}-{date}" if self.version < (4, 6) else self.alias

    @property
    def display_name(self) -> str:
        """The name for people."""
        return f"Claude {self.line.title()} {self.version[0]}.{self.version[1]}".removesuffix(".0")

    @property
    def is_modern(self) -> bool:
        """4.7 and later: denser tokenizer, adaptive thinking only, no sampling knobs."""
        return self.version >= (4, 7)

    @property
    def takes_prefill(self) -> bool:
        """Whether a conversation may end in an assistant message."""
        return self.version < (4, 6)

    @property
    def has_adaptive_thinking(self) -> bool:
        """Whether ``thinking: {"type": "adaptive"}`` is accepted."""
        return self.version >= (4, 6)

    @property
    def efforts(self) -> tuple[str, ...]:
        """Accepted values of ``output_config.effort``, in the order of the error message."""
        if self.is_modern:
            return _WITH_XHIGH
        if self.version == (4, 6):
            return _WITH_MAX
        return _LOW_TO_HIGH if self.line == "opus" else ()

    @property
    def inference_geo(self) -> str:
        """What usage reports where the request names no region."""
        return "global" if self.version >= (4, 6) else "not_available"


def _thinking(line: ModelLine, minor: int, created_at: str = _EPOCH) -> Model:
    return Model(
        line,
        (5, minor),
        created_at,
        thinks_by_default=True,
        thinking_optional=False,
        forces_tools=minor == 0,
        binds_thinking=minor > 0,
    )


MODELS: tuple[Model, ...] = (
    _thinking("fable", 2, "2026-11-09T00:00:00Z"),
    _thinking("mythos", 2, "2026-11-09T00:00:00Z"),
    _thinking("fable", 1, "2026-10-21T00:00:00Z"),
    _thinking("mythos", 1, "2026-10-21T00:00:00Z"),
    _thinking("opus", 5, "2026-10-07T00:00:00Z"),
    replace(_thinking("sonnet", 5, "2026-10-07T00:00:00Z"), thinking_optional=True),
    Model("haiku", (5, 5), "2026-10-07T00:00:00Z"),
    _thinking("fable", 0),
    _thinking("mythos", 0),
    Model("opus", (5, 0)),
    Model("sonnet", (5, 0), min_cacheable=1024),
    Model("opus", (4, 8), min_cacheable=1024),
    Model("opus", (4, 7), min_cacheable=2048),
    Model("opus", (4, 6), min_cacheable=4096),
    Model("sonnet", (4, 6), min_cacheable=1024),
    Model("opus", (4, 5), "2025-11-01T00:00:00Z", 4096, 200_000, 64_000),
    Model("haiku", (4, 5), "2025-10-01T00:00:00Z", 4096, 200_000, 64_000),
    Model("sonnet", (4, 5), "2025-09-29T00:00:00Z", 1024, 200_000, 64_000, deprecated=True),
)
"""Newest first, as the API lists them."""

_BY_NAME = {name: model for model in MODELS for name in (model.id, model.alias)}


def find_model(name: str) -> Model | None:
    """Return the model of that id or alias, ``None`` where there is none."""
    return _BY_NAME.get(name)


def min_cacheable_tokens(model: str) -> int | None:
    """Return the fewest tokens of a prefix that ``model`` caches, ``None`` where unknown."""
    facts = find_model(model)
    return facts.min_cacheable if facts else None


_DENSER = 1.43
"""Tokens that models from 4.7 on make of what is estimated as one: 0.41 of a character, as recorded
traffic has it."""


def tokens_for(estimate: int, model: str) -> int:
    """Return about how many tokens a model makes of a text of that many estimated tokens.

    Args:
        estimate: as of ``estimate_tokens``, which knows no model.
        model: its id or alias; one of the API that is not known is taken to be a newer one.
    """
    facts = find_model(model)
    is_modern = facts.is_modern if facts else model.startswith("claude-")
    return round(estimate * _DENSER) if is_modern else estimate


_PRICED_AS = {
    "bedrock": "aws",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
}
"""What genai-prices calls the services that LiteLLM calls otherwise."""

BATCH_SHARE = Decimal("0.5")
"""What a turn in a batch costs beside one that is answered at once."""


def cost_of(
    usage: Usage, model: str, provider: str | None = None, prices: Prices | None = None
) -> Decimal | None:
    """Return the price of one request in US dollars, not of a sum: long prompts cost more.

    Args:
        usage: its tokens.
        model: who was asked.
        provider: ``openai``, or ``litellm:`` and a service; ``None`` for the Messages API.
        prices: those of the project.

    ``None`` for a model without a price, and where genai-prices (extra ``openapi``) is not there.
    The list ships with genai-prices and is never updated over the network, so the same turn
    costs the same on every machine with the same lock file.
    """
    if not usage.counts:
        return None  # The provider does not count.
    if prices and (price := prices(model)):
        return price.cost(usage)
    service = (provider or "anthropic").removeprefix("litellm:")
    if service == provider != "openai":
        return None  # Of what others take no list says anything.
    try:
        import genai_prices
    except ModuleNotFoundError:
        return None

    written = usage.cache_write_tokens or 0
    read = usage.cache_read_tokens or 0
    counted = genai_prices.Usage(
        # There, input is all that went in; the API counts what the cache had no part in.
        input_tokens=(usage.input_tokens or 0) + read + written,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=usage.cache_write_1h_tokens or 0,
    )
    try:
        model = model.removeprefix(f"{service}/")
        provider_id = _PRICED_AS.get(service, service)
        return genai_prices.calc_price(counted, model, provider_id=provider_id).total_price
    except LookupError:
        return None


def describe_usage(usage: Usage, model: str) -> str:
    """Return one line such as ``1,204 in, 310 out, 5,000 cached, $0.0052``."""
    parts = [f"{usage.input_tokens or 0:,} in", f"{usage.output_tokens or 0:,} out"]
    if usage.cache_read_tokens:
        parts.append(f"{usage.cache_read_tokens:,} cached")
    if usage.cache_write_tokens:
        parts.append(f"{usage.cache_write_tokens:,} written to the cache")
    cost = usage.priced(partial(cost_of, model=model), model).cost if model else usage.cost
    if cost and cost.json:
        parts.append(f"${cost.json}")
    return ", ".join(parts)
