"""What commands show on GitHub: annotations on stderr, and their part of the job summary."""

import json
from pathlib import Path

import pytest
from command_line import Ran, command
from unit_project import KIND, SETTINGS
from unit_work import ENGLISH, GERMAN, write_json


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the page, in a job of GitHub Actions."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    return tmp_path / "page.md"


def annotations(ran: Ran) -> list[str]:
    """Return the lines that GitHub takes for commands; none of them is on stdout."""
    assert "::error" not in ran.out
    return [line for line in ran.told.splitlines() if line.startswith("::")]


def test_validate(broken: Path, page: Path) -> None:
    """Each error at its line; the page has verdict, table and next command. With --json too."""
    ran = command("validate", broken, "--json")

    place = f"{broken.as_posix()}/ProjectDataObject.cs"
    assert ran.json["stores"][0]["ok"] is False
    missing, phantom = annotations(ran)
    assert missing.startswith(f"::error file={place},title=MISSING_FIELD%3A ")
    assert phantom.startswith(f"::error file={place},line=32,title=PHANTOM_FIELD%3A ")
    text = page.read_text("utf-8")
    assert text.startswith("### pytest-regen validate: 1 of 1 place with errors\n\n| failing |")
    assert text.endswith(f"Next: `pytest-regen regenerate {broken} --from-errors`\n\n")


def test_validate_without_errors(good: Path, page: Path) -> None:
    """A page that people look at says that it was looked at."""
    ran = command("validate", good)

    assert annotations(ran) == []
    assert page.read_text("utf-8") == "### pytest-regen validate: 1 place without errors\n\n"


def test_elsewhere_nothing_of_it(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a line nor a file."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    assert annotations(command("validate", broken)) == []


def test_units(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate names the line of a unit; generate --check says what would be asked for."""
    here = page.parent
    (here / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (here / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(here / "locales/en.json", ENGLISH)
    monkeypatch.chdir(here)
    write_json(here / "locales/de.json", {**GERMAN, "berth": "Liegeplatz"})

    wrong = annotations(command("validate"))

    assert wrong[0].startswith("::error file=locales/de.json,line=2,title=PLACEHOLDER%3A ")
    assert len(wrong) == 1
    (here / "locales/de.json").write_text(json.dumps({}), "utf-8")
    missing = annotations(command("generate", "locales/de.json", "--check"))
    assert len(missing) == len(GERMAN)
    assert "title=out of date%3A locales/de.json%3A%3Aberth::it was never written" in missing[0]
    assert "### pytest-regen generate --check: 0 places up to date, " in page.read_text("utf-8")


def test_cassettes_check(page: Path) -> None:
    """A secret at its line, without the secret."""
    key = "sk-ant-api03-" + "planted0" * 12
    folder = page.parent / "cassettes"
    folder.mkdir()
    body = f"version: 1\ninteractions:\n- request:\n    body: '{key}'\n    uri: http://a/\n"
    (folder / "a.yaml").write_text(body, "utf-8")

    ran = command("cassettes", "check", folder)

    assert any(line.startswith("::error file=cassettes/a.yaml,") for line in annotations(ran))
    assert key not in ran.told + page.read_text("utf-8")
    assert page.read_text("utf-8").startswith("### pytest-regen cassettes check: 1 cassette, ")
