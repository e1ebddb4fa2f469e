"""The page that leads from one prompt to a verified set is executed, block by block."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

# pytester forgets what an inner run imported; loaded here, it is loaded once.
import pytest_regen.cassettes.vcr_adapter
import pytest_regen.pytest_plugin.healing
import pytest_regen.pytest_plugin.session_handles
import pytest_regen.pytest_plugin.session_healing
import pytest_regen.pytest_plugin.summary
import pytest_regen.pytest_plugin.taping  # noqa: F401 - as above
from pytest_regen import Emulator

PAGE = (Path(__file__).parents[2] / "docs" / "verified-scenarios.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def scenario(tool: str, path: str, decision: str) -> dict[str, Any]:
    """Return a scenario as a model writes it."""
    return {
        "description": f"{tool} {path}",
        "request": {"server_name": "files", "tool_name": tool, "arguments": {"path": path}},
        "expected_decision": decision,
        "reasoning": "Because.",
    }


FIRST = [
    scenario("read", "/public/a", "allow"),
    scenario("write", "/public/a", "escalate"),
    scenario("read", "/private/a", "escalate"),
]
BETTER = [scenario("read", "/private/a", "deny")]


def answer(body: dict[str, Any]) -> str:
    """Answer as a generator that mends what it is told, or as a judge that is right."""
    if "You judge" in json.dumps(body["system"]):
        blame = {"number": 0, "fault": "scenario", "right_decision": "deny", "reason": "Silent."}
        return json.dumps([blame])
    return json.dumps({"scenarios": FIRST if len(body["messages"]) == 1 else BETTER})


def test_the_page_leads_to_a_verified_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sections 1 to 4, one after the other, through the SDK to an emulator."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}

    with Emulator(answer) as emulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", emulator.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none-needed")
        for block in BLOCKS[:4]:
            exec(compile(block, "page", "exec", dont_inherit=True), names)

    assert [one.description for one in names["wrong"]] == ["read /private/a"]
    assert {(one.description, one.expected_decision) for one in names["scenarios"]} == {
        (one["description"], one["expected_decision"]) for one in [*FIRST[:2], *BETTER]
    }
    assert names["report"].passed
    assert "4 scenarios, passed" in capsys.readouterr().out
    assert json.loads(Path("verified/scenarios.json").read_text("utf-8"))["status"] == "verified"


def test_the_page_s_test_learns(pytester: pytest.Pytester) -> None:
    """Section 5: the first set is wrong, the failure is told, the second passes."""
    first = json.dumps({"scenarios": [FIRST[0], FIRST[2]]})
    better = json.dumps({"scenarios": BETTER})
    pytester.makepyfile(test_page=BLOCKS[4])
    pytester.makeconftest(
        "import pytest\n"
        "from pytest_regen import ScriptedProvider\n"
        f"PROVIDER = ScriptedProvider([{first!r}, {better!r}])\n"
        "@pytest.fixture\n"
        "def regen_provider():\n"
        "    return PROVIDER\n"
    )

    result = pytester.runpytest_inprocess("-p", "no:syrupy")

    assert result.parseoutcomes() == {"regenerated": 1}
    assert len(BLOCKS) == 5
