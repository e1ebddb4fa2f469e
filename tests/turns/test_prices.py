"""Prices come from a maintained list, offline."""

from decimal import Decimal

import pytest

from pytest_regen.settings import Price
from pytest_regen.turns import Usage, cost_of, describe_usage

MODEL = "claude-sonnet-5-5"


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(input_tokens=1_000_000), "2"),
        (Usage(output_tokens=1_000_000), "10"),
        (Usage(cache_read_tokens=1_000_000), "0.1"),
        (Usage(cache_write_5m_tokens=1_000_000), "2.5"),
        (Usage(cache_write_1h_tokens=1_000_000), "4"),
        (Usage(1_000, 100, 5_000, 200, 300), "0.0052"),
        (Usage(0, 0), "0"),
    ],
)
def test_each_kind_of_token_has_its_own_price(usage: Usage, dollars: str) -> None:
    """Fresh, cached and written input are priced apart, writes by their lifetime."""
    assert cost_of(usage, MODEL) == Decimal(dollars)


def test_an_unknown_model_has_no_price() -> None:
    assert cost_of(Usage(1), "made-up-model") is None
    assert cost_of(Usage(), MODEL) is None


def test_a_line_about_usage_leaves_out_what_is_nothing() -> None:
    assert describe_usage(Usage(1204, 310), "") == "1,204 in, 310 out"
    assert describe_usage(Usage(1204, 310, 5000), MODEL) == (
        "1,204 in, 310 out, 5,000 cached, $0.0060"
    )


def test_what_was_not_used_costs_nothing() -> None:
    """Neither what is zero nor what was not told; each kind of token has its price."""
    price = Price(Decimal(1), Decimal(10), Decimal(100), Decimal(1000))

    assert price.cost(Usage()) == 0
    assert price.cost(Usage(input_tokens=1_000_000, output_tokens=100_000)) == 2
