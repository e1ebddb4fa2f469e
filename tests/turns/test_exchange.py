"""The turn exchange: what belongs to a call, in order, whoever makes it and however it ends."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tables import each

from pytest_regen.errors import (
    BudgetError,
    MissingKeyError,
    TransportError,
)
from pytest_regen.turns import (
    Budget,
    Message,
    Reply,
    ScriptedProvider,
    TurnRequest,
    Usage,
)
from pytest_regen.turns.exchange import CallRecord, TurnExchange

ASKED = TurnRequest("Be brief.", (Message("user", "Well?"),), "claude-sonnet-5-5", 100)
SPENT = Usage(input_tokens=20, output_tokens=10)


def answered(request: TurnRequest, exchange: TurnExchange, *, is_async: bool) -> Reply:
    return asyncio.run(exchange.asend(request)) if is_async else exchange.send(request)


class Diary:
    """Notes what happens, as budget, hook, cassette and provider."""

    reference = "diary"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def reserve(self, estimate: int) -> int:
        """Allow everything."""
        self.lines.append("reserve")
        return estimate

    def settle(self, _: int, usage: Usage | None) -> None:
        """Note what was used."""
        self.lines.append(f"settle {usage.total_tokens if usage else usage}")

    @contextmanager
    def in_use(self, *, http_clients: bool) -> Iterator[None]:
        """Record nothing."""
        self.lines.append(f"cassette, clients patched: {http_clients}")
        yield
        self.lines.append("cassette away")

    def delivered(self, miss: BaseException, /) -> None:
        """Note a miss."""
        self.lines.append(f"miss {miss}")

    def send(self, _: TurnRequest) -> Reply:
        """Agree."""
        self.lines.append("send")
        return Reply("Yes.", usage=SPENT)


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "event loop"])
def test_the_order_of_a_call(*, is_async: bool) -> None:
    """Money first: nothing that a hook raises can lose what was paid."""
    diary = Diary()
    exchange = TurnExchange(
        diary,
        budgets=[diary],
        before=lambda _: diary.lines.append("before"),
        after=lambda _, reply: diary.lines.append(f"after {reply.text}"),
        cassette=diary,
        log=lambda call: diary.lines.append(f"log {call.usage == SPENT}"),
    )

    answered(ASKED, exchange, is_async=is_async)

    assert diary.lines == [
        "reserve",
        "before",
        "cassette, clients patched: True",
        "send",
        "cassette away",
        "settle 30",
        "log True",
        "after Yes.",
    ]


def test_a_budget_that_refuses_gives_back_what_the_others_had_reserved() -> None:
    shared, own = Budget(10_000), Budget(5)
    provider = ScriptedProvider(["Yes."])

    with pytest.raises(BudgetError, match="budget of 5"):
        TurnExchange(provider, budgets=[shared, own]).send(ASKED)

    assert (shared.spent, own.spent, provider.requests) == (0, 0, [])


@each("stop", ["hook", "key", "provider"])
def test_only_what_went_out_is_paid(stop: str) -> None:
    """A hook that forbids a call and a missing key cost nothing, Ctrl-C during it an estimate."""
    budget, calls = Budget(10_000), list[CallRecord]()
    raised: dict[str, BaseException] = {
        "hook": LookupError("not now"),
        "key": MissingKeyError("no key", hint="export one"),
        "provider": KeyboardInterrupt(),
    }

    def forbid(_: TurnRequest) -> None:
        if stop == "hook":
            raise raised[stop]

    exchange = TurnExchange(Broken(raised[stop]), budgets=[budget], before=forbid, log=calls.append)
    with pytest.raises(type(raised[stop])):
        exchange.send(ASKED)

    assert bool(budget.spent) == (stop == "provider")
    paid = [call for call in calls if call.usage]
    assert [(call.reply, call.error) for call in paid] == [(None, None)] * (stop == "provider")
    assert all("not waited for" in call.failure for call in paid)


class Broken:
    """A provider of somebody else's that raises or returns whatever it is given."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def send(self, _: TurnRequest) -> Any:
        """Raise it, or return it."""
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (KeyError("choices"), r"the provider Broken raised KeyError[\s\S]*choices"),
        ({"text": "x"}, "the provider Broken returned dict"),
        (Reply(None), "a reply whose text is None"),  # type: ignore[arg-type]  # the mistake
    ],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "event loop"])
def test_what_goes_wrong_in_a_foreign_provider_is_a_transport_error(
    what: object, words: str, *, is_async: bool
) -> None:
    """Whoever calls has one error to catch, and the original is its cause."""
    with pytest.raises(TransportError, match=words) as caught:
        answered(ASKED, TurnExchange(Broken(what)), is_async=is_async)

    assert caught.value.__cause__ is (what if isinstance(what, Exception) else None)


def test_a_reply_is_expected_to_be_as_long_as_the_one_before() -> None:
    """A budget that covers the request and the last reply covers the next call."""
    wide = TurnRequest("", (Message("user", "?"),), "m", 50_000)
    exchange = TurnExchange(
        ScriptedProvider([Reply("a", usage=Usage(1, 4_000)), "b"]), budgets=[Budget(4_500)]
    )
    exchange.send(wide)

    with pytest.raises(BudgetError, match=r"4,001 are spent, about 4,001 more"):
        exchange.send(wide)
