"""What the judge of a loop was not heard about is neither repaired blindly nor held against it."""

import itertools
from collections.abc import Sequence

import pytest
from loop_doubles import WRONG, A, B, Bench, Speech, bench, blaming, with_probes
from scenario_doubles import handwritten, named, scenario

from pytest_regen.errors import TransportError, UsageError
from pytest_regen.sessions import ExecutionResult, Judgement


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
    assert "'read /p'" in note
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


def test_a_failing_replacement_is_judged_alone() -> None:
    work = bench([A, WRONG], blaming(), later=[[scenario("/c", "deny")]])
    report = work.run()

    assert report.passed
    assert asked(work) == [["read /a", "read /b"], ["read /c"]]


def test_what_new_rules_decide_otherwise_is_judged_again_if_it_fails() -> None:
    wrong = [scenario("/x", "escalate"), scenario("/y", "escalate")]
    repairs = [{"/x": "escalate", "/y": "allow"}, {"/y": "escalate"}]
    work = bench([A, *wrong], blaming("rule"), repairs=repairs)
    report = work.run()

    assert report.passed, report.describe()
    assert asked(work) == [["read /a", "read /x", "read /y"], ["read /x", "read /y"]]


def test_a_failure_without_a_verdict_is_asked_about_once_per_verification() -> None:
    said = iter([Judgement(passed=False), blaming()([])])

    def judge(results: Sequence[ExecutionResult]) -> Judgement:
        return blaming()(results) if next(said, None) is None else Judgement(passed=False)

    work = bench([A, WRONG, scenario("/protected/x")], judge, later=[[], [], []])
    work.run()

    assert asked(work)[:2] == [["read /a", "read /b"], ["read /b"]]


def test_new_rules_are_told_by_what_they_decide() -> None:
    """Request by request, with the rules' names, not as a count of failures."""
    own = scenario("/x", "escalate")
    gone = scenario("/protected/x")
    work = bench([A, own, gone], blaming("rule"), repairs=[{"/x": "escalate"}])
    work.run()

    (told,) = work.source.told
    assert told.rule_changes == (
        'files/read {"path":"/x"}: was deny (default-deny), is now escalate (rule /x)',
    )


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
