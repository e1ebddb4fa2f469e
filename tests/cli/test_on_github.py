"""What commands show on GitHub: annotations on stderr."""

from pathlib import Path

import pytest
from command_line import Ran, command
from unit_project import KIND, SETTINGS
from unit_work import ENGLISH, GERMAN, write_json


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of a job of GitHub Actions."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    return tmp_path


def annotations(ran: Ran) -> list[str]:
    """Return the lines that GitHub takes for commands; none of them is on stdout."""
    assert "::error" not in ran.out
    return [line for line in ran.told.splitlines() if line.startswith("::")]


@pytest.mark.usefixtures("job")
def test_validate(broken: Path) -> None:
    """Each error at its line. With --json too."""
    ran = command("validate", broken, "--json")

    place = f"{broken.as_posix()}/ProjectDataObject.cs"
    assert ran.json["stores"][0]["ok"] is False
    missing, phantom = annotations(ran)
    assert missing.startswith(f"::error file={place},title=MISSING_FIELD%3A ")
    assert phantom.startswith(f"::error file={place},line=32,title=PHANTOM_FIELD%3A ")


@pytest.mark.usefixtures("job")
def test_validate_without_errors(good: Path) -> None:
    """What is right is told by nothing."""
    assert annotations(command("validate", good)) == []


def test_elsewhere_nothing_of_it(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a line nor a file."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    assert annotations(command("validate", broken)) == []


def test_units(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate names the line of a unit."""
    (job / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (job / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(job / "locales/en.json", ENGLISH)
    monkeypatch.chdir(job)
    write_json(job / "locales/de.json", {**GERMAN, "berth": "Liegeplatz"})

    (wrong,) = annotations(command("validate"))

    assert wrong.startswith("::error file=locales/de.json,line=2,title=PLACEHOLDER%3A ")


def test_cassettes_check(job: Path) -> None:
    """A secret at its line, without the secret."""
    key = "sk-ant-api03-" + "planted0" * 12
    folder = job / "cassettes"
    folder.mkdir()
    body = f"version: 1\ninteractions:\n- request:\n    body: '{key}'\n    uri: http://a/\n"
    (folder / "a.yaml").write_text(body, "utf-8")

    ran = command("cassettes", "check", folder)

    assert any(line.startswith("::error file=cassettes/a.yaml,") for line in annotations(ran))
    assert key not in ran.told
