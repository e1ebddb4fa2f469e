"""A project whose candidates are reviewed."""

import json
import sys
from pathlib import Path

import pytest
from command_line import command
from unit_project import KIND, SETTINGS
from unit_work import ENGLISH, GERMAN, write_json

__all__ = ["FILE", "WRONG", "german", "write_project"]

FILE = "locales/de.json"
WRONG = {**GERMAN, "berth": "Liegeplatz", "leave": "Ab"}


def write_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the project of the documentation into the working directory, and record its strings."""
    (root / "pyproject.toml").write_text(SETTINGS, "utf-8")
    (root / "regen_kinds.py").write_text(KIND, "utf-8")
    write_json(root / "locales/en.json", ENGLISH)
    write_json(root / FILE, WRONG)
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    assert command("adopt", FILE).code == 1  # Recorded, and wrong.


def german(root: Path) -> dict[str, str]:
    """Return what stands in the file."""
    strings: dict[str, str] = json.loads((root / FILE).read_text("utf-8"))
    return strings
