"""Stand-ins until the main flow is here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_regen.errors import RegenError
from pytest_regen.prompts import correction_block
from pytest_regen.turns.values import TurnRequest, Usage
from pytest_regen.validation.issues import Issue

FIRST_LIMIT = 8192


def write_corrections(told: Sequence[Issue | str]) -> str:
    """Return a correction."""
    return correction_block(told)


@dataclass(frozen=True, slots=True)
class Ask:
    """One page to ask for."""

    name: str
    page: int
    request: TurnRequest
    output_tokens: int
    title: str
    extract: Callable[[Sequence[str]], str]
    entry: object = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one page."""

    ask: Ask
    output: str = ""
    stop_reason: str = ""
    model: str = ""
    provider: str | None = None
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    failure: RegenError | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An output that is not kept."""

    answer: Answer
    issues: tuple[Issue, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What is wrong with one piece."""

    errors: int = 0
    unreadable: frozenset[int] = frozenset()
