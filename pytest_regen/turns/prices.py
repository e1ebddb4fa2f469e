"""What a turn costs, from the price list of genai-prices; nothing is fetched."""

from decimal import Decimal

from pytest_regen.turns.values import Usage

__all__ = ["cost_of", "describe_usage"]


def cost_of(usage: Usage, model: str) -> Decimal | None:
    """Return the list price of ``usage`` in US dollars.

    ``None`` for a model without a price, and where genai-prices (extra ``openapi``) is not there.
    The list ships with genai-prices and is never updated over the network, so the same turn
    costs the same on every machine with the same lock file.
    """
    try:
        import genai_prices  # noqa: PLC0415 - 0.2 s, and most runs print no price
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
        return genai_prices.calc_price(counted, model, provider_id="anthropic").total_price
    except LookupError:
        return None


def describe_usage(usage: Usage, model: str) -> str:
    """Return one line such as ``1,204 in, 310 out, 5,000 cached, $0.0052``."""
    parts = [f"{usage.input_tokens or 0:,} in", f"{usage.output_tokens or 0:,} out"]
    if usage.cache_read_tokens:
        parts.append(f"{usage.cache_read_tokens:,} cached")
    if usage.cache_write_tokens:
        parts.append(f"{usage.cache_write_tokens:,} written to the cache")
    cost = cost_of(usage, model) if model else None
    if cost is not None:
        parts.append(f"${cost:.4f}")
    return ", ".join(parts)
