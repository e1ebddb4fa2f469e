"""The report as JSON: what happened to the items of a run. The format: docs/pytest.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from pytest_regen.pytest_plugin.healing.records import Heal

__all__ = ["FORMAT", "OUTCOMES", "Entry", "Json", "cleaned", "report_of"]

FORMAT: Final = 1
"""Raised when a reader of the old format would misread the new one; keys may be added."""

OUTCOMES: Final = ("failed", "regenerated", "passed", "skipped", "unfinished")
"""What may become of an item."""

Json = dict[str, Any]

_OF_CATEGORY: Final[Mapping[str, str]] = {
    "passed": "passed",
    "xpassed": "passed",
    "regenerated": "regenerated",
    "skipped": "skipped",
    "xfailed": "skipped",
    "failed": "failed",
    "error": "failed",
}
"""pytest's words for one phase of an item, and ours for the item."""
_WEIGHT: Final = ("unfinished", "passed", "regenerated", "skipped", "failed")


@dataclass(slots=True)
class Entry:
    """One item while its phases are heard."""

    id: str
    kind: str = "test"
    outcome: str = "unfinished"
    text: str = ""
    issues: list[Json] = field(default_factory=list)
    heals: list[Heal] = field(default_factory=list)
    command: str = ""
    """What mends it, where nothing was tried."""
    rerun: str = ""
    """What runs it again."""

    def hear(self, category: str, text: str) -> None:
        """Take in how a phase ended; of several phases the worst counts.

        Args:
            category: pytest's word for it, empty for a phase that has nothing to tell.
            text: what pytest shows of it.
        """
        outcome = _OF_CATEGORY.get(category, "unfinished")
        if _WEIGHT.index(outcome) > _WEIGHT.index(self.outcome):
            self.outcome = outcome
        if text:
            self.text = f"{self.text}\n\n{text}" if self.text else text

    def to_json(self, advice: str = "") -> Json:
        """Return plain JSON.

        Args:
            advice: what to run next, as the test's cassette has it.
        """
        return {
            "id": self.id,
            "kind": self.kind,
            "outcome": self.outcome,
            "issues": self.issues,
            "heals": [_heal(heal) for heal in self.heals],
            "text": self.text,
            "next": self._next(advice) if self.outcome == "failed" else "",
        }

    def _next(self, advice: str) -> str:
        told = next((heal.next for heal in self.heals if heal.next), advice)
        mending = "" if self.heals else self.command
        return told or mending or self.rerun


def report_of(
    run: Json, entries: Iterable[Entry], collection_errors: Sequence[Json], cassettes: Json
) -> Json:
    """Return the whole report. Its order does not depend on which worker was first."""
    advice = {note["test"]: note["next"] for note in cassettes["notes"] if note["failed"]}
    ordered = sorted(entries, key=lambda entry: entry.id)
    items = [entry.to_json(advice.get(entry.id, "")) for entry in ordered]
    heals = [heal for item in items for heal in item["heals"]]
    failed = [one for one in items if one["outcome"] == "failed"]
    # What was tried and failed first, as in the terminal.
    tried = [one for one in failed if any(heal["next"] for heal in one["heals"])]
    failing = next((one["next"] for one in (*tried, *failed)), "")
    changed = sorted({path for heal in heals for path in heal["changed"]})
    return {
        "format": "pytest-regen/report",
        "version": FORMAT,
        "run": {
            **run,
            "emulated": any(heal["emulated"] for heal in heals),
            "changed": changed,
            "next": failing or run["next"],
        },
        "totals": {**_totals(items, heals), "drifted": len(cassettes["drifted"])},
        "items": items,
        "cassettes": cassettes,
        "collection_errors": sorted(collection_errors, key=lambda one: str(one["id"])),
    }


def _totals(items: Sequence[Json], heals: Sequence[Json]) -> Json:
    counts = Counter(item["outcome"] for item in items)
    warnings = [one for item in items for one in item["issues"] if one["severity"] == "warning"]
    costs = [Decimal(heal["cost_usd"]) for heal in heals if heal["cost_usd"] is not None]
    summed = ("calls", "tokens_in", "tokens_out", "cache_read")
    return {
        "items": len(items),
        **{outcome: counts[outcome] for outcome in OUTCOMES},
        "warnings": len(warnings),
        **{key: sum(heal[key] for heal in heals) for key in summed},
        "cost_usd": str(sum(costs)) if costs else None,
    }


def _heal(heal: Heal) -> Json:
    return {
        "unit": heal.unit,
        "outcome": heal.outcome,
        "stop_reason": heal.stop_reason,
        "attempts": heal.attempts,
        "pages": heal.pages,
        "calls": heal.calls,
        "tokens_in": heal.tokens_in,
        "tokens_out": heal.tokens_out,
        "cache_read": heal.cache_read,
        "cost_usd": heal.cost or None,
        "estimate": heal.estimate,
        "emulated": heal.emulated,
        "findings": heal.findings,
        "why": heal.why,
        "changed": heal.changed,
        "diff": heal.diff,
        "next": heal.next,
    }


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value with every text in it cleaned; keys are ours, and stay."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {key: cleaned(one, clean) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [cleaned(one, clean) for one in value]
    return value
