"""The page of a GitHub job: a red run says there what fails, where, and what is next."""

from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_project import Project

STORE = "generated/GET_v1_projects"


@pytest.fixture
def page(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file whose Markdown is shown; an earlier step has written to it."""
    file = project.path / "summary.md"
    file.write_text("from an earlier step\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    return file


def added(page: Path) -> str:
    """Return what the run has appended."""
    return page.read_text("utf-8").removeprefix("from an earlier step\n")


def test_a_red_gate_is_told(project: Project, page: Path) -> None:
    """With a title; each failing item with code, place and next command."""
    project.broken()

    assert project.run().ret == 1

    text = added(page)
    assert text.startswith("### pytest-regen: 1 failed, 2 passed\n\nCounted: ")
    row = next(line for line in text.splitlines() if f"`{STORE}::Owner`" in line)
    assert "`MISSING_FIELD` `" in row or "`PHANTOM_FIELD` `" in row
    assert f"`{STORE}/ProjectDataObject.cs:" in row
    assert f"`pytest {STORE}::Owner --regen --regen-record once`" in row


def test_what_was_regenerated_is_told(
    project: Project, page: Path, in_ci: Callable[[], None]
) -> None:
    """And why the run is red although all pass."""
    in_ci()
    project.broken()
    project.answered_by("Good")

    project.run("--regen")

    assert "### pytest-regen: 1 regenerated, 2 passed" in added(page)
    assert "pytest exits with 1: `a store was changed and CI is set" in added(page)
    assert f"| `{STORE}::Owner` | regenerated | `clean` | 1 | 140 |" in added(page)
    assert "1 request: 100 tokens of input, 0 read from the prompt cache, 40 of output." in added(
        page
    )
    folded = added(page).partition(f"<details><summary>What changed: {STORE}::Owner</summary>")[2]
    assert "\n```diff\n" in folded
    assert '+    [JsonPropertyName("name")]\n' in folded


def test_a_test_of_ones_own_is_told_by_its_words(project: Project, page: Path) -> None:
    """The first line of its assertion, its file, and how to run it again."""
    project.store()
    project.pytester.makepyfile(
        test_own="import pytest\n\n\n@pytest.mark.regen\ndef test_it():\n    assert 1 == 2, 'a|b'\n"
    )

    project.run()

    row = next(line for line in added(page).splitlines() if "test_own.py::test_it" in line)
    assert "`AssertionError: a\\|b`" in row
    assert row.endswith("| `test_own.py:6` | `pytest test_own.py::test_it` |")


def test_a_run_without_anything_of_ours_says_nothing(project: Project, page: Path) -> None:
    """Though it is red: others tell that."""
    project.store()
    project.pytester.makepyfile(test_other="def test_it():\n    assert False\n")

    assert project.run("test_other.py").ret == 1

    assert added(page) == ""


def test_a_file_that_cannot_be_written_breaks_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends as it would, and says so."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path))
    project.broken()

    result = project.run()

    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["GITHUB_STEP_SUMMARY was not written: Is a directory: *"])


def test_no_credential_gets_there(project: Project, page: Path) -> None:
    """What a test fails with is scrubbed as in recordings."""
    project.store()
    key = "sk-ant-api03-" + "planted0" * 12
    project.pytester.makepyfile(
        test_own=f"import pytest\n\n\n@pytest.mark.regen\ndef test_it():\n    assert 0, '{key}'\n"
    )

    project.run()

    assert "test_own.py::test_it" in added(page)
    assert key not in added(page)
