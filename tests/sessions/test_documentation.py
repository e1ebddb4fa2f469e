"""The page about sessions, executed from top to bottom."""

import json
from pathlib import Path
from typing import Any

import pytest
from pages import blocks
from scenario_doubles import said, scenario

import pytest_regen
from pytest_regen import fail
from pytest_regen.emulator import Emulator, Rule, Script, Step
from pytest_regen.sessions import ScenarioCorrection, ScenarioFeedback, ScenarioGeneratorSession
from pytest_regen.turns import ScriptedProvider

KEPT = (fail, ScenarioCorrection, ScenarioFeedback, ScenarioGeneratorSession)
"""Imported before pytester, which forgets after each run what the run was the first to import."""
PAGE = "docs/sessions.md"

PUBLIC = scenario("/public/a", description="Read a public file")
FIRST = said(
    [
        PUBLIC,
        scenario("/public/a", "escalate", tool="write", description="Write a public file"),
        scenario("/private/a", "escalate", description="Read somebody's file"),
    ]
)
MENDED = said([scenario("/private/a", "deny", description="Read a private file")])
BLAME = {"number": 0, "reason": "No.", "fault": "scenario", "right_decision": "deny"}
REPLIES = [
    '{"names": ["Aran", "Brix", "Corra"]}',
    '{"names": ["Aran", "Dove", "Corra"]}',
    '{"items": [{"name": "Aran", "seats": 80}, {"name": "Brix", "seats": 1200}]}',
    '{"items": [{"name": "Brix", "seats": 120}]}',
    *(FIRST, MENDED),  # of the session
    *(FIRST, json.dumps([BLAME]), MENDED),  # of the loop
]


def test_the_page_does_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block runs, in order, in one program; run again, what is verified asks nobody."""
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider(REPLIES)
    monkeypatch.setattr(pytest_regen, "AnthropicProvider", lambda: provider, raising=False)
    program: dict[str, Any] = {"__name__": "page"}
    *parts, journal, ferries, _ = blocks(PAGE, "python")
    (shown,) = blocks(PAGE, "text")

    exec(compile("\n".join(parts), PAGE, "exec", dont_inherit=True), program)
    asked = len(provider.requests)
    exec(compile(f"{journal}\n{ferries}", PAGE, "exec", dont_inherit=True), program)

    printed = capsys.readouterr().out
    assert "['Aran', 'Dove', 'Corra'] 2" in printed
    assert "True (Ferry(name='Aran', seats=80), Ferry(name='Brix', seats=120))" in printed
    assert printed.endswith(shown)
    assert [(one.description, one.expected_decision) for one in program["scenarios"]] == [
        ("Keys are nobody's business", "deny"),
        ("Read a public file", "allow"),
        ("Write a public file", "escalate"),
        ("Read a private file", "deny"),
    ]
    assert json.loads(Path("verified.json").read_text("utf-8"))["status"] == "verified"
    assert program["report"].cached
    assert asked == len(REPLIES) == len(provider.requests)


def test_the_page_s_test_of_scenarios_learns(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded once, the first set wrong and the second right; then offline."""
    pytester.makepyfile(test_page=blocks(PAGE, "python")[-1])
    first = said([PUBLIC, scenario("/private/a", "escalate")])
    steps = [Step(first), Step(said([scenario("/private/a", "deny")]))]

    with Emulator(script=Script([Rule(steps)])) as emulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulator.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        recorded = pytester.runpytest_inprocess("--regen-record", "once")
        asked = len(emulator.requests)
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        replayed = pytester.runpytest_inprocess()

        assert recorded.parseoutcomes() == replayed.parseoutcomes() == {"regenerated": 1}
        assert len(emulator.requests) == asked == 2
