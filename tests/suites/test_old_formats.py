"""Stores and a ledger of an older release: read as they are, and rewritten as they change.

``old_project.json`` holds the files of a project: its stores have digests of the document, that of
schemas an ``ir_hash``; entries of its ledger have prompts, and one hash of all inputs.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import command

PROJECT: Mapping[str, str] = json.loads(
    Path(__file__).with_name("old_project.json").read_text("utf-8")
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, and the working directory."""
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_old_files_pass_before_anything_is_rewritten(project: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "7 passed" in ran.stdout
    assert "STALE" not in ran.stdout
    assert {name: (project / name).read_text("utf-8") for name in PROJECT} == PROJECT


@pytest.mark.parametrize("what", [["--schemas"], ["GET /kites"]])
def test_an_old_store_changes_with_its_own_types(project: Path, what: list[str]) -> None:
    """Then it has no digest of the document any more, nor a hash of all schemas."""
    document = project / "api.json"
    document.write_text(document.read_text("utf-8").replace('"area"', '"width"'), "utf-8")
    assert command("generate", "api.json", *what, "--out", "generated", "--dry-run").code == 0

    ran = command("generate", "api.json", *what, "--out", "generated", "--provider", "template")

    assert ran.code == 0, ran.err
    folder = project / "generated" / ("schemas" if what == ["--schemas"] else "GET_kites")
    ir = json.loads((folder / "ir.json").read_text("utf-8"))
    pages = json.loads((folder / "pages.json").read_text("utf-8"))
    assert ir["document"] == {"path": "../../api.json"}
    assert ("ir_hash" in pages) == (folder.name == "GET_kites")
    assert command("validate", folder).code == 0


def test_an_old_entry_is_rewritten_without_its_prompt(project: Path) -> None:
    english = project / "locales/en.json"
    english.write_text(english.read_text("utf-8").replace("Toolshelf", "The Toolshelf"), "utf-8")
    assert "[STALE]" in command("validate", "locales/fr.json").told

    assert command("adopt", "locales/fr.json", "--stale").code == 0

    entries = {name: text for name, text in PROJECT.items() if name.startswith(".regen/units/")}
    changed = [name for name in entries if (project / name).read_text("utf-8") != entries[name]]
    (entry,) = (json.loads((project / name).read_text("utf-8")) for name in changed)
    assert entry["name"] == "app.title"
    assert "inputs_sha256" not in entry
    assert command("validate", "locales/fr.json").code == 0
