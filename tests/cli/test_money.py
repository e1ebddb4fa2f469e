"""What commands say of money: the sum of their requests, each at the price of its own length."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from many_operations import FIELDS_PER_PAGE, write_many_operations

from pytest_regen.turns.values import dollars

TIERED = "claude-haiku-5-5"
"""Its tokens cost five times as much from 100,000 tokens of prompt on."""


@pytest.fixture
def many(here: Path) -> Path:
    """A description with so many pages that all prompts together are longer than that."""
    write_many_operations(here / "many.json", 8)
    return Path("many.json")


def generate(many: Path, *words: str) -> Any:
    """Return what asking for all of it says."""
    pages = ("--fields-per-page", FIELDS_PER_PAGE)
    return command("generate", many, "--all", "--model", TIERED, *pages, *words)


def first_tier(plain: int, out: int, read: int = 0, written: int = 0) -> Decimal:
    """Return what tokens cost in requests of at most 100,000 tokens."""
    shares = plain * Decimal("0.1"), out * Decimal("0.5"), read * Decimal("0.01")
    return (sum(shares) + written * Decimal("0.125")) / 1_000_000


def test_a_plan_adds_up_what_each_request_costs(many: Path) -> None:
    """None of them is as long as all are together; half of it as a batch."""
    estimate = generate(many, "--dry-run", "--json").json["estimate"]

    told = Decimal(estimate["cost_usd"])
    assert estimate["input_tokens"] > 100_000
    # Less, since the system prompt is read from the cache.
    assert told < first_tier(estimate["input_tokens"], estimate["output_tokens"])
    assert told > first_tier(0, estimate["output_tokens"], estimate["input_tokens"])
    assert abs(Decimal(estimate["batch_cost_usd"]) * 2 - told) <= Decimal("0.0001")


@pytest.mark.usefixtures("api")
def test_a_run_adds_up_what_each_request_cost(many: Path) -> None:
    """In words, of all and of each store, and to the hundredth of a cent as JSON."""
    ran = generate(many, "--jobs", "4", "--json")

    tokens = re.search(
        r"spent +\d+ calls, (\S+) tokens in, (\S+) tokens out, (\S+) tokens read from cache, "
        r"(\S+) tokens written to cache, about (\S+)\n",
        ran.err,
    )
    assert tokens is not None, ran.err
    plain, out, read, written = (int(count.replace(",", "")) for count in tokens.groups()[:4])
    cost = first_tier(plain, out, read, written)
    assert plain + read + written > 100_000
    assert (ran.json["cost_usd"], tokens[5]) == (f"{cost:.4f}", dollars(cost))
