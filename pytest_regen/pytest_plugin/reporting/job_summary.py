"""The report in short, for the page of a GitHub job: what fails, where, and what is next."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_regen.pytest_plugin.reporting.report import OUTCOMES, Json

__all__ = ["append_job_summary", "job_summary_file"]

_ROWS: Final = 20
"""Rows of a table; the page of a job is no place for a thousand."""
_LONGEST: Final = 300
"""Characters of a cell."""


def job_summary_file() -> Path | None:
    """Return the file whose Markdown the page of the job shows; ``None`` where there is none."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def append_job_summary(file: Path, report: Json) -> None:
    """Append what a red run, or one that regenerated something, has to tell.

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
    counts = [f"{totals[one]} {one}" for one in OUTCOMES if totals[one]]
    yield f"### pytest-regen: {', '.join(counts) or 'nothing ran'}"
    for told in (run["why_failed"], run["stopped"]):
        if told:
            yield ""
            yield f"pytest exits with {run['exit_code']}: {_code(told)}"
    rows = [(item["id"], _what(item), _where(item), item["next"]) for item in failing]
    yield from _table(("failing", "what is wrong", "where", "next"), rows)
    yield from _table(("not collected", "why"), [(one["id"], one["text"]) for one in errors])
    work = [
        (one["unit"], one["outcome"], one["stop_reason"], one["calls"], _tokens(one))
        for one in heals
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
    return [one for one in item["issues"] if one["severity"] == "error"]


def _what(item: Json) -> str:
    errors = _errors(item)
    if errors:
        first = errors[0]
        said = ": ".join(filter(None, (first["code"], first["message"])))
        return f"{said} (and {len(errors) - 1} more)" if len(errors) > 1 else said
    lines = [line for line in item["text"].splitlines() if line.strip()]
    told = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    return next(iter(told or lines[-1:]), "")


def _where(item: Json) -> str:
    for one in _errors(item):
        if one["path"]:
            return f"{one['path']}:{one['line']}" if one["line"] else str(one["path"])
    return str(item["id"]).partition("::")[0]
