"""A compile-verify-repair loop to try things in: rules about paths, and parts that do as told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenario_doubles import scenario

from pytest_regen.sessions import (
    Attribution,
    ExecutionResult,
    Judgement,
    LoopParts,
    LoopReport,
    LoopSettings,
    Policy,
    RepairContext,
    ScenarioFeedback,
    ScenarioRequest,
    TestScenario,
    compile_verify_repair,
)

RULES = {"/a": "allow", "/b": "escalate", "/c": "allow", "/secret": "deny"}


@dataclass(frozen=True)
class Ruled:
    """A decision and the rule that made it."""

    decision: Any
    rule: str


class PathEngine:
    """Decides by path; ``/protected`` is an invariant, what no rule names is denied."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def evaluate(self, asked: ScenarioRequest) -> Ruled:
        """Return the decision."""
        path = str(asked.arguments["path"])
        if path.startswith("/protected"):
            return Ruled("deny", "structural-protected-path")
        decision = self.policy.get(path)
        return Ruled(decision, f"rule {path}") if decision else Ruled("deny", "default-deny")


@dataclass
class Compiler:
    """Compiles ``policy``; repairs by what a test says."""

    policy: Mapping[str, str] = field(default_factory=lambda: dict(RULES))
    repairs: list[Any] = field(default_factory=list)
    fingerprint: str = "compiler 1"
    compiled: int = 0
    contexts: list[RepairContext] = field(default_factory=list)

    def compile(self) -> Policy:
        """Return the policy."""
        self.compiled += 1
        return self.policy

    def repair(self, policy: Policy, context: RepairContext) -> Policy:
        """Return the next repair, the same policy where there is none."""
        self.contexts.append(context)
        found = self.repairs.pop(0) if self.repairs else policy
        if isinstance(found, Exception):
            raise found
        return {**policy, **found}


@dataclass
class Source:
    """Generates ``first``, then each of ``later``."""

    first: Sequence[TestScenario]
    later: list[Any] = field(default_factory=list)
    told: list[ScenarioFeedback] = field(default_factory=list)

    def generate(self) -> list[TestScenario]:
        """Return the first set."""
        return list(self.first)

    def regenerate(self, feedback: ScenarioFeedback) -> list[TestScenario]:
        """Return replacements."""
        self.told.append(feedback)
        found = self.later.pop(0) if self.later else []
        if isinstance(found, Exception):
            raise found
        return list(found)


Speech = Callable[[Sequence[ExecutionResult]], Judgement]


@dataclass
class Court:
    """Says what ``speech`` says of the results."""

    speech: Speech = lambda _: Judgement()
    heard: list[tuple[ExecutionResult, ...]] = field(default_factory=list)

    def judge(self, policy: Policy, results: Sequence[ExecutionResult]) -> Judgement:
        """Return an opinion."""
        del policy
        self.heard.append(tuple(results))
        return self.speech(results)


def blaming(kind: str = "scenario", decision: str | None = None, name: str = "") -> Speech:
    """Return a judge who blames every failure so, and holds the engine's decision right."""

    def speech(results: Sequence[ExecutionResult]) -> Judgement:
        return Judgement(
            passed=False,
            attributions=tuple(
                Attribution.model_validate(
                    {
                        "kind": kind,
                        "scenario_description": name or one.scenario.description,
                        "corrected_decision": decision or one.actual,
                        "reasoning": "r",
                    }
                )
                for one in results
                if not one.passed
            ),
        )

    return speech


def with_probes(judgement: Judgement, *probes: TestScenario) -> Judgement:
    """Return a judgement with probes."""
    return judgement.model_copy(update={"probes": probes})


@dataclass
class Bench:
    """A run and all who take part in it."""

    source: Source
    court: Court = field(default_factory=Court)
    compiler: Compiler = field(default_factory=Compiler)
    settings: LoopSettings = field(default_factory=LoopSettings)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def loop_parts(self) -> LoopParts:
        """Those who take part, as the loop takes them."""
        options: dict[str, Any] = {"engine": PathEngine, **self.parts}
        return LoopParts(self.compiler, lambda _: self.source, judge=self.court, **options)

    def run(self, artifact: Path | None = None, **options: Any) -> LoopReport:
        """Run the loop."""
        return compile_verify_repair(
            self.loop_parts, settings=self.settings, artifact=artifact, **options
        )


def bench(
    first: Sequence[TestScenario], speech: Speech = lambda _: Judgement(), **options: Any
) -> Bench:
    """Return a bench; ``later`` are the source's replacements, ``repairs`` the compiler's."""
    source = Source(first, options.pop("later", []))
    compiler = Compiler(repairs=options.pop("repairs", []))
    settings = LoopSettings(**options.pop("limits", {}))
    return Bench(source, Court(speech), compiler, settings, options)


A, B, C = scenario("/a"), scenario("/b", "escalate"), scenario("/c")


WRONG = scenario("/b", "deny")
