"""What GitHub Actions shows of a run: annotations at file and line, and the job summary.

Commands and pytest hand in findings; annotations and Markdown come out. The rules are those of
GitHub's reference of workflow commands: a line that begins with ``::`` is a command, so that no
text of others may end its own line; a step shows ten errors and ten warnings; of a step the job
summary holds a mebibyte.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Final, Literal

from pytest_regen import text as texts
from pytest_regen.modes import AnnotationPolicy, StalePolicy, stale_outcome

MAX_ANNOTATIONS: Final = 10
"""Errors, and warnings, that GitHub shows of one step."""

MAX_SUMMARY: Final = 1024 * 1024
"""Bytes that the job summary takes of one step; of a longer file it takes nothing."""

_MAX_MESSAGE: Final = 4_000
_MAX_TITLE: Final = 200
_MAX_CELL: Final = 300
_MAX_ROWS: Final = 20
# Characters of a text that is folded away: some forty of them fit.
_MAX_BLOCK: Final = 60_000

_MORE: Final = "\n_More does not fit here; the log has it._\n"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, for the page of a commit or pull request."""

    level: Literal["error", "warning"]
    unit: str
    """What it is about: a unit, a test, a file."""
    code: str
    """Of the issue; empty for a test's own words."""
    message: str
    path: Path | None = None
    """Of a command's finding from the working directory, of pytest's from the rootdir."""
    line: int | None = None
    next: str = ""
    """The command that mends it."""


def wants_annotations(policy: AnnotationPolicy) -> bool:
    """Return whether annotations are printed: always, never, or where GitHub Actions runs this."""
    return policy == "always" or (
        policy == "auto" and os.environ.get("GITHUB_ACTIONS", "").strip().lower() == "true"
    )


def annotation_lines(findings: Iterable[Finding], root: Path | None = None) -> Iterator[str]:
    """Yield a command for each finding that GitHub shows, errors first, and how many it does not.

    Args:
        findings: equal ones count once.
        root: where their paths begin; the working directory by default.
    """
    counts: Counter[str] = Counter()
    for finding in sorted(dict.fromkeys(findings), key=lambda finding: finding.level):
        counts[finding.level] += 1
        if counts[finding.level] <= MAX_ANNOTATIONS:
            yield _annotation(finding, root or Path())
    more = [
        texts.plural(count - MAX_ANNOTATIONS, f"more {level}")
        for level, count in sorted(counts.items())
        if count > MAX_ANNOTATIONS
    ]
    if more:
        # A third kind, which the limit of the other two leaves room for.
        yield _command("notice", f"and {' and '.join(more)}: see the log", title="pytest-regen")


def _annotation(finding: Finding, root: Path) -> str:
    message = finding.message
    if finding.next:
        message += f"\nnext: {finding.next}"
    place = repository_path(root / finding.path) if finding.path is not None else None
    if finding.path is not None and place is None:
        # A file beside the repository has no page there; it is named in words.
        message = f"{finding.path}: {message}"
    return _command(
        finding.level,
        message,
        file=place or "",
        line=str(finding.line) if place and finding.line else "",
        title=_cut(": ".join(filter(None, (finding.code, finding.unit))), _MAX_TITLE),
    )


def _command(name: str, message: str, **properties: str) -> str:
    pairs = ",".join(
        f"{key}={_escape(texts.flatten(value)).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
        if value
    )
    # Each line by itself: what could end one is spelled out, the ends that are meant are escaped.
    lines = map(texts.flatten, message.expandtabs(4).splitlines())
    return f"::{f'{name} {pairs}'.strip()}::{_escape(_cut(chr(10).join(lines), _MAX_MESSAGE))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length].rstrip()} …"


def repository_path(path: Path) -> str | None:
    """Return a file as GitHub names it, from the root of its repository; ``None`` if outside.

    The root is the nearest folder with a ``.git`` folder; none above ``GITHUB_WORKSPACE``, which
    is the root where there is no such folder, as in a container that has a copy of the files.
    """
    place = Path(os.path.normpath(Path.cwd() / path))
    variable = os.environ.get("GITHUB_WORKSPACE")
    workspace = Path(os.path.normpath(variable)) if variable else None
    for folder in place.parents:
        if workspace is not None and not folder.is_relative_to(workspace):
            return None
        if (folder / ".git").is_dir() or folder == workspace:
            return place.relative_to(folder).as_posix()
    return None


# The job summary


def append_summary(file: Path, blocks: Iterable[str]) -> None:
    """Append Markdown to the job summary, as much of it as fits.

    Args:
        file: the one that ``GITHUB_STEP_SUMMARY`` names; others write to it as well.
        blocks: paragraphs, tables and folded texts, the important ones first.

    Raises:
        OSError: the file cannot be written.
    """
    room = MAX_SUMMARY - (file.stat().st_size if file.is_file() else 0) - len(_MORE)
    if room < 0:
        return
    with file.open("ab") as opened:
        for block in filter(None, blocks):
            data = f"{block}\n\n".encode("utf-8", "backslashreplace")
            room -= len(data)
            if room < 0:
                # Of a file that is too long GitHub shows nothing at all.
                opened.write(_MORE.encode())
                return
            opened.write(data)


def failing_table(findings: Iterable[Finding], link: Callable[[str], str | None]) -> str:
    """Return the table of what fails: a row for each unit, with its first error.

    Args:
        findings: all; those of one unit stand together.
        link: where an issue code is explained.
    """
    by_unit: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.level == "error":
            by_unit.setdefault(finding.unit, []).append(finding)
    rows = []
    for unit, errors in by_unit.items():
        first = errors[0]
        code, address = code_span(first.code), link(first.code) if first.code else None
        words = [f"[{code}]({address})" if address else code]
        words.append(code_span(first.message.partition("\n")[0]))
        words.append(f"(and {len(errors) - 1} more)" if len(errors) > 1 else "")
        place = first.path.as_posix() if first.path else ""
        where = code_span(f"{place}:{first.line}" if first.line else place)
        rows.append((code_span(unit), " ".join(filter(None, words)), where, code_span(first.next)))
    return table(("failing", "what is wrong", "where", "next"), rows)


def code_span(text: str) -> str:
    """Return a text as a code span of one line, in which nothing is markup."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line:
        return ""
    line = _cut(line, _MAX_CELL)
    fence = _fence(line)
    inner = f" {line} " if len(fence) > 1 else line
    return f"{fence}{inner}{fence}".replace("|", "\\|")


def _fence(text: str, shortest: int = 1) -> str:
    """Return back-ticks that no run of them in a text can end."""
    return "`" * max((shortest, *(len(run) + 1 for run in re.findall("`+", text))))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of which the first rows are shown and the others counted; "" without rows.

    Args:
        head: what stands above the columns.
        rows: cells that are Markdown already, as ``code_span`` makes it.
    """
    if not rows:
        return ""
    lines = (head, ["---"] * len(head), *rows[:_MAX_ROWS])
    more = f"\n\n… and {len(rows) - _MAX_ROWS:,} more" if len(rows) > _MAX_ROWS else ""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + more


def details(title: str, text: str, language: str = "") -> str:
    """Return a text that unfolds below its title, letter by letter as it is.

    Args:
        title: plain text.
        text: what is shown, cut where it is very long.
        language: for its colours: ``diff``.
    """
    start = text if len(text) <= _MAX_BLOCK else text[:_MAX_BLOCK].rpartition("\n")[0]
    cut = len(text.splitlines()) - len(start.splitlines())
    lines = [texts.flatten(line.replace("\t", "    ")) for line in start.splitlines()]
    lines += [f"… {texts.plural(cut, 'more line')}"] if cut else []
    fence = _fence("\n".join(lines), 3)
    # Up to the blank line all is HTML, so that nothing of the title is read as Markdown.
    head = f"<details><summary>{escape(texts.flatten(title))}</summary>"
    return "\n".join((head, "", f"{fence}{language}", *lines, fence, "", "</details>"))


# What commands tell


def annotate(policy: AnnotationPolicy, findings: Iterable[Finding]) -> None:
    """Print what a command found as annotations, on stderr, because JSON is on stdout.

    Args:
        policy: whether anything is printed.
        findings: they are scrubbed here.
    """
    from pytest_regen.credentials.search import scrub_text

    if wants_annotations(policy):
        clean = (
            replace(finding, unit=scrub_text(finding.unit), message=scrub_text(finding.message))
            for finding in findings
        )
        sys.stderr.writelines(f"{line}\n" for line in annotation_lines(clean))
        sys.stderr.flush()


def validated(
    stale: StalePolicy, reports: Iterable[tuple[str, Mapping[str, Any]]]
) -> Iterator[Finding]:
    """Yield what ``validate`` found.

    Args:
        stale: what becomes of a stale type.
        reports: of places, as ``--json`` shows them, each with the key of its units.
    """
    outcome = stale_outcome(stale)
    for key, report in reports:
        issues = [(i["type_name"], i) for i in (*report["errors"], *report["orphans"])]
        issues += [
            (unit["name"], i) for unit in report[key] for i in (*unit["errors"], *unit["warnings"])
        ]
        for name, issue in issues:
            is_stale = issue["code"] == "STALE"
            if is_stale and outcome == "ignore":
                continue
            fails = is_stale and outcome == "fail" and not issue.get("is_by_hand")
            message = "\n".join(filter(None, (issue["message"], issue.get("detail"))))
            path = Path(report["source"])
            yield Finding(
                "error" if issue["severity"] == "error" or fails else "warning",
                f"{report['path']}::{name}" if name else report["path"],
                issue["code"],
                message,
                path.with_name(issue["file"]) if issue.get("file") else path,
                issue.get("line"),
            )
