"""Turns stopped from outside: counted as far as is known, forgotten by the history."""

import asyncio
import signal
import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel
from scenario_doubles import TOOLS, said, scenario

from pytest_regen.errors import BudgetError
from pytest_regen.sessions import GeneratorSession, ScenarioGeneratorSession
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
    """Return a session about numbers."""
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


def test_turns_cancelled_again_and_again_end_with_the_budget() -> None:
    """Each has sent a request, and a limit is a limit."""
    for limit in ({"token_budget": 3_000}, {"shared_budget": Budget(3_000)}):
        talk = session(Stuck([GOOD]), **limit)

        async def asked(talk: GeneratorSession[Answer] = talk) -> None:
            for _ in range(100):
                await impatient(talk)

        with pytest.raises(BudgetError):
            asyncio.run(asked())
        assert 1 < len(talk.transcript) < 30


def test_a_turn_interrupted_at_the_keyboard_is_counted() -> None:
    """As a cancelled one; the next turn works."""

    def interrupted(request: TurnRequest) -> str:
        if len(request.messages) == 1 and not talk.transcript:
            raise KeyboardInterrupt
        return GOOD

    talk = session(ScriptedProvider(interrupted))

    with pytest.raises(KeyboardInterrupt):
        talk.ask("One?")

    assert [one.failure for one in talk.reports] == ["KeyboardInterrupt"]
    assert (len(talk.transcript), talk.reports[0].calls) == (1, 1)
    assert talk.transcript.to_json()[0]["usage"]["input_tokens"] > 100
    assert talk.ask("One?").n == 1


BY_TOOL = {
    one.tool_name: said(
        [
            scenario(
                "/a",
                request={
                    "server_name": one.server_name,
                    "tool_name": one.tool_name,
                    "arguments": {"path": "/a"},
                },
                description=one.tool_name,
            )
        ]
    )
    for one in TOOLS
}


def tool_of(request: TurnRequest) -> str:
    """Return the tool that a request of a group of one is about."""
    asked = request.messages[0].content
    return next(name for name in BY_TOOL if f'"{name}"' in asked)


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "event loop"])
def test_groups_answered_before_an_interruption_are_not_paid_again(is_async: bool) -> None:  # noqa: FBT001 - drawn
    """Also those of the wave that was interrupted."""
    asked: list[str] = []

    def answer(request: TurnRequest) -> str:
        tool = tool_of(request)
        asked.append(tool)
        if asked.count("fetch") == 1 and tool == "fetch":
            while "write" not in asked:
                time.sleep(0.001)
            raise KeyboardInterrupt
        return BY_TOOL[tool]

    class Waiting(ScriptedProvider):
        async def asend(self, request: TurnRequest) -> Reply:
            if tool_of(request) != "fetch" or "fetch" in asked:
                return self.send(request)
            asked.append("fetch")
            await asyncio.sleep(60)
            raise AssertionError("cancelled by then")

    provider = Waiting(answer)
    talk = ScenarioGeneratorSession("x", TOOLS, provider=provider, batch_size=1)
    if is_async:
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(talk.agenerate(), 0.3))
    else:
        with pytest.raises(KeyboardInterrupt):
            talk.generate()

    assert len(talk.generate()) == 3
    assert sorted(asked) == ["fetch", "fetch", "read", "write"]
    assert [one.committed for one in talk.reports] == [False, True]


def test_a_signal_stops_what_was_not_asked_yet() -> None:
    """What is under way is not waited for and counts; what was answered is kept."""
    asked: list[str] = []

    def answer(request: TurnRequest) -> str:
        tool = tool_of(request)
        asked.append(tool)
        if tool == "write" and asked.count("write") == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.05)
        return BY_TOOL[tool]

    talk = ScenarioGeneratorSession(
        "x", TOOLS, provider=ScriptedProvider(answer), batch_size=1, parallel=1
    )
    with pytest.raises(KeyboardInterrupt):
        talk.generate()
    assert asked == ["read", "write"]
    assert ["not waited for" in one.failure for one in talk.transcript] == [False, True]

    assert len(talk.generate()) == 3
    assert asked == ["read", "write", "write", "fetch"]
