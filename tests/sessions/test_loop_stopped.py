"""A loop that does not come to its end keeps what was paid for, and can be gone on with."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from loop_doubles import RULES, WRONG, A, Compiler, Court, PathEngine, bench
from scenario_doubles import TOOLS, named, said, scenario

from pytest_regen.errors import TransportError
from pytest_regen.sessions import (
    Artifact,
    ExecutionResult,
    Judgement,
    LoopParts,
    ScenarioGeneratorSession,
    acompile_verify_repair,
    compile_verify_repair,
    read_artifact,
)
from pytest_regen.turns import ScriptedProvider, TurnRequest


def kept(folder: Path) -> Artifact:
    found = read_artifact(folder / "set.failed.json")
    assert found is not None
    assert found.status == "failed"
    return found


def interrupting(results: Sequence[ExecutionResult]) -> Judgement:
    """Be interrupted at the keyboard."""
    del results
    raise KeyboardInterrupt


def test_an_interruption_keeps_rules_and_scenarios(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        bench([A, WRONG], interrupting).run(tmp_path / "set.json")

    assert (kept(tmp_path).scenarios, kept(tmp_path).policy) == ((A, WRONG), RULES)
    (note,) = caught.value.__notes__
    assert "set.failed.json" in note
    assert "cassettes.journal" in note
    with pytest.raises(KeyboardInterrupt) as caught:
        bench([A, WRONG], interrupting).run()
    assert caught.value.__notes__[0].startswith("pytest_regen.cassettes.journal(path)")


def test_a_cancelled_loop_keeps_them(tmp_path: Path) -> None:

    class Slow(Court):
        async def ajudge(self, *_: object) -> Judgement:
            await asyncio.sleep(60)
            return Judgement()

    work = bench([A, WRONG])
    work.court = Slow()

    async def impatient() -> None:
        run = acompile_verify_repair(work.loop_parts, artifact=tmp_path / "set.json")
        await asyncio.wait_for(run, 0.2)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert kept(tmp_path).scenarios == (A, WRONG)


def test_a_first_turn_that_fails_keeps_the_rules_and_what_was_answered(tmp_path: Path) -> None:
    """The policy was paid for, and so were the scenarios that nothing was wrong with."""

    def answer(request: TurnRequest) -> str:
        if len(request.messages) == 1:
            return said([scenario("/a"), scenario("/x", tool="unknown")])
        raise TransportError("down", hint="again")

    session = ScenarioGeneratorSession("x", TOOLS, provider=ScriptedProvider(answer))
    parts = LoopParts(Compiler(), lambda _: session, PathEngine, Court())
    with pytest.raises(TransportError):
        compile_verify_repair(parts, artifact=tmp_path / "set.json")

    assert named(kept(tmp_path).scenarios) == [("read /a", "allow")]
    assert kept(tmp_path).policy == RULES
