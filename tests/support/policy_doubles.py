"""Doubles for the compile-verify-repair loop over real policy data: deterministic, seeded."""

import json
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine import PolicyEngine

from pytest_regen.canonical import canonical_json
from pytest_regen.sessions import (
    Attribution,
    ExecutionResult,
    Judgement,
    Policy,
    RepairContext,
    ScenarioFeedback,
    TestScenario,
)

DATA = Path(__file__).parents[3] / "shared" / "data" / "policy-readonly"
FAULTS = ("scenario", "rule", "both", "nobody", "misspelt")
DECISIONS = ("allow", "escalate", "deny")


def load(name: str) -> Any:
    """Return a file of the real data, to be left as it is; the test skips without the folder."""
    if not DATA.is_dir():
        pytest.skip("the folder of real policy data is not beside this checkout")
    return _read(name)


@cache
def _read(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def real_engine(policy: Policy) -> PolicyEngine:
    """Return an engine for the real tools, where the original decisions were made."""
    where = load("expected-decisions")["env"]
    return PolicyEngine(
        policy,
        load("tool-annotations"),
        home=where["HOME"],
        sandbox=where["sandbox"],
        protected=where["protectedPaths"],
    )


def real_scenarios() -> list[TestScenario]:
    """Return the 248 real scenarios, handwritten ones first."""
    found = [TestScenario.model_validate(one) for one in load("test-scenarios")["scenarios"]]
    return sorted(found, key=lambda one: not one.is_handwritten)


class FixedCompiler:
    """Always gives the same rules: the ones that are right."""

    fingerprint = "the real rules"

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def compile(self) -> Policy:
        """Return the rules."""
        return self._policy

    def repair(self, policy: Policy, context: RepairContext) -> Policy:
        """Return the same rules."""
        del context
        return policy


class SeededJudge:
    """Sees the bytes of requests, nothing else, and blames by a seed, also what passed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Return blame drawn from the request alone."""
        del policy
        drawn = [self._blame(one.scenario) for one in results]
        return Judgement(
            analysis="As the dice fell.",
            passed=self._seed % 2 == 0,
            attributions=tuple(one for one in drawn if one is not None),
        )

    def _blame(self, scenario: TestScenario) -> Attribution | None:
        seen = canonical_json(scenario.request.to_json())
        random = Random(sha256(f"{self._seed} {seen}".encode()).hexdigest())
        fault, right = random.choice(FAULTS), random.choice(DECISIONS)
        if fault == "nobody":
            return None
        if fault == "misspelt":
            name = {"scenarioDescription": scenario.description[:-1] + "x"}
            return Attribution.model_validate(
                {"kind": "scenario", "correctedDecision": right} | name
            )
        name = random.choice(
            [{"scenarioDescription": scenario.description}, {"scenarioId": scenario.id}]
        )
        return Attribution.model_validate({"kind": fault, "correctedDecision": right} | name)


class SeededSource:
    """Gives the real scenarios, then replacements of every quality, drawn by a seed."""

    def __init__(self, scenarios: Sequence[TestScenario], seed: int) -> None:
        self._scenarios = list(scenarios)
        self._random = Random(seed)

    def generate(self) -> list[TestScenario]:
        """Return the first set."""
        return list(self._scenarios)

    def regenerate(self, feedback: ScenarioFeedback) -> list[TestScenario]:
        """Answer each correction: rightly, wrongly, about something else, or not at all."""
        return [
            answer
            for correction in feedback.corrections
            if (answer := self._answer(correction.id, correction.corrected_decision)) is not None
        ]

    def _answer(self, id_: str | None, right: str) -> TestScenario | None:
        meant = next(one for one in self._scenarios if one.id == id_)
        kind = self._random.choice(["right", "wrong", "elsewhere", "nothing"])
        if kind == "nothing":
            return None
        decision = right if kind == "right" else self._random.choice(DECISIONS)
        other = self._random.choice(self._scenarios)
        about = other if kind == "elsewhere" else meant
        update = {"expected_decision": decision, "source": "generated"}
        return about.model_copy(update=update)
