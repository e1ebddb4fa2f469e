"""Real scenarios under a judge that guesses: no wrong one ships as passed, no right one changes."""

from collections import Counter

from policy_doubles import (
    FixedCompiler,
    SeededJudge,
    SeededSource,
    load,
    real_engine,
    real_scenarios,
)

from pytest_regen.sessions import (
    LoopParts,
    LoopReport,
    TestScenario,
    compile_verify_repair,
    expectation_holds,
)

SEEDS = range(10)
WRONG = {
    "Edit a file outside the sandbox -- should be denied",
    "Create directory outside the sandbox -- should be denied",
    "Path traversal write attempt to escape sandbox -- should be denied",
    "Write a file outside the sandbox -- should be denied",
}
"""Real scenarios that expect ``deny`` where the engine they were written for escalates."""


def run(seed: int, judge: SeededJudge) -> LoopReport:
    """Run the loop over the real rules and scenarios."""
    scenarios = real_scenarios()
    parts = LoopParts(
        compiler=FixedCompiler(load("compiled-policy")),
        generator=lambda _: SeededSource(scenarios, seed),
        engine=real_engine,
        judge=judge,
        handwritten=[one for one in scenarios if one.is_handwritten],
        fingerprint=[f"seed {seed}"],
    )
    return compile_verify_repair(parts)


def check(report: LoopReport) -> Counter[str]:
    """Hold a report against the real data; return what became of the four."""
    engine = real_engine(load("compiled-policy"))
    shipped = {one.id: one for one in report.scenarios}
    outcomes = {one.id: one.outcome for one in report.histories}
    disagreed = {one.result.scenario.id for one in report.disagreements}
    became: Counter[str] = Counter()
    for original in real_scenarios():
        now, outcome = shipped[original.id], outcomes[original.id]
        right = engine.evaluate(original.request).decision
        if original.description not in WRONG:
            assert now.expected_decision == original.expected_decision, original.description
            assert outcome == "passed"
            assert original.id not in disagreed
        elif original.id in disagreed:
            assert outcome == "failed"
            assert not report.passed
            became["disagreement"] += 1
        else:
            assert now.expected_decision == right
            assert outcome == "corrected"
            became["corrected"] += 1
    assert report.passed == (became["corrected"] == 4)
    return became


def test_the_four_are_wrong_indeed() -> None:
    """Of 248 real scenarios the engine contradicts four, which expect a denial of what it asks."""
    engine = real_engine(load("compiled-policy"))

    def holds(one: TestScenario) -> bool:
        return expectation_holds(one.expected_decision, engine.evaluate(one.request).decision)

    assert {one.description for one in real_scenarios() if not holds(one)} == WRONG


def test_no_seed_ships_a_wrong_scenario_or_changes_a_right_one() -> None:
    """Whoever is blamed, each of the four is corrected or reported; the other 244 stay."""
    became = sum((check(run(seed, SeededJudge(seed))) for seed in SEEDS), Counter())

    assert became.total() == 4 * len(SEEDS)
    assert all(became.values())
