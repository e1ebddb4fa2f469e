"""What commands show on GitHub: annotations on stderr."""

from pathlib import Path

import pytest
from command_line import Ran, command


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
    ran = command("validate", broken, "--json")

    place = f"{broken.as_posix()}/ProjectDataObject.cs"
    assert ran.json["stores"][0]["ok"] is False
    missing, phantom = annotations(ran)
    assert missing.startswith(f"::error file={place},title=MISSING_FIELD%3A ")
    assert phantom.startswith(f"::error file={place},line=32,title=PHANTOM_FIELD%3A ")


def test_cassettes_check(job: Path) -> None:
    key = "sk-ant-api03-" + "planted0" * 12
    folder = job / "cassettes"
    folder.mkdir()
    body = f"version: 1\ninteractions:\n- request:\n    body: '{key}'\n    uri: http://a/\n"
    (folder / "a.yaml").write_text(body, "utf-8")

    ran = command("cassettes", "check", folder)

    assert any(line.startswith("::error file=cassettes/a.yaml,") for line in annotations(ran))
    assert key not in ran.told
