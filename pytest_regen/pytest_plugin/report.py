"""The report as JSON: what happened to the items of a run. The format: docs/pytest.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from pytest_regen.pytest_plugin.summary import HealReport
from pytest_regen.text import plural

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
class ReportEntry:
    """One item while its phases are heard."""

    id: str
    kind: str = "test"
    group: str = "tests"
    """Under which heading it is counted: the name of a kind, for one."""
    place: tuple[str, int | None] = ("", None)
    """File, from the rootdir, and line that people look at first where no issue has its own."""
    outcome: str = "unfinished"
    text: str = ""
    issues: list[Json] = field(default_factory=list)
    heals: list[HealReport] = field(default_factory=list)
    command: str = ""
    """The command that repairs it, where nothing was tried."""
    rerun: str = ""
    """What runs it again."""

    def add_phase(self, category: str, text: str) -> None:
        """Take in how a phase ended; of several phases the worst counts.

        Args:
            category: pytest's word for it, empty for a phase that is not counted.
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
            "group": self.group,
            "place": [self.place[0] or self.id.partition("::")[0], self.place[1]],
            "outcome": self.outcome,
            "issues": self.issues,
            "heals": [_heal(heal) for heal in self.heals],
            "text": self.text,
            "next": self._next(advice) if self.outcome == "failed" else "",
        }

    def _next(self, advice: str) -> str:
        after_heal = next((heal.next for heal in self.heals if heal.next), advice)
        repair = "" if self.heals else self.command
        return after_heal or repair or self.rerun


def report_of(
    run: Json, entries: Iterable[ReportEntry], collection_errors: Sequence[Json], cassettes: Json
) -> Json:
    """Return the whole report. Its order does not depend on which worker was first."""
    advice = {note["test"]: note["next"] for note in cassettes["notes"] if note["failed"]}
    ordered = sorted(entries, key=lambda entry: entry.id)
    items = [entry.to_json(advice.get(entry.id, "")) for entry in ordered]
    heals = [heal for item in items for heal in item["heals"]]
    failed = [item for item in items if item["outcome"] == "failed"]
    # What was tried and failed first, as in the terminal.
    tried = [item for item in failed if any(heal["next"] for heal in item["heals"])]
    failing = run["next"] if tried else next((item["next"] for item in failed), "")
    changed = sorted({path for heal in heals for path in heal["changed"]})
    return {
        "format": "pytest-regen/report",
        "version": FORMAT,
        "run": {
            **run,
            "emulated": any(heal["emulated"] for heal in heals),
            "changed": changed,
            "next": failing or run["next"],
            "pending": sorted({id_ for heal in heals for id_ in heal["pending"]}),
        },
        "totals": {**_totals(items, heals), "drifted": len(cassettes["drifted"])},
        "kinds": _kinds(items),
        "items": items,
        "cassettes": cassettes,
        "collection_errors": sorted(collection_errors, key=lambda one: str(one["id"])),
    }


def _totals(items: Sequence[Json], heals: Sequence[Json]) -> Json:
    counts = Counter(item["outcome"] for item in items)
    warnings = [
        issue for item in items for issue in item["issues"] if issue["severity"] == "warning"
    ]
    costs = [Decimal(heal["cost_usd"]) for heal in heals if heal["cost_usd"] is not None]
    summed = ("calls", "tokens_in", "tokens_out", "cache_read", "cache_write")
    return {
        "items": len(items),
        **{outcome: counts[outcome] for outcome in OUTCOMES},
        "warnings": len(warnings),
        **{key: sum(heal[key] for heal in heals) for key in summed},
        "cost_usd": str(sum(costs)) if costs else None,
    }


_STATES: Final = {
    "MISSING_UNIT": "missing",
    "DRIFT": "edited",
    "STALE": "stale",
    "UNRECORDED": "unrecorded",
    "WEAKENED": "weakened",
}
"""Codes that say in which state a type or unit is, and the word for that."""


def _kinds(items: Sequence[Json]) -> list[Json]:
    """Return how many items of each kind there are, with their outcomes and states."""
    found = []
    names = list(dict.fromkeys(item["group"] for item in items))
    order = {name: number for number, name in enumerate(_GROUPS)}
    for name in sorted(names, key=lambda name: (order.get(name, len(_GROUPS) - 2.5), name)):
        mine = [item for item in items if item["group"] == name]
        outcomes = Counter(item["outcome"] for item in mine)
        states = Counter(
            word
            for item in mine
            for code, word in _STATES.items()
            if any(issue["code"] == code for issue in item["issues"])
        )
        counts = {outcome: outcomes[outcome] for outcome in OUTCOMES}
        found.append({"kind": name, "items": len(mine), **counts, "states": dict(states)})
    return found


_GROUPS: Final = ("types", "functions", "translations", "sessions", "tests")
"""Kinds in the order in which they are listed; those of one's own stand before the tests."""


def _heal(heal: HealReport) -> Json:
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
        "cache_write": heal.cache_write,
        "cost_usd": heal.cost or None,
        "estimate": heal.estimate,
        "emulated": heal.emulated,
        "by_template": heal.by_template,
        "ordered": heal.ordered,
        "findings": heal.findings,
        "why": heal.why,
        "changed": heal.changed,
        "diff": heal.diff,
        "next": heal.next,
        "transcript": heal.transcript,
        "has_pages": heal.has_pages,
        "pending": heal.pending,
    }


def clean_report(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a JSON value with every text in it cleaned; keys are ours, and stay."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {key: clean_report(part, clean) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean_report(part, clean) for part in value]
    return value


def is_empty(report: Json) -> bool:
    """Return whether a run has nothing to tell: none of our items, and no reason to end badly."""
    run = report["run"]
    told = report["items"], report["collection_errors"], run["why_failed"], run["stopped"]
    return not any(told)


def in_short(totals: Json) -> str:
    """Return what became of the items in numbers, ``1 failed, 2 passed``."""
    counts = (f"{totals[outcome]:,} {outcome}" for outcome in OUTCOMES if totals[outcome])
    return ", ".join(counts) or "nothing ran"


def headline(report: Json) -> str:
    """Return what happened as a sentence without its full stop."""
    totals = report["totals"]
    items, failed, healed = totals["items"], totals["failed"], totals["regenerated"]
    if failed:
        return f"{failed:,} of {items:,} {'fails' if failed == 1 else 'fail'}"
    if report["collection_errors"]:
        return "Not everything could be collected"
    if not items:
        return "Nothing was checked"
    if totals["unfinished"]:
        return f"{totals['unfinished']:,} of {items:,} did not finish"
    if healed:
        return f"{_all(items)}, {healed:,} only after regeneration"
    return _all(items) if totals["passed"] == items else f"{totals['passed']:,} of {items:,} pass"


def _all(items: int) -> str:
    return "It passes" if items == 1 else f"All {items:,} pass"


def spent(totals: Json) -> str:
    """Return what was asked of models as a sentence."""
    written, read = totals["cache_write"], totals["cache_read"]
    parts = [f"{totals['tokens_in'] - written:,} tokens of input"]
    parts += [f"{written:,} written to the prompt cache"] if written else []
    parts += [f"{read:,} read from it"] if read and written else []
    parts += [f"{read:,} read from the prompt cache"] if read and not written else []
    parts.append(f"{totals['tokens_out']:,} of output")
    cost = totals["cost_usd"]
    price = f", ${cost} for live requests whose price is known" if cost is not None else ""
    return f"{plural(totals['calls'], 'request')}: {', '.join(parts)}{price}."
