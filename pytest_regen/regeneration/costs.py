"""What turns are about to cost, before anything is sent: pages, tokens, money.

Tokens are estimated from the prompts, money from list prices. Every figure is shown with "about".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pytest_regen.documents.ir import IR
from pytest_regen.languages import find_language
from pytest_regen.prompts import estimated_input_tokens, estimated_output_tokens
from pytest_regen.prompts.values import PromptEntry, output_mode
from pytest_regen.turns.models import min_cacheable_tokens, tokens_for
from pytest_regen.turns.values import Usage, estimate_tokens

PriceOf = Callable[[Usage, str], Decimal | None]
"""Returns what usage of a model costs in US dollars; ``None`` where no price is known."""

BATCH_SHARE = Decimal("0.5")
"""What a turn in a batch costs beside one that is answered at once."""

_FENCE = 10
"""Tokens of the fence around the code of a reply."""

_LEAST_SHOWN = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class AskSize:
    """About how large one request and its reply are."""

    model: str
    """That is going to be asked."""
    system: int
    """Tells system prompts apart: one is read from the cache after the first request that has it.
    Thousands of sizes are kept, so not the prompt itself."""
    system_tokens: int
    """As estimated for any model, as are all the others."""
    input_tokens: int
    """Of system prompt and message together."""
    output_tokens: int

    @classmethod
    def of(cls, model: str, system: str, input_tokens: int, output_tokens: int) -> "AskSize":
        """Return the size of a request with this system prompt."""
        return cls(model, hash(system), estimate_tokens(system), input_tokens, output_tokens)


def page_size(entry: PromptEntry, model: str, ir: IR, profile: str) -> AskSize:
    """Return about how large the request for a page of a store is, and its reply.

    The reply is as large as the page that the language itself writes: enum values take a tenth of
    what fields do, and languages differ by two.

    Args:
        entry: the prompt of the page.
        model: that is going to be asked.
        ir: what the types were read as.
        profile: of the store.
    """
    return AskSize.of(
        model, entry.system, estimated_input_tokens(entry), _reply_tokens(entry, ir, profile)
    )


def _reply_tokens(entry: PromptEntry, ir: IR, profile: str) -> int:
    type_ = ir.type_named(entry.type_name)
    if type_ is None:
        return estimated_output_tokens(entry)
    is_enum = type_.kind == "enum"
    mode = output_mode(is_enum=is_enum, is_root=type_.is_root, page=entry.page)
    try:
        code = find_language(ir.language).write_page(type_, entry.fields, mode, profile=profile)
    except Exception:  # noqa: BLE001 - a prompt of an older document, or a language that cannot
        return estimated_output_tokens(entry)
    return estimate_tokens(code) + _FENCE


class Estimate:
    """What several requests take, added up one by one."""

    def __init__(self, sizes: Iterable[AskSize] = (), *, of: "Estimate | None" = None) -> None:
        """Add up some requests.

        Args:
            sizes: of the first of them.
            of: what this is a part of: all that is added here is added there.
        """
        self._whole = of
        self.pages = 0
        """Pages of stores, and units of files, to be asked for."""
        self.input_tokens = 0
        self.output_tokens = 0
        self._usage: dict[str, Usage] = {}
        self._cached: set[tuple[str, int]] = set()
        for size in sizes:
            self.add(size)

    def add(self, size: AskSize) -> None:
        """Add one request."""
        if self._whole is not None:
            self._whole.add(size)
        size = replace(
            size,
            input_tokens=tokens_for(size.input_tokens, size.model),
            output_tokens=tokens_for(size.output_tokens, size.model),
        )
        self.pages += 1
        self.input_tokens += size.input_tokens
        self.output_tokens += size.output_tokens
        known = self._usage.get(size.model, Usage())
        self._usage[size.model] = known + self._usage_of(size)

    def _usage_of(self, size: AskSize) -> Usage:
        """Return what a request is billed as: its system prompt is paid in full only once."""
        prefix = min(tokens_for(size.system_tokens, size.model), size.input_tokens)
        least = min_cacheable_tokens(size.model)
        if least is None or prefix < least:
            return Usage(input_tokens=size.input_tokens, output_tokens=size.output_tokens)
        key = size.model, size.system
        is_read = key in self._cached
        self._cached.add(key)
        return Usage(
            input_tokens=size.input_tokens - prefix,
            output_tokens=size.output_tokens,
            cache_read_tokens=prefix if is_read else None,
            cache_write_5m_tokens=None if is_read else prefix,
        )

    def cost(self, price_of: PriceOf) -> Decimal | None:
        """Return about what all of it costs in US dollars; ``None`` where a price is not known."""
        return spent_on(self._usage.items(), price_of)

    def words(self, price_of: PriceOf, *, is_batch: bool = False) -> str:
        """Return the estimate in words; money only where every price is known.

        ``about 5,200 tokens of input and 1,300 of output, about $0.04, $0.02 as a batch``.
        """
        tokens = f"about {self.input_tokens:,} tokens of input and {self.output_tokens:,} of output"
        money = self.money(price_of, is_batch=is_batch)
        return f"{tokens}, {money}" if money else tokens

    def sum_words(self, price_of: PriceOf, *, is_batch: bool = False) -> str:
        """Return the sum over several places in words: ``12 to ask in all, about …``."""
        return f"{self.pages:,} to ask in all, {self.words(price_of, is_batch=is_batch)}"

    def money(self, price_of: PriceOf, *, is_batch: bool = False) -> str:
        """Return the money in words, ``about $0.04, $0.02 as a batch``; empty if unknown."""
        cost = self.cost(price_of)
        if cost is None or not self.pages:
            return ""
        batch = f"{dollars(cost * BATCH_SHARE)} as a batch"
        return f"about {batch}" if is_batch else f"about {dollars(cost)}, {batch}"

    def to_json(self, price_of: PriceOf) -> dict[str, Any]:
        """Return the estimate as JSON; money is text, as in pytest's report, or null."""
        cost = self.cost(price_of)
        return {
            "pages": self.pages,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": None if cost is None else f"{cost:.4f}",
            "batch_cost_usd": None if cost is None else f"{cost * BATCH_SHARE:.4f}",
        }


def spent_on(usage: Iterable[tuple[str, Usage]], price_of: PriceOf) -> Decimal | None:
    """Return what usage by model costs in US dollars; ``None`` where a price is not known."""
    total = Decimal(0)
    for model, used in usage:
        cost = price_of(used, model)
        if cost is None:
            return None
        total += cost
    return total


def dollars(cost: Decimal) -> str:
    """Return an amount as people read it: ``$1,240``, ``$0.19``, ``$0.0042``.

    Two digits that count of less than ten cents; whole dollars from a hundred on.
    """
    if cost >= 100:
        return f"${cost:,.0f}"
    if not cost or cost >= Decimal("0.095"):
        return f"${cost:.2f}"
    return f"${max(cost, _LEAST_SHOWN):.{1 - max(cost, _LEAST_SHOWN).adjusted()}f}"
