"""What GitHub Actions shows of a run: issues at file and line, and the job summary.

The rules are those of GitHub's reference of workflow commands: a line that begins with ``::`` is a
command, so that no text of others may end its own line; a step shows ten errors and ten warnings;
of a step the job summary holds a mebibyte.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, Literal

from pytest_regen.modes import AnnotationPolicy
from pytest_regen.text import flatten, plural

MAX_ANNOTATIONS: Final = 10
"""Errors, and warnings, that GitHub shows of one step."""

MAX_SUMMARY: Final = 1024 * 1024
"""Bytes that the job summary takes of one step; of a longer file it takes nothing."""

_MAX_MESSAGE: Final = 4_000
_MAX_LINES: Final = 30
_MAX_TITLE: Final = 200
_MAX_CELL: Final = 300
_MAX_ROWS: Final = 20
_MAX_BLOCK: Final = 60_000
"""Characters of a text that is folded away: some forty of them fit."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One thing that is wrong, for the page of a commit or pull request."""

    level: Literal["error", "warning"]
    title: str
    message: str
    path: Path | None = None
    """From the working directory, or absolute."""
    line: int | None = None


def wants_annotations(policy: AnnotationPolicy) -> bool:
    """Return whether annotations are printed: always, never, or where GitHub Actions runs this."""
    return policy == "always" or (
        policy == "auto" and os.environ.get("GITHUB_ACTIONS", "").strip().lower() == "true"
    )


def annotation_lines(annotations: Iterable[Annotation]) -> Iterator[str]:
    """Yield a command for each annotation that GitHub shows, and how many it does not."""
    left_out = {"error": 0, "warning": 0}
    shown = {"error": 0, "warning": 0}
    for annotation in dict.fromkeys(annotations):
        if shown[annotation.level] == MAX_ANNOTATIONS:
            left_out[annotation.level] += 1
            continue
        shown[annotation.level] += 1
        yield _line(annotation)
    more = [f"{count:,} more {level}s" for level, count in left_out.items() if count > 1]
    more += [f"1 more {level}" for level, count in left_out.items() if count == 1]
    if more:
        # A third kind, which the limit of the other two leaves room for.
        yield _command(
            "notice", {"title": "pytest-regen"}, f"and {' and '.join(more)}: see the log"
        )


def _line(annotation: Annotation) -> str:
    place = repository_path(annotation.path) if annotation.path is not None else None
    properties = {
        "file": place or "",
        "line": str(annotation.line) if place and annotation.line else "",
        "title": _cut(annotation.title, _MAX_TITLE),
    }
    message = annotation.message
    if annotation.path is not None and place is None:
        # A file beside the repository has no page there; it is named in words.
        message = f"{annotation.path}: {message}"
    return _command(annotation.level, properties, message)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    given = ",".join(
        f"{key}={_escape_property(flatten(value))}" for key, value in properties.items() if value
    )
    head = f"{name} {given}" if given else name
    lines = message.expandtabs(4).splitlines()
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES:,} more lines"]
    # Each line by itself: what could end one is spelled out, the ends that are meant are escaped.
    text = _cut("\n".join(map(flatten, lines)), _MAX_MESSAGE)
    return f"::{head}::{_escape(text)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length].rstrip()} …"


def repository_path(path: Path) -> str | None:
    """Return a file as GitHub names it, from the root of its repository; ``None`` if outside.

    The root is the nearest folder with a ``.git`` folder; none above ``GITHUB_WORKSPACE``, which
    is the root where there is no such folder, as in a container that has a copy of the files.
    """
    place = Path(os.path.normpath(Path.cwd() / path))
    given = os.environ.get("GITHUB_WORKSPACE")
    spellings = [place] if place == place.resolve() else [place, place.resolve()]
    for spelling in spellings:
        workspace = Path(os.path.normpath(given)) if given else None
        for folder in spelling.parents:
            if workspace is not None and not folder.is_relative_to(workspace):
                break
            if (folder / ".git").is_dir() or folder == workspace:
                return spelling.relative_to(folder).as_posix()
    return None


# The job summary


def summary_file() -> Path | None:
    """Return the file whose Markdown is the job summary; ``None`` where there is none."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def append_summary(file: Path, blocks: Iterable[str]) -> None:
    """Append Markdown to the job summary, as much of it as fits.

    Args:
        file: see ``summary_file``; others write to it as well.
        blocks: paragraphs, tables and folded texts, the important ones first.

    Raises:
        OSError: the file cannot be written.
    """
    room = MAX_SUMMARY - (file.stat().st_size if file.is_file() else 0)
    note = "\n_More does not fit here; the log has it._\n"
    room -= len(note.encode())
    written: list[str] = []
    for block in blocks:
        data = f"{block}\n\n"
        size = len(data.encode("utf-8", "backslashreplace"))
        if size > room:
            written.append(note)
            break
        room -= size
        written.append(data)
    if room < 0:
        return
    with file.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as opened:
        opened.write("".join(written))


def code_span(text: str) -> str:
    """Return a text as a code span of one line, in which nothing is markup."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not line:
        return ""
    line = _cut(line, _MAX_CELL)
    longest = max((len(run) for run in _backticks(line)), default=0)
    fence = "`" * (longest + 1)
    inner = f" {line} " if longest else line
    return f"{fence}{inner}{fence}".replace("|", "\\|")


def _backticks(line: str) -> Iterator[str]:
    return (run for run in "".join(c if c == "`" else " " for c in line).split())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of which the first rows are shown and the rest is counted; "" without rows.

    Args:
        head: what stands above the columns.
        rows: cells that are Markdown already, as ``code_span`` makes it.
    """
    if not rows:
        return ""
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows[:_MAX_ROWS])]
    if len(rows) > _MAX_ROWS:
        lines += ["", f"… and {len(rows) - _MAX_ROWS:,} more"]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def details(title: str, text: str, language: str = "") -> str:
    """Return a text that unfolds below its title, letter by letter as it is.

    Args:
        title: plain text.
        text: what is shown, cut where it is very long.
        language: for its colours: ``diff``.
    """
    shown = text if len(text) <= _MAX_BLOCK else text[:_MAX_BLOCK].rpartition("\n")[0]
    cut = len(text.splitlines()) - len(shown.splitlines())
    lines = [flatten(line.replace("\t", "    ")) for line in shown.splitlines()]
    lines += [f"… {plural(cut, 'more line')}"] if cut else []
    longest = max((len(run) for line in lines for run in _backticks(line)), default=0)
    fence = "`" * max(3, longest + 1)
    # Up to the blank line all is HTML, so that nothing of the title is read as Markdown.
    head = f"<details><summary>{escape(flatten(title))}</summary>"
    return "\n".join((head, "", f"{fence}{language}", *lines, fence, "", "</details>"))
