"""The compile-verify-repair loop in an event loop: the same run, which blocks nothing."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from loop_doubles import RULES, A, B, C, Compiler, PathEngine, bench, blaming
from scenario_doubles import scenario

from pytest_regen.errors import UsageError
from pytest_regen.sessions import (
    ExecutionResult,
    Judgement,
    LoopParts,
    Policy,
    ScenarioFeedback,
    TestScenario,
    acompile_verify_repair,
    compile_verify_repair,
)


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


def test_a_part_without_the_method_is_a_mistake_of_the_caller() -> None:
    """In either form; it is not taken for a judge who could not be heard."""
    parts, mute = Waiting(), object()
    deaf = LoopParts(Compiler(), lambda _: bench([A, B]).source, PathEngine, mute)

    with pytest.raises(UsageError, match=r"Waiting has no compile\(\)(?s:.*)await acompile_"):
        compile_verify_repair(LoopParts(parts, lambda _: parts, PathEngine, parts))
    with pytest.raises(UsageError, match=r"object has no judge\(\)"):
        asyncio.run(acompile_verify_repair(deaf))
