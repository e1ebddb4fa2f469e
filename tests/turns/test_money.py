"""What turns cost: each request is priced by itself, whatever it is added to."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from batch_work import KEY, emulator, provider
from chat_service import Said, chat_service
from tables import each
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import TransportError
from pytest_regen.settings import Price
from pytest_regen.turns import (
    AnthropicProvider,
    OpenAIProvider,
    Reply,
    TurnRequest,
    Usage,
    cost_of,
    describe_usage,
)
from pytest_regen.turns.exchange import Tally, TurnExchange
from pytest_regen.turns.values import Cost

TIERED = "claude-haiku-5-5"
"""Its tokens cost five times as much from 100,000 tokens of prompt on."""
LONG = "word " * 26_000
"""More than half of that."""


def flat(usage: Usage) -> Decimal:
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    return (Decimal("0.1") * read + Decimal("0.5") * written) / 1_000_000


def spent(usage: Usage) -> Decimal:
    assert usage.cost is not None
    assert usage.cost.usd is not None
    return usage.cost.usd


@pytest.fixture
def api() -> Iterator[Emulator]:
    with Emulator(lambda _: EmulatedReply('{"n": 1}')) as running:
        yield running


def anthropic(api: Emulator) -> AnthropicProvider:
    return AnthropicProvider(TIERED, api_key=KEY, base_url=api.base_url)


def test_a_sum_is_that_of_its_requests() -> None:
    """Prompts of the first tier are together none of the second one, also where one broke off.

    A stream that was asked for again is paid twice, each time at the price of its length.
    """
    said: list[Any] = [Fault(kind="cut", reply=EmulatedReply("Half a reply.")), "Whole.", "Whole."]
    tally = Tally()
    with Emulator(lambda _: said.pop(0)) as api:
        exchange = TurnExchange(anthropic(api), log=tally.add)
        reply = exchange.send(turn(LONG, model=TIERED, max_tokens=30_000))
        asyncio.run(exchange.asend(turn(LONG, model=TIERED)))

    assert (reply.usage.input_tokens or 0) > 100_000
    assert spent(reply.usage) == flat(reply.usage)
    assert spent(tally.usage) == flat(tally.usage)


def test_a_failure_is_priced_as_well() -> None:
    """By the prices of the exchange that sent it; those around it only add up."""

    class Lost:
        def send(self, request: TurnRequest) -> Reply:
            error = TransportError("the line is dead", hint="try again")
            error.usage = Usage(1_000_000, 0)
            raise error

    tally = Tally()
    inner = TurnExchange(Lost(), prices=lambda _: Price(input=Decimal(3), output=Decimal(4)))

    with pytest.raises(TransportError):
        TurnExchange(inner, log=tally.add).send(turn())

    assert spent(tally.usage) == 3


def test_a_batch_costs_half(tmp_path: Path) -> None:
    with emulator() as emulated, provider(emulated, tmp_path) as batches:
        reply = TurnExchange(batches).send(turn())

    at_once = cost_of(reply.usage, turn().model)
    assert at_once is not None
    assert spent(reply.usage) * 2 == at_once


def test_what_is_played_is_free(api: Emulator, tmp_path: Path) -> None:
    """Recorded, it has a price; played, none, whichever client reads the recording."""
    with chat_service(Said("Yes.")) as service:
        openai = OpenAIProvider("gpt-5", api_key=KEY, base_url=f"{service.address}/v1")
        costs = []
        for name, answers in (("a", anthropic(api)), ("o", openai)):
            for _ in range(2):
                with use_cassette(tmp_path / f"{name}.yaml", mode="once"):
                    request = turn(model="gpt-5" if name == "o" else TIERED)
                    costs.append(TurnExchange(answers).send(request).usage.cost)

    assert [bool(cost and cost.usd) for cost in costs] == [True, False] * 2
    assert costs[1] == costs[3] == Cost()


def test_prices_of_the_project_come_first(api: Emulator) -> None:
    """By the name that was asked for; without one, that of the answer."""
    dear = {TIERED: Price(input=Decimal(1_000_000), output=Decimal(0))}
    exchange = TurnExchange(anthropic(api), prices=dear.get)

    usages = [exchange.send(turn(model=name)).usage for name in (TIERED, "")]

    assert [spent(usage) for usage in usages] == [usage.input_tokens for usage in usages]


def test_what_has_no_price_is_named() -> None:
    """It is no part of the sum, and the sum no number for programs."""

    class Own:
        def send(self, request: TurnRequest) -> Reply:
            return Reply("Yes.", usage=Usage(10, 10), model="own-1")

    unknown = TurnExchange(Own()).send(turn()).usage
    known = Usage(1, 1, cost=Cost(Decimal("0.04")))

    assert str(unknown.cost) == ""
    total = known + unknown + unknown
    assert str(total.cost) == "about $0.040, without 2 calls of own-1"
    assert total.cost is not None
    assert (total.cost.json, total.counts) == (None, {"input_tokens": 21, "output_tokens": 21})


@each(
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
    assert cost_of(usage, turn().model) == Decimal(dollars)


def test_a_line_about_usage_leaves_out_what_is_nothing() -> None:
    assert describe_usage(Usage(1204, 310), "") == "1,204 in, 310 out"
    assert describe_usage(Usage(1204, 310, 5000), turn().model) == (
        "1,204 in, 310 out, 5,000 cached, $0.0060"
    )


def test_prices_are_those_of_the_service_and_unknown_ones_are_none() -> None:
    """As the list has them; a server of one's own has none, nor has what was not told."""
    usage = Usage(input_tokens=1_000_000, output_tokens=0)

    assert cost_of(usage, "gpt-4o", "openai") == cost_of(usage, "openai/gpt-4o", "litellm:openai")
    assert cost_of(usage, "gpt-4o", "openai")
    assert cost_of(usage, "gpt-4o") is None
    assert cost_of(usage, "llama3.2", "ollama") is None
    assert cost_of(Usage(), turn().model) is None


def test_a_price_of_one_s_own_is_by_kind_of_token() -> None:
    price = Price(Decimal(1), Decimal(10), Decimal(100), Decimal(1000))

    assert price.cost(Usage()) == 0
    assert price.cost(Usage(input_tokens=1_000_000, output_tokens=100_000)) == 2
