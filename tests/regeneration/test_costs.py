"""What asking is about to cost: tokens by page, a system prompt paid once, money by price list."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.regeneration.costs import AskSize, Estimate, dollars
from pytest_regen.turns import cost_of
from pytest_regen.turns.values import Usage

SONNET = "claude-sonnet-5-5"
SYSTEM = "Write the page. " * 500
SIZE = AskSize.of(SONNET, SYSTEM, 3_000, 400)


def unpriced(_usage: Usage, _model: str) -> Decimal | None:
    """Know no price."""
    return None


def test_a_system_prompt_is_paid_in_full_once() -> None:
    """Every later request reads it from the cache, as the API bills it."""
    one, ten = (Estimate([SIZE] * number).cost(cost_of) for number in (1, 10))

    assert one is not None
    assert ten is not None
    assert one * 4 < ten < one * 7
    assert Estimate([SIZE] * 10).input_tokens == 42_900


def test_a_short_system_prompt_is_paid_each_time() -> None:
    """Below the least that a model caches there is nothing to read."""
    short = AskSize.of(SONNET, "Write.", 100, 400)
    one, ten = (Estimate([short] * number).cost(cost_of) for number in (1, 10))

    assert one is not None
    assert ten == one * 10


def test_a_batch_costs_half() -> None:
    """In words and as JSON; money is text there, as in pytest's report."""
    estimate = Estimate([AskSize.of("claude-sonnet-4-5", "", 100_000, 0)])

    assert estimate.words(cost_of) == (
        "about 100,000 tokens of input and 0 of output, about $0.30, $0.15 as a batch"
    )
    assert estimate.words(cost_of, is_batch=True).endswith("of output, about $0.15 as a batch")
    told = estimate.to_json(cost_of)
    assert (told["cost_usd"], told["batch_cost_usd"]) == ("0.3000", "0.1500")


def test_without_a_price_there_are_only_tokens() -> None:
    """One model without a price is enough: a sum without it would be wrong."""
    both = Estimate([SIZE, AskSize.of("some-model", "", 10, 10)])

    assert both.words(cost_of) == "about 4,300 tokens of input and 582 of output"
    assert both.words(unpriced) == both.words(cost_of)
    assert both.to_json(cost_of)["cost_usd"] is None


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        ("0", "$0.00"),
        ("0.00000001", "$0.00010"),
        ("0.0042", "$0.0042"),
        ("0.0937", "$0.094"),
        ("0.0951", "$0.10"),
        ("1.005", "$1.00"),
        ("99.999", "$100.00"),
        ("1239.7", "$1,240"),
    ],
)
def test_dollars_are_as_long_as_they_say_something(cost: str, told: str) -> None:
    """Cents in the middle, two digits of little, whole dollars of much."""
    assert dollars(Decimal(cost)) == told


@given(st.decimals(0, 10**9, allow_nan=False))
def test_dollars_are_near_the_amount(cost: Decimal) -> None:
    """Whatever the amount is; none is told in powers of ten."""
    told = dollars(cost)

    assert "E" not in told
    assert abs(Decimal(told[1:].replace(",", "")) - cost) <= max(cost / 10, Decimal("0.0001"))
