"""The compile-verify-repair loop: who is believed, when it ends, what it tells, in either form."""

import asyncio
import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_doubles import (
    RULES,
    WRONG,
    A,
    B,
    Bench,
    C,
    Compiler,
    PathEngine,
    Speech,
    bench,
    blaming,
    with_probes,
)
from scenario_doubles import handwritten, named, scenario

from pytest_regen.errors import TransportError, UsageError
from pytest_regen.sessions import (
    Attribution,
    ExecutionResult,
    Judgement,
    LoopParts,
    LoopSettings,
    Policy,
    ScenarioFeedback,
    TestScenario,
    acompile_verify_repair,
    compile_verify_repair,
    expectation_holds,
)


def test_a_correction_is_put_in_place_told_and_kept() -> None:
    """Blame, correction, feedback, replacement, verification; the rules are left alone.

    Requirement 1, proposed flow: verify, correct, tell, merge, verify.
    """
    work = bench([A, WRONG], blaming(), later=[[C]])
    report = work.run()

    assert report.passed
    assert named(report.scenarios) == [
        ("read /a", "allow"),
        ("read /b", "escalate"),
        ("read /c", "allow"),
    ]
    told = work.source.told[0].corrections[0]
    assert (told.original_decision, told.corrected_decision, told.rule) == (
        "deny",
        "escalate",
        "rule /b",
    )
    history = report.history(WRONG.id)
    assert history.outcome == "corrected"
    assert "expected deny, corrected to escalate" in history.events[0]
    assert "corrected: 'read /b'" in report.describe()
    with pytest.raises(KeyError):
        report.history("sha256:unknown")
    assert not work.compiler.contexts


def test_rules_are_repaired_where_they_are_to_blame() -> None:
    """The compiler is told the failures, the analysis and the ground truth.

    Requirement 1, proposed flow: rules are compiled anew where they are to blame.
    """
    own = handwritten("/h", "allow")
    work = bench([own, A], blaming("rule"), repairs=[{"/h": "allow"}], handwritten=[own])
    report = work.run()

    assert report.passed
    assert report.policy["/h"] == "allow"
    context = work.compiler.contexts[0]
    assert [one.scenario for one in context.failures] == [own]
    assert (context.attempt, context.handwritten) == (1, (own,))
    assert not work.source.told


def test_a_failing_execution_vetoes_the_judge() -> None:
    """``passed`` of the judge is an opinion that the report tells."""
    report = bench([A, WRONG], lambda _: Judgement(passed=True)).run()

    assert not report.passed
    assert report.history(WRONG.id).outcome == "failed"
    assert any("the engine says otherwise" in note for note in report.notes)
    (left,) = report.disagreements
    assert str(left).endswith(
        "the engine says escalate (rule /b), the judge does not say whose fault it is"
    )


def test_a_correction_counts_only_if_the_engine_agrees() -> None:
    report = bench([A, WRONG], blaming("scenario", "allow")).run()

    assert not report.passed
    assert named(report.scenarios)[1] == ("read /b", "deny")
    (left,) = report.disagreements
    assert (left.result.scenario, left.result.actual) == (WRONG, "escalate")
    assert left.verdict is not None
    assert left.verdict.corrected_decision == "allow"
    assert "the judge says allow" in str(left)


def test_new_rules_may_make_the_engine_agree() -> None:
    """The compiler is told what the judge wants; then the correction counts."""
    work = bench([A, WRONG], blaming("both", "allow"), repairs=[{"/b": "allow"}])
    report = work.run()

    assert report.passed
    assert work.compiler.contexts[0].wanted == {WRONG.id: "allow"}
    assert ("read /b", "allow") in named(report.scenarios)
    assert work.source.told[0].rule_changes == (
        'files/read {"path":"/b"}: was escalate (rule /b), is now allow (rule /b)',
    )


def test_a_verdict_that_names_nothing_is_asked_for_again() -> None:
    """Nothing is guessed, whatever it is almost called, and no rule is repaired for it."""
    verdicts = [blaming(name="raed /b"), blaming()]
    work = bench([A, WRONG], lambda results: verdicts.pop(0)(results))  # noqa: PLW0108 - one each
    report = work.run()

    assert report.history(WRONG.id).outcome == "corrected"
    assert any("'raed /b'" in note for note in report.notes)
    assert (len(work.court.heard), work.compiler.contexts) == (2, [])


def test_of_two_failing_twins_neither_is_guessed_at() -> None:
    """A description that both have says too little; their identities say it."""
    twins = [scenario("/a", "deny", description="x"), scenario("/b", "deny", description="x")]

    def by_id(results: Sequence[ExecutionResult]) -> Judgement:
        verdicts = [
            Attribution(kind="scenario", scenario_id=one.scenario.id, corrected_decision=one.actual)
            for one in results
            if not one.passed
        ]
        return Judgement(attributions=verdicts)

    guessed, told = bench(twins, blaming()).run(), bench(twins, by_id).run()

    assert [one.verdict for one in guessed.disagreements] == [None, None]
    assert any("2 failing scenarios are called so" in note for note in guessed.notes)
    assert told.passed
    assert [one.expected_decision for one in told.scenarios] == ["allow", "escalate"]


def test_rules_that_break_more_than_they_mend_are_not_taken() -> None:
    """Nor are those that mend more and break what a person wrote."""
    work = bench([A, C, WRONG], blaming("rule"), repairs=[{"/b": "deny", "/a": "deny"}])
    report = work.run()
    own, others = handwritten("/a", "allow"), [scenario("/x"), scenario("/y")]
    repairs = [{"/x": "allow", "/y": "allow", "/a": "deny"}]
    better = bench([own, *others], blaming("rule"), repairs=repairs, handwritten=[own]).run()

    assert report.policy == better.policy == RULES
    assert any("was not taken" in note for note in report.notes)


def test_a_repair_that_raises_is_told() -> None:
    report = bench([A, WRONG], blaming("rule"), repairs=[TransportError("off", hint="x")]).run()

    assert (report.passed, report.stop_reason) == (False, "no_progress")
    assert any("not repaired" in note for note in report.notes)


def test_no_progress_ends_the_run() -> None:
    work = bench([A, WRONG], blaming("rule"), limits={"max_repairs": 9})
    report = work.run()

    assert (report.stop_reason, report.repairs, report.judgements) == ("no_progress", 1, 1)
    (left,) = report.disagreements
    assert str(left).endswith("the engine says escalate (rule /b), the judge blames rule")


@pytest.mark.parametrize("wrong", [{"max_repairs": -1}, {"max_rounds": 0}, {"min_coverage": -1}])
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LoopSettings(**wrong)


DECISIONS = st.sampled_from(["allow", "deny", "escalate"])
PATHS = ["/a", "/b", "/c", "/secret", "/unknown", "/protected/x"]


@given(st.data())
def test_any_judge_leaves_right_scenarios_alone_and_ships_no_wrong_one(data: st.DataObject) -> None:
    """Whatever a judge says: right ones stay as they were, a passed set passes the engine."""
    first = [scenario(path, data.draw(DECISIONS)) for path in PATHS]
    engine = PathEngine(RULES)

    def moody(_: Sequence[ExecutionResult]) -> Judgement:
        said = data.draw(
            st.lists(
                st.builds(
                    Attribution,
                    kind=st.sampled_from(["rule", "scenario", "both"]),
                    scenario_description=st.sampled_from([f"read {path}" for path in PATHS]),
                    corrected_decision=DECISIONS,
                ),
                max_size=4,
            )
        )
        return Judgement(passed=data.draw(st.booleans()), attributions=tuple(said))

    report = bench(first, moody, limits={"min_coverage": 0}).run()

    for one in first:
        right = expectation_holds(one.expected_decision, engine.evaluate(one.request).decision)
        if right:
            assert report.history(one.id).scenario == one
        else:
            assert report.history(one.id).outcome in {"corrected", "failed", "discarded"}
    assert report.passed == (not report.disagreements)
    assert all(one.passed for one in report.results) or not report.passed


def deaf(calls: int, then: Speech) -> Speech:
    """Return a judge who cannot be reached so often, and then speaks."""
    failures = [TransportError("overloaded", hint="again") for _ in range(calls)]

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        if failures:
            raise failures.pop()
        return then(results)

    return speech


def test_a_judge_who_goes_on_probing_fails_no_run() -> None:
    """Its last wrong probe is not in the set; no rules are repaired for it."""
    numbers = itertools.count()

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        return with_probes(blaming()(results), scenario(f"/p{next(numbers)}", "escalate"))

    work = bench([A, WRONG], speech)
    report = work.run()

    assert report.passed, report.describe()
    assert not work.compiler.contexts
    assert not report.disagreements


def test_a_probe_that_nobody_will_judge_is_noted() -> None:
    """It fails, and who is wrong cannot be known: it is left out, and the report says so."""
    wrong, right = scenario("/p", "escalate"), scenario("/c")
    report = bench(
        [A], lambda _: with_probes(Judgement(), wrong, right), limits={"max_rounds": 1}
    ).run()

    assert report.passed
    assert named(report.scenarios) == [("read /a", "allow"), ("read /c", "allow")]
    (note,) = report.notes
    assert "FAIL 'read /p': files/read" in note
    assert "expected escalate, the engine says deny (default-deny)" in note


def test_a_judge_who_cannot_be_reached_once_is_asked_again() -> None:
    work = bench([A, WRONG], deaf(1, blaming()))
    report = work.run()

    assert report.passed
    assert report.history(WRONG.id).outcome == "corrected"
    assert not work.compiler.contexts
    assert any("overloaded" in note for note in report.notes)


def test_a_judge_who_is_never_reached_is_asked_as_often_as_repairs_are_allowed() -> None:
    work = bench([A, WRONG], deaf(9, blaming()), limits={"max_repairs": 3})
    report = work.run()

    assert (report.stop_reason, report.repairs, report.judgements) == ("attempts", 0, 0)
    assert bench([A, B], deaf(9, blaming())).run().passed
    assert len(work.court.heard) == 4
    assert not work.compiler.contexts


def test_what_people_wrote_needs_no_judge_to_blame_the_rules() -> None:
    """A handwritten scenario that fails is a fault of the rules, whoever is silent."""
    own = handwritten("/h", "allow")
    work = bench([own, A, B], deaf(9, blaming()), repairs=[{"/h": "allow"}], handwritten=[own])
    report = work.run()

    assert report.passed
    assert [one.scenario for one in work.compiler.contexts[0].failures] == [own]


def test_verifications_are_told_apart() -> None:
    told: list[str] = []
    first = [A, WRONG, scenario("/protected/x")]
    work = bench(first, blaming("rule"), repairs=[{"/b": "deny"}], later=[[scenario("/c", "deny")]])
    work.run(on_progress=told.append)

    judging = [line for line in told if line.startswith("Judging")]
    assert told[0] == "Compiling..."
    assert "Asking for replacements..." in told
    assert judging == [
        "Judging 2 scenarios (round 1)...",
        "Judging 2 scenarios (verification 2, round 1)...",
    ]
    assert "Repairing the rules (1 failure)..." in told


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_what_new_rules_decide_is_what_the_generator_is_told(decision: str) -> None:
    """From what it said to what is right now; nothing where it was right after all."""
    own = [handwritten("/h", "allow"), handwritten("/i", "allow")]
    work = bench(
        [A, WRONG],
        blaming(),
        later=[TransportError("dead", hint="again")],
        repairs=[{"/h": "allow", "/i": "allow", "/b": decision}],
        handwritten=own,
    )
    report = work.run()

    assert report.passed
    assert any("dead" in note for note in report.notes)
    if decision == "deny":
        assert len(work.source.told) == 1
        return
    assert [one.corrected_decision for one in report.corrections] == ["escalate", "allow"]
    (last,) = work.source.told[-1].corrections
    assert (last.original_decision, last.corrected_decision) == ("deny", "allow")


def asked(work: Bench) -> list[list[str]]:
    """Return what the judge was asked about, call by call."""
    return [[one.scenario.description for one in results] for results in work.court.heard]


def test_what_new_rules_decide_otherwise_is_judged_again_if_it_fails() -> None:
    wrong = [scenario("/x", "escalate"), scenario("/y", "escalate")]
    repairs = [{"/x": "escalate", "/y": "allow"}, {"/y": "escalate"}]
    work = bench([A, *wrong], blaming("rule"), repairs=repairs)
    report = work.run()

    assert report.passed, report.describe()
    assert asked(work) == [["read /a", "read /x", "read /y"], ["read /x", "read /y"]]


@pytest.mark.parametrize(
    ("part", "answer", "problem"),
    [
        ("judge", {"passed": True}, "judge\\(\\) of Court returned"),
        ("generate", {"scenarios": []}, "generate\\(\\) of Source returned"),
        ("regenerate", [None], "regenerate\\(\\) of Source returned"),
    ],
)
def test_a_part_that_returns_something_else_is_a_mistake_of_the_caller(
    part: str, answer: object, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the part and what it returned, not a line of ours."""
    work = bench([A, WRONG], blaming())
    owner = work.court if part == "judge" else work.source
    monkeypatch.setattr(owner, part, lambda *_: answer)

    with pytest.raises(UsageError, match=problem):
        work.run()


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
