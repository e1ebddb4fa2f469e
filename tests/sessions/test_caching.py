"""The prompt cache on the wire: the real SDK against an emulated API that counts it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from scenario_doubles import TOOLS, correction, said, scenario

from pytest_regen.emulator import EmulatedReply, Emulator
from pytest_regen.sessions import (
    Exchange,
    GeneratorSession,
    ScenarioFeedback,
    ScenarioGeneratorSession,
)
from pytest_regen.sessions.transcript import SLACK
from pytest_regen.testing import assert_cache_prefix_stable
from pytest_regen.turns import (
    AnthropicProvider,
    Message,
    Reply,
    ScriptedProvider,
    TurnRequest,
    Usage,
)

MODEL = "claude-sonnet-5-5"


class Answer(BaseModel):
    """A number and as many words as a test wants."""

    n: int
    words: str = ""


def prose(tokens: int, seed: str) -> str:
    """Return text that the emulator counts as about ``tokens``."""
    characters = tokens * 100 // 41
    return (f"{seed} of the constitution; " * (characters // 20 + 1))[:characters]


class Api:
    """An emulated API and what was said to it."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.emulator = Emulator(lambda _: self.replies.pop(0))
        self.emulator.start()
        self.provider = AnthropicProvider(base_url=self.emulator.base_url, api_key="sk-ant-x")

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The requests as they arrived."""
        return [request.body for request in self.emulator.requests]

    def close(self) -> None:
        """Close what is open."""
        self.provider.close()
        self.emulator.stop()


@pytest.fixture
def api() -> Iterator[Api]:
    """An API without replies yet."""
    served = Api()
    yield served
    served.close()


def reply(tokens: int, number: int = 1) -> str:
    return json.dumps({"n": number, "words": prose(tokens, f"reply {number}")})


def test_repairs_and_continuations_read_the_call_before_them(api: Api) -> None:
    """Within a turn requests only grow; the next turn reads what its first call wrote."""
    talk = GeneratorSession(
        prose(2_000, "article"), Answer, provider=api.provider, max_tokens=32_000
    )
    size = 3_700
    long = reply(size, 2)
    api.replies = [
        reply(size),
        prose(size, "not what was asked"),
        EmulatedReply(long[: len(long) // 2], stop_reason="max_tokens"),
        long[len(long) // 2 :],
        reply(size, 3),
    ]
    for number in range(3):
        talk.ask(f"Question {number}: {prose(300, 'feedback')}")

    exchanges = list(talk.transcript)
    assert [one.purpose for one in exchanges] == ["ask", "ask", "repair", "continuation", "ask"]
    went_on_from = [None, 0, 1, 2, 1]
    for now, origin in zip(exchanges, went_on_from, strict=True):
        if origin is not None:
            stood = exchanges[origin].input_tokens
            assert now.reply is not None
            assert stood is not None
            assert stood - SLACK <= (now.reply.usage.cache_read_tokens or 0) <= stood
    assert not any(report.cache.missed for report in talk.reports)
    assert_cache_prefix_stable(talk.transcript)
    assert_cache_prefix_stable(api.bodies[:2])


def test_a_session_without_a_cache_marks_nothing(api: Api) -> None:
    """For models and providers that have none, or calls that are made once."""
    talk = GeneratorSession(prose(2_000, "article"), Answer, provider=api.provider, cache=None)
    api.replies = [reply(10), "no", reply(10)]
    for number in range(2):
        talk.ask(f"Question {number}")

    assert not any("cache_control" in json.dumps(body) for body in api.bodies)
    assert not any(report.cache.missed for report in talk.reports)


def test_a_system_prompt_below_the_minimum_is_told(api: Api) -> None:
    talk = GeneratorSession("Short.", Answer, provider=api.provider)
    api.replies = [reply(1)]
    talk.ask("One?")

    silent = GeneratorSession("x", Answer, provider=ScriptedProvider(['{"n": 1}']))
    silent.ask("One?")
    assert str(silent.reports[0].cache) == "the provider reports no cache use"
    large = Reply('{"n": 1}', usage=Usage(3_000, 5, cache_read_tokens=0))
    refused = GeneratorSession("x", Answer, provider=ScriptedProvider([large]), model=MODEL)
    refused.ask("One?")
    assert not refused.reports[0].cache.notes
    size = talk.transcript[0].input_tokens
    note = f"nothing was cached: the request has {size} tokens, and {MODEL} caches prefixes of 512"
    assert talk.reports[0].cache.notes == (f"{note} tokens and more",)


def test_a_lapsed_cache_is_told(api: Api) -> None:
    """Five minutes after its last use a prefix is gone, and the report says what that cost."""
    patient = GeneratorSession(prose(3_000, "x"), Answer, provider=api.provider, cache="1h")
    talk = GeneratorSession(prose(3_000, "article"), Answer, provider=api.provider)
    api.replies = [reply(1), reply(1), reply(1), reply(1)]
    patient.ask("One?")
    talk.ask("One?")
    api.emulator.clock.advance(301)
    talk.ask("Two?")

    patient.ask("Two?")
    report = talk.reports[1].cache
    assert not patient.reports[1].cache.missed
    assert patient.usage.cache_write_1h_tokens
    assert report.read == 0
    assert report.missed == report.expected > 3_000
    assert report.notes[0].startswith(f"{report.missed:,} tokens were paid again")


def test_scenario_sessions_keep_their_prefix(api: Api) -> None:
    """Generate, repair an item, regenerate: one prefix.

    Requirement 1, prompt caching behavior: each turn reads what stood before it.
    """
    wrong = scenario("/x", tool="unknown")
    api.replies = [
        said([scenario("/a"), wrong]),
        said([scenario("/b")]),
        said([scenario("/a", "deny")]),
    ]
    talk = ScenarioGeneratorSession(prose(3_000, "article"), TOOLS, provider=api.provider)
    talk.generate()
    talk.regenerate(ScenarioFeedback(corrections=(correction("/a", "deny"),)))

    assert not any(report.cache.missed for report in talk.reports)
    assert len({json.dumps(body["system"]) for body in api.bodies}) == 1
    assert_cache_prefix_stable(talk.transcript)


def test_a_date_in_the_system_prompt_is_found_on_the_wire(api: Api) -> None:
    """Any client's requests can be looked at, and the first difference is shown."""
    api.replies = [reply(10), reply(10)]
    for day in ("Monday", "Tuesday"):
        api.provider.send(conversation("a", system=f"Today is {day}."))

    with pytest.raises(AssertionError, match=r"system\.0 of request 2") as caught:
        assert_cache_prefix_stable(api.bodies)

    assert "Today is Monday" in str(caught.value)
    assert "Today is Tuesday" in str(caught.value)


def conversation(*texts: str, system: str = "You count.") -> TurnRequest:
    roles = ("user", "assistant")
    messages = [Message(roles[n % 2], text) for n, text in enumerate(texts)]  # type: ignore[arg-type]
    messages[-1] = Message(messages[-1].role, messages[-1].content, "5m")
    return TurnRequest(system, tuple(messages), MODEL, 100, cache="5m")


@pytest.mark.parametrize(
    ("second", "named"),
    [
        (conversation("A", "b", "c"), r"messages\.0\.content\.0"),
        (TurnRequest("You count.", (Message("user", "a"),), MODEL, 100, cache="5m"), "last block"),
        (TurnRequest("You count.", (Message("user", "a", "5m"),), "other", 100), "model"),
    ],
)
def test_the_helper_names_the_first_block_that_moved(second: TurnRequest, named: str) -> None:
    """A changed message, a missing breakpoint, another model."""
    with pytest.raises(AssertionError, match=named):
        assert_cache_prefix_stable([conversation("a"), second])


def test_a_call_is_held_against_the_one_it_goes_on_from() -> None:
    """A retried turn against the turn before it, a repair against the call before it."""
    reply = Reply("", model=MODEL)
    calls = [
        Exchange(1, "ask", conversation("a"), reply),
        Exchange(2, "ask", conversation("a", "b", "c"), reply),
        Exchange(2, "ask", conversation("a", "b", "d"), reply),
        Exchange(2, "repair", conversation("a", "b", "c", "d", "e"), reply),
    ]

    assert_cache_prefix_stable(calls[:3])
    with pytest.raises(AssertionError, match=r"of request 4 \(turn 2, repair\) is not what"):
        assert_cache_prefix_stable(calls)
