"""The page about sessions, executed from top to bottom."""

import re
from pathlib import Path
from typing import Any

import pytest
from scenario_doubles import said, scenario

import pytest_regen
from pytest_regen.sessions import Judgement
from pytest_regen.turns import ScriptedProvider

PAGE = Path(__file__).parents[2] / "docs" / "sessions.md"

LOG = scenario("/var/log", "allow", description="Read the log")
REPLIES = [
    '{"names": ["Aran", "Brix", "Corra"]}',
    '{"names": ["Aran", "Dove", "Corra"]}',
    '{"items": [{"name": "Aran", "seats": 80}, {"name": "Brix", "seats": 1200}]}',
    '{"items": [{"name": "Brix", "seats": 120}]}',
    said([scenario("/home/a"), LOG]),
    said([scenario("/var/log", "escalate", description="Read the system log")]),
]


class Ruled:
    """A decision."""

    decision, rule = "allow", "rule"


class Parts:
    """A compiler, an engine, a judge and a source that have nothing to repair."""

    fingerprint = "1"

    def compile(self) -> dict[str, Any]:
        """Return the policy."""
        return {}

    def evaluate(self, _: object) -> Ruled:
        """Return the decision."""
        return Ruled()

    def judge(self, *_: object) -> Judgement:
        """Return an opinion."""
        return Judgement()

    def generate(self) -> list[Any]:
        """Return scenarios."""
        return [scenario("/home/a")]


def test_the_page_does_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block runs, in order, in one program."""
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider(REPLIES)
    monkeypatch.setattr(pytest_regen, "AnthropicProvider", lambda: provider, raising=False)
    parts = Parts()
    program: dict[str, Any] = {
        "compiler": parts,
        "judge": parts,
        "engine": lambda _: parts,
        "generator": lambda _: parts,
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        if "LoopParts" in block:
            program["handwritten"] = []
        exec(compile(block, str(PAGE), "exec"), program)

    printed = capsys.readouterr().out
    assert "['Aran', 'Dove', 'Corra'] 2" in printed
    assert "True (Ferry(name='Aran', seats=80), Ferry(name='Brix', seats=120))" in printed
    assert "1 scenario, passed" in printed
    assert [one.description for one in program["scenarios"]] == [
        "Read the password file",
        "read /home/a",
        "Read the system log",
    ]
    assert program["report"].passed
