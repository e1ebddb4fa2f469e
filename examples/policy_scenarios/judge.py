"""Says whose fault a failing scenario is: a model that sees what the engine decided."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from library import CONSTITUTION, INVARIANTS
from pydantic import BaseModel

from pytest_regen import Provider
from pytest_regen.sessions import (
    Attribution,
    ExecutionResult,
    GeneratorSession,
    Judgement,
    Policy,
    ScenarioRequest,
    TestScenario,
)

SYSTEM = f"""\
You judge test scenarios of a policy engine. Each scenario is a request and the decision somebody
expects for it; the engine has decided each of them by its rules. Failing scenarios have a number.
For each of them say whose fault it is:

- "rule": the expectation follows from the constitution, and the rules do not give it;
- "scenario": the rules follow the constitution, and the expectation does not;
- "both": neither follows the constitution.

With "scenario" and "both", say which decision is right. What the constitution does not mention is
denied. Scenarios marked handwritten are always right.

If you see requests that nobody tested and that may go wrong, give up to three of them as probes.

## Decided before any rule

{"".join(f"- {rule}{chr(10)}" for rule in INVARIANTS)}
{CONSTITUTION}"""


class Blame(BaseModel):
    """Whose fault one failing scenario is."""

    number: int
    reasoning: str
    fault: Literal["rule", "scenario", "both"]
    right_decision: Literal["allow", "escalate", "deny"] | None = None


class Probe(BaseModel):
    """A request that nobody tested."""

    description: str
    server_name: str
    tool_name: str
    arguments: dict[str, Any]
    reasoning: str
    expected_decision: Literal["allow", "escalate", "deny"]


class Verdict(BaseModel):
    """What the model answers."""

    analysis: str
    blames: list[Blame]
    probes: list[Probe] = []


class ModelJudge:
    """Judges the executions of one run in one conversation: all results, then what is new.

    Failures are numbered for the model: it cannot misspell a number, and one that stands for
    nothing is sent back to it. Reasons stand before the verdicts that follow from them, for a
    model writes from left to right.

    Args:
        provider: who answers.
        model: name of the model.
    """

    def __init__(self, provider: Provider, model: str) -> None:
        self._session = GeneratorSession(SYSTEM, Verdict, provider=provider, model=model)
        self._told: Policy | None = None

    def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Return an opinion; the rules are told only when they changed since the last one."""
        failures = dict(enumerate((result for result in results if not result.passed), start=1))
        lines = [f"- {result}" for result in results if result.passed]
        lines += [f"{n}. {result} ({result.scenario.source})" for n, result in failures.items()]
        parts = [
            "The engine's results:"
            if self._told is None
            else "What is new or has changed in the engine's results:",
            "\n".join(lines),
        ]
        if policy != self._told:
            parts = ["The rules:", json.dumps(policy, ensure_ascii=False), *parts]
        verdict = self._session.ask(
            "\n\n".join(parts), check=lambda verdict: problems(verdict, failures)
        )
        self._told = policy
        return Judgement(
            analysis=verdict.analysis,
            passed=not verdict.blames,
            attributions=tuple(attribution(blame, failures) for blame in verdict.blames),
            probes=tuple(scenario(probe) for probe in verdict.probes),
        )


def problems(verdict: Verdict, failures: Mapping[int, ExecutionResult]) -> Iterator[str]:
    """Yield what makes a verdict unusable although it has the right form."""
    for blame in verdict.blames:
        if blame.number not in failures:
            yield f"no failing scenario has the number {blame.number}"
        if blame.fault != "rule" and blame.right_decision is None:
            yield f"number {blame.number} is the fault of {blame.fault} and lacks right_decision"


def attribution(blame: Blame, failures: Mapping[int, ExecutionResult]) -> Attribution:
    """Return a blame by the identity of its scenario."""
    failing = failures[blame.number].scenario
    return Attribution(
        kind=blame.fault,
        scenario_description=failing.description,
        scenario_id=failing.id,
        reasoning=blame.reasoning,
        corrected_decision=blame.right_decision,
        corrected_reasoning=blame.reasoning,
    )


def scenario(probe: Probe) -> TestScenario:
    """Return a probe as a scenario."""
    request = ScenarioRequest(
        server_name=probe.server_name, tool_name=probe.tool_name, arguments=probe.arguments
    )
    return TestScenario(
        description=probe.description,
        request=request,
        expected_decision=probe.expected_decision,
        reasoning=probe.reasoning,
    )
