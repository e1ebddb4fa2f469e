"""What the compile-verify-repair loop is made of, and its limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_regen.errors import UsageError
from pytest_regen.sessions.protocols import (
    AsyncJudge,
    AsyncPolicyCompiler,
    AsyncScenarioSource,
    Engine,
    Judge,
    Policy,
    PolicyCompiler,
    ScenarioSource,
    StructuralFilter,
)
from pytest_regen.sessions.structural import structural_conflict
from pytest_regen.sessions.values import TestScenario, ToolAnnotation

__all__ = ["LoopParts", "LoopSettings"]


@dataclass(frozen=True, slots=True)
class LoopParts:
    """Who does what in a run. The asynchronous forms are for ``acompile_verify_repair``."""

    compiler: PolicyCompiler | AsyncPolicyCompiler
    generator: Callable[[Policy], ScenarioSource | AsyncScenarioSource]
    """Makes the session for a policy; called only where scenarios are really generated."""
    engine: Callable[[Policy], Engine]
    """Makes the engine for a policy."""
    judge: Judge | AsyncJudge
    handwritten: Sequence[TestScenario] = ()
    """Scenarios of people: in every set, never changed, contradicted or dropped."""
    annotations: Sequence[ToolAnnotation] = ()
    """The tools. Each must be tested in the end, and the arguments of scenarios are held against
    their schemas. Without any, the tools of the first answer count."""
    structural: StructuralFilter = structural_conflict
    fingerprint: Sequence[str] = ()
    """What else the result depends on, beside the compiler's own fingerprint: the generator's and
    the judge's prompts and models, protected paths, allowlists, versions of the engine."""
    needs_generated: bool = True
    """Whether a set of handwritten scenarios alone is an empty one."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Limits of a run."""

    max_repairs: int = 2
    """Times that rules are mended and replacements asked for."""
    max_rounds: int = 3
    """Times per verification that the judge is heard; further rounds execute its probes. Those of
    the last round are taken where they pass; those that fail are noted, for nobody judges them."""
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
        counts_ok = self.max_repairs >= 0 and self.max_rounds >= 1 and self.max_probes >= 0
        if not counts_ok or not 0 <= self.min_coverage <= 1:
            raise UsageError(
                f"these limits make no sense: {self}",
                hint="max_repairs and max_probes are 0 or more, max_rounds 1 or more, min_coverage "
                "lies between 0 and 1",
            )
