"""What the compile-verify-repair loop works with: its parts, and what passes between them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, get_args

from pydantic import model_validator

from pytest_regen.errors import UsageError
from pytest_regen.sessions.conversation import SessionBase, check_limits
from pytest_regen.sessions.scenarios import (
    ActualDecision,
    DiscardedScenario,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
    Value,
    expectation_holds,
)
from pytest_regen.sessions.state import content_hash
from pytest_regen.text import flatten

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

    ``scenario_id`` counts where it is given, else the description.
    """

    kind: BlameKind
    scenario_description: str = ""
    scenario_id: str | None = None
    reasoning: str = ""
    corrected_decision: ActualDecision | None = None
    """What should have been expected, for the kinds ``scenario`` and ``both``."""
    corrected_reasoning: str = ""

    @model_validator(mode="after")
    def _correctable(self) -> Self:
        if self.kind != "rule" and self.corrected_decision is None:
            raise ValueError(f"blame {self.kind!r} needs the decision that is right")
        return self


class Judgement(Value):
    """What the judge says about one execution of all scenarios."""

    analysis: str = ""
    passed: bool = True
    """The judge's opinion. It stands in the report and decides nothing: the engine does."""
    attributions: tuple[Attribution, ...] = ()
    probes: tuple[TestScenario, ...] = ()
    """Requests that were not tested yet, to be executed next."""


@dataclass(frozen=True, slots=True)
class RepairContext:
    """What a compiler is given when its rules are to blame."""

    failures: tuple[ExecutionResult, ...]
    analysis: str
    attempt: int
    """Counts from 1."""
    handwritten: tuple[TestScenario, ...] = ()
    """Ground truth, whatever else changes."""
    wanted: Mapping[str, ActualDecision] | None = None
    """Scenario id to the decision that the judge holds right, where that is not the expected."""


STRUCTURAL_PREFIX = "structural-"
"""What names of invariants begin with, as against compiled rules and ``default-deny``."""


def execute(scenario: TestScenario, engine: Engine) -> ExecutionResult:
    """Return what ``engine`` decides about the request of ``scenario``.

    Raises:
        UsageError: what it returns is no decision, or the rule has no name.
    """
    ruling = engine.evaluate(scenario.request)
    who = f"the engine {type(engine).__name__} decides about {scenario.request}"
    # By name, because the engine is the caller's, and a wrong answer is to name it and not us.
    rule, answer = getattr(ruling, "rule", None), getattr(ruling, "decision", None)
    decisions: tuple[ActualDecision, ...] = get_args(ActualDecision)
    # Nothing is guessed, because an "ALLOW" that is no "allow" would hold for what people forbade.
    if not isinstance(answer, str) or answer not in decisions:
        raise UsageError(
            f"{who}: {answer!r}",
            why=f"a decision is one of {', '.join(map(repr, decisions))}, as text",
            hint="let evaluate() return one of these as .decision",
        )
    # The plain text, because an enumeration of text would be another thing in a hash or a file.
    decision = decisions[decisions.index(answer)]
    if not isinstance(rule, str):
        raise UsageError(
            f"{who} {decision!r} by the rule {rule!r}",
            why="the name of the rule is what a correction and the report give as the reason",
            hint="let evaluate() return the name as .rule, 'default-deny' where no rule decides",
        )
    return ExecutionResult(scenario, decision, rule)


def structural_conflict(scenario: TestScenario, engine: Engine) -> DiscardedScenario | None:
    """Return ``scenario`` as discarded if an invariant decides otherwise than it expects.

    Handwritten scenarios are looked at as well; the loop reports them instead of dropping them.

    Raises:
        UsageError: the engine returns no decision, or its rule has no name.
    """
    result = execute(scenario, engine)
    # By the name of the rule, because nothing else tells an invariant from a compiled rule.
    is_structural = result.rule.startswith(STRUCTURAL_PREFIX)
    if not is_structural or expectation_holds(scenario.expected_decision, result.actual):
        return None
    return DiscardedScenario(scenario=scenario, actual=result.actual, rule=result.rule)


@dataclass(frozen=True, slots=True)
class LoopParts:
    """Who does what in a run.

    Compiler, judge and session may have methods named ``acompile``, ``arepair``, ``ajudge``,
    ``agenerate`` and ``aregenerate`` as well, or instead: ``acompile_verify_repair`` awaits those.
    """

    compiler: Any
    """``compile()`` returns a policy, ``repair(policy, context: RepairContext)`` one that repairs
    the failures of ``context``."""
    generator: Callable[[Policy], Any]
    """Makes the session for a policy. Also called, and not asked, to learn what it depends on.
    ``generate()`` returns the first set, handwritten scenarios included, and
    ``regenerate(feedback: ScenarioFeedback)`` replacements only."""
    engine: Callable[[Policy], Engine]
    """Makes the engine for a policy."""
    judge: Any
    """``judge(policy, results: Sequence[ExecutionResult])`` returns a ``Judgement``. These are all
    results the first time. Later they are the failures that it has not judged yet, and what else
    is new or has changed; where nothing of that fails, it is not asked."""
    handwritten: Sequence[TestScenario] = ()
    """Scenarios of people: in every set, never changed, contradicted or dropped."""
    annotations: Sequence[ToolAnnotation] = ()
    """The tools. Each must be tested in the end, and the arguments of scenarios are held against
    their schemas. Without any, the tools of the first answer count."""
    structural: Callable[[TestScenario, Engine], DiscardedScenario | None] = structural_conflict
    """Returns a scenario as discarded that no set of rules can satisfy. It is given the engine that
    verifies: a filter with another one would let through what can never pass."""
    fingerprint: Sequence[str] = ()
    """What else the result depends on: protected paths, allowlists, versions of the engine. What
    compiler, generator and judge depend on they say themselves, see ``fingerprint_of``."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Limits of a run."""

    max_repairs: int = 2
    """Times that rules are repaired and replacements asked for."""
    max_rounds: int = 3
    """Times per verification that the judge is heard; further rounds execute its probes. Those of
    the last round are taken where they pass, and noted where they fail: the judge is not asked
    again."""
    max_probes: int = 5
    """Probes taken per round."""
    min_coverage: float = 1.0
    """Share of the tools that must be tested in the end: those annotated, and those that the first
    answer tested."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            UsageError: one of them makes no sense.
        """
        check_limits(
            max_repairs=(self.max_repairs, 0),
            max_rounds=(self.max_rounds, 1),
            max_probes=(self.max_probes, 0),
            min_coverage=(self.min_coverage, 0),
        )


def fingerprint_of(part: object) -> str:
    """Return a hash of what a part's answers depend on; empty where that cannot be known.

    That is what its ``fingerprint`` says, where it has one, and what the sessions in its attributes
    know: system prompt, model, tools, limits, schema.
    """
    stated = getattr(part, "fingerprint", "")
    # No property of a part is called, because that may do anything.
    attributes = getattr(part, "__dict__", {}).values()
    sessions = sorted(one.fingerprint for one in attributes if isinstance(one, SessionBase))
    parts = (type(part).__name__, str(stated), *sessions)
    return content_hash(*parts) if stated or sessions else ""
