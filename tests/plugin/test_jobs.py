"""``--regen-jobs``: failing types and units are asked for at the same time, ahead of their turn."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from plugin_project import Project, emulated
from store_factory import GOOD, MISSPELT

from pytest_regen.emulator import EmulatedReply
from pytest_regen.stores import RegenStore

ALIKE = ("--regen", "--regen-record", "once")


class Together:
    """Answers once as many requests as are expected wait for an answer, or none comes any more."""

    def __init__(self, expected: int) -> None:
        self.most = 0
        self._expected = expected
        self._now = 0
        self._guard = threading.Condition()

    def __call__(self, body: dict[str, Any]) -> str:
        """Return the code of ``Owner`` as it must be."""
        with self._guard:
            self._now += 1
            self.most = max(self.most, self._now)
            self._guard.notify_all()
            self._guard.wait_for(lambda: self.most >= self._expected, timeout=2)
            self._now -= 1
        return GOOD["Owner", 1]


def _report(project: Project, name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((project.path / name).read_text("utf-8"))
    return report


def _files(project: Project) -> dict[str, str]:
    """Return what the stores hold, but for the times."""
    found = {}
    for path in sorted((project.path / "generated").rglob("*")):
        if path.is_file() and path.suffix in {".cs", ".json"}:
            text = path.read_text("utf-8")
            if path.name == "pages.json":
                text = "\n".join(line for line in text.splitlines() if "generated_at" not in line)
            found[str(path.relative_to(project.path))] = text
    return found


def test_all_that_fail_are_asked_at_the_same_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over several stores: four requests wait for the model together, each type is regenerated."""
    for number in range(4):
        project.broken(f"GET_{number}")
    model = Together(4)

    with emulated(monkeypatch, model) as api:
        result = project.run(*ALIKE, "--regen-jobs=4")
        assert len(api.requests) == 4

    assert result.parseoutcomes() == {"passed": 8, "regenerated": 4}
    assert model.most == 4
    assert project.run().ret == 0
