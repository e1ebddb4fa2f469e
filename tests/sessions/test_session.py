"""One conversation: turns are transactions, limits hold, the state can be carried away."""

import asyncio
import threading
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import (
    BudgetError,
    RefusedError,
    RegenError,
    ReplyFormatError,
    TransportError,
    UsageError,
)
from pytest_regen.sessions import Exchange, GeneratorSession, SessionTranscript
from pytest_regen.turns import (
    AnthropicProvider,
    Budget,
    Message,
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


def session(
    provider: Provider, system: str = "You count.", **settings: Any
) -> GeneratorSession[Answer]:
    return GeneratorSession(system, Answer, provider=provider, **settings)


def said(number: int) -> str:
    return f'{{"n": {number}}}'


def lost() -> TransportError:
    return TransportError("the line is dead", hint="try again")


def test_a_turn_enters_the_history_as_a_pair() -> None:
    """The hint of the type stands in the first message only; a system prompt never changes."""
    provider = ScriptedProvider([said(1), said(2)])
    talk = session(provider)

    assert [talk.ask("One?"), talk.ask("Two?")] == [Answer(n=1), Answer(n=2)]
    assert [message.role for message in talk.history] == ["user", "assistant"] * 2
    assert talk.history[1].content == said(1)
    assert talk.turn_count == 2
    first, second = (request.messages for request in provider.requests)
    assert '"properties"' in first[0].content
    assert second[-1].content == "Two?"
    assert {request.system for request in provider.requests} == {"You count."}
    with pytest.raises(UsageError, match="empty"):
        talk.ask("  \n")


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
    assert len(provider.requests[-1].messages) == 3
    assert [report.committed for report in talk.reports] == [True, False, True]


def test_a_cut_reply_is_continued_within_the_turn() -> None:
    provider = ScriptedProvider([Reply('{"n": 1', "max_tokens"), "2}"])
    talk = session(provider)

    assert talk.ask("Twelve?") == Answer(n=12)
    assert talk.history[-1].content == '{"n": 12}'
    assert provider.requests[1].messages[-1].content == CONTINUE
    assert [exchange.purpose for exchange in talk.transcript] == ["ask", "continuation"]


@pytest.mark.parametrize("nothing", [None, "", []], ids=repr)
@pytest.mark.parametrize("problems", ["it is odd", ["it is odd"]], ids=type)
def test_a_check_says_one_problem_or_several(problems: Any, nothing: Any) -> None:
    provider = ScriptedProvider([said(1), said(2)])
    session(provider).ask("Even?", check=lambda one: problems if one.n % 2 else nothing)

    told = provider.requests[1].messages[-1].content
    assert told.startswith("The reply cannot be used:\n- it is odd\n\n")


def test_a_check_that_returns_a_verdict_is_refused() -> None:
    """Whether True is good or bad, nobody knows; the error says what to return."""
    talk = session(ScriptedProvider([said(1)]))

    with pytest.raises(UsageError, match=r"check= returned True(?s:.*)list of problems"):
        talk.ask("One?", check=lambda _: True)  # type: ignore[arg-type,return-value]

    assert talk.turn_count == 0


def test_tokens_are_limited() -> None:
    """By a limit of its own, whose error names the option that raises it."""
    provider = ScriptedProvider([Reply("no", usage=Usage(900, 90)), said(1)])
    talk = session(provider, token_budget=1_100)

    with pytest.raises(BudgetError, match=r"budget of 1,100 (?s:.*)raise token_budget"):
        talk.ask("One?")

    assert len(provider.requests) == 1
    assert talk.turn_count == 0


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


def failure_of(talk: GeneratorSession[Answer]) -> type[Exception] | None:
    try:
        talk.ask("How many?")
    except RegenError as error:
        return type(error)
    return None


def test_limits_that_allow_nothing_are_refused() -> None:
    for name in ("max_turns", "max_tokens", "max_repairs", "token_budget"):
        limits: dict[str, Any] = {name: -1}
        with pytest.raises(UsageError, match=f"{name} is -1"):
            session(ScriptedProvider([]), **limits)


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


@pytest.mark.parametrize("asynchronous", [False, True])
def test_steps_are_told(*, asynchronous: bool) -> None:
    """In either form."""
    told: list[str] = []
    provider = ScriptedProvider(["no", Reply('{"n": 1', "max_tokens"), "}"])
    talk = session(provider, on_progress=told.append)

    answer = asyncio.run(talk.aask("One?")) if asynchronous else talk.ask("One?")

    assert (answer.n, talk.turn_count) == (1, 1)
    assert told == [
        "Repairing the reply (1/2)...",
        "The reply was cut; asking for its rest (1/3)...",
    ]


def test_a_watcher_that_raises_ends_no_turn() -> None:
    """It is warned of: what was paid must not be lost for a line of progress."""

    def watch(line: str) -> None:
        raise BrokenPipeError(line)

    provider = ScriptedProvider(["no", said(1)])
    talk = session(provider, on_progress=watch)

    with pytest.warns(RuntimeWarning, match=r"on_progress raised BrokenPipeError.*Repairing"):
        assert talk.ask("One?") == Answer(n=1)


def test_what_the_shared_budget_gave_for_a_refused_call_is_given_back() -> None:
    """The session's own budget refuses it; the others may spend what it had taken."""
    shared = Budget(100_000)
    provider = ScriptedProvider([said(1)])
    talk = session(provider, "x" * 9_000, token_budget=500, shared_budget=shared)

    for _ in range(100):
        with pytest.raises(BudgetError, match="budget of 500"):
            talk.ask("One?")

    assert (shared.spent, len(provider.requests)) == (0, 0)
    assert shared.reserve(99_000) == 99_000


class Stuck(ScriptedProvider):
    """Does not answer in an event loop."""

    async def asend(self, request: TurnRequest) -> Reply:
        """Wait for a minute."""
        await asyncio.sleep(60)
        return self.send(request)


async def impatient(talk: GeneratorSession[Answer]) -> None:
    """Ask, and do not wait for the answer."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(talk.aask("One?"), 0.01)


def test_a_cancelled_turn_is_counted_with_what_was_sent() -> None:
    """It leaves the session as it was; its request is in transcript, report and both budgets."""
    budget = Budget(100_000)
    talk = session(Stuck([said(1)]), system="You count. " * 50, shared_budget=budget)

    asyncio.run(impatient(talk))

    (exchange,), (report,) = talk.transcript, talk.reports
    spent = talk.usage.input_tokens
    assert (talk.turn_count, talk.history) == (0, ())
    assert (exchange.purpose, exchange.reply) == ("ask", None)
    assert "not waited for" in exchange.failure
    assert (report.calls, report.usage, report.committed) == (1, talk.usage, False)
    assert report.failure == "CancelledError"
    assert spent is not None
    assert spent == budget.spent > 100
    assert talk.ask("One?").n == 1


class Leaf(BaseModel):
    """An object in another one."""

    kind: Literal["leaf"] = "leaf"


class Tree(BaseModel):
    """What survives, in fields that are called as keywords are."""

    n: int
    type: str = ""
    items: list[Leaf] = []
    properties: list[float] = []
    words: list[str | int] = Field(default_factory=list, description="of any type")


def test_structured_output_closes_every_object() -> None:
    """The schema goes along with each request, and no object in it is open."""
    provider = ScriptedProvider(['{"n": 1}'])
    GeneratorSession("x", Tree, provider=provider, structured_output=True).ask("One?")

    schema: Any = provider.requests[0].response_schema
    objects = [schema, schema["$defs"]["Leaf"]]
    assert [one["additionalProperties"] for one in objects] == [False] * 2


class FreeForm(BaseModel):
    """A map, which would be left empty."""

    arguments: dict[str, str]


class Anything(BaseModel):
    """A field that may be an object as well."""

    name: str
    whatever: Any


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (FreeForm, "arguments is an object of free form"),
        (Anything, "whatever may be anything"),
    ],
)
def test_structured_output_refuses_what_would_not_survive(type_: Any, why: str) -> None:
    with pytest.raises(UsageError, match="structured output") as caught:
        GeneratorSession("x", type_, provider=ScriptedProvider([]), structured_output=True)

    assert why in caught.value.why


def exchange(texts: Any, *, system: str = "s", failed: bool = False) -> Exchange:
    messages = tuple(
        Message("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)
    )
    reply = None if failed else Reply("fine", usage=Usage(10, 1, 0, 0))
    return Exchange(1, "ask", TurnRequest(system, messages, "m", 100), reply)


def reference(exchanges: list[Exchange], number: int) -> Exchange | None:
    """Return the call that ``number`` goes on from, by its definition."""
    asked = exchanges[number].request
    goes_on_from = [
        one
        for one in exchanges[:number]
        if one.reply is not None
        and one.request.system == asked.system
        and asked.messages[: len(one.request.messages)] == one.request.messages
    ]
    return max(reversed(goes_on_from), key=lambda one: len(one.request.messages), default=None)


CALLS = st.lists(
    st.builds(
        exchange,
        st.lists(st.sampled_from("ab"), max_size=4),
        system=st.sampled_from("st"),
        failed=st.booleans(),
    ),
    max_size=12,
)


@given(CALLS)
def test_a_call_goes_on_from_the_longest_answered_one_before_it(calls: list[Exchange]) -> None:
    transcript = SessionTranscript(calls)

    for number, one in enumerate(calls):
        assert transcript.before(one) is reference(calls, number)
