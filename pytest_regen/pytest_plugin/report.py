"""The report as JSON: what happened to the items of a run. The format: docs/pytest.md."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from pytest_regen.pytest_plugin.summary import HealReport

__all__ = [
    "FORMAT",
    "OUTCOMES",
    "Json",
    "ReportEntry",
    "append_job_summary",
    "clean_report",
    "job_summary_file",
    "report_of",
]


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
    failing = next((item["next"] for item in (*tried, *failed)), "")
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


_ROWS: Final = 20
"""Rows of a table; the page of a job is no place for a thousand."""
_LONGEST: Final = 300
"""Characters of a cell."""


def job_summary_file() -> Path | None:
    """Return the file whose Markdown the page of the job shows; ``None`` where there is none."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def append_job_summary(file: Path, report: Json) -> None:
    """Append the report of a run that failed or regenerated something.

    Args:
        file: see ``job_summary_file``; other steps write to it as well.
        report: of the run, scrubbed.

    Raises:
        OSError: the file cannot be written.
    """
    text = "\n".join(_lines(report))
    if text:
        with file.open("a", encoding="utf-8", newline="\n") as opened:
            opened.write(f"{text}\n")


def _lines(report: Json) -> Iterator[str]:
    run, items, errors = report["run"], report["items"], report["collection_errors"]
    failing = [item for item in items if item["outcome"] == "failed"]
    heals = [heal for item in items for heal in item["heals"]]
    if not (failing or heals or errors or run["why_failed"] or run["stopped"]):
        return
    totals = report["totals"]
    counts = [f"{totals[outcome]} {outcome}" for outcome in OUTCOMES if totals[outcome]]
    yield f"### pytest-regen: {', '.join(counts) or 'nothing ran'}"
    for reason in (run["why_failed"], run["stopped"]):
        if reason:
            yield ""
            yield f"pytest exits with {run['exit_code']}: {_code(reason)}"
    rows = [(item["id"], _what(item), _where(item), item["next"]) for item in failing]
    yield from _table(("failing", "what is wrong", "where", "next"), rows)
    yield from _table(("not collected", "why"), [(error["id"], error["text"]) for error in errors])
    work = [
        (heal["unit"], heal["outcome"], heal["stop_reason"], heal["calls"], _tokens(heal))
        for heal in heals
    ]
    yield from _table(("unit", "outcome", "reason", "calls", "tokens"), work)
    yield ""


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows[:_ROWS]:
        yield _row(_code(cell) if isinstance(cell, str) else str(cell) for cell in row)
    if len(rows) > _ROWS:
        yield ""
        yield f"… and {len(rows) - _ROWS:,} more"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """Return a text as a code span of one line, in which nothing is markup."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line:
        return ""
    line = line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"
    longest = max((len(run) for run in _backticks(line)), default=0)
    fence = "`" * (longest + 1)
    inner = f" {line} " if longest else line
    return f"{fence}{inner}{fence}".replace("|", "\\|")


def _backticks(line: str) -> Iterator[str]:
    return (run for run in "".join(c if c == "`" else " " for c in line).split())


def _tokens(heal: Json) -> int:
    return int(heal["tokens_in"] + heal["tokens_out"] + heal["cache_read"])


def _errors(item: Json) -> list[Json]:
    return [issue for issue in item["issues"] if issue["severity"] == "error"]


def _what(item: Json) -> str:
    errors = _errors(item)
    if errors:
        first = errors[0]
        description = ": ".join(filter(None, (first["code"], first["message"])))
        return f"{description} (and {len(errors) - 1} more)" if len(errors) > 1 else description
    lines = [line for line in item["text"].splitlines() if line.strip()]
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    return next(iter(errors or lines[-1:]), "")


def _where(item: Json) -> str:
    for error in _errors(item):
        if error["path"]:
            return f"{error['path']}:{error['line']}" if error["line"] else str(error["path"])
    return str(item["id"]).partition("::")[0]
