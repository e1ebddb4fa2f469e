"""Scenarios asked about in groups of tools, in event loops, and in sessions carried elsewhere."""

import asyncio
import json
import re
import threading
from typing import Any

import pytest
from scenario_doubles import correction, said, scenario

from pytest_regen.errors import NoProgressError, TransportError, UsageError
from pytest_regen.sessions import (
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
    ToolAnnotation,
    plan_groups,
)
from pytest_regen.turns import ScriptedProvider, TurnRequest

MANY = tuple(
    ToolAnnotation(server_name=f"s{number // 40}", tool_name=f"t{number}") for number in range(120)
)


def one_each(asked: TurnRequest) -> str:
    """Answer with one scenario for each tool that a message lists."""
    lines = re.findall(r"^- (s\d)/(t\d+)$", asked.messages[-1].content, re.MULTILINE)
    return said(
        scenario("/", request={"server_name": s, "tool_name": t}, description=t) for s, t in lines
    )


@pytest.mark.parametrize(
    ("tools", "size", "calls"), [(10, 25, 1), (25, 25, 1), (26, 25, 2), (120, 25, 5), (42, None, 1)]
)
def test_tools_are_asked_in_groups(tools: int, size: int | None, calls: int) -> None:
    """One call while the answer is expected to fit; then groups of about the same size."""
    groups = plan_groups(MANY[:tools], max_tokens=16_384, batch_size=size)

    assert len(groups) == calls
    assert [one for group in groups for one in group] == list(MANY[:tools])
    assert max(map(len, groups)) - min(map(len, groups)) <= 1


def test_groups_share_the_system_prompt_and_one_turn() -> None:
    """Each has a history of its own; together they are one committed turn."""
    provider = ScriptedProvider(one_each)
    talk = ScenarioGeneratorSession("Be exact.", MANY, provider=provider)

    found = talk.generate()

    assert {one.request.tool for one in found} == {one.tool for one in MANY}
    assert len({one.system for one in provider.requests}) == 1
    assert (talk.turn_count, len(talk.history)) == (1, 2 * len(provider.requests))


def test_the_first_group_is_asked_alone_and_the_others_at_once() -> None:
    """One call writes the system prompt to the cache, the rest reads it."""
    lock, running, most = threading.Lock(), 0, []

    def watched(asked: TurnRequest) -> str:
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        together.wait(5) if len(most) > 1 else None
        with lock:
            running -= 1
        return one_each(asked)

    together = threading.Barrier(2)
    talk = ScenarioGeneratorSession(
        "x", MANY[:60], provider=ScriptedProvider(watched), batch_size=20, parallel=2
    )
    talk.generate()

    assert most == [1, 1, 2]


def test_feedback_goes_to_the_group_that_has_the_tool() -> None:
    """Other groups are not asked; notes concern all."""
    provider = ScriptedProvider(one_each)
    talk = ScenarioGeneratorSession("x", MANY[:60], provider=provider, batch_size=20)
    found = talk.generate()
    first = correction("/", "deny", scenario_description=found[30].description)
    provider.requests.clear()

    talk.regenerate(ScenarioFeedback(corrections=(first,)))
    assert len(provider.requests) == 1
    assert found[30].request.tool_name in provider.requests[0].messages[0].content
    provider.requests.clear()

    talk.regenerate(ScenarioFeedback(notes=("too few edges",)))
    assert len(provider.requests) == 3
    provider.requests.clear()

    talk.regenerate(ScenarioFeedback(untested_tools=(("s0", "t39"), ("s1", "t59"))))
    told_to = sorted(
        re.findall(r"- (s\d/t\d+)", one.messages[-1].content)[0] for one in provider.requests
    )
    assert told_to == ["s0/t39", "s1/t59"]
    assert len(provider.requests) == 2
    assert talk.turn_count == 4


def test_a_group_that_failed_is_asked_again_alone() -> None:
    """What others answered is kept until the turn succeeds, and not before in the history."""
    failures = [TransportError("dead", hint="again")]

    def flaky(asked: TurnRequest) -> Any:
        is_second = "- s0/t20\n" in asked.messages[0].content
        return failures.pop() if failures and is_second else one_each(asked)

    provider = ScriptedProvider(flaky)
    talk = ScenarioGeneratorSession("x", MANY[:60], provider=provider, batch_size=20)
    with pytest.raises(TransportError):
        talk.generate()
    assert (talk.history, talk.turn_count, len(provider.requests)) == ((), 0, 3)

    assert len(talk.generate()) == 60
    assert len(provider.requests) == 4


def test_handwritten_are_told_to_the_group_of_their_tool() -> None:
    """Others have no use for them."""
    own = scenario(
        "/", "allow", request={"server_name": "s0", "tool_name": "t25"}, source="handwritten"
    )
    provider = ScriptedProvider(one_each)
    ScenarioGeneratorSession("x", MANY[:60], [own], provider=provider, batch_size=20).generate()

    told_to = ["exist already" in one.messages[0].content for one in provider.requests]
    assert sum(told_to) == 1


def test_the_asynchronous_twins_do_the_same() -> None:
    """Generation in groups and regeneration, in an event loop."""

    async def conversation() -> tuple[int, list[TestScenario]]:
        talk = ScenarioGeneratorSession(
            "x", MANY[:60], provider=ScriptedProvider(one_each), batch_size=20
        )
        first = await talk.agenerate()
        return len(first), await talk.aregenerate(ScenarioFeedback(notes=("more",)))

    count, more = asyncio.run(conversation())

    assert (count, more) == (60, [])


def test_a_session_is_carried_away_and_goes_on() -> None:
    """Groups, memory and what was told go along; the next request is the same."""
    provider = ScriptedProvider(one_each)
    talk = ScenarioGeneratorSession("x", MANY[:60], provider=provider, batch_size=20)
    talk.generate()
    talk.regenerate(ScenarioFeedback(notes=("a",)))
    data = json.loads(json.dumps(talk.to_json()))
    other = ScenarioGeneratorSession.from_json(data, provider=provider)

    assert (other.history, other.turn_count, other.usage) == (talk.history, 2, talk.usage)
    with pytest.raises(NoProgressError):
        other.regenerate(ScenarioFeedback(notes=("a",)))
    provider.requests.clear()
    for one in (talk, other):
        one.regenerate(ScenarioFeedback(notes=("b",)))
    asked = sorted(json.dumps([m.content for m in one.messages]) for one in provider.requests)
    assert asked[::2] == asked[1::2]


@pytest.mark.parametrize("size", [0, -1])
def test_groups_of_nothing_are_refused(size: int) -> None:
    """They would be no groups, and an empty set."""
    with pytest.raises(UsageError, match=f"batch_size is {size}"):
        plan_groups(MANY, max_tokens=16_384, batch_size=size)
