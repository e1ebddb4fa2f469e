"""What the compile-verify-repair loop works with: its parts as protocols, what passes as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from pydantic import model_validator

from pytest_regen.quoting import flatten
from pytest_regen.sessions.values import (
    ActualDecision,
    DiscardedScenario,
    ScenarioFeedback,
    ScenarioRequest,
    TestScenario,
    Value,
    expectation_holds,
)

__all__ = [
    "AsyncJudge",
    "AsyncPolicyCompiler",
    "AsyncScenarioSource",
    "Attribution",
    "BlameKind",
    "Engine",
    "ExecutionResult",
    "Judge",
    "Judgement",
    "Policy",
    "PolicyCompiler",
    "RepairContext",
    "Ruling",
    "ScenarioSource",
    "StructuralFilter",
]

Policy = Mapping[str, Any]
"""Compiled rules, as plain JSON: they are written into the artifact."""

BlameKind = Literal["rule", "scenario", "both"]


class Ruling(Protocol):
    """What an engine decides about one request."""

    @property
    def decision(self) -> ActualDecision:
        """The decision."""

    @property
    def rule(self) -> str:
        """Name of the rule that decided."""


class Engine(Protocol):
    """Decides requests by one policy, always the same way. Its word is final."""

    def evaluate(self, request: ScenarioRequest) -> Ruling:
        """Return the decision about ``request``."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """A scenario and what the engine decides about its request."""

    scenario: TestScenario
    actual: ActualDecision
    rule: str

    @property
    def passed(self) -> bool:
        """Whether the expectation holds."""
        return expectation_holds(self.scenario.expected_decision, self.actual)

    def __str__(self) -> str:
        scenario = self.scenario
        verdict = "PASS" if self.passed else "FAIL"
        return (
            f"{verdict} {scenario.description!r}: {scenario.request}: expected "
            f"{scenario.expected_decision}, the engine says {self.actual} ({flatten(self.rule)})"
        )


class Attribution(Value):
    """Whose fault a failing scenario is, as the judge sees it.

    ``scenario_id`` counts where it is given, else the description. The nested form
    ``{"scenarioDescription": …, "blame": {"kind": …}}`` is read as well.
    """

    kind: BlameKind
    scenario_description: str = ""
    scenario_id: str | None = None
    reasoning: str = ""
    corrected_decision: ActualDecision | None = None
    """What should have been expected, for the kinds ``scenario`` and ``both``."""
    corrected_reasoning: str = ""

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, data: Any) -> Any:  # noqa: ANN401 - whatever came
        if isinstance(data, Mapping) and isinstance(data.get("blame"), Mapping):
            return {**{k: v for k, v in data.items() if k != "blame"}, **data["blame"]}
        return data

    @model_validator(mode="after")
    def _correctable(self) -> Self:
        if self.kind != "rule" and self.corrected_decision is None:
            raise ValueError(f"blame {self.kind!r} needs the decision that is right")
        return self


class Judgement(Value):
    """What the judge says about one execution of all scenarios."""

    analysis: str = ""
    passed: bool = True
    """The judge's opinion. It is told in the report and decides nothing: the engine does."""
    attributions: tuple[Attribution, ...] = ()
    probes: tuple[TestScenario, ...] = ()
    """Requests nobody had tested, to be executed next."""


@dataclass(frozen=True, slots=True)
class RepairContext:
    """What a compiler is told when its rules are to blame."""

    failures: tuple[ExecutionResult, ...]
    analysis: str
    attempt: int
    """Counts from 1."""
    handwritten: tuple[TestScenario, ...] = ()
    """Ground truth, whatever else changes."""
    wanted: Mapping[str, ActualDecision] | None = None
    """Scenario id to the decision that the judge holds right, where that is not the expected."""


class PolicyCompiler(Protocol):
    """Makes rules."""

    @property
    def fingerprint(self) -> str:
        """Everything its result depends on: prompt, model, inputs, settings."""

    def compile(self) -> Policy:
        """Return the policy."""
        ...

    def repair(self, policy: Policy, context: RepairContext) -> Policy:
        """Return a policy that mends the failures of ``context``."""
        ...


class AsyncPolicyCompiler(Protocol):
    """Makes rules in an event loop."""

    @property
    def fingerprint(self) -> str:
        """As of ``PolicyCompiler``."""

    async def acompile(self) -> Policy:
        """Return the policy."""
        ...

    async def arepair(self, policy: Policy, context: RepairContext) -> Policy:
        """Return a policy that mends the failures of ``context``."""
        ...


class ScenarioSource(Protocol):
    """Makes scenarios; ``ScenarioGeneratorSession`` is one."""

    def generate(self) -> list[TestScenario]:
        """Return the first set, handwritten ones included."""
        ...

    def regenerate(self, feedback: ScenarioFeedback) -> list[TestScenario]:
        """Return replacements only."""
        ...


class AsyncScenarioSource(Protocol):
    """Makes scenarios in an event loop; ``ScenarioGeneratorSession`` is one."""

    async def agenerate(self) -> list[TestScenario]:
        """Return the first set, handwritten ones included."""
        ...

    async def aregenerate(self, feedback: ScenarioFeedback) -> list[TestScenario]:
        """Return replacements only."""
        ...


class StructuralFilter(Protocol):
    """Finds scenarios that no set of rules can satisfy."""

    def __call__(self, scenario: TestScenario, engine: Engine) -> DiscardedScenario | None:
        """Return the scenario as discarded, or ``None`` where rules can decide it.

        ``engine`` is the engine that verifies: a filter with another one would let through what
        can never pass.
        """
        ...


class Judge(Protocol):
    """Says whose fault failures are, and which requests nobody has tested."""

    def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Return an opinion about ``results``.

        These are all results the first time. Later they are the failures that it has not judged
        yet, and what else is new or has changed; where nothing of that fails, it is not asked.
        """
        ...


class AsyncJudge(Protocol):
    """Says the same as a ``Judge``, in an event loop."""

    async def ajudge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Return an opinion about ``results``; as ``Judge.judge``."""
        ...
