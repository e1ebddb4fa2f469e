"""Work grows with the number of scenarios, not with its square."""

from collections.abc import Callable

import pytest
from loop_doubles import bench
from scenario_doubles import TOOLS, correction, said, scenario

from pytest_regen.canonical import canonical_hash
from pytest_regen.sessions import (
    Attribution,
    Judgement,
    ScenarioFeedback,
    ScenarioGeneratorSession,
    scenarios,
)
from pytest_regen.turns import ScriptedProvider


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Return a function that counts the requests hashed while something is done."""

    def counted(work: Callable[[], object]) -> int:
        calls = 0
        real = canonical_hash

        def counting(value: object) -> str:
            nonlocal calls
            calls += 1
            return real(value)

        with monkeypatch.context() as patch:
            patch.setattr(scenarios, "canonical_hash", counting)
            work()
        return calls

    return counted


def corrected_in_a_session(count: int) -> None:
    """Tell a session that all of its scenarios are wrong."""
    scenarios = [scenario(f"/{number}", "deny") for number in range(count)]
    fixed = [scenario(f"/{number}", "allow") for number in range(count)]
    provider = ScriptedProvider([said(scenarios), said(fixed)])
    session = ScenarioGeneratorSession("x", TOOLS[:1], provider=provider)
    session.generate()
    wrong = [correction(f"/{number}", "allow") for number in range(count)]
    assert session.regenerate(ScenarioFeedback(corrections=wrong)) == fixed


def corrected_in_the_loop(count: int) -> None:
    """Have a judge correct everything, by ids."""
    scenarios = [scenario(f"/{number}", "allow") for number in range(count)]

    def speech(results: object) -> Judgement:
        del results
        return Judgement(
            attributions=tuple(
                Attribution(kind="scenario", scenario_id=one.id, corrected_decision="deny")
                for one in scenarios
            )
        )

    report = bench(scenarios, speech).run()
    assert len(report.corrections) == count


@pytest.mark.parametrize(
    "work",
    [corrected_in_a_session, corrected_in_the_loop],
    ids=lambda one: one.__name__,
)
def test_twice_as_many_corrections_hash_twice_as_many_requests(
    hashed: Callable[[Callable[[], object]], int], work: Callable[[int], None]
) -> None:
    few, many = hashed(lambda: work(20)), hashed(lambda: work(40))

    assert many <= 2.2 * few
