"""What turns are about to cost, before anything is sent: pages, tokens, money.

Tokens are estimated from the prompts, money from list prices. Every figure is shown with "about".
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Self

from pytest_regen.regeneration.places import Place, V
from pytest_regen.regeneration.values import Ask, TurnSettings
from pytest_regen.turns.models import BATCH_SHARE, min_cacheable_tokens, tokens_for
from pytest_regen.turns.values import Cost, Usage, dollars, estimate_tokens, size_of

PriceOf = Callable[[Usage, str], Decimal | None]
"""Returns what one request to a model costs in US dollars; ``None`` where no price is known."""


# Tokens of the fence around the code of a reply.
_FENCE: Final = 10


@dataclass(frozen=True, slots=True)
class AskSize:
    """About how large one request and its reply are, as the model that is asked counts tokens."""

    model: str
    system: int
    """Tells system prompts apart: one is read from the cache after the first request that has it.
    Thousands of sizes are kept, so not the prompt itself."""
    system_tokens: int
    input_tokens: int
    """Of system prompt and message together."""
    output_tokens: int

    @classmethod
    def of(cls, ask: Ask) -> Self:
        """Return about how large a request is, and its reply.

        The reply is as large as what the language itself writes, where it can: enum values take a
        tenth of what fields do, and languages differ by two.
        """
        request, reply = ask.request, ask.output_tokens
        if ask.template is not None:
            # Where it cannot, the prompt may be of an older document.
            with suppress(Exception):
                reply = estimate_tokens(ask.template()) + _FENCE
        estimates = estimate_tokens(request.system), size_of(request), reply
        tokens = (tokens_for(estimate, request.model) for estimate in estimates)
        return cls(request.model, hash(request.system), *tokens)


def asks_for(
    place: Place[V], view: V, pages: Iterable[tuple[str, int]], settings: TurnSettings
) -> Iterator[Ask]:
    """Yield the requests for pages of units, nothing of them corrected."""
    by_name: dict[str, dict[int, tuple[()]]] = {}
    for name, page in pages:
        by_name.setdefault(name, {})[page] = ()
    for name, numbers in by_name.items():
        yield from place.asks(view, name, numbers, settings)


class Estimate:
    """What several requests take, each priced by itself and added up one by one."""

    def __init__(self, price_of: PriceOf, sizes: Iterable[AskSize] = ()) -> None:
        """Add up some requests.

        Args:
            price_of: returns what one costs.
            sizes: of the first of them.
        """
        self._price_of = price_of
        self.pages = 0
        """Pages of stores, and units of files, to be asked for."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost = Cost()
        """About what all of it costs, answered at once."""
        self._cached: set[tuple[str, int]] = set()
        for size in sizes:
            self.add(size)

    def add(self, size: AskSize) -> None:
        """Add one request."""
        self.pages += 1
        self.input_tokens += size.input_tokens
        self.output_tokens += size.output_tokens
        usd = self._price_of(self._usage_of(size), size.model)
        # Models without a price are counted, because the sum has to say what it lacks.
        self.cost += Cost(usd, Counter([size.model] if usd is None else ()))

    def _usage_of(self, size: AskSize) -> Usage:
        """Return what a request is billed as: its system prompt is paid in full only once."""
        prefix, least = size.system_tokens, min_cacheable_tokens(size.model)
        # Paid in full each time, because the API caches no prompt that is shorter.
        if least is None or prefix < least:
            return Usage(input_tokens=size.input_tokens, output_tokens=size.output_tokens)
        key = size.model, size.system
        is_read = key in self._cached
        # Written once, because the API reads it from its cache from the second request on.
        self._cached.add(key)
        return Usage(
            input_tokens=size.input_tokens - prefix,
            output_tokens=size.output_tokens,
            cache_read_tokens=prefix if is_read else None,
            cache_write_5m_tokens=None if is_read else prefix,
        )

    def words(self, *, is_batch: bool = False) -> str:
        """Return the estimate in words; money only where a price is known.

        ``about 5,200 tokens of input and 1,300 of output, about $0.04, $0.02 as a batch``.
        """
        tokens = f"about {self.input_tokens:,} tokens of input and {self.output_tokens:,} of output"
        money = self.money(is_batch=is_batch)
        return f"{tokens}, {money}" if money else tokens

    def money(self, *, is_batch: bool = False) -> str:
        """Return the money in words, ``about $0.04, $0.02 as a batch``; empty if unknown."""
        cost = self.cost
        if cost.usd is None:
            return ""
        batch = f"{dollars(cost.usd * BATCH_SHARE)} as a batch"
        price = batch if is_batch else f"{dollars(cost.usd)}, {batch}"
        return f"about {price}{cost.missing}"

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as JSON; money is text, as in pytest's report, or null."""
        cost = self.cost
        return {
            "pages": self.pages,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": cost.json,
            "batch_cost_usd": replace(cost, usd=cost.usd and cost.usd * BATCH_SHARE).json,
        }
