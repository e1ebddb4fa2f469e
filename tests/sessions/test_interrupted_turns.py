"""Turns stopped from outside: counted as far as is known, forgotten by the history."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.sessions import GeneratorSession
from pytest_regen.turns import Budget, Provider, Reply, ScriptedProvider, TurnRequest


class Answer(BaseModel):
    """What replies of these tests are to be."""

    n: int


GOOD = '{"n": 1}'


class Stuck(ScriptedProvider):
    """Does not answer in an event loop."""

    async def asend(self, request: TurnRequest) -> Reply:
        """Wait for a minute."""
        await asyncio.sleep(60)
        return self.send(request)


def session(provider: Provider, **settings: Any) -> GeneratorSession[Answer]:
    return GeneratorSession("You count. " * 50, Answer, provider=provider, **settings)


async def impatient(talk: GeneratorSession[Answer]) -> None:
    """Ask, and do not wait for the answer."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(talk.aask("One?"), 0.01)


def test_a_cancelled_turn_is_counted_with_what_was_sent() -> None:
    """It leaves the session as it was; its request is in transcript, report and both budgets."""
    budget = Budget(100_000)
    talk = session(Stuck([GOOD]), shared_budget=budget)

    asyncio.run(impatient(talk))

    (exchange,), (report,) = talk.transcript, talk.reports
    spent = talk.usage.input_tokens
    assert (talk.turn_count, talk.history) == (0, ())
    assert (exchange.purpose, exchange.reply) == ("ask", None)
    assert "not waited for" in exchange.failure
    assert (report.calls, report.usage, report.committed) == (1, talk.usage, False)
    assert spent is not None
    assert spent == budget.spent > 100
    assert talk.ask("One?").n == 1


def test_a_turn_interrupted_at_the_keyboard_is_counted() -> None:

    def interrupted(request: TurnRequest) -> str:
        if len(request.messages) == 1 and not talk.transcript:
            raise KeyboardInterrupt
        return GOOD

    talk = session(ScriptedProvider(interrupted))

    with pytest.raises(KeyboardInterrupt):
        talk.ask("One?")

    assert [one.failure for one in talk.reports] == ["KeyboardInterrupt"]
    assert (len(talk.transcript), talk.reports[0].calls) == (1, 1)
    assert (talk.usage.input_tokens or 0) > 100
    assert talk.ask("One?").n == 1
