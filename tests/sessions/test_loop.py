"""The compile-verify-repair loop: who is believed, what is kept, when it ends.

Tests named ``test_a1`` to ``test_a15`` hold defects that were found in the original's loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenario_doubles import READ, handwritten, named, request, scenario

from pytest_regen.errors import ReplyFormatError, TransportError, UsageError
from pytest_regen.sessions import (
    Attribution,
    DiscardedScenario,
    ExecutionResult,
    Judgement,
    LoopParts,
    LoopReport,
    LoopSettings,
    Policy,
    RepairContext,
    ScenarioFeedback,
    ScenarioRequest,
    TestScenario,
    compile_verify_repair,
    expectation_holds,
)

RULES = {"/a": "allow", "/b": "escalate", "/c": "allow", "/secret": "deny"}


@dataclass(frozen=True)
class Ruled:
    """A decision and the rule that made it."""

    decision: Any
    rule: str


class PathEngine:
    """Decides by path; ``/protected`` is an invariant, what no rule names is denied."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def evaluate(self, asked: ScenarioRequest) -> Ruled:
        """Return the decision."""
        path = str(asked.arguments["path"])
        if path.startswith("/protected"):
            return Ruled("deny", "structural-protected-path")
        decision = self.policy.get(path)
        return Ruled(decision, f"rule {path}") if decision else Ruled("deny", "default-deny")


@dataclass
class Compiler:
    """Compiles ``policy``; repairs by what a test says."""

    policy: Mapping[str, str] = field(default_factory=lambda: dict(RULES))
    repairs: list[Any] = field(default_factory=list)
    fingerprint: str = "compiler 1"
    compiled: int = 0
    contexts: list[RepairContext] = field(default_factory=list)

    def compile(self) -> Policy:
        """Return the policy."""
        self.compiled += 1
        return self.policy

    def repair(self, policy: Policy, context: RepairContext) -> Policy:
        """Return the next repair, the same policy where there is none."""
        self.contexts.append(context)
        found = self.repairs.pop(0) if self.repairs else policy
        if isinstance(found, Exception):
            raise found
        return {**policy, **found}


@dataclass
class Source:
    """Generates ``first``, then each of ``later``."""

    first: Sequence[TestScenario]
    later: list[Any] = field(default_factory=list)
    told: list[ScenarioFeedback] = field(default_factory=list)

    def generate(self) -> list[TestScenario]:
        """Return the first set."""
        return list(self.first)

    def regenerate(self, feedback: ScenarioFeedback) -> list[TestScenario]:
        """Return replacements."""
        self.told.append(feedback)
        found = self.later.pop(0) if self.later else []
        if isinstance(found, Exception):
            raise found
        return list(found)


Speech = Callable[[Sequence[ExecutionResult]], Judgement]


@dataclass
class Court:
    """Says what ``speech`` says of the results."""

    speech: Speech = lambda _: Judgement()
    heard: list[tuple[ExecutionResult, ...]] = field(default_factory=list)

    def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Return an opinion."""
        del policy
        self.heard.append(tuple(results))
        return self.speech(results)


def blaming(kind: str = "scenario", decision: str | None = None, name: str = "") -> Speech:
    """Return a judge who blames every failure so, and holds the engine's decision right."""

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        return Judgement(
            passed=False,
            attributions=tuple(
                Attribution.model_validate(
                    {
                        "kind": kind,
                        "scenario_description": name or one.scenario.description,
                        "corrected_decision": decision or one.actual,
                        "reasoning": "r",
                    }
                )
                for one in results
                if not one.passed
            ),
        )

    return speech


@dataclass
class Bench:
    """A run and all who take part in it."""

    source: Source
    court: Court = field(default_factory=Court)
    compiler: Compiler = field(default_factory=Compiler)
    settings: LoopSettings = field(default_factory=LoopSettings)
    parts: dict[str, Any] = field(default_factory=dict)

    def run(self, artifact: Path | None = None, **options: Any) -> LoopReport:
        """Run the loop."""
        parts = LoopParts(
            self.compiler, lambda _: self.source, PathEngine, self.court, **self.parts
        )
        return compile_verify_repair(parts, settings=self.settings, artifact=artifact, **options)


def bench(
    first: Sequence[TestScenario], speech: Speech = lambda _: Judgement(), **options: Any
) -> Bench:
    """Return a bench; ``later`` are the source's replacements, ``repairs`` the compiler's."""
    source = Source(first, options.pop("later", []))
    compiler = Compiler(repairs=options.pop("repairs", []))
    settings = LoopSettings(**options.pop("limits", {}))
    return Bench(source, Court(speech), compiler, settings, options)


A, B, C = scenario("/a"), scenario("/b", "escalate"), scenario("/c")
WRONG = scenario("/b", "deny")


def test_a_right_set_passes_with_one_judgement() -> None:
    """Nothing is repaired, nobody is asked twice."""
    work = bench([A, B])
    report = work.run()

    assert report.passed
    assert (report.repairs, report.judgements, report.stop_reason) == (0, 1, "passed")
    assert {fate.outcome for fate in report.fates} == {"passed"}


def test_a_correction_is_put_in_place_told_and_kept() -> None:
    """Blame, correction, feedback, replacement, verification."""
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
    fate = report.fate(WRONG.id)
    assert fate.outcome == "corrected"
    assert "expected deny, corrected to escalate" in fate.events[0]


def test_rules_are_repaired_where_they_are_to_blame() -> None:
    """The compiler is told the failures, the analysis and the ground truth."""
    own = handwritten("/h", "allow")
    work = bench([own, A], blaming("rule"), repairs=[{"/h": "allow"}], handwritten=[own])
    report = work.run()

    assert report.passed
    assert report.policy["/h"] == "allow"
    context = work.compiler.contexts[0]
    assert [one.scenario for one in context.failures] == [own]
    assert (context.attempt, context.handwritten) == (1, (own,))
    assert not work.source.told


def test_a1_a_failing_execution_vetoes_the_judge() -> None:
    """``passed`` of the judge is an opinion that the report tells."""
    report = bench([A, WRONG], lambda _: Judgement(passed=True)).run()

    assert not report.passed
    assert report.fate(WRONG.id).outcome == "failed"
    assert any("the engine says otherwise" in note for note in report.notes)


@pytest.mark.parametrize("kind", ["scenario", "both"])
def test_a2_a_correction_counts_only_if_the_engine_agrees(kind: str) -> None:
    """Otherwise it is a disagreement, and the run has not passed."""
    report = bench([A, WRONG], blaming(kind, "allow")).run()

    assert not report.passed
    assert named(report.scenarios)[1] == ("read /b", "deny")
    (left,) = report.disagreements
    assert (left.scenario, left.actual, left.judged) == (WRONG, "escalate", "allow")
    assert "the judge says allow" in str(left)


def test_a2_new_rules_may_make_the_engine_agree() -> None:
    """The compiler is told what the judge wants; then the correction counts."""
    work = bench([A, WRONG], blaming("both", "allow"), repairs=[{"/b": "allow"}])
    report = work.run()

    assert report.passed
    assert work.compiler.contexts[0].wanted == {WRONG.id: "allow"}
    assert ("read /b", "allow") in named(report.scenarios)
    assert work.source.told[0].rule_changes


def test_a3_a_failure_of_the_first_round_does_not_vanish() -> None:
    """Every round executes everything; a verdict of an earlier round is remembered."""
    probe = scenario("/c")
    speeches = [
        Judgement(
            attributions=blaming()([ExecutionResult(WRONG, "escalate", "r")]).attributions,
            probes=(probe,),
        ),
        Judgement(),
    ]
    work = bench([A, WRONG], lambda _: speeches.pop(0) if speeches else Judgement())
    report = work.run()

    assert report.passed
    assert [len(results) for results in work.court.heard][:2] == [2, 3]
    assert report.fate(WRONG.id).outcome == "corrected"


def test_a4_a_failed_run_is_never_taken_for_a_success(tmp_path: Path) -> None:
    """The next run with the same inputs starts again."""
    artifact = tmp_path / "scenarios.json"
    first = bench([A, WRONG]).run(artifact)
    work = bench([A, B])
    second = work.run(artifact)

    assert (first.passed, second.passed, second.cached) == (False, True, False)
    assert work.compiler.compiled == 1
    assert artifact.is_file()
    assert not artifact.with_suffix(".failed.json").exists()


def test_a_verified_run_is_reused_after_executing_it_again(tmp_path: Path) -> None:
    """Nobody is asked; the engine decides about every scenario once more."""
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)
    work = bench([])
    report = work.run(artifact)

    assert (report.passed, report.cached, len(report.results)) == (True, True, 2)
    assert (work.compiler.compiled, work.court.heard) == (0, [])


def test_an_artifact_that_the_engine_contradicts_is_made_again(tmp_path: Path) -> None:
    """The engine may have changed under it."""
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)
    text = artifact.read_text("utf-8").replace('"/b": "escalate"', '"/b": "allow"')
    artifact.write_text(text, "utf-8")

    report = bench([A, B]).run(artifact)

    assert (report.passed, report.cached) == (True, False)


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": ("judge 2",)},
        {"handwritten": [handwritten("/secret")]},
        {"annotations": [READ]},
        {"limits": {"max_rounds": 1}},
    ],
    ids=str,
)
def test_a_change_of_an_input_is_a_miss(tmp_path: Path, change: dict[str, Any]) -> None:
    """Prompts, ground truth, tools and limits are in the hash."""
    artifact = tmp_path / "scenarios.json"
    bench([A, B]).run(artifact)

    assert not bench([A, B], **change).run(artifact).cached


@pytest.mark.parametrize("analysis", ["they bypass it", "all pass", "", "nothing to say"])
def test_a5_no_word_of_the_judge_decides(analysis: str) -> None:
    """Neither the word 'pass' in it nor its absence."""
    right = bench([A, B], lambda _: Judgement(analysis=analysis, passed=False)).run()
    wrong = bench([A, WRONG], lambda _: Judgement(analysis=analysis)).run()

    assert (right.passed, wrong.passed) == (True, False)


def test_a6_discards_are_not_in_the_set_and_are_told() -> None:
    """Nor are replacements that no rule can satisfy; they are told in the next turn."""
    first, second = scenario("/protected/1"), scenario("/protected/2")
    work = bench([A, first], later=[[second], [C]])
    report = work.run()

    assert report.passed
    assert named(report.scenarios) == [("read /a", "allow"), ("read /c", "allow")]
    assert [told.discarded_scenarios[0].scenario for told in work.source.told] == [first, second]
    assert report.fate(first.id).outcome == report.fate(second.id).outcome == "discarded"


def test_a7_a_corrected_scenario_stays_without_a_replacement() -> None:
    """An empty answer, another tool or an impossible request costs no coverage."""
    for later in ([], [scenario("/a", tool="write")], [scenario("/protected/x")]):
        report = bench([A, WRONG], blaming(), later=[later]).run()
        assert ("read /b", "escalate") in named(report.scenarios)


def test_a7_an_empty_set_is_no_success() -> None:
    """Nor one of handwritten scenarios alone, nor one in which all was discarded."""
    own = handwritten("/secret")

    assert bench([]).run().stop_reason == "empty"
    assert bench([own], handwritten=[own]).run().stop_reason == "empty"
    assert not bench([scenario("/protected/x")]).run().passed


def test_a7_a_tool_that_is_no_longer_tested_fails_the_run() -> None:
    """Coverage never shrinks silently; a floor below one is a choice."""
    gone = scenario("/protected/x", tool="write")
    report = bench([A, gone]).run()
    allowed = bench([A, gone], limits={"min_coverage": 0.5}).run()

    assert (report.passed, report.stop_reason) == (False, "coverage")
    assert report.lost_tools == (("files", "write"),)
    assert allowed.passed
    assert "no longer tested: files/write" in allowed.describe()


def test_a8_handwritten_scenarios_are_not_touched() -> None:
    """Not by a correction, not by a twin's description, not by a replacement."""
    own = handwritten("/secret", "deny", description="read /b")
    work = bench([own, WRONG], blaming(), later=[[scenario("/secret", "deny")]], handwritten=[own])
    report = work.run()

    assert report.passed
    assert own in report.scenarios
    assert len(report.scenarios) == 2


def test_a8_a_handwritten_scenario_is_never_corrected() -> None:
    """The rules are to blame; if they cannot be mended it is a disagreement."""
    own = handwritten("/b", "allow")
    work = bench([own, A], blaming(), handwritten=[own])
    report = work.run()

    assert not report.passed
    assert report.disagreements[0].scenario == own
    assert len(work.compiler.contexts) == 1
    assert any("handwritten" in event for event in report.fate(own.id).events)


def test_a8_a_handwritten_scenario_against_an_invariant_is_reported() -> None:
    """It is neither discarded nor passed over."""
    own = handwritten("/protected/x", "allow")
    report = bench([own, A], handwritten=[own]).run()

    assert not report.passed
    assert "contradicts a structural invariant" in report.fate(own.id).events[0]


def test_a8_handwritten_scenarios_that_the_generator_forgot_are_there() -> None:
    """They are the user's, not the generator's."""
    own = handwritten("/secret")

    assert own in bench([A], handwritten=[own]).run().scenarios


def test_a9_twins_are_told_apart() -> None:
    """Of two scenarios with one description the failing one is meant."""
    twin = scenario("/a", description="read /b")
    report = bench([twin, WRONG], blaming()).run()

    assert report.passed
    assert report.fate(twin.id).scenario == twin
    assert report.fate(WRONG.id).outcome == "corrected"


@pytest.mark.parametrize(
    ("name", "outcome"), [("raed /b", "corrected"), ("READ /b", "corrected"), ("else", "failed")]
)
def test_a9_a_misspelt_name_is_understood_or_reported(name: str, outcome: str) -> None:
    """It never burns repairs in silence."""
    report = bench([A, WRONG], blaming(name=name)).run()

    assert report.fate(WRONG.id).outcome == outcome
    if outcome == "failed":
        assert any("'else'" in note for note in report.notes)
        assert report.disagreements[0].blamed is None


def test_a9_a_verdict_on_a_passing_scenario_is_ignored() -> None:
    """A right scenario never changes."""
    speech = blaming()([ExecutionResult(scenario("/a", "deny"), "allow", "r")])
    report = bench([A, B], lambda _: speech).run()

    assert report.passed
    assert report.fate(A.id).scenario == A
    assert any("which passes; ignored" in note for note in report.notes)


def test_a10_the_filter_sees_the_engine_that_verifies() -> None:
    """What it lets through can pass; it is asked with the very engine."""
    seen: list[object] = []

    def filter_(one: TestScenario, engine: Any) -> DiscardedScenario | None:
        seen.append(engine)
        assert engine.policy["/a"] == "allow"
        return (
            None
            if one.request.arguments["path"] != "/c"
            else DiscardedScenario(scenario=one, actual="deny", rule="structural-domain")
        )

    report = bench([A, C], structural=filter_).run()

    assert seen
    assert named(report.scenarios) == [("read /a", "allow")]


def test_a11_what_was_told_is_not_told_again() -> None:
    """Initial discards go out once."""
    work = bench([A, scenario("/protected/1"), WRONG], blaming(), later=[[scenario("/c", "deny")]])
    work.run()

    assert len(work.source.told) == 2
    assert not work.source.told[1].discarded_scenarios


def test_a12_probes_alone_ask_for_no_replacements() -> None:
    """With rules to blame, the generator is left alone."""
    work = bench(
        [A, WRONG],
        lambda results: replace_probes(blaming("rule")(results), scenario("/c")),
        repairs=[{"/b": "deny"}],
    )
    report = work.run()

    assert report.passed
    assert not work.source.told
    assert C.id in {one.id for one in report.scenarios}


def replace_probes(judgement: Judgement, *probes: TestScenario) -> Judgement:
    """Return a judgement with probes."""
    return judgement.model_copy(update={"probes": probes})


def test_a13_the_last_verification_can_still_correct() -> None:
    """Its corrections count, without another repair."""
    report = bench([A, WRONG], blaming(), limits={"max_repairs": 0}).run()

    assert report.passed
    assert named(report.scenarios)[1] == ("read /b", "escalate")


def test_a13_probes_become_part_of_the_set(tmp_path: Path) -> None:
    """Also of the artifact."""
    artifact = tmp_path / "s.json"
    report = bench([A, B], lambda _: replace_probes(Judgement(), scenario("/c"))).run(artifact)

    assert C.id in {one.id for one in report.scenarios}
    assert '"/c"' in artifact.read_text("utf-8")


def test_a14_the_report_has_the_rules_that_decided() -> None:
    """Policy, engine and results are of one state."""
    own = handwritten("/h", "allow")
    report = bench([own, A], blaming("rule"), repairs=[{"/h": "allow"}], handwritten=[own]).run()

    assert all(
        PathEngine(report.policy).evaluate(one.scenario.request).decision == one.actual
        for one in report.results
    )


def test_a15_a_run_that_cannot_start_is_an_error() -> None:
    """A part that fails is never left out of a success."""

    class Broken(Source):
        def generate(self) -> list[TestScenario]:
            raise ReplyFormatError("nothing", text="", problem="nothing", hint="again")

    with pytest.raises(ReplyFormatError):
        Bench(Broken([])).run()


def test_a_turn_that_fails_costs_that_turn_only() -> None:
    """Corrections made so far are kept; the report says what went wrong."""
    work = bench([A, WRONG], blaming(), later=[TransportError("dead", hint="again")])
    report = work.run()

    assert report.passed
    assert any("dead" in note for note in report.notes)
    assert report.fate(WRONG.id).outcome == "corrected"


def test_a_judge_that_cannot_be_heard_decides_nothing() -> None:
    """The engine does; what fails is a disagreement."""

    def silent(_: Sequence[ExecutionResult]) -> Judgement:
        raise TransportError("no judge", hint="again")

    assert bench([A, B], silent).run().passed
    assert bench([A, WRONG], silent).run().disagreements[0].blamed is None


def test_rules_that_break_more_than_they_mend_are_not_taken() -> None:
    """The old ones stay."""
    work = bench([A, C, WRONG], blaming("rule"), repairs=[{"/b": "deny", "/a": "deny"}])
    report = work.run()

    assert report.policy == RULES
    assert any("was not taken" in note for note in report.notes)


def test_a_repair_that_raises_is_told() -> None:
    """And the run ends with what it has."""
    report = bench([A, WRONG], blaming("rule"), repairs=[TransportError("off", hint="x")]).run()

    assert (report.passed, report.stop_reason) == (False, "no_progress")
    assert any("not repaired" in note for note in report.notes)


def test_no_progress_ends_the_run() -> None:
    """The same state again is not paid for again."""
    work = bench([A, WRONG], blaming("rule"), limits={"max_repairs": 9})
    report = work.run()

    assert (report.stop_reason, report.repairs, report.judgements) == ("no_progress", 1, 1)


def test_attempts_are_bounded() -> None:
    """Progress that never arrives ends, too."""
    later = [[scenario(f"/n{number}", "allow")] for number in range(9)]
    report = bench([A, scenario("/protected/x"), WRONG], blaming("rule"), later=later).run()

    assert not report.passed
    assert report.repairs <= 2


def test_a_failing_replacement_of_a_new_request_is_judged() -> None:
    """Leaving it out would hide what it found."""
    work = bench([A, WRONG], blaming(), later=[[scenario("/c", "deny")]])
    report = work.run()

    assert report.passed
    assert ("read /c", "allow") in named(report.scenarios)


def test_a_replacement_that_asks_the_same_and_passes_takes_the_place() -> None:
    """Also where an unusable twin of it comes first."""
    better = scenario("/b", "escalate", description="better")
    report = bench([A, WRONG], blaming(), later=[[scenario("/b", "allow"), better]]).run()

    assert named(report.scenarios) == [("read /a", "allow"), ("better", "escalate")]


def test_a_replacement_that_asks_the_same_and_fails_changes_nothing() -> None:
    """The corrected one stays."""
    report = bench([A, WRONG], blaming(), later=[[scenario("/b", "allow")]]).run()

    assert named(report.scenarios)[1] == ("read /b", "escalate")
    assert any("the old one stays" in event for event in report.fate(WRONG.id).events)


def test_arguments_that_no_tool_takes_are_discarded() -> None:
    """Where the tools are known."""
    bad = scenario("/a", request=request("/a", mode="TEXT"))
    report = bench([A, bad], annotations=[READ]).run()

    assert report.passed
    assert "invalid-schema" in report.fate(bad.id).events[0]


def test_not_allow_is_not_for_models() -> None:
    """Neither a probe nor a replacement may say it."""
    vague = handwritten("/c")
    report = bench([A, B], lambda _: replace_probes(Judgement(), vague)).run()

    assert report.passed
    assert vague.id not in {one.id for one in report.scenarios}
    assert any("only people may" in note for note in report.notes)


def test_probes_are_limited_per_round() -> None:
    """A talkative judge does not make the run endless."""
    probes = [scenario(f"/p{number}", "deny") for number in range(50)]
    report = bench([A], lambda _: replace_probes(Judgement(), *probes)).run()

    assert len(report.scenarios) == 1 + 3 * 5


def test_steps_are_told() -> None:
    """One line each."""
    told: list[str] = []
    bench([A, WRONG], blaming(), later=[[C]]).run(on_progress=told.append)

    assert told[0] == "Compiling..."
    assert "Judging 2 scenarios (round 1)..." in told
    assert "Asking for replacements..." in told


def test_the_report_tells_each_scenario_and_is_json() -> None:
    """What happened and why, for people and for programs."""
    report = bench([A, WRONG, scenario("/protected/x")], blaming(), later=[[C]]).run()

    data = report.to_json()
    assert {one["outcome"] for one in data["scenarios"]} == {"passed", "corrected", "discarded"}
    assert "corrected: 'read /b'" in report.describe()


@pytest.mark.parametrize("wrong", [{"max_repairs": -1}, {"max_rounds": 0}, {"min_coverage": 2}])
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    """They are a mistake of the caller."""
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
            assert report.fate(one.id).scenario == one
        else:
            assert report.fate(one.id).outcome in {"corrected", "failed", "discarded"}
    assert report.passed == (not report.disagreements)
    assert all(one.passed for one in report.results) or not report.passed
