"""What the README shows is true: its blocks are executed, its links lead somewhere."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
    "pytest-regen": [sys.executable, "-m", "pytest_regen"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example, one of its types broken as in the demonstration."""
    copy = tmp_path / "csharp_dto"
    shutil.copytree(ROOT / "examples" / "csharp_dto", copy)
    code = "import demo, sys, pathlib; demo.break_one_type(pathlib.Path(sys.argv[1]) / demo.STORE)"
    subprocess.run([sys.executable, "-c", code, "."], cwd=copy, check=True, env=environment())
    return copy


def environment() -> dict[str, str]:
    """Return the environment of a user at a wide terminal, outside CI."""
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


def blocks(kind: str) -> list[str]:
    """Return the README's blocks of one kind."""
    return [text for found, text in BLOCKS if found == kind]


@pytest.mark.parametrize("text", blocks("console"))
def test_a_session_shows_what_it_says(text: str, project: Path) -> None:
    """Each command is run in the example; each line shown is among the lines it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        program, *options = shlex.split(line)

        done = subprocess.run(
            [*PROGRAMS[program], *options],
            cwd=project,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )

        printed = [out.strip() for out in (done.stdout + done.stderr).splitlines()]
        for wanted in filter(None, map(str.strip, shown.splitlines())):
            pattern = wanted.replace("[", "[[]")
            assert any(fnmatch(out, pattern) for out in printed), (wanted, printed)


@pytest.mark.parametrize("text", blocks("python"))
def test_a_piece_of_python_runs(text: str, project: Path) -> None:
    """Tests are run by pytest, anything else as a program, in the example."""
    file = project / ("test_readme.py" if "def test_" in text else "readme.py")
    file.write_text(text, "utf-8")
    command = [*PROGRAMS["pytest"], "-q", file.name] if "def test_" in text else [sys.executable]

    subprocess.run([*command, file.name], cwd=project, env=environment(), check=True)


def test_settings_are_toml_and_yaml() -> None:
    """The blocks of configuration can be read."""
    assert all(tomllib.loads(text) for text in blocks("toml"))
    assert all(yaml.safe_load(text) for text in blocks("yaml"))


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link of every page leads to a file of the project."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))

    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert not broken


def test_every_page_is_linked() -> None:
    """A page of the docs that nobody finds is no page."""
    pages = sorted((ROOT / "docs").glob("*.md"))

    assert not [page.name for page in pages if f"docs/{page.name}" not in README]
