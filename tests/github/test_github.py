"""What GitHub reads: no text ends its own line, no page grows beyond what it takes."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled

from pytest_regen.github import (
    MAX_ANNOTATIONS,
    MAX_SUMMARY,
    Finding,
    annotation_lines,
    append_summary,
    code_span,
    details,
    repository_path,
    table,
)

COMMAND = re.compile(r"::(?P<name>[a-z]+)(?: (?P<given>[^:]*))?::(?P<message>.*)", re.DOTALL)
"""How GitHub's runner takes a line apart: properties end at the first ``::`` after the name."""

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e]")

TEXT = st.text() | st.text("%0aAdD\r\n:,=#[]\x85\u2028 \t")


def read(line: str) -> tuple[str, dict[str, str], str]:
    """Return name, properties and message of a command, as GitHub's runner reads it."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    pairs = dict(part.split("=", 1) for part in (found["given"] or "").split(",") if part)
    return found["name"], pairs, found["message"]


@given(title=TEXT, message=TEXT, path=TEXT)
@settings(max_examples=scaled(60))
def test_no_text_starts_a_second_command(title: str, message: str, path: str) -> None:
    """Whatever a model, a document or a folder is called: one line, of which nothing is lost."""
    place = Path(path.replace("\0", "") or "x")
    (line,) = annotation_lines([Finding("error", title, "", message, place, 3)])

    assert len(line.splitlines()) == 1
    assert UNSEEN.search(line) is None
    name, given_, said = read(line)
    assert name == "error"
    assert set(given_) <= {"file", "line", "title"}
    assert said.replace("%25", "").replace("%0A", "").count("%") == 0


def test_a_message_is_what_it_was() -> None:
    """Signs that mean something to GitHub come back as they were."""
    (line,) = annotation_lines([Finding("warning", "b, c", "A", "100 %, a::b\nand on")])

    assert line == "::warning title=A%3A b%2C c::100 %25, a::b%0Aand on"


def test_ten_of_a_kind_and_a_count() -> None:
    """Equal ones count once."""
    found = [Finding("error", "t", "", str(n % 12)) for n in range(40)]
    found += [Finding("warning", "t", "", str(n)) for n in range(11)]

    *lines, last = annotation_lines(found)

    names = [read(line)[0] for line in lines]
    assert (names.count("error"), names.count("warning")) == (MAX_ANNOTATIONS, MAX_ANNOTATIONS)
    assert last == "::notice title=pytest-regen::and 2 more errors and 1 more warning: see the log"


def test_a_place_begins_at_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the working directory: a checkout may lie below the workspace, or be no checkout."""
    repository = tmp_path / "work/repository"
    (repository / "pkg").mkdir(parents=True)
    monkeypatch.chdir(repository / "pkg")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "work"))

    assert repository_path(Path("a.cs")) == "repository/pkg/a.cs"
    (repository / ".git").mkdir()
    assert repository_path(Path("a.cs")) == "pkg/a.cs"
    assert repository_path(Path("../../../outside.cs")) is None
    monkeypatch.delenv("GITHUB_WORKSPACE")
    assert repository_path(repository / "a.cs") == "a.cs"


def test_a_page_takes_no_more_than_it_may(tmp_path: Path) -> None:
    """What comes first is there, and a line says that there is more."""
    page = tmp_path / "page.md"
    page.write_text("before\n", "utf-8")

    append_summary(page, ["### head", *(["ü" * 100_000] * 30)])
    size = page.stat().st_size

    text = page.read_text("utf-8")
    assert text.startswith("before\n### head\n")
    assert text.endswith("_More does not fit here; the log has it._\n")
    assert 800_000 < size <= MAX_SUMMARY
    append_summary(page, ["y" * 300_000])
    assert page.stat().st_size <= MAX_SUMMARY


@pytest.mark.parametrize(
    "text", ["a|b", "`</td>`", "``` x", "a\n# b", "\u202e\x1b[31m", "", "![i](u)"]
)
def test_a_cell_is_text(text: str) -> None:
    """A code span on one line, whose bars and back-ticks end nothing."""
    cells = re.split(r"(?<!\\)\|", table(("a", "b"), [(code_span(text), "1")]).splitlines()[2])

    assert len(cells) == 4
    cell = cells[1].strip()
    fence = re.match("`*", cell)
    assert fence is not None
    inner = cell[len(fence[0]) : len(cell) - len(fence[0])]
    assert not fence[0] or not re.search(rf"(?<!`){fence[0]}(?!`)", inner)
    assert cell.isprintable()


def test_what_unfolds_is_text() -> None:
    """No title and no line of it ends its block."""
    shown = details("</summary><b>*x*", "```\n</details>\n+\ta````b\x1b", "diff").splitlines()

    assert shown[0] == "<details><summary>&lt;/summary&gt;&lt;b&gt;*x*</summary>"
    assert shown[2] == "`````diff"
    assert shown[3:7] == ["```", "</details>", "+    a````b\\u001b", "`````"]
