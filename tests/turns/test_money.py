"""What turns cost: each request is priced by itself, whatever it is added to."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from batch_work import KEY, emulator, provider
from chat_service import Said, chat_service
from turn_values import turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import TransportError
from pytest_regen.settings import Price
from pytest_regen.turns import AnthropicProvider, OpenAIProvider, Reply, TurnRequest, Usage, cost_of
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


def test_a_sum_is_that_of_its_requests(api: Emulator) -> None:
    """Two prompts of the first tier are no prompt of the second one, in threads and loops."""
    tally = Tally()
    exchange = TurnExchange(anthropic(api), log=tally.add)

    exchange.send(turn(LONG, model=TIERED))
    asyncio.run(exchange.asend(turn(LONG, model=TIERED)))

    assert (tally.usage.input_tokens or 0) > 100_000
    assert spent(tally.usage) == flat(tally.usage)


def test_what_broke_off_is_a_request_of_its_own() -> None:
    """A stream that was asked for again is paid twice, each time at the price of its length."""
    said: list[Any] = [Fault(kind="cut", reply=EmulatedReply("Half a reply.")), "Whole."]
    with Emulator(lambda _: said.pop(0)) as api:
        reply = TurnExchange(anthropic(api)).send(turn(LONG, model=TIERED, max_tokens=30_000))

    assert (reply.usage.input_tokens or 0) > 100_000
    assert spent(reply.usage) == flat(reply.usage)


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
