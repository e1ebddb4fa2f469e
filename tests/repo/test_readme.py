"""What the README shows is true: its blocks are executed, its links lead somewhere."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from pages import PROGRAMS, ROOT, blocks, environment, printed, sessions
from tables import each
from warm_python import run_python

README = "README.md"
OWN = 2
"""Of the sessions, the first are those in a project of the reader's own."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example, one of its types broken as in the demonstration."""
    copy = tmp_path / "csharp_dto"
    shutil.copytree(ROOT / "examples" / "csharp_dto", copy)
    code = "import demo, sys, pathlib; demo.break_one_type(pathlib.Path(sys.argv[1]) / demo.STORE)"
    run_python(["-c", code, "."], copy, environment()).check_returncode()
    return copy


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A project of the reader's: the function, the setting and the description of the page."""
    files = {"src/acme/durations.py": "python", "pyproject.toml": "toml", "api.yaml": "yaml"}
    for name, kind in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(blocks(README, kind)[0], "utf-8")
    return tmp_path


@pytest.mark.parametrize("text", blocks(README, "console")[:OWN])
def test_what_is_the_readers_own_is_gated_without_a_key(text: str, own: Path) -> None:
    """A function and an API of one's own are gated by two commands each, which show this."""
    shows(text, own)


@pytest.mark.parametrize("text", blocks(README, "console")[OWN:])
def test_a_session_shows_what_it_says(text: str, project: Path) -> None:
    """Each command is run in the example; the lines shown are printed, in that order."""
    shows(text, project)


def shows(text: str, folder: Path) -> None:
    """Run the commands of a session in ``folder``; hold what they print against the page."""
    for command, shown in sessions(text):
        lines = iter([comparable(line) for line in printed(command, folder, {"COLUMNS": "100"})])

        for wanted in shown:
            # Searching goes on behind the line found before; an ellipsis stands for any lines.
            assert wanted == "…" or comparable(wanted) in lines, wanted


def comparable(line: str) -> str:
    """Return a line without what differs from run to run: times, rules, others' warnings."""
    line = re.sub(r"\d+ warnings?, ", "", line)
    line = re.sub(r", \d+ warnings?", "", line)
    return re.sub(r"\bin \d+\.\d+s$", "in 0.00s", line.strip("= "))


@pytest.mark.parametrize("text", blocks(README, "python")[1:])
def test_a_piece_of_python_runs(text: str, project: Path) -> None:
    """Tests are run by pytest, anything else as a program, in the example."""
    file = project / ("test_readme.py" if "def test_" in text else "readme.py")
    file.write_text(text, "utf-8")
    command = [*PROGRAMS["pytest"], "-q", file.name] if "def test_" in text else []

    run_python([*command, file.name], project, environment()).check_returncode()


def test_settings_are_toml_and_yaml() -> None:
    """The blocks of configuration can be read."""
    assert all(tomllib.loads(text) for text in blocks(README, "toml"))
    assert all(yaml.safe_load(text) for text in blocks(README, "yaml"))


@each(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link of every page leads to a file of the project."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))

    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert not broken
