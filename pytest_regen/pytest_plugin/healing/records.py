"""What happened to one item, on its way from the worker that ran it to the summary.

A record rides on the test report as plain JSON, which pytest-xdist carries as it is; scalars go
into ``user_properties`` as well, where JUnit and other reporters find them.
"""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import pytest

from pytest_regen.pytest_plugin.stash import RECORD_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_regen.turns.values import Usage
    from pytest_regen.validation.issues import Issue

__all__ = [
    "Heal",
    "Outcome",
    "Record",
    "add_heal",
    "add_warnings",
    "attach",
    "record_on",
    "tokens_in",
]

Outcome = Literal["regenerated", "failed", "skipped", "planned"]

_RECORD: "pytest.StashKey[Record]" = pytest.StashKey()


@dataclass(frozen=True, slots=True)
class Heal:
    """The work on one type, as told in the summary."""

    unit: str
    """``STORE::Type``."""
    outcome: Outcome
    stop_reason: str = ""
    attempts: int = 1
    """Calls of the test, the first included."""
    calls: int = 0
    """Requests made."""
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    pages: list[int] = field(default_factory=list)
    """Pages whose new output is now the stored one, or would be asked in a dry run."""
    estimate: int = 0
    """Tokens a dry run expects to send."""
    changed: list[str] = field(default_factory=list)
    """Files written, from the rootdir."""
    diff: str = ""
    why: str = ""
    """What stood in the way."""
    next: str = ""
    """The command to run next."""
    emulated: bool = False
    cost: str = ""
    """US dollars that live calls cost; empty where that is not known."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """What was wrong before: issues as ``findings_json`` has them."""

    @property
    def tokens(self) -> int:
        """Tokens that passed through the model."""
        return self.tokens_in + self.tokens_out + self.cache_read


@dataclass(slots=True)
class Record:
    """Everything the summary needs to know about one item."""

    heals: list[Heal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is told once per run, however many items say it."""
    next: str = ""
    """The command that ends the warnings."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the record that ``to_json`` made."""
        known = {entry.name: data[entry.name] for entry in fields(cls)}
        return cls(**{**known, "heals": [Heal(**heal) for heal in data["heals"]]})


def tokens_in(usage: "Usage") -> int:
    """Return the tokens that were read anew, those written to the prompt cache included."""
    return (usage.input_tokens or 0) + (usage.cache_write_tokens or 0)


def _record_of(item: pytest.Item) -> Record:
    return item.stash.setdefault(_RECORD, Record())


def add_warnings(
    item: pytest.Item, issues: "Iterable[Issue]", *, note: str = "", command: str = ""
) -> None:
    """Remember the warnings of a type; a later validation of it replaces them.

    Args:
        item: the type.
        issues: its warnings.
        note: what there is to tell of its store, once per run.
        command: what ends the warnings, or the failure, of a stale type.
    """
    warnings = [f"{issue.code}: {issue.message}" for issue in issues]
    if warnings or note or command or _RECORD in item.stash:  # Most items have nothing to tell.
        record = _record_of(item)
        record.warnings, record.notes, record.next = warnings, [note] if note else [], command


def add_heal(item: pytest.Item, heal: Heal) -> None:
    """Remember the work on one type, for the summary and for report readers."""
    record = _record_of(item)
    if heal.outcome == "regenerated":
        # The item passes now, so that what was tried in vain before leaves nothing to do.
        record.heals = [replace(vain, outcome="skipped", next="") for vain in record.heals]
    record.heals.append(heal)
    mine = [entry for entry in item.user_properties if not entry[0].startswith("regen.")]
    item.user_properties[:] = mine + _properties(record.heals)


def _properties(heals: list[Heal]) -> list[tuple[str, object]]:
    # Nothing is tried after what lets the item pass.
    passes = heals[-1].outcome == "regenerated"
    telling = heals[-1] if passes else heals[0]
    return [
        ("regen.outcome", telling.outcome),
        ("regen.stop_reason", telling.stop_reason),
        ("regen.attempts", max(heal.attempts for heal in heals)),
        ("regen.calls", sum(heal.calls for heal in heals)),
        ("regen.tokens", sum(heal.tokens for heal in heals)),
        ("regen.tokens_in", sum(heal.tokens_in for heal in heals)),
        ("regen.tokens_out", sum(heal.tokens_out for heal in heals)),
        ("regen.pages", ",".join(f"{heal.unit}:{page}" for heal in heals for page in heal.pages)),
    ]


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the item's record on the report of its call, if it has one."""
    record = item.stash.get(_RECORD, None)
    if record is not None and report.when == "call":
        report.__dict__[RECORD_KEY] = record.to_json()


def record_on(report: pytest.TestReport) -> Record | None:
    """Return the record a report carries."""
    data = report.__dict__.get(RECORD_KEY)
    return None if data is None else Record.from_json(data)
