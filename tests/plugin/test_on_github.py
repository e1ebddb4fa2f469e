"""GitHub Actions: annotations where something fails, and the page of a job."""

from pathlib import Path

import pytest
from plugin_project import Project

STORE = "generated/GET_v1_projects"
SOURCE = f"{STORE}/ProjectDataObject.cs"


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


def test_a_red_gate_is_told(project: Project, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a title; each failing item with code, place and next command.

    A test of one's own has the first line of its words, without credentials. A run without anything
    of ours says nothing; where nothing can be written, the run ends as it would, and says so. Each
    is an annotation at its line, too, from the root of the repository.
    """
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    folder = project.path.name
    project.broken()
    key = "sk-ant-api03-" + "planted0" * 12
    words = f"a|b {key}, 50 % of it\\n::warning::no command"
    own = f"import pytest\n\n\n@pytest.mark.regen\ndef test_it():\n    assert 0, '{words}'\n"
    project.pytester.makepyfile(test_own=own, test_other="def test_it():\n    assert False\n")

    assert project.run("test_other.py").ret == 1
    nothing = added(page)
    red = project.run("generated", "test_own.py")
    text = added(page)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path))
    unwritten = project.run()

    assert nothing == ""
    assert red.ret == 1
    missing, phantom, own = (line for line in red.outlines if line.lstrip().startswith("::"))
    assert missing.startswith(
        f"::error file={folder}/{STORE}/ProjectDataObject.cs,line=30,"
        f"title=MISSING_FIELD%3A {STORE}%3A%3AOwner::field 'name' is missing%0Anext: pytest "
    )
    assert "line=32,title=PHANTOM_FIELD%3A " in phantom
    assert own.startswith(f"::error file={folder}/test_own.py,line=6,title=test_own.py%3A%3A")
    assert "50 %25 of it" in own
    assert key not in own
    assert key not in text
    words = next(line for line in text.splitlines() if "test_own.py::test_it" in line)
    assert "`AssertionError: a\\|b " in words
    assert words.endswith("| `test_own.py:6` | `pytest test_own.py::test_it` |")
    assert unwritten.ret == 1
    unwritten.stdout.fnmatch_lines(["GITHUB_STEP_SUMMARY was not written: Is a directory: *"])
    assert text.startswith("### pytest-regen: 2 failed, 2 passed\n\nCounted: ")
    row = next(line for line in text.splitlines() if f"`{STORE}::Owner`" in line)
    assert "`MISSING_FIELD` `" in row or "`PHANTOM_FIELD` `" in row
    assert f"`{STORE}/ProjectDataObject.cs:" in row
    assert f"`pytest {STORE}::Owner --regen --regen-record once`" in row
