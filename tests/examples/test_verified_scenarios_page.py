"""The page that leads from one prompt to a verified set is done as it says, block by block."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import blocks

from pytest_regen import Emulator, fail
from pytest_regen.sessions import ScenarioCorrection, ScenarioFeedback, ScenarioGeneratorSession

KEPT = (fail, ScenarioCorrection, ScenarioFeedback, ScenarioGeneratorSession)
"""Imported before pytester, which forgets after each run what the run was the first to import."""
PAGE = "docs/verified-scenarios.md"


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An emulator that says what the page has it say, and the environment that leads to it."""
    (replies,) = blocks(PAGE, "yaml")
    script = tmp_path / "replies.yaml"
    script.write_text(replies, "utf-8")
    with Emulator(script=script) as served:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        yield served


def test_the_page_leads_to_a_verified_set(
    emulator: Emulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Sections 1 to 4 in one file: wrong first, then mended, verified, printed as shown."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    (shown,) = blocks(PAGE, "text")

    exec(compile("\n".join(blocks(PAGE, "python")[:4]), "page", "exec", dont_inherit=True), names)

    assert [one.description for one in names["wrong"]] == ["Read somebody's file"]
    assert [(one.description, one.expected_decision) for one in names["scenarios"]] == [
        ("Read a public file", "allow"),
        ("Write a public file", "escalate"),
        ("Read a private file", "deny"),
    ]
    assert capsys.readouterr().out == shown
    assert json.loads(Path("verified/scenarios.json").read_text("utf-8"))["status"] == "verified"
    assert len(emulator.requests) == 5


def test_a_second_run_of_the_page_asks_nobody_about_what_is_verified(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections 1 and 3 ask again; section 4 finds its artifact."""
    monkeypatch.chdir(tmp_path)
    program = compile("\n".join(blocks(PAGE, "python")[:4]), "page", "exec", dont_inherit=True)
    names: dict[str, Any] = {"__name__": "page"}
    exec(program, {"__name__": "page"})
    asked = len(emulator.requests)

    exec(program, names)

    assert names["report"].cached
    assert len(emulator.requests) == asked + 2


def test_the_page_s_test_learns(
    emulator: Emulator, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 5: recorded once, the first set wrong and the second right; then offline."""
    pytester.makepyfile(test_page=blocks(PAGE, "python")[4])

    recorded = pytester.runpytest_inprocess("--regen-record", "once")
    asked = len(emulator.requests)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    replayed = pytester.runpytest_inprocess()

    assert recorded.parseoutcomes() == replayed.parseoutcomes() == {"regenerated": 1}
    assert len(emulator.requests) == asked == 2
    assert len(blocks(PAGE, "python")) == 5
