"""What a verified set depends on is asked of the parts: no change of a prompt goes unnoticed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from loop_doubles import Compiler, PathEngine, blaming
from pydantic import BaseModel
from scenario_doubles import READ, WRITE, handwritten, said, scenario
from tables import each

from pytest_regen.sessions import (
    ExecutionResult,
    GeneratorSession,
    Judgement,
    LoopParts,
    LoopReport,
    Policy,
    ScenarioGeneratorSession,
    compile_verify_repair,
)
from pytest_regen.turns import CallableProvider, Provider, ScriptedProvider, TurnRequest


class Opinion(BaseModel):
    """What the judge's model says."""

    words: str


class Stricter(BaseModel):
    """Another form of it."""

    words: Literal["fine"]


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
        {"generator": {"model": "claude-haiku-4-5"}},
        {"generator": {"max_tokens": 999}},
        {"generator": {"annotations": (READ, WRITE.model_copy(update={"comment": "Writes."}))}},
        {"generator": {"handwritten": [handwritten("/secret")]}},
        {"generator": {"max_repairs": 1}},
        {"judge": {"response": Stricter}},
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

    class Silent:
        def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
            del policy, results
            return Judgement()

    provider = ScriptedProvider(answer)
    parts = LoopParts(
        Compiler({"/a": "allow", "/b": "escalate", "/w": "allow"}),
        lambda _: ScenarioGeneratorSession("x", (READ, WRITE), provider=provider),
        PathEngine,
        Silent(),
    )
    for _ in range(2):
        compile_verify_repair(parts, artifact=tmp_path / "set.json", on_progress=told.append)

    assert told[-2] == (
        "Silent has no fingerprint and holds no session: a change of it makes no new set"
    )
    assert told[-1] == "3 scenarios (cached)"
