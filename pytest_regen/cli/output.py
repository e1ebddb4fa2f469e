"""Where commands speak: one JSON document on stdout, everything for people on stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pytest_regen.errors import RegenError
from pytest_regen.regeneration.values import Progress
from pytest_regen.turns.values import Usage
from pytest_regen.validation.issues import Issue, ValidationResult

__all__ = [
    "confirm",
    "describe_failure",
    "emit_json",
    "is_terminal",
    "progress_bar",
    "say",
    "show_diff",
    "show_issues",
    "usage_line",
]

Tell = Callable[[Progress], None]
"""Shows one step of long work."""

_DIFF_LINES = 200
"""Lines of a diff shown on a terminal; the file itself has the rest."""


def say(text: str = "") -> None:
    """Tell people something."""
    print(text, file=sys.stderr)  # noqa: T201 - this is the door to the terminal


def emit_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print the command's one JSON document."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")


def is_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Ask a person; anything but a yes is a no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201 - as above
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def show_issues(results: Mapping[str, ValidationResult], place: str) -> None:
    """List what is wrong, one issue per line, as ``path:line: type [CODE] message``."""
    for issue in _by_line(results):
        where = f"{place}:{issue.line}" if issue.line else place
        page = f" page {issue.page}" if issue.page else ""
        mark = "" if issue.severity == "error" else "warning: "
        say(f"{where}: {mark}{issue.type_name or ''}{page} [{issue.code}] {issue.message}")
        for line in (issue.detail or "").splitlines():
            say(f"    {line}")


def _by_line(results: Mapping[str, ValidationResult]) -> Sequence[Issue]:
    issues = [issue for result in results.values() for issue in result.issues]
    return sorted(issues, key=lambda issue: (issue.severity, issue.line or 0))


def show_diff(diff: str) -> None:
    """Show a unified diff, its first lines."""
    lines = diff.splitlines()
    for line in lines[:_DIFF_LINES]:
        say(line)
    if len(lines) > _DIFF_LINES:
        say(f"… {len(lines) - _DIFF_LINES} more lines")


def usage_line(calls: int, usage: Usage) -> str:
    """Return what was spent, in words."""
    parts = [f"{calls} call{'' if calls == 1 else 's'}"]
    for count, word in (
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read_tokens, "read from cache"),
        (usage.cache_write_tokens, "written to cache"),
    ):
        if count:
            parts.append(f"{count:,} tokens {word}")
    return ", ".join(parts)


def describe_failure(failure: RegenError) -> dict[str, Any]:
    """Return an error as JSON."""
    return {
        "error": type(failure).__name__,
        "what": failure.what,
        "why": failure.why,
        "next": failure.hint,
    }


@contextmanager
def progress_bar(title: str) -> Iterator[Tell]:
    """Show long work: a bar on a terminal, a line per page elsewhere."""
    if not sys.stderr.isatty():
        yield _plain
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for it
    from rich.progress import Progress as Bar  # noqa: PLC0415

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def tell(step: Progress) -> None:
            bar.update(task, completed=step.done, total=step.total)

        yield tell


def _plain(step: Progress) -> None:
    key = step.key
    say(
        f"  {step.done}/{step.total} {key.type_name} page {key.page} of {key.total_pages}: "
        f"{step.what}"
    )
