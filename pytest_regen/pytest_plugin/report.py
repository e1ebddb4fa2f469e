"""The report: what happened to the items of a run, as JSON and for GitHub.

The format of the JSON is described in docs/reference/formats.md.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

from pytest_regen import github
from pytest_regen.github import Finding
from pytest_regen.pytest_plugin.summary import HealReport
from pytest_regen.text import plural

FORMAT: Final = 1
"""Raised when a reader of the old format would misread the new one; keys may be added."""

OUTCOMES: Final = ("failed", "regenerated", "passed", "skipped", "unfinished")
"""What may become of an item."""

Json = dict[str, Any]

_OF_CATEGORY: Final = {"xpassed": "passed", "xfailed": "skipped", "error": "failed"}
"""pytest's words for one phase of an item that are not ours for the item."""
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
        outcome = _OF_CATEGORY.get(category, category)
        # Another plugin's word, such as a rerun, is no end.
        if outcome in _WEIGHT[_WEIGHT.index(self.outcome) :]:
            self.outcome = outcome
        self.text = "\n\n".join(filter(None, (self.text, text)))

    def to_json(self, advice: str = "") -> Json:
        """Return plain JSON.

        Args:
            advice: what to run next, as the test's cassette has it.
        """
        following = next((heal.next for heal in self.heals if heal.next), advice)
        following = following or ("" if self.heals else self.command) or self.rerun
        return {
            "id": self.id,
            "kind": self.kind,
            "group": self.group,
            "place": [self.place[0] or self.id.partition("::")[0], self.place[1]],
            "outcome": self.outcome,
            "issues": self.issues,
            "heals": list(map(asdict, self.heals)),
            "text": self.text,
            "next": following if self.outcome == "failed" else "",
        }


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
    counts = Counter(item["outcome"] for item in items)
    issues = [issue for item in items for issue in item["issues"]]
    # Not as floats, because their sum would have digits that nobody was charged.
    costs = [Decimal(heal["cost_usd"]) for heal in heals if heal["cost_usd"] is not None]
    summed = ("calls", "tokens_in", "tokens_out", "cache_read", "cache_write")
    return {
        "format": "pytest-regen/report",
        "version": FORMAT,
        "run": {
            **run,
            "emulated": any(heal["emulated"] for heal in heals),
            "changed": sorted({path for heal in heals for path in heal["changed"]}),
            "next": failing or run["next"],
            "pending": sorted({id_ for heal in heals for id_ in heal["pending"]}),
        },
        "totals": {
            "items": len(items),
            **{outcome: counts[outcome] for outcome in OUTCOMES},
            "warnings": sum(issue["severity"] == "warning" for issue in issues),
            **{key: sum(heal[key] for heal in heals) for key in summed},
            "cost_usd": str(sum(costs)) if costs else None,
            "drifted": len(cassettes["drifted"]),
        },
        "kinds": list(_kinds(items)),
        "items": items,
        "cassettes": cassettes,
        "collection_errors": sorted(collection_errors, key=lambda error: str(error["id"])),
    }


_STATES: Final = {
    "MISSING_UNIT": "missing",
    "DRIFT": "edited",
    "STALE": "stale",
    "UNRECORDED": "unrecorded",
    "WEAKENED": "weakened",
}
"""Codes that say in which state a type or unit is, and the word for that."""


_GROUPS: Final = ("types", "functions", "translations", "", "sessions", "tests")
"""Kinds in the order in which they are listed; "" stands for those of one's own."""


def _kinds(items: Sequence[Json]) -> Iterator[Json]:
    """Yield how many items of each kind there are, with their outcomes and states."""

    def rank(name: str) -> tuple[int, str]:
        return _GROUPS.index(name if name in _GROUPS else ""), name

    for name in sorted({item["group"] for item in items}, key=rank):
        group = [item for item in items if item["group"] == name]
        outcomes = Counter(item["outcome"] for item in group)
        states = Counter(
            _STATES[code]
            for item in group
            for code in dict.fromkeys(issue["code"] for issue in item["issues"])
            if code in _STATES
        )
        counts = {outcome: outcomes[outcome] for outcome in OUTCOMES}
        yield {"kind": name, "items": len(group), **counts, "states": dict(states)}


def clean_report(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a JSON value with every text in it cleaned; keys are ours, and stay."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {key: clean_report(part, clean) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean_report(part, clean) for part in value]
    return value


def in_short(counts: Json) -> str:
    """Return what became of the items in numbers, ``1 failed, 2 passed``."""
    words = (f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome])
    return ", ".join(words) or "nothing ran"


def findings_of(report: Json) -> Iterator[Finding]:
    """Yield what is wrong at the end of a run, for GitHub; places begin at the rootdir."""
    for error in report["collection_errors"]:
        place = Path(error["id"].partition("::")[0])
        yield Finding("error", error["id"], "not collected", error["text"], place)
    for item in report["items"]:
        failing = _failing_issues(item) if item["outcome"] == "failed" else []
        warnings = [issue for issue in item["issues"] if issue["severity"] == "warning"]
        # A stale type that fails is an error, whatever its severity: it is told once.
        for issue in (*failing, *(issue for issue in warnings if issue not in failing)):
            is_failing = issue in failing
            place, line = (issue["path"], issue["line"]) if issue["path"] else item["place"]
            message = "\n".join(filter(None, (issue["message"], issue["detail"])))
            following = item["next"] if is_failing else ""
            level: Literal["error", "warning"] = "error" if is_failing else "warning"
            yield Finding(level, item["id"], issue["code"], message, Path(place), line, following)


def _failing_issues(item: Json) -> list[Json]:
    errors = [issue for issue in item["issues"] if issue["severity"] == "error"]
    errors = errors or [issue for issue in item["issues"] if issue["code"] == "STALE"]
    if errors:
        return errors
    # A test's own words: the first line of its assertion, else the last that pytest shows.
    lines = [line for line in item["text"].splitlines() if line.strip()]
    words = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    message = next(iter(words or lines[-1:]), "") or "it failed"
    return [{"code": "", "message": message, "detail": "", "path": "", "line": None}]


_DIFFS: Final = 40
"""Changes that unfold in the job summary; the commit has them all."""


def summary_blocks(report: Json) -> Iterator[str]:
    """Yield the job summary of a scrubbed report, what matters most first.

    Nothing where none of our items ran and no reason of ours lets the run end badly.
    """
    run, totals = report["run"], report["totals"]
    if not (report["items"] or report["collection_errors"] or run["why_failed"] or run["stopped"]):
        return
    yield f"### pytest-regen: {in_short(totals)}"
    counted = ", ".join(f"{kind['items']:,} {kind['kind']}" for kind in report["kinds"])
    of = f"Counted: {counted}; unmarked tests are not. " if totals["failed"] else ""
    reasons = ", ".join(map(github.code_span, filter(None, (run["why_failed"], run["stopped"]))))
    because = f": {reasons}" if reasons else ""
    yield f"{of}pytest exits with {run['exit_code']}{because}."
    yield github.failing_table(findings_of(report), report["links"].get)
    heals = [heal for item in report["items"] for heal in item["heals"]]
    rows = [
        (
            github.code_span(heal["unit"]),
            heal["outcome"],
            github.code_span(heal["why"].partition("\n")[0] or heal["stop_reason"]),
            f"{heal['calls']:,}",
            f"{heal['tokens_in'] + heal['tokens_out'] + heal['cache_read']:,}",
        )
        for heal in heals
    ]
    yield github.table(("unit", "outcome", "reason", "calls", "tokens"), rows)
    if pending := run["pending"]:
        waits = f"{plural(len(pending), 'candidate')} {'waits' if len(pending) == 1 else 'wait'}"
        names = [f"- {github.code_span(candidate)}" for candidate in pending[:_DIFFS]]
        yield "\n".join((f"{waits} for `pytest-regen review`:", "", *names))
    if run["next"]:
        yield f"Next: {github.code_span(run['next'])}"
    if totals["calls"]:
        cost = totals["cost_usd"]
        price = f", ${cost} for live requests whose price is known" if cost is not None else ""
        yield (
            f"{plural(totals['calls'], 'request')}: {totals['tokens_in']:,} tokens of input, "
            f"{totals['cache_read']:,} read from the prompt cache, "
            f"{totals['tokens_out']:,} of output{price}."
        )
    if run["emulated"]:
        yield "_Emulated: replies came from the emulator or its recordings, not from a model._"
    changed = [heal for heal in heals if heal["diff"]]
    for heal in changed[:_DIFFS]:
        yield github.details(f"What changed: {heal['unit']}", heal["diff"], "diff")
    if len(changed) > _DIFFS:
        yield f"… and {len(changed) - _DIFFS:,} more that changed"
