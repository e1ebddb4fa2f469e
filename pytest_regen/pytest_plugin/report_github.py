"""The report for GitHub Actions: annotations at file and line, and the job summary."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_regen.github import Annotation, code_span, details, table
from pytest_regen.pytest_plugin.report import OUTCOMES, Json, headline, is_empty, spent
from pytest_regen.text import plural

Link = Callable[[str], str | None]
"""Returns the address of the article on an issue code, if there is one."""

_DIFFS: Final = 40
"""Changes that unfold in the job summary; the commit has them all."""


def annotations_of(
    report: Json, root: Path, *, leaves_out: Callable[[Json], bool] = lambda _: False
) -> Iterator[Annotation]:
    """Yield what is wrong at the end of a run, errors first.

    Args:
        report: of the run, scrubbed.
        root: the rootdir, where its paths begin.
        leaves_out: whether another plugin annotates an item that failed.
    """
    for error in report["collection_errors"]:
        title = "pytest-regen: not collected"
        yield Annotation("error", title, error["text"], root / error["id"].partition("::")[0])
    for item in report["items"]:
        if item["outcome"] == "failed" and not leaves_out(item):
            yield from _failure(item, root)
    run = report["run"]
    if run["why_failed"]:
        changed = next(iter(run["changed"]), None)
        where = root / changed if changed else None
        yield Annotation("error", "pytest-regen: regenerated", run["why_failed"], where)
    for item in report["items"]:
        failing = _errors(item) if item["outcome"] == "failed" else []
        for issue in item["issues"]:
            if issue["severity"] == "warning" and issue not in failing:
                yield _issue(item, issue, "warning", root)


def _failure(item: Json, root: Path) -> Iterator[Annotation]:
    errors = _errors(item)
    for issue in errors:
        yield _issue(item, issue, "error", root)
    if not errors:
        path, line = item["place"]
        yield Annotation("error", item["id"], _words(item), root / path, line)


def _issue(item: Json, issue: Json, level: str, root: Path) -> Annotation:
    lines = [issue["message"], issue["detail"] or ""]
    if level == "error" and item["next"]:
        lines.append(f"next: {item['next']}")
    path = issue["path"] or item["place"][0]
    line = issue["line"] if issue["path"] else item["place"][1]
    title = f"{issue['code']}: {item['id']}" if issue["code"] else item["id"]
    text = "\n".join(filter(None, lines))
    return Annotation("error" if level == "error" else "warning", title, text, root / path, line)


def summary_blocks(report: Json, link: Link = lambda _: None) -> Iterator[str]:
    """Yield the report as Markdown, what matters most first; nothing where nothing of ours ran.

    Args:
        report: of the run, scrubbed.
        link: where an issue code is explained.
    """
    if is_empty(report):
        return
    run, totals = report["run"], report["totals"]
    counts = [f"{totals[outcome]} {outcome}" for outcome in OUTCOMES if totals[outcome]]
    yield f"### pytest-regen: {', '.join(counts) or 'nothing ran'}"
    counted = ", ".join(f"{kind['items']:,} {kind['kind']}" for kind in report["kinds"])
    of = f" Counted: {counted}; unmarked tests are not." if totals["failed"] else ""
    yield f"**{headline(report)}.**{of} pytest exits with {run['exit_code']}{_because(run)}."
    failing = [item for item in report["items"] if item["outcome"] == "failed"]
    rows = [
        (
            code_span(item["id"]),
            _what(item, link),
            code_span(_where(item)),
            code_span(item["next"]),
        )
        for item in failing
    ]
    yield from _given(table(("failing", "what is wrong", "where", "next"), rows))
    errors = report["collection_errors"]
    lost = [(code_span(error["id"]), code_span(error["text"])) for error in errors]
    yield from _given(table(("not collected", "why"), lost))
    heals = [heal for item in report["items"] for heal in item["heals"]]
    yield from _given(table(("unit", "outcome", "reason", "calls", "tokens"), _work(heals)))
    yield from _pending(report)
    if run["next"]:
        yield f"Next: {code_span(run['next'])}"
    if totals["calls"]:
        yield spent(totals)
    if any(heal["emulated"] for heal in heals):
        yield "_Emulated: replies came from the emulator or its recordings, not from a model._"
    changed = [heal for heal in heals if heal["diff"]]
    for heal in changed[:_DIFFS]:
        yield details(f"What changed: {heal['unit']}", heal["diff"], "diff")
    if len(changed) > _DIFFS:
        yield f"… and {len(changed) - _DIFFS:,} more that changed"


def _given(text: str) -> Iterator[str]:
    if text:
        yield text


def _because(run: Json) -> str:
    reasons = [code_span(reason) for reason in (run["why_failed"], run["stopped"]) if reason]
    return f": {', '.join(reasons)}" if reasons else ""


def _work(heals: Sequence[Json]) -> list[tuple[str, ...]]:
    return [
        (
            code_span(heal["unit"]),
            heal["outcome"],
            code_span(heal["why"].partition("\n")[0] or heal["stop_reason"]),
            f"{heal['calls']:,}",
            f"{heal['tokens_in'] + heal['tokens_out'] + heal['cache_read']:,}",
        )
        for heal in heals
    ]


def _pending(report: Json) -> Iterator[str]:
    pending = report["run"].get("pending", [])
    if pending:
        names = [f"- {code_span(str(entry))}" for entry in pending[:_DIFFS]]
        count = plural(len(pending), "candidate")
        waits = "waits" if len(pending) == 1 else "wait"
        yield "\n".join((f"{count} {waits} for `pytest-regen review`:", "", *names))


def _errors(item: Json) -> list[Json]:
    """Return what an item fails with: its errors, or that it is stale, where that is all."""
    issues: list[Json] = item["issues"]
    errors = [issue for issue in issues if issue["severity"] == "error"]
    return errors or [issue for issue in issues if issue["code"] == "STALE"]


def _what(item: Json, link: Link) -> str:
    errors = _errors(item)
    if not errors:
        return code_span(_words(item))
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    address = link(first["code"]) if first["code"] else None
    code = code_span(first["code"])
    if address:
        code = f"[{code}]({address})"
    return f"{code} {code_span(first['message'])}{more}".strip()


def _words(item: Json) -> str:
    """Return what a test failed with, in a line."""
    lines = [line for line in item["text"].splitlines() if line.strip()]
    said = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    return next(iter(said or lines[-1:]), "") or "it failed"


def _where(item: Json) -> str:
    for error in _errors(item):
        if error["path"]:
            return f"{error['path']}:{error['line']}" if error["line"] else str(error["path"])
    path, line = item["place"]
    return f"{path}:{line}" if line else str(path)
