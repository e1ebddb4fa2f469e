"""The engine of a loop is the oracle: what it says is a decision, or the run ends with an error."""

import enum
from types import SimpleNamespace
from typing import Any

import pytest
from loop_doubles import A, B, Bench, PathEngine, bench
from scenario_doubles import handwritten

from pytest_regen.errors import UsageError
from pytest_regen.sessions import ScenarioRequest


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


@pytest.mark.parametrize("decision", ["ALLOW", None])
def test_what_is_no_decision_is_an_error(decision: Any) -> None:
    """It is not taken for something else than ``allow``, and the set is not paid for."""
    work = forbidding(saying(decision))

    with pytest.raises(UsageError, match="the engine Careless decides about files/read") as caught:
        work.run()

    assert repr(decision) in str(caught.value)
    assert '"path":"/secret"' in str(caught.value)
    assert not work.court.heard


def test_an_enumeration_of_text_is_as_good_as_text() -> None:
    report = forbidding(saying(Text.DENY)).run()

    assert report.passed
    assert {type(one.actual) for one in report.results} == {str}


def test_a_rule_without_a_name_is_an_error() -> None:
    with pytest.raises(UsageError, match="'deny' by the rule None"):
        forbidding(saying("deny", None)).run()


def test_of_three_who_contradict_each_other_none_is_dropped() -> None:
    """The one in the middle agrees with both."""
    own = [handwritten("/secret", one) for one in ("deny", "not-allow", "escalate")]

    work = bench([A], handwritten=own)

    with pytest.raises(UsageError, match="contradict each other"):
        work.run()
    assert work.compiler.compiled == 0


def test_a_generator_cannot_contradict_what_people_wrote() -> None:
    """Handwritten scenarios that it adds are held against those of the run."""
    added = handwritten("/secret", "allow")

    with pytest.raises(UsageError, match="contradict each other"):
        bench([A, added], handwritten=[handwritten("/secret", "deny")]).run()


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
