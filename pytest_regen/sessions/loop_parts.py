"""What the compile-verify-repair loop is made of, and its limits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_regen.errors import UsageError
from pytest_regen.sessions.artifacts import content_hash
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
from pytest_regen.sessions.turn_log import SessionBase
from pytest_regen.sessions.values import TestScenario, ToolAnnotation

__all__ = ["LoopParts", "LoopSettings", "fingerprint_of"]


@dataclass(frozen=True, slots=True)
class LoopParts:
    """Who does what in a run. The asynchronous forms are for ``acompile_verify_repair``."""

    compiler: PolicyCompiler | AsyncPolicyCompiler
    generator: Callable[[Policy], ScenarioSource | AsyncScenarioSource]
    """Makes the session for a policy. Also called, and not asked, to learn what it depends on."""
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
    """What else the result depends on: protected paths, allowlists, versions of the engine. What
    compiler, generator and judge depend on they say themselves, see ``fingerprint_of``."""
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


_DEPTH = 3
"""How deep in a part sessions are looked for: a list or mapping counts, as any object does."""


def fingerprint_of(part: object) -> str:
    """Return a hash of what a part's answers depend on; empty where that cannot be known.

    That is what its ``fingerprint`` says, where it has one, and what the sessions that it holds
    know: system prompt, model, tools, limits, schema.
    """
    own = getattr(part, "fingerprint", "")
    held = () if isinstance(part, SessionBase) else sorted(set(_held(part, _DEPTH, set())))
    return content_hash(type(part).__name__, str(own), *held) if own or held else ""


def _held(thing: object, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield the fingerprints of the sessions within ``thing``; no property of it is called."""
    if depth == 0 or id(thing) in seen or isinstance(thing, type | str | bytes | int | float):
        return
    seen.add(id(thing))
    if isinstance(thing, Mapping):
        inner = list(thing.values())
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = list(thing)
    else:
        slots = (name for one in type(thing).__mro__ for name in getattr(one, "__slots__", ()))
        inner = [*getattr(thing, "__dict__", {}).values()]
        inner += [
            getattr(thing, name) for name in slots if name != "__dict__" and hasattr(thing, name)
        ]
    for one in inner:
        if isinstance(one, SessionBase):
            yield one.fingerprint
        else:
            yield from _held(one, depth - 1, seen)
