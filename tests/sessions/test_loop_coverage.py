"""The compile-verify-repair loop: what enters and stays in the set, and what an engine may say."""

import enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loop_doubles import WRONG, A, B, Bench, C, PathEngine, bench, blaming, with_probes
from scenario_doubles import READ, WRITE, handwritten, named, request, scenario

from pytest_regen.errors import UsageError
from pytest_regen.sessions import Judgement, ScenarioRequest, TestScenario


def test_discards_are_not_in_the_set_and_are_told(tmp_path: Path) -> None:
    """Nor are replacements that no rule can satisfy; they are told in the next turn."""
    first, second = scenario("/protected/1"), scenario("/protected/2")
    work = bench([A, first], later=[[second], [C]])
    report = work.run(tmp_path / "s.json")

    assert report.passed
    assert "/protected" not in (tmp_path / "s.json").read_text("utf-8")
    assert named(report.scenarios) == [("read /a", "allow"), ("read /c", "allow")]
    assert not work.compiler.contexts
    told = [[one.scenario for one in said.discarded_scenarios] for said in work.source.told]
    assert told == [[first], [second]]
    assert report.history(first.id).outcome == report.history(second.id).outcome == "discarded"


def test_a_corrected_scenario_stays_without_a_replacement() -> None:
    """An empty answer, another tool or an impossible request costs no coverage."""
    for later in ([], [scenario("/a", tool="write")], [scenario("/protected/x")]):
        report = bench([A, WRONG], blaming(), later=[later]).run()
        assert ("read /b", "escalate") in named(report.scenarios)


def test_an_empty_set_is_no_success() -> None:
    """Nor one of handwritten scenarios alone, nor one in which all was discarded."""
    own = handwritten("/secret")

    assert bench([]).run().stop_reason == "empty"
    assert bench([own], handwritten=[own]).run().stop_reason == "empty"
    assert not bench([scenario("/protected/x")]).run().passed


def test_a_tool_that_is_no_longer_tested_fails_the_run() -> None:
    """Coverage never shrinks silently; a floor below one is a choice."""
    gone = scenario("/protected/x", tool="write")
    report = bench([A, gone]).run()
    allowed = bench([A, gone], limits={"min_coverage": 0.5}).run()

    assert (report.passed, report.stop_reason) == (False, "coverage")
    assert report.untested_tools == (("files", "write"),)
    assert allowed.passed
    assert "not tested: files/write" in allowed.describe()


@pytest.mark.parametrize("late", [[scenario("/c", tool="write")], []], ids=len)
def test_a_tool_that_nobody_tests_is_asked_for_once(late: list[TestScenario]) -> None:
    """A part of the policy without tests is never a success with a warning."""
    work = bench([A], later=[late], annotations=[READ, WRITE])
    report = work.run()

    assert (report.passed, report.scenarios) == (bool(late), (A, *late))
    assert [told.untested_tools for told in work.source.told] == [(("files", "write"),)]


def test_handwritten_scenarios_are_not_touched() -> None:
    """Not by a correction, a twin's description, a replacement that agrees or contradicts."""
    own = handwritten("/secret", "deny", description="read /b")
    later = [[scenario("/secret", "allow")]]
    report = bench([own, WRONG], blaming(), later=later, handwritten=[own]).run()

    assert report.passed
    assert own in report.scenarios
    assert len(report.scenarios) == 2
    assert report.history(own.id).events == ("asked again by replacement 'read /secret'; left out",)


@pytest.mark.parametrize("stricter_first", [True, False])
def test_of_two_people_who_ask_the_same_the_stricter_counts(*, stricter_first: bool) -> None:
    """``deny`` holds wherever both hold; taking the other one would drop an expectation."""
    own = [handwritten("/b", "deny"), handwritten("/b", "not-allow", description="vague")]
    own = own if stricter_first else own[::-1]
    report = bench([A], handwritten=own).run()

    assert not report.passed
    assert [one.result.scenario.expected_decision for one in report.disagreements] == ["deny"]


def test_a_handwritten_scenario_is_never_corrected() -> None:
    """The rules are to blame; if they cannot be mended it is a disagreement."""
    own = handwritten("/b", "allow")
    work = bench([own, A], blaming(), handwritten=[own])
    report = work.run()

    assert not report.passed
    assert report.disagreements[0].result.scenario == own
    assert len(work.compiler.contexts) == 1
    assert any("handwritten" in event for event in report.history(own.id).events)


def test_a_handwritten_scenario_against_an_invariant_is_reported() -> None:
    """One that agrees with it is fine, as is one that a rule alone contradicts."""
    own, agreeing = handwritten("/protected/x", "allow"), scenario("/protected/y", "deny")
    report = bench([own, A, agreeing, WRONG], handwritten=[own]).run()

    assert not report.passed
    assert "contradicts a structural invariant" in report.history(own.id).events[0]
    assert {agreeing.id, WRONG.id} <= {one.id for one in report.scenarios}
    assert report.history(agreeing.id).outcome == "passed"


def test_probes_alone_ask_for_no_replacements() -> None:
    impossible = scenario("/protected/p")
    work = bench(
        [A, WRONG],
        lambda results: with_probes(blaming("rule")(results), scenario("/c"), impossible),
        repairs=[{"/b": "deny"}],
    )
    report = work.run()

    assert report.passed
    assert not work.source.told
    assert C.id in {one.id for one in report.scenarios}


def test_a_probe_that_passes_is_no_gap() -> None:
    """The generator hears of what probes found wrong, with the decision that is right by now."""
    passing, failing = scenario("/c"), scenario("/new", "allow")
    speeches = [with_probes(Judgement(), passing, failing)]
    work = bench(
        [A, scenario("/protected/x")],
        lambda results: speeches.pop() if speeches else blaming()(results),
    )
    report = work.run()

    assert report.passed
    (told,) = work.source.told
    assert named(told.probe_scenarios) == [("read /new", "deny")]
    assert [one.scenario_description for one in report.corrections] == ["read /new"]
    assert not told.corrections


def test_a_replacement_that_asks_the_same_takes_the_place_if_it_passes() -> None:
    worse = scenario("/b", "allow", description="worse")
    better = scenario("/b", "escalate", description="better")
    twin = scenario("/a", description="of one that was not corrected")
    stays = bench([A, WRONG], blaming(), later=[[worse]]).run()
    goes = bench([A, WRONG], blaming(), later=[[worse, better, twin]]).run()

    assert named(stays.scenarios) == [("read /a", "allow"), ("read /b", "escalate")]
    assert any("the old one stays" in event for event in stays.history(WRONG.id).events)
    assert named(goes.scenarios) == [("read /a", "allow"), ("better", "escalate")]


def test_arguments_that_no_tool_takes_are_discarded() -> None:
    bad = scenario("/a", request=request("/a", mode="TEXT"))
    report = bench([A, bad], annotations=[READ]).run()

    assert report.passed
    assert "invalid-schema" in report.history(bad.id).events[0]


def test_not_allow_is_not_for_models() -> None:
    vague = handwritten("/c")
    report = bench([A, B], lambda _: with_probes(Judgement(), vague)).run()

    assert report.passed
    assert vague.id not in {one.id for one in report.scenarios}
    assert any("only people may" in note for note in report.notes)


def test_probes_are_limited_per_round() -> None:
    """A talkative judge does not make the run endless; nobody judges those of the last round."""
    probes = [scenario(f"/p{number}", "allow") for number in range(50)]
    report = bench([A], lambda results: with_probes(blaming()(results), *probes)).run()

    assert report.judgements == 3
    assert len(report.scenarios) == 1 + 2 * 5


class Text(enum.StrEnum):
    """Decisions that are text."""

    DENY = "deny"


def saying(decision: Any, rule: Any = "a rule") -> type[PathEngine]:
    """Return an engine that says so about what people forbade."""

    class Careless(PathEngine):
        def evaluate(self, asked: ScenarioRequest) -> Any:
            if asked.arguments["path"] == "/secret":
                return SimpleNamespace(decision=decision, rule=rule)
            return super().evaluate(asked)

    return Careless


def forbidding(engine: type[PathEngine]) -> Bench:
    """Return a bench with a request that a person forbade."""
    return bench([A, B], handwritten=[handwritten("/secret")], engine=engine)


@pytest.mark.parametrize(("decision", "rule"), [("ALLOW", "r"), (None, "r"), ("deny", None)])
def test_what_is_no_decision_is_an_error(decision: Any, rule: Any) -> None:
    """It is not taken for something else than ``allow``, and the set is not paid for."""
    work = forbidding(saying(decision, rule))

    with pytest.raises(UsageError, match="the engine Careless decides about files/read") as caught:
        work.run()

    assert repr(rule and decision) in str(caught.value)
    assert '"path":"/secret"' in str(caught.value)
    assert not work.court.heard


def test_an_enumeration_of_text_is_as_good_as_text() -> None:
    report = forbidding(saying(Text.DENY)).run()

    assert report.passed
    assert {type(one.actual) for one in report.results} == {str}


def test_of_three_who_contradict_each_other_none_is_dropped() -> None:
    """The first one agrees with both; nor may a generator add one that contradicts."""
    own = [handwritten("/secret", one) for one in ("not-allow", "deny", "escalate")]

    work = bench([A], handwritten=own)

    with pytest.raises(UsageError, match="contradict each other"):
        work.run()
    assert work.compiler.compiled == 0
    with pytest.raises(UsageError, match="contradict each other"):
        bench([A, handwritten("/secret", "allow")], handwritten=own[1:2]).run()


@pytest.mark.parametrize(
    ("policy", "reason"),
    [({"/a": {"allow"}}, "set"), ([1], r"it is \[1\]")],
)
def test_a_policy_that_is_no_json_ends_the_run_before_scenarios_are_paid(
    policy: Any, reason: str
) -> None:
    work = bench([A, B])
    work.compiler.policy = policy

    with pytest.raises(UsageError, match=f"(?s)not plain JSON.*{reason}"):
        work.run()

    assert not work.court.heard
