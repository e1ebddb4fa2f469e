"""What sessions and the loop leave behind, and when that is used again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from loop_doubles import RULES, WRONG, A, B, Compiler, Court, PathEngine, bench, blaming
from pydantic import BaseModel
from scenario_doubles import READ, TOOLS, WRITE, handwritten, named, said, scenario
from tables import each

from pytest_regen.errors import StoreWriteError, TransportError
from pytest_regen.sessions import (
    Artifact,
    ExecutionResult,
    GeneratorSession,
    Judgement,
    LoopParts,
    LoopReport,
    Policy,
    ScenarioGenerationResult,
    ScenarioGeneratorSession,
    acompile_verify_repair,
    compile_verify_repair,
    generate_test_scenarios,
    read_artifact,
    write_artifact,
)
from pytest_regen.turns import CallableProvider, Provider, ScriptedProvider, TurnRequest


def test_a_failed_run_is_never_taken_for_a_success(tmp_path: Path) -> None:
    artifact = tmp_path / "scenarios.json"
    failed = artifact.with_suffix(".failed.json")
    first = bench([A, WRONG]).run(artifact)
    stored = read_artifact(failed)
    assert not artifact.exists()
    assert stored is not None
    assert stored.status == "failed"
    work = bench([A, B])
    second = work.run(artifact)

    assert (first.passed, second.passed, second.cached) == (False, True, False)
    assert work.compiler.compiled == 1
    assert artifact.is_file()
    assert not failed.exists()


def test_what_a_failed_run_reached_is_never_reused(tmp_path: Path) -> None:
    """Not even where all of it passes, as it does when a tool is left without tests."""
    artifact = tmp_path / "scenarios.json"
    first = [A, scenario("/protected/x", tool="write")]
    assert bench(first).run(artifact).stop_reason == "coverage"
    artifact.with_suffix(".failed.json").rename(artifact)

    report = bench(first).run(artifact)

    assert (report.stop_reason, report.cached) == ("coverage", False)


@pytest.mark.parametrize(
    "change",
    [
        {"handwritten": [handwritten("/secret")]},
        {"annotations": [READ]},
        {"limits": {"max_rounds": 1}},
    ],
    ids=str,
)
def test_a_change_of_an_input_is_a_miss(tmp_path: Path, change: dict[str, Any]) -> None:
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)

    assert not bench([A, B], **change).run(artifact).cached


@pytest.mark.parametrize("damage", ["allow", "ALLOW"])
def test_an_artifact_that_the_engine_contradicts_is_made_again(tmp_path: Path, damage: str) -> None:
    """So is one with damaged rules, which cost a run and not an error."""
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)
    text = artifact.read_text("utf-8").replace('"/b": "escalate"', f'"/b": "{damage}"')
    artifact.write_text(text, "utf-8")

    report = bench([A, B]).run(artifact)

    assert (report.passed, report.cached, report.policy) == (True, False, RULES)


def test_a_place_that_cannot_be_written_is_told_before_anything_is_paid(tmp_path: Path) -> None:
    work = bench([A, B])

    with pytest.raises(StoreWriteError):
        work.run(tmp_path)

    assert work.compiler.compiled == 0


def test_a_report_that_cannot_be_kept_is_not_lost(tmp_path: Path) -> None:
    """The error carries it: the place was there at the beginning, and is gone at the end."""
    folder = tmp_path / "folder"

    def hostile(_: Sequence[ExecutionResult]) -> Judgement:
        folder.write_text("in the way", "utf-8")
        return Judgement()

    with pytest.raises(StoreWriteError) as caught:
        bench([A, B], hostile).run(folder / "s.json")

    report = caught.value.unkept
    assert isinstance(report, LoopReport)
    assert report.passed


class Opinion(BaseModel):
    """What the judge's model says."""

    words: str


class Judge:
    """Holds a session, and nothing that says so."""

    def __init__(self, provider: Provider, response: Any = Opinion, **settings: Any) -> None:
        system = settings.pop("system", "You judge.")
        self._talk = GeneratorSession(system, response, provider=provider, **settings)

    def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Blame what fails."""
        del policy
        self._talk.ask("What do you say?")
        return blaming("rule")(results)


class Compiling(Compiler):
    """Holds a session, which its fingerprint forgets."""

    def __init__(self, provider: Provider, **settings: Any) -> None:
        super().__init__(policy={"/a": "allow", "/w": "allow"}, repairs=[{"/b": "escalate"}])
        self.session = GeneratorSession("You compile.", Opinion, provider=provider, **settings)


def answer(request: TurnRequest) -> str:
    """Speak for generator and judge."""
    if request.system.startswith("You judge"):
        return '{"words": "fine"}'
    return said([scenario("/a"), scenario("/b", "escalate"), scenario("/w", tool="write")])


def run(folder: Path, provider: Provider | None = None, **changes: Any) -> LoopReport:
    """Run the loop; ``generator``, ``judge`` and ``compiler`` change settings of these."""
    provider = provider or ScriptedProvider(answer)
    generator: dict[str, Any] = {"system": "You write. {policy}", "annotations": (READ, WRITE)}
    generator |= changes.pop("generator", {})

    def session(policy: Policy) -> ScenarioGeneratorSession:
        told = {**generator, "system": generator["system"].format(policy=sorted(policy))}
        return ScenarioGeneratorSession(**told, provider=provider)

    parts = LoopParts(
        Compiling(provider, **changes.pop("compiler", {})),
        session,
        PathEngine,
        Judge(provider, **changes.pop("judge", {})),
        **changes,
    )
    return compile_verify_repair(parts, artifact=folder / "set.json")


def nobody(messages: list[dict[str, str]]) -> str:
    """Fail the test."""
    raise AssertionError(messages)


def test_with_nothing_changed_nobody_is_asked(tmp_path: Path) -> None:
    """Also where the generator's prompt depends on the rules, and these were repaired.

    Requirement 1, decisions 4 and 5: an equal hash creates no session.
    """
    first = run(tmp_path)
    again = run(tmp_path, CallableProvider(nobody))

    assert (first.passed, first.repairs, first.cached) == (True, 1, False)
    assert (again.passed, again.cached) == (True, True)
    assert again.input_hash == first.input_hash


@each(
    "change",
    [
        {"generator": {"system": "You write, strictly. {policy}"}},
        {"generator": {"max_tokens": 999}},
        {"generator": {"annotations": (READ, WRITE.model_copy(update={"comment": "Writes."}))}},
        {"generator": {"max_repairs": 1}},
        {"judge": {"response": dict[str, str]}},
        {"compiler": {"model": "claude-haiku-4-5"}},
        {"fingerprint": ["another engine"]},
    ],
    ids=lambda change: " ".join(f"{k} {next(iter(v))}" for k, v in change.items()),
)
def test_a_change_in_any_part_is_a_miss(tmp_path: Path, change: dict[str, Any]) -> None:
    """Prompt, model, tools, limits and schema are known to the sessions that the parts hold."""
    run(tmp_path)

    assert not run(tmp_path, **change).cached


def test_a_part_may_say_itself_what_it_depends_on(tmp_path: Path) -> None:
    """A judge without a session, say; budgets and turns that were taken change nothing."""

    class Strict(Judge):
        fingerprint = "the strict judge"

    provider = ScriptedProvider(answer)
    judge = Judge(provider, token_budget=100_000)
    judge.judge({}, [])
    same = LoopParts(
        Compiling(provider),
        lambda _: ScenarioGeneratorSession("x", (READ, WRITE), provider=provider),
        PathEngine,
        Judge(provider),
    )
    compile_verify_repair(same, artifact=tmp_path / "set.json")
    used = LoopParts(same.compiler, same.generator, PathEngine, judge)
    other = LoopParts(same.compiler, same.generator, PathEngine, Strict(provider))

    assert compile_verify_repair(used, artifact=tmp_path / "set.json").cached
    assert not compile_verify_repair(other, artifact=tmp_path / "set.json").cached


def test_a_part_that_says_nothing_is_named(tmp_path: Path) -> None:
    """Where its set is used again: a change of it would not be noticed."""
    told: list[str] = []
    for _ in range(2):
        bench([A, B]).run(tmp_path / "set.json", on_progress=told.append)

    assert told[-2:] == [
        "Court has no fingerprint and holds no session: a change of it makes no new set",
        "2 scenarios (cached)",
    ]


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


W = scenario("/w", tool="write")


def test_files_are_written_for_people_and_read_back(tmp_path: Path) -> None:
    """Two spaces, a final line end, no time of day; half a character is kept as its escape."""
    path = tmp_path / "deep" / "er" / "s.json"
    own = handwritten("/é"), handwritten("/\ud800")
    artifact = Artifact("sha256:1", "verified", (A, *own), {"rule": 1})

    write_artifact(path, artifact)

    text = path.read_text("utf-8")
    assert text.startswith('{\n  "version": 1')
    assert text.endswith("}\n")
    assert "/é" in text
    assert read_artifact(path) == artifact
    assert [one.name for one in path.parent.iterdir()] == ["s.json"]


@pytest.mark.parametrize(
    "text",
    [
        *("[]", '{"version": 2}', "\udcff"),
        '{"version": 1, "input_hash": "h", "status": "verified", "scenarios": [], "policy": [1]}',
    ],
    ids=lambda text: text[:80],
)
def test_a_damaged_artifact_is_a_missing_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    assert read_artifact(path) is None
    assert read_artifact(tmp_path / "nowhere.json") is None


def test_a_generation_is_neither_paid_in_vain_nor_lost(tmp_path: Path) -> None:
    """A place that cannot be written is told first; a string names one as well."""
    provider = ScriptedProvider([said([A])])
    with pytest.raises(StoreWriteError):
        generate_test_scenarios("x", TOOLS, provider=provider, artifact=tmp_path)
    assert not provider.requests

    found = generate_test_scenarios("x", TOOLS, provider=provider, artifact=f"{tmp_path}/s.json")

    assert found.scenarios == (A,)
    assert read_artifact(tmp_path / "s.json") is not None


def test_a_set_is_used_again_while_nothing_it_depends_on_has_changed(tmp_path: Path) -> None:
    """Nobody is asked then; what stayed untested is told all the same. A failed set is a miss."""
    path = tmp_path / "new" / "set.json"

    def generated(system: str, *replies: str) -> ScenarioGenerationResult:
        provider = ScriptedProvider(replies)
        return generate_test_scenarios(system, TOOLS[:2], provider=provider, artifact=path)

    first = generated("x", said([A]), said([]))
    again = generated("x")
    changed = generated("y", said([B, W]))
    write_artifact(path, Artifact(changed.input_hash, "failed", (B, W)))

    assert first.session is not None
    assert again.session is None
    assert (first.scenarios, first.input_hash) == (again.scenarios, again.input_hash)
    assert first.untested_tools == again.untested_tools == (("files", "write"),)
    assert changed.scenarios == (B, W)
    assert generated("y", said([A, W])).scenarios == (A, W)
