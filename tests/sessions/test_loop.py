"""The compile-verify-repair loop: who is believed, when it ends, what it tells."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_doubles import (
    RULES,
    WRONG,
    A,
    B,
    C,
    PathEngine,
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
    LoopSettings,
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
    assert work.source.told[0].rule_changes


def test_a_failure_that_nobody_names_outlives_a_later_round() -> None:
    """The judge asks for a probe, and then says that all is well: the failure is still there."""
    speeches = [with_probes(Judgement(), scenario("/new", "deny"))]
    report = bench(
        [A, WRONG], lambda _: speeches.pop() if speeches else Judgement(passed=True)
    ).run()

    assert not report.passed
    assert [one.result.scenario for one in report.disagreements] == [WRONG]


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


def test_results_are_words_for_a_judge() -> None:
    """One line each: verdict, description, request, expectation, decision and rule."""
    passed, failed = ExecutionResult(A, "allow", "r"), ExecutionResult(WRONG, "escalate", "r")

    assert str(passed).startswith("PASS 'read /a': ")
    assert str(failed) == (
        'FAIL \'read /b\': files/read {"path":"/b"}: expected deny, the engine says escalate (r)'
    )


def test_a_verdict_on_a_passing_scenario_is_ignored() -> None:
    speech = blaming()([ExecutionResult(scenario("/a", "deny"), "allow", "r")])
    report = bench([A, B], lambda _: speech).run()

    assert report.passed
    assert report.history(A.id).scenario == A
    assert any("which passes; ignored" in note for note in report.notes)


def test_the_last_verification_can_still_correct() -> None:
    report = bench([A, WRONG], blaming(), limits={"max_repairs": 0}).run()

    assert report.passed
    assert named(report.scenarios)[1] == ("read /b", "escalate")


def test_rules_that_break_more_than_they_mend_are_not_taken() -> None:
    work = bench([A, C, WRONG], blaming("rule"), repairs=[{"/b": "deny", "/a": "deny"}])
    report = work.run()

    assert report.policy == RULES
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


def test_attempts_are_bounded() -> None:
    later = [[scenario(f"/n{number}", "allow")] for number in range(9)]
    report = bench([A, scenario("/protected/x"), WRONG], blaming("rule"), later=later).run()

    assert not report.passed
    assert report.repairs <= 2


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
