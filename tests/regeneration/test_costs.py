"""What asking is about to cost: tokens by page, a system prompt paid once, money by price list."""

from decimal import Decimal

from pytest_regen.regeneration.costs import AskSize, Estimate
from pytest_regen.regeneration.values import Ask
from pytest_regen.turns import cost_of
from pytest_regen.turns.values import Message, TurnRequest, Usage

SONNET = "claude-sonnet-5-5"
SYSTEM = "Write the page. " * 500


def size_of(model: str, system: str, message: str, output_tokens: int) -> AskSize:
    """Return the size of a request."""
    request = TurnRequest(system, (Message("user", message),), model, 8_000)
    return AskSize.of(Ask("a", 1, request, output_tokens, "a", "".join))


SIZE = size_of(SONNET, SYSTEM, "x" * 2_499, 400)


def unpriced(_usage: Usage, _model: str) -> Decimal | None:
    """Know no price."""
    return None


def test_a_system_prompt_is_paid_in_full_once() -> None:
    """Every later request reads it from the cache, as the API bills it."""
    one, ten = (Estimate(cost_of, [SIZE] * number).cost.usd for number in (1, 10))

    assert one is not None
    assert ten is not None
    assert one * 4 < ten < one * 7
    assert Estimate(cost_of, [SIZE] * 10).input_tokens == 42_900


def test_a_batch_costs_half() -> None:
    """In words and as JSON; money is text there, as in pytest's report."""
    estimate = Estimate(cost_of, [size_of("claude-sonnet-4-5", "", "x" * 350_000, 0)])

    assert estimate.words() == (
        "about 100,000 tokens of input and 0 of output, about $0.30, $0.15 as a batch"
    )
    assert estimate.words(is_batch=True).endswith("of output, about $0.15 as a batch")
    told = estimate.to_json()
    assert (told["cost_usd"], told["batch_cost_usd"]) == ("0.3000", "0.1500")


def test_a_sum_says_what_it_lacks() -> None:
    """Of a model without a price the calls are named; a program gets no sum at all."""
    sizes = [SIZE, size_of("some-model", "", "x" * 35, 10)]
    both, none = Estimate(cost_of, sizes), Estimate(unpriced, sizes)

    assert both.words() == (
        "about 4,300 tokens of input and 582 of output, "
        "about $0.016, $0.0080 as a batch, without 1 call of some-model"
    )
    assert none.words() == "about 4,300 tokens of input and 582 of output"
    assert both.to_json()["cost_usd"] is None
    assert none.to_json()["batch_cost_usd"] is None
