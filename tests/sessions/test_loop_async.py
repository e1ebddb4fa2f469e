"""The compile-verify-repair loop in an event loop: the same run, which blocks nothing."""

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_doubles import RULES, WRONG, A, B, C, Compiler, PathEngine, bench, blaming
from scenario_doubles import TOOLS, said, scenario

from pytest_regen.emulator import Emulator
from pytest_regen.errors import TransportError, UsageError
from pytest_regen.sessions import (
    ExecutionResult,
    GeneratorSession,
    Judgement,
    LoopParts,
    Policy,
    ScenarioFeedback,
    ScenarioGeneratorSession,
    TestScenario,
    acompile_verify_repair,
    compile_verify_repair,
)
from pytest_regen.turns import AnthropicProvider

PROBLEMS = st.sampled_from(["none", "discard", "judge down", "generator down", "compiler down"])


def dead() -> TransportError:
    """Return the error of a line that failed."""
    return TransportError("dead", hint="again")


@given(
    st.lists(st.sampled_from(["allow", "deny", "escalate"]), min_size=3, max_size=3),
    st.sampled_from(["rule", "scenario", "both"]),
    PROBLEMS,
)
def test_both_forms_say_the_same(decisions: list[str], kind: str, problem: str) -> None:
    """Whatever is blamed and whatever fails on the way, the two reports are equal."""
    paths = ["/a", "/b", "/protected/x" if problem == "discard" else "/c"]
    first = [scenario(*pair) for pair in zip(paths, decisions, strict=True)]

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        if problem == "judge down":
            raise dead()
        return blaming(kind)(results)

    def parts() -> LoopParts:
        later = [dead()] if problem == "generator down" else [[C]]
        repairs = [dead()] if problem == "compiler down" else [{"/b": "deny"}]
        return bench(first, speech, later=later, repairs=repairs).loop_parts

    told, awaited = [compile_verify_repair(parts()), asyncio.run(acompile_verify_repair(parts()))]

    assert told == awaited


@dataclass
class Waiting:
    """Parts that have nothing but asynchronous forms, and say which of them were awaited."""

    fingerprint: str = "waiting"
    called: list[str] = field(default_factory=list)

    async def acompile(self) -> Policy:
        """Return rules that are too strict."""
        self.called.append("acompile")
        return {**RULES, "/b": "deny"}

    async def arepair(self, *_: object) -> Policy:
        """Return the right rules."""
        self.called.append("arepair")
        return RULES

    async def agenerate(self) -> list[TestScenario]:
        """Return a right set and one scenario that is impossible."""
        self.called.append("agenerate")
        return [A, B, scenario("/protected/x")]

    async def aregenerate(self, _: ScenarioFeedback) -> list[TestScenario]:
        """Return a replacement."""
        self.called.append("aregenerate")
        return [C]

    async def ajudge(self, _: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Blame the rules."""
        self.called.append("ajudge")
        return blaming("rule")(results)


def test_asynchronous_parts_are_awaited() -> None:
    """Each of the five, in the order of the loop."""
    parts = Waiting()

    report = asyncio.run(
        acompile_verify_repair(LoopParts(parts, lambda _: parts, PathEngine, parts))
    )

    assert report.passed
    assert report.scenarios == (A, B, C)
    assert parts.called == ["acompile", "agenerate", "ajudge", "arepair", "aregenerate"]


def test_a_part_without_an_asynchronous_form_holds_nobody_up() -> None:
    """It is called in a thread: what it waits for is done by the event loop meanwhile."""
    done = threading.Event()
    waited: list[bool] = []

    async def both() -> None:
        loop, asked = asyncio.get_running_loop(), asyncio.Event()

        def patient(_: Sequence[ExecutionResult]) -> Judgement:
            loop.call_soon_threadsafe(asked.set)
            waited.append(done.wait(10))
            return Judgement()

        run = asyncio.create_task(acompile_verify_repair(bench([A, B], patient).loop_parts))
        await asked.wait()
        done.set()
        assert (await run).passed

    asyncio.run(both())

    assert waited == [True]


def test_parts_that_only_an_event_loop_can_wait_for_are_told() -> None:
    """The plain form says which method is missing, and which function has use for its twin."""
    parts = Waiting()

    with pytest.raises(UsageError, match=r"Waiting has no compile\(\)") as caught:
        compile_verify_repair(LoopParts(parts, lambda _: parts, PathEngine, parts))

    assert "await acompile_verify_repair" in str(caught.value)


def test_a_part_without_the_method_is_a_mistake_of_the_caller() -> None:
    """In either form; it is not taken for a judge who could not be heard."""
    mute: Any = object()
    parts = LoopParts(Compiler(), lambda _: bench([A, B]).source, PathEngine, mute)

    for run in (compile_verify_repair, lambda one: asyncio.run(acompile_verify_repair(one))):
        with pytest.raises(UsageError, match=r"object has no judge\(\)"):
            run(parts)


def test_sessions_are_awaited_over_the_wire() -> None:
    """The real asynchronous client: a set with a wrong scenario, a verdict, a replacement."""
    answers = [said([A, WRONG]), said([scenario("/b", "escalate", description="better")])]

    def answer(body: dict[str, Any]) -> str:
        return "1" if "You judge" in json.dumps(body["system"]) else answers.pop(0)

    class Judge:
        def __init__(self, provider: AnthropicProvider) -> None:
            self.session = GeneratorSession("You judge.", int, provider=provider)

        async def ajudge(self, _: Policy, results: Sequence[ExecutionResult]) -> Judgement:
            await self.session.aask("How many are wrong?")
            return blaming()(results)

    with Emulator(answer) as emulator:
        provider = AnthropicProvider(base_url=emulator.base_url, api_key="sk-ant-x")
        session = ScenarioGeneratorSession("Be exact.", TOOLS[:1], provider=provider)
        parts = LoopParts(Compiler(), lambda _: session, PathEngine, Judge(provider))
        report = asyncio.run(acompile_verify_repair(parts))

    assert report.passed
    assert [one.description for one in report.scenarios] == ["read /a", "better"]
    assert session.turn_count == 2


def test_progress_is_told_in_both_forms() -> None:
    """Line for line the same."""
    told: list[str] = []
    awaited: list[str] = []

    compile_verify_repair(bench([A, WRONG], blaming()).loop_parts, on_progress=told.append)
    asyncio.run(
        acompile_verify_repair(bench([A, WRONG], blaming()).loop_parts, on_progress=awaited.append)
    )

    assert told == awaited
    assert told[0] == "Compiling..."
