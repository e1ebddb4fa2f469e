"""What the judge of a loop was not heard about is neither repaired blindly nor held against it."""

from collections.abc import Sequence

import pytest
from loop_doubles import WRONG, A, B, Speech, bench, blaming, with_probes
from scenario_doubles import handwritten, named, scenario

from pytest_regen.errors import TransportError
from pytest_regen.sessions import ExecutionResult, Judgement


def probing(rounds: int) -> Speech:
    """Return a judge who corrects everything and proposes a wrong probe in each of its rounds."""
    heard: list[int] = []

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        heard.append(len(results))
        number = len(heard)
        probes = [scenario(f"/p{number}", "escalate")] if number <= rounds else []
        return with_probes(blaming()(results), *probes)

    return speech


def deaf(calls: int, then: Speech) -> Speech:
    """Return a judge who cannot be reached so often, and then speaks."""
    failures = [TransportError("overloaded", hint="again") for _ in range(calls)]

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        if failures:
            raise failures.pop()
        return then(results)

    return speech


@pytest.mark.parametrize("rounds", range(5))
def test_a_judge_who_goes_on_probing_fails_no_run(rounds: int) -> None:
    """Its last probe is judged, or is not in the set; no rules are repaired for it."""
    work = bench([A, WRONG], probing(rounds))
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
    """Nothing is repaired meanwhile: whose fault it is was not said."""
    work = bench([A, WRONG], deaf(1, blaming()))
    report = work.run()

    assert report.passed
    assert report.fate(WRONG.id).outcome == "corrected"
    assert not work.compiler.contexts
    assert any("overloaded" in note for note in report.notes)


def test_a_judge_who_is_never_reached_is_asked_as_often_as_repairs_are_allowed() -> None:
    """The run ends with what fails as disagreements."""
    work = bench([A, WRONG], deaf(9, blaming()), limits={"max_repairs": 3})
    report = work.run()

    assert (report.stop_reason, report.repairs, report.judgements) == ("attempts", 0, 0)
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
    """Each line says which round of which verification it is about."""
    told: list[str] = []
    bench([A, WRONG], blaming("rule"), repairs=[{"/b": "deny"}]).run(on_progress=told.append)

    judging = [line for line in told if line.startswith("Judging")]
    assert judging == [
        "Judging 2 scenarios (round 1)...",
        "Judging 2 scenarios (verification 2, round 1)...",
    ]
    assert "Repairing the rules (1 failure)..." in told


def test_one_scenario_corrected_twice_is_one_correction_for_the_generator() -> None:
    """From what it said to what is right now: rules changed before it could be told."""
    own = [handwritten("/h", "allow"), handwritten("/i", "allow")]
    work = bench(
        [A, WRONG],
        blaming(),
        later=[TransportError("dead", hint="again")],
        repairs=[{"/h": "allow", "/i": "allow", "/b": "allow"}],
        handwritten=own,
    )
    report = work.run()

    assert report.passed
    assert [one.corrected_decision for one in report.corrections] == ["escalate", "allow"]
    (last,) = work.source.told[-1].corrections
    assert (last.original_decision, last.corrected_decision) == ("deny", "allow")


def test_one_that_was_right_after_all_is_not_told() -> None:
    """There is nothing to replace, and no turn is paid."""
    own = [handwritten("/h", "allow"), handwritten("/i", "allow")]
    work = bench(
        [A, WRONG],
        blaming(),
        later=[TransportError("dead", hint="again")],
        repairs=[{"/h": "allow", "/i": "allow", "/b": "deny"}],
        handwritten=own,
    )
    report = work.run()

    assert report.passed
    assert len(work.source.told) == 1
