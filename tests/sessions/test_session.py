"""One conversation: turns are transactions, limits hold, the state can be carried away."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import (
    BudgetError,
    RefusedError,
    RegenError,
    ReplyFormatError,
    TransportError,
    UsageError,
)
from pytest_regen.sessions import GeneratorSession
from pytest_regen.turns import (
    AnthropicProvider,
    Budget,
    CallableProvider,
    Provider,
    Reply,
    ScriptedProvider,
    TurnRequest,
    Usage,
)
from pytest_regen.turns.exchange import CONTINUE


class Answer(BaseModel):
    """What replies of these tests are to be."""

    n: int


def session(provider: Provider, **settings: Any) -> GeneratorSession[Answer]:
    return GeneratorSession("You count.", Answer, provider=provider, **settings)


def said(number: int) -> str:
    return f'{{"n": {number}}}'


def lost() -> TransportError:
    return TransportError("the line is dead", hint="try again")


def test_a_turn_enters_the_history_as_a_pair() -> None:
    provider = ScriptedProvider([said(1), said(2)])
    talk = session(provider)

    assert [talk.ask("One?"), talk.ask("Two?")] == [Answer(n=1), Answer(n=2)]
    assert [message.role for message in talk.history] == ["user", "assistant"] * 2
    assert talk.history[1].content == said(1)
    assert talk.turn_count == 2


def test_the_hint_stands_in_the_first_message_only() -> None:
    """It is in the history from then on, and a system prompt never changes."""
    provider = ScriptedProvider([said(1), said(2)])
    talk = session(provider)
    talk.ask("One?")
    talk.ask("Two?")

    first, second = (request.messages for request in provider.requests)
    assert '"properties"' in first[0].content
    assert second[-1].content == "Two?"
    assert {request.system for request in provider.requests} == {"You count."}


def test_breakpoints_stand_on_the_system_prompt_and_the_last_message() -> None:
    provider = ScriptedProvider([said(1), "no", said(2)])
    talk = session(provider, cache="1h")
    talk.ask("One?")
    talk.ask("Two?")

    for request in provider.requests:
        marks = [message.cache for message in request.messages]
        assert request.cache == "1h"
        assert marks == [*[None] * (len(marks) - 1), "1h"]


def test_a_repair_leaves_no_trace_in_the_history() -> None:
    """The good answer follows the question; the bad one is in the transcript only."""
    talk = session(ScriptedProvider(["nonsense", said(1)]))

    talk.ask("One?")

    assert [message.content for message in talk.history][1:] == [said(1)]
    assert [exchange.purpose for exchange in talk.transcript] == ["ask", "repair"]
    assert talk.reports[-1].repairs == 1


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (["no"] * 2, ReplyFormatError),
        ([Reply("", "refusal")], RefusedError),
        ([lost()], TransportError),
        ([Reply('{"n"', "max_tokens")] * 4, ReplyFormatError),
    ],
    ids=["prose", "refusal", "transport", "cut for ever"],
)
def test_a_failed_turn_leaves_the_session_as_it_was(bad: list[Any], error: type) -> None:
    """History and turn count stay, the next turn works; only the tokens are gone."""
    provider = ScriptedProvider([said(1), *bad, said(2)])
    talk = session(provider)
    talk.ask("One?")
    before = talk.history

    with pytest.raises(error):
        talk.ask("Two?")

    assert (talk.history, talk.turn_count) == (before, 1)
    assert talk.ask("Two?") == Answer(n=2)
    assert [message.role for message in provider.requests[-1].messages] == [
        "user",
        "assistant",
        "user",
    ]
    assert [report.committed for report in talk.reports] == [True, False, True]


def test_a_cut_reply_is_continued_within_the_turn() -> None:
    provider = ScriptedProvider([Reply('{"n": 1', "max_tokens"), "2}"])
    talk = session(provider)

    assert talk.ask("Twelve?") == Answer(n=12)
    assert talk.history[-1].content == '{"n": 12}'
    assert provider.requests[1].messages[-1].content == CONTINUE
    assert [exchange.purpose for exchange in talk.transcript] == ["ask", "continuation"]


@pytest.mark.parametrize("found", ["it is odd", iter(["it is odd"])], ids=type)
def test_a_check_says_one_problem_or_several(found: Any) -> None:
    provider = ScriptedProvider([said(1), said(2)])
    session(provider).ask("Even?", check=lambda one: found if one.n % 2 else None)

    told = provider.requests[1].messages[-1].content
    assert told.startswith("The reply cannot be used:\n- it is odd\n\n")


@pytest.mark.parametrize("nothing", [None, "", []], ids=repr)
def test_a_check_that_finds_nothing_lets_the_value_pass(nothing: Any) -> None:
    assert session(ScriptedProvider([said(1)])).ask("One?", check=lambda _: nothing).n == 1


@pytest.mark.parametrize("verdict", [True, False], ids=repr)
def test_a_check_that_returns_a_verdict_is_refused(verdict: Any) -> None:
    """Whether True is good or bad, nobody knows; the error says what to return."""
    talk = session(ScriptedProvider([said(1)]))

    with pytest.raises(UsageError, match=f"check= returned {verdict}") as caught:
        talk.ask("One?", check=lambda _: verdict)

    assert "list of problems" in caught.value.hint
    assert talk.turn_count == 0


def test_tokens_are_limited() -> None:
    bad = Reply("no", usage=Usage(900, 90))
    provider = ScriptedProvider([bad, said(1)])
    talk = session(provider, token_budget=1_100)

    with pytest.raises(BudgetError, match="1,100 tokens"):
        talk.ask("One?")

    assert len(provider.requests) == 1
    assert talk.turn_count == 0


def test_a_provider_that_counts_nothing_uses_up_the_budget() -> None:
    talk = session(CallableProvider(lambda _: said(1)), token_budget=5_000)

    failures = [failure_of(talk) for _ in range(20)]

    assert failures[-1] is BudgetError
    assert 1 < failures.count(None) == talk.turn_count < 10


def test_replies_that_break_off_use_up_the_budget() -> None:
    """The API was asked, read the prompt and wrote: twelve such turns do not cost nothing."""
    fault = Fault(kind="cut", reply=EmulatedReply("So it goes on. " * 200), after=20)
    with Emulator(lambda _: fault) as emulator:
        provider = AnthropicProvider(api_key="k", base_url=emulator.base_url, max_retries=0)
        talk = session(provider, token_budget=2_500, max_tokens=30_000)
        failures = [failure_of(talk) for _ in range(12)]
        requests = len(emulator.requests)
        provider.close()

    assert failures[0] is TransportError
    assert failures[-1] is BudgetError
    assert requests == failures.count(TransportError) < 12
    assert 1_500 < talk.usage.total_tokens <= 2_500
    assert sum(one.usage.total_tokens for one in talk.transcript if one.usage) == (
        talk.usage.total_tokens
    )


def failure_of(talk: GeneratorSession[Answer]) -> type[Exception] | None:
    try:
        talk.ask("How many?")
    except RegenError as error:
        return type(error)
    return None


def test_a_shared_budget_is_spent_from() -> None:
    budget = Budget(10_000)
    provider = ScriptedProvider([Reply(said(1), usage=Usage(100, 10)), lost()])
    talk = session(provider, shared_budget=budget)
    talk.ask("One?")

    with pytest.raises(TransportError):
        talk.ask("Two?")

    assert budget.spent == 110


@pytest.mark.parametrize(
    "wrong",
    [{"max_turns": 0}, {"max_tokens": 0}, {"max_repairs": -1}, {"token_budget": -1}],
    ids=str,
)
def test_limits_that_allow_nothing_are_refused(wrong: dict[str, int]) -> None:
    ((name, value),) = wrong.items()

    with pytest.raises(UsageError, match=f"{name} is {value}"):
        session(ScriptedProvider([]), **wrong)


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(UsageError, match="empty"):
        session(ScriptedProvider([])).ask("  \n")


def test_two_turns_at_once_are_refused() -> None:
    started, go = threading.Event(), threading.Event()

    def slow(_: TurnRequest) -> str:
        started.set()
        go.wait(5)
        return said(1)

    talk = session(ScriptedProvider(slow))
    thread = threading.Thread(target=talk.ask, args=("One?",))
    thread.start()
    started.wait(5)
    with pytest.raises(UsageError, match="under way"):
        talk.ask("Two?")
    go.set()
    thread.join()

    assert talk.turn_count == 1


def test_the_asynchronous_twin_does_the_same() -> None:
    provider = ScriptedProvider(["no", said(1), lost(), said(2)])
    talk = session(provider)

    async def conversation() -> list[int]:
        first = await talk.aask("One?")
        with pytest.raises(TransportError):
            await talk.aask("Two?")
        return [first.n, (await talk.aask("Two?")).n]

    assert asyncio.run(conversation()) == [1, 2]
    assert talk.turn_count == 2


def test_steps_are_told() -> None:
    told: list[str] = []
    talk = session(
        ScriptedProvider(["no", Reply('{"n": 1', "max_tokens"), "}"]), on_progress=told.append
    )

    talk.ask("One?")

    assert told == [
        "Repairing the reply (1/2)...",
        "The reply was cut; asking for its rest (1/3)...",
    ]


def test_a_watcher_that_raises_ends_no_turn() -> None:
    """It is warned of: what was paid must not be lost for a line of progress."""

    def watch(line: str) -> None:
        raise BrokenPipeError(line)

    provider = ScriptedProvider(["no", said(1)])
    talk = GeneratorSession("x", Answer, provider=provider, on_progress=watch)

    with pytest.warns(RuntimeWarning, match=r"on_progress raised BrokenPipeError.*Repairing"):
        assert talk.ask("One?") == Answer(n=1)


def test_what_the_shared_budget_gave_for_a_refused_call_is_given_back() -> None:
    """The session's own budget refuses it; the others may spend what it had taken."""
    shared = Budget(100_000)
    provider = ScriptedProvider([said(1)])
    talk = GeneratorSession(
        "x" * 9_000, Answer, provider=provider, token_budget=500, shared_budget=shared
    )

    for _ in range(100):
        with pytest.raises(BudgetError, match="the session's budget of 500"):
            talk.ask("One?")

    assert (shared.spent, len(provider.requests)) == (0, 0)
    assert shared.reserve(99_000) == 99_000
