"""Annotations of GitHub: what fails, at file and line, where a commit or pull request shows it."""

from pathlib import Path

import pytest
from plugin_project import Project

STORE = "generated/GET_v1_projects"
SOURCE = f"{STORE}/ProjectDataObject.cs"

OWN = """
    import pytest

    @pytest.mark.regen
    def test_it():
        assert 1 == 2, "50 % of it\\n::warning::no command"
"""


@pytest.fixture
def on_github(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that is a folder of a repository, as a job of GitHub Actions sees it."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    return project


def annotations(result: pytest.RunResult) -> list[str]:
    """Return the lines that GitHub takes for commands."""
    return [line for line in result.outlines if line.lstrip().startswith("::")]


def test_what_fails_stands_at_its_line(on_github: Project) -> None:
    """From the root of the repository, with code, unit and next command; with workers once."""
    on_github.broken()
    on_github.pytester.makepyfile(test_own=OWN)
    folder = on_github.path.name

    result = on_github.run("generated", "test_own.py")

    missing, phantom, own = annotations(result)
    assert missing.startswith(
        f"::error file={folder}/{SOURCE},line=30,title=MISSING_FIELD%3A {STORE}%3A%3AOwner::"
        "field 'name' is missing%0Anext: pytest "
    )
    assert "line=32,title=PHANTOM_FIELD%3A " in phantom
    assert own.startswith(f"::error file={folder}/test_own.py,line=5,title=test_own.py%3A%3A")
    assert "50 %25 of it" in own


@pytest.mark.parametrize(
    ("where", "policy", "told"), [("true", "never", False), ("", "always", True), ("", "", False)]
)
def test_the_setting(
    on_github: Project, monkeypatch: pytest.MonkeyPatch, where: str, policy: str, *, told: bool
) -> None:
    """Never, always, or where GitHub Actions runs it; from the table as from the ini file."""
    monkeypatch.setenv("GITHUB_ACTIONS", where)
    on_github.broken()
    if policy:
        table = f'[tool.pytest-regen]\nannotations = "{policy}"\n'
        (on_github.path / "pyproject.toml").write_text(table, "utf-8")

    assert bool(annotations(on_github.run())) is told


def test_a_file_outside_of_the_repository_is_named_in_words(
    on_github: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """GitHub has no page for it."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path_factory.mktemp("elsewhere")))
    on_github.broken()

    line = annotations(on_github.run())[0]

    assert "file=" not in line
    assert f"{Path(SOURCE).name}" in line
